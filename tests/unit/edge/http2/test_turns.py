"""One call of `receive` does a bounded amount of work, whatever frames come: counted in lines of Python that it runs.

A line takes a tenth of a microsecond, more or less: 10,000 lines are a millisecond.
"""

from __future__ import annotations

import gc
import sys
from collections.abc import Callable
from random import Random
from types import FrameType
from typing import Any

import pytest

from bench.neighbours.offences import BY_KEY
from edge.http2 import frames
from edge.http2.errors import ErrorCode
from edge.http2.hpack import string
from edge.http2.open_streams import STREAM_WINDOW
from tests.unit.edge.http2.machine import GET, POST, Machine

MAX_LINES = 24_000
PIECE_BYTES = 262_144  # more than any transport delivers at once
WHOLE = frames.END_HEADERS | frames.END_STREAM


def lines_of(call: Callable[[], object]) -> int:
    """Return how many lines of Python a call runs, without those of what is collected meanwhile from other tests."""
    count = 0

    def local(frame: FrameType, event: str, argument: Any) -> Any:
        nonlocal count
        count += event == "line"
        return local

    before = sys.gettrace()
    gc.disable()
    sys.settrace(lambda frame, event, argument: local)
    try:
        call()
    finally:
        sys.settrace(before)
        gc.enable()
    return count


def most_lines(machine: Machine, data: bytes) -> int:
    """Feed the data in large pieces; return the most lines that one call of `receive` ran."""
    connection, most = machine.connection, 0
    for start in range(0, len(data), PIECE_BYTES):
        piece = data[start : start + PIECE_BYTES]
        most = max(most, lines_of(lambda: connection.receive(piece)))  # noqa: B023 - called at once
        while connection.has_more:
            machine.take()
            most = max(most, lines_of(lambda: connection.receive(b"")))
        machine.take()
    return most


@pytest.mark.parametrize("key", [key for key, offence in BY_KEY.items() if offence.is_http2])
@pytest.mark.parametrize("answers", [True, False])
def test_offence_is_read_in_bounded_pieces(key: str, answers: bool) -> None:
    assert most_lines(Machine(answers=answers), BY_KEY[key].make(Random(1))) < MAX_LINES


def stream(number: int) -> int:
    return 2 * number + 1


FLOODS: dict[str, Callable[[Random], bytes]] = {
    "data": lambda rng: frames.frame(frames.DATA, 0, 1, rng.randbytes(rng.randrange(20))),
    "padded data": lambda rng: frames.frame(frames.DATA, frames.PADDED, 1, b"\x08a" + bytes(8)),
    "data of a full frame": lambda rng: frames.frame(frames.DATA, 0, 1, bytes(16_384)),
    "headers": lambda rng: frames.frame(frames.HEADERS, WHOLE, 1, b"\x82"),
    "priority": lambda rng: frames.frame(frames.PRIORITY, 0, rng.randrange(1, 99), bytes(5)),
    "rst_stream": lambda rng: frames.rst_stream(stream(rng.randrange(50)), rng.randrange(20)),
    "settings": lambda rng: frames.settings(((rng.randrange(1, 9), 65_535),) * rng.randrange(2_000)),
    "settings that move windows": lambda rng: frames.settings(((4, rng.randrange(1 << 20)),) * 2_700),
    "settings ack": lambda rng: frames.SETTINGS_ACK,
    "push_promise": lambda rng: frames.frame(frames.PUSH_PROMISE, 4, 1, bytes(4)),
    "ping": lambda rng: frames.frame(frames.PING, rng.randrange(2), 0, rng.randbytes(8)),
    "goaway": lambda rng: frames.goaway(0, 0, rng.randbytes(rng.randrange(100))),
    "window_update": lambda rng: frames.window_update(stream(rng.randrange(50)), rng.randrange(1, 99)),
    "window_update of the connection": lambda rng: frames.window_update(0, rng.randrange(1, 99)),
    "continuation": lambda rng: frames.frame(frames.CONTINUATION, 0, 1, b""),
    "priority_update": lambda rng: frames.frame(frames.PRIORITY_UPDATE, 0, 0, bytes((0, 0, 0, 5)) + b"u=1," * 9),
    "an unknown one": lambda rng: frames.frame(rng.randrange(0x11, 256), rng.randrange(256), 0, rng.randbytes(9)),
}


