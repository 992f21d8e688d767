"""Budgets of HTTP/2: each attack ends with GOAWAY after a bounded number of frames, however it is spread over time."""

from __future__ import annotations

import pytest

from edge.http2 import budgets, frames
from edge.http2.errors import ErrorCode
from edge.http2.frames import (
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    PING,
    PRIORITY,
    PRIORITY_UPDATE,
    SETTINGS,
)
from edge.http2.hpack import string
from edge.http2.output import HIGH_BYTES, LOW_BYTES, MAX_HELD_BYTES
from edge.http2.request_streams import MAX_FIELDS
from tests.unit.edge.http2.conformance import respond
from tests.unit.edge.http2.machine import GET, POST, Machine

PATIENCE = 20_000


def until_end(client: Machine, attack: list[bytes]) -> int:
    """Repeat a piece of input until the connection ends; return how often."""
    for number in range(PATIENCE):
        client.feed(attack[number % len(attack)])
        if client.connection.failure is not None:
            assert client.failure is ErrorCode.ENHANCE_YOUR_CALM
            return number
    raise AssertionError("the connection never ended")


def allowed(name: str) -> int:
    return next(allowance.base for allowance in budgets.ALLOWANCES if allowance.name == name)


def test_rapid_reset_cve_2023_44487() -> None:
    client = Machine().start()
    for number in range(allowed("early_ends") + 1):
        client.request(stream_id=2 * number + 1)
        client.feed(frames.rst_stream(2 * number + 1, ErrorCode.CANCEL))
        assert client.connection.streams == {}
    assert client.budget == "early_ends"


@pytest.mark.parametrize(
    "provoke",
    [
        lambda stream_id: frames.window_update(stream_id, 0),
        lambda stream_id: frames.window_update(stream_id, 2**31 - 1),
        lambda stream_id: frames.frame(DATA, 0, stream_id, b"x"),
        lambda stream_id: frames.frame(HEADERS, END_HEADERS | END_STREAM, stream_id, b"\x82"),
    ],
)
def test_made_you_reset_cve_2025_8671(provoke) -> None:  # type: ignore[no-untyped-def]
    client = Machine().start()
    for number in range(allowed("early_ends") + 1):
        client.request(stream_id=2 * number + 1)
        client.feed(provoke(2 * number + 1))
        assert client.connection.streams == {}
    assert client.budget == "early_ends"


def test_malformed_requests_and_refused_streams_count_as_early_ends() -> None:
    client = Machine().start()
    for number in range(allowed("early_ends") + 1):
        client.request([*GET, (b"connection", b"close")], 2 * number + 1)
    assert client.budget == "early_ends"


def test_whole_responses_earn_early_ends() -> None:
    client = Machine(answers=True).start()
    for number in range(1000):
        client.request(stream_id=4 * number + 1)
        client.answers = number % 3 != 0
        client.request(stream_id=4 * number + 3)
        client.answers = True
        if number % 3 == 0:
            client.feed(frames.rst_stream(4 * number + 3, ErrorCode.CANCEL))
    assert client.failure is None


def test_continuation_flood_cve_2024_27983() -> None:
    client = Machine().start()
    client.frame(HEADERS, 0, 1, b"")
    assert until_end(client, [frames.frame(CONTINUATION, 0, 1, b"")]) == budgets.MAX_CONTINUATIONS
    assert client.budget == "continuations"


def test_continuation_flood_of_octets_cve_2024_27316() -> None:
    client = Machine().start()
    client.frame(HEADERS, 0, 1, bytes(16_000))
    until_end(client, [frames.frame(CONTINUATION, 0, 1, bytes(16_000))])
    assert client.budget == "header_bytes"
    assert client.connection._block.stream_id == 0


def test_hpack_bomb_cve_2016_6581() -> None:
    client = Machine().start()
    fields = b"\x40\x01x" + string(b"v" * 4000)
    client.frame(HEADERS, END_HEADERS | END_STREAM, 1, client.block(GET) + fields + b"\xbe" * MAX_FIELDS)
    assert client.budget == "header_fields"