@pytest.mark.parametrize("kind", FLOODS)
@pytest.mark.parametrize("seed", range(3))
def test_flood_of_each_frame_is_read_in_bounded_pieces(kind: str, seed: int) -> None:
    rng = Random(seed)
    machine = Machine().start()
    for number in range(50):
        machine.post(stream(number))
    machine.connection._budgets.served = 1 << 30  # budgets end it no sooner than this bound
    flood = b"".join(FLOODS[kind](rng) for _ in range(5_000))[: 4 * STREAM_WINDOW]
    most = most_lines(machine, flood)
    assert most < MAX_LINES, most


@pytest.mark.parametrize("seed", range(10))
def test_any_mixture_of_frames_is_read_in_bounded_pieces(seed: int) -> None:
    rng = Random(seed)
    machine = Machine(answers=bool(seed % 2)).start()
    machine.connection._budgets.served = 1 << 30
    pieces = []
    for number in range(2_000):
        fields = [(b"x-%d" % rng.randrange(30), b"v" * rng.randrange(200)) for _ in range(rng.randrange(30))]
        flags = rng.choice((WHOLE, frames.END_HEADERS))
        block = machine.block([*(GET if flags == WHOLE else POST), *fields])
        pieces.append(frames.frame(frames.HEADERS, flags, stream(number), block))
        pieces += (FLOODS[kind](rng) for kind in rng.choices(("data", "ping", "window_update", "rst_stream"), k=3))
    most = most_lines(machine, b"".join(pieces))
    assert most < MAX_LINES, most


def test_block_that_evicts_the_table_again_and_again_is_bounded() -> None:
    machine = Machine().start()
    fields = b"".join(b"\x40" + string(b"%d" % number) + string(b"") for number in range(200))
    blocks = [machine.block(GET) + fields, *([machine.block(GET) + b"\x40\x01x" + string(b"v" * 4_000) + fields] * 50)]
    data = b"".join(frames.frame(frames.HEADERS, WHOLE, stream(n), block) for n, block in enumerate(blocks))
    assert most_lines(machine, data) < MAX_LINES


BLOCKS_OF_A_LONG_HEAD: dict[str, Callable[[int], bytes]] = {
    "known by its surroundings": lambda number: b"\x82\x87\x01\x01a\x04\x02/%c\xbe" % (97 + number % 20),
    "of a known form": lambda number: b"\x82\x87\x84\x01\x01a\xbe\x0f\x01\x01%c" % (97 + number % 20),
    "that varies": lambda number: b"\x82\x87\x84\x01\x01a\xbe\x0f\x01" + string(b"%d" % 9**number),
}


@pytest.mark.parametrize("way", BLOCKS_OF_A_LONG_HEAD)
def test_long_heads_that_short_blocks_refer_to_are_few_in_one_call(way: str) -> None:
    """What an owner does with a head takes the longer, the longer it is."""
    machine, block = Machine(answers=True).start(), BLOCKS_OF_A_LONG_HEAD[way]
    machine.frame(frames.HEADERS, WHOLE, 1, machine.block(GET) + b"\x40\x01x" + string(b"v" * 3_900))
    for number in range(1, 9):
        machine.frame(frames.HEADERS, WHOLE, stream(number), block(number))
    following = (frames.frame(frames.HEADERS, WHOLE, stream(number), block(number)) for number in range(9, 60))
    machine.connection.receive(b"".join(following))
    assert all(len(machine.made[stream(number)].head) > 3_900 for number in range(9))
    assert 1 <= len(machine.made) - 9 <= 5


def test_failure_leaves_cancelling_to_its_owner() -> None:
    machine = Machine().start()
    for number in range(100):
        machine.request(stream_id=stream(number))
    machine.frame(frames.PING, 0, 0, b"")
    assert machine.failure is ErrorCode.FRAME_SIZE_ERROR
    assert machine.connection.streams == {}
    assert {recorded.code for recorded in machine.made.values()} == {ErrorCode.FRAME_SIZE_ERROR}