def test_zero_length_headers_cve_2019_9516() -> None:
    client = Machine().start()
    client.frame(HEADERS, END_HEADERS | END_STREAM, 1, b"\x00\x00\x00" * (MAX_FIELDS + 1))
    assert client.budget == "header_fields"


@pytest.mark.parametrize("flags", [0, frames.ACK])
def test_ping_flood_cve_2019_9512(flags: int) -> None:
    client = Machine().start()
    assert until_end(client, [frames.frame(PING, flags, 0, bytes(8))]) == allowed("pings")
    assert client.budget == "pings"


def test_settings_flood_cve_2019_9515() -> None:
    client = Machine().start()
    attack = [frames.settings(((frames.INITIAL_WINDOW_SIZE, 0),)), frames.settings(((frames.INITIAL_WINDOW_SIZE, 9),))]
    assert until_end(client, attack) == allowed("settings")
    assert client.budget == "settings"
    assert until_end(Machine().start(), [frames.SETTINGS_ACK]) == allowed("settings")


def test_one_settings_frame_moves_windows_once() -> None:
    client = Machine().start()
    client.request()
    client.feed(frames.frame(SETTINGS, 0, 0, b"\0\4\0\0\0\0\0\4\0\0\1\0" * 1300))
    assert client.made[1].send_window == 256


def test_empty_data_cve_2019_9518() -> None:
    client = Machine().start()
    client.post()
    assert until_end(client, [frames.frame(DATA, 0, 1)]) == allowed("empty_data")
    assert client.budget == "empty_data"


def test_empty_data_in_padding_is_empty_data() -> None:
    client = Machine().start()
    client.post()
    assert until_end(client, [frames.frame(DATA, frames.PADDED, 1, b"\x05" + bytes(5))]) == allowed("empty_data")


@pytest.mark.parametrize("stream_id", [0, 1])
def test_window_update_flood_cve_2019_9511(stream_id: int) -> None:
    client = Machine().start((frames.INITIAL_WINDOW_SIZE, 0))
    client.request()
    assert until_end(client, [frames.window_update(stream_id, 1)]) == allowed("window_updates")
    assert client.budget == "window_updates"


def test_data_dribble_cve_2019_9511() -> None:
    client = Machine().start((frames.INITIAL_WINDOW_SIZE, 0))
    client.request()
    respond(client, 1, 60_000)
    assert until_end(client, [frames.window_update(1, 1)]) <= allowed("window_updates") + 10
    assert client.budget == "window_updates"


@pytest.mark.parametrize("each", [4_096, 2**31 - 1])
def test_windows_opened_for_each_few_octets_that_came_are_not_a_flood(each: int) -> None:
    client = Machine().start()
    client.request()
    stream = client.made[1]
    client.connection.send_head(stream, b"\x88")
    for _ in range(1_500):  # each is more than one DATA frame
        client.connection.send_data(stream, bytes(20_000))
        for frame in filter(lambda frame: frame.kind == DATA, client.take()):
            for at in range(0, len(frame.payload), each):
                size = len(frame.payload[at : at + each])
                client.feed(frames.window_update(0, size) + frames.window_update(1, size))
    assert client.failure is None


def test_windows_opened_for_each_small_frame_are_not_a_flood() -> None:
    client = Machine().start()
    client.request()
    stream = client.made[1]
    client.connection.send_head(stream, b"\x88")
    for _ in range(3_000):
        client.connection.send_data(stream, b"data: an event\n\n")
        client.take()
        client.feed(frames.window_update(0, 16) + frames.window_update(1, 16))
    assert client.failure is None


@pytest.mark.parametrize(
    "frame",
    [frames.frame(PRIORITY, 0, 1, bytes(5)), frames.frame(PRIORITY_UPDATE, 0, 0, b"\0\0\0\1u=1")],
)
def test_priority_flood_cve_2019_9513(frame: bytes) -> None:
    client = Machine().start()
    client.request()
    assert until_end(client, [frame]) == allowed("priorities")
    assert client.budget == "priorities"


def test_priorities_of_streams_to_come_are_bounded() -> None:
    client = Machine().start()
    for number in range(450):
        client.frame(PRIORITY_UPDATE, 0, 0, (2 * number + 1).to_bytes(4, "big") + b"u=0" * 5000)
    assert sum(map(len, client.connection._early_priorities.values())) <= 256 * 64


@pytest.mark.parametrize("frame", [frames.frame(0xEE, 0, 0), frames.rst_stream(1, 8)])
def test_frames_that_are_ignored_are_counted(frame: bytes) -> None:
    client = Machine(answers=True).start()
    client.request()
    until_end(client, [frame])
    assert client.budget == "ignored_frames"


def test_frames_behind_goaway_are_counted() -> None:
    client = Machine(answers=True).start()
    client.connection.go_away(is_final=True)
    for number in range(PATIENCE):
        client.request(stream_id=2 * number + 1)
        if client.failure is not None:
            break
    assert client.budget == "ignored_frames"


@pytest.mark.parametrize(
    "frame", [frames.frame(PING, 0, 0, bytes(8)), frames.settings(()), frames.frame(HEADERS, 5, 1, b"")]
)
def test_answers_that_the_client_does_not_read_are_bounded_cve_2019_9517(frame: bytes) -> None:
    client = Machine().start()
    client.connection._budgets.served = 1 << 30  # the other budgets are ample
    for number in range(PATIENCE):
        if frame[3] == HEADERS:
            frame = frames.frame(HEADERS, 5, 2 * number + 1, b"\x82")
        client.connection.receive(frame)
        if client.failure is not None:
            break
    assert client.budget == "unread_answers"
    assert sum(map(len, client.connection._output.control)) < budgets.MAX_UNREAD_ANSWER_BYTES + 200


def test_zero_windows_hold_a_bounded_amount_cve_2019_9517() -> None:
    client = Machine().start((frames.INITIAL_WINDOW_SIZE, 0))
    streams = [client.made[2 * n + 1] for n in range(100) if client.request(stream_id=2 * n + 1) is not None]
    for _ in range(100):  # origins that stop when they are asked to
        for stream in streams:
            if not stream.is_full:
                client.connection.send_data(stream, bytes(4096))
        client.take()
    assert client.connection.held_bytes <= MAX_HELD_BYTES + len(streams) * 4096
    assert all(stream.pending_bytes <= HIGH_BYTES + 4096 for stream in streams)


def test_stream_has_room_again_once_the_client_took_what_waited() -> None:
    client = Machine().start()
    client.request()
    stream = client.made[1]
    client.connection.send_head(stream, b"\x88")
    while not stream.is_full:
        client.connection.send_data(stream, bytes(10_000))
    client.take()
    assert not stream.has_room
    client.feed(frames.window_update(0, 65_535) + frames.window_update(1, 65_535))
    assert stream.has_room
    assert stream.pending_bytes <= LOW_BYTES


def test_reset_frees_what_a_stream_held() -> None:
    client = Machine().start((frames.INITIAL_WINDOW_SIZE, 0))
    client.request()
    client.connection.send_data(client.made[1], bytes(50_000))
    client.feed(frames.rst_stream(1, ErrorCode.CANCEL))
    assert client.connection.held_bytes == 0
    assert client.connection.streams == {}


def test_every_budget_is_named_once() -> None:
    assert len(set(budgets.NAMES)) == len(budgets.NAMES)
    assert set(budgets.__doc__.split()) >= set(budgets.NAMES)


@pytest.mark.parametrize(("references", "budget"), [(20, ""), (40, "header_bytes"), (200, "header_bytes")])
def test_what_a_block_unfolds_to_is_bounded(references: int, budget: str) -> None:
    client = Machine().start()
    client.frame(HEADERS, END_HEADERS, 1, client.block([*POST, (b"x", b"v" * 3900)]) + b"\xbe" * references)
    assert client.budget == budget


def test_streams_are_reset_in_bounded_numbers_at_once() -> None:
    client = Machine().start()
    for number in range(90):
        client.request(stream_id=2 * number + 1)
    client.connection.receive(b"".join(frames.rst_stream(2 * number + 1, ErrorCode.CANCEL) for number in range(90)))
    assert client.connection.has_more
    assert 90 - 34 < len(client.connection.streams) < 90
