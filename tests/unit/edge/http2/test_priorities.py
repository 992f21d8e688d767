"""RFC 9218: which response is sent first when not all can be."""

from __future__ import annotations

import pytest

from edge.http2 import frames
from edge.http2.output import MAX_DATA_BYTES
from edge.http2.priorities import read_priority
from tests.unit.edge.http2.machine import GET, Machine


@pytest.mark.parametrize(
    ("value", "priority"),
    [
        (b"", (3, False)),
        (b"u=0", (0, False)),
        (b"u=5, i", (5, True)),
        (b"i, u=7", (7, True)),
        (b"i=?0", (3, False)),
        (b"i=?1;x", (3, True)),
        (b"u=8", (3, False)),
        (b"u=-1", (3, False)),
        (b"u=1.5", (3, False)),
        (b"uu=1", (3, False)),
        (b"x=1, u=2", (2, False)),
        (b"\xff", (3, False)),
        (b" " * 10_000, (3, False)),
    ],
)
def test_rfc9218_4_parameters(value: bytes, priority: tuple[int, bool]) -> None:
    assert read_priority(value) == priority


def order(client: Machine, streams: list[int], size: int) -> list[int]:
    for stream_id in streams:
        stream = client.made[stream_id]
        client.connection.send_head(stream, b"\x88")
        client.connection.send_data(stream, bytes(size))
        client.connection.end(stream)
    return [frame.stream_id for frame in client.take() if frame.kind == frames.DATA]


def start(*priorities: bytes) -> Machine:
    client = Machine().start((frames.INITIAL_WINDOW_SIZE, 1 << 30))
    client.feed(frames.window_update(0, 1 << 30))
    for number, priority in enumerate(priorities):
        client.request([*GET, *([(b"priority", priority)] if priority else [])], 2 * number + 1)
    return client


def test_rfc9218_10_urgent_responses_are_sent_first() -> None:
    assert order(start(b"u=6", b"", b"u=1"), [1, 3, 5], 10) == [5, 3, 1]


def test_rfc9218_10_incremental_responses_take_turns_and_others_do_not() -> None:
    size = 2 * MAX_DATA_BYTES
    assert order(start(b"i", b"i"), [1, 3], size) == [1, 3, 1, 3]
    assert order(start(b"", b""), [1, 3], size) == [1, 1, 3, 3]


def test_rfc9218_7_1_priority_update_changes_the_order() -> None:
    client = start(b"", b"")
    client.frame(frames.PRIORITY_UPDATE, 0, 0, b"\0\0\0\3u=0")
    assert order(client, [1, 3], 10) == [3, 1]


def test_rfc9218_7_1_priority_update_of_a_queued_response_moves_it() -> None:
    client = start(b"", b"")
    for stream_id in (1, 3):
        client.connection.send_head(client.made[stream_id], b"\x88")
    client.connection.receive(frames.frame(frames.PRIORITY_UPDATE, 0, 0, b"\0\0\0\3u=0"))
    assert [frame.stream_id for frame in client.take()] == [3, 1]


def test_rfc9218_7_1_priority_update_may_come_before_its_stream() -> None:
    client = start()
    client.frame(frames.PRIORITY_UPDATE, 0, 0, b"\0\0\0\3u=0")
    client.request(stream_id=1)
    client.request([*GET, (b"priority", b"u=7")], stream_id=3)
    assert order(client, [1, 3], 10) == [3, 1]


@pytest.mark.parametrize(
    ("stream_id", "payload"), [(1, b"\0\0\0\1u=1"), (0, b"\0\0\1"), (0, b"\0\0\0\0"), (0, b"\0\0\0\2")]
)
def test_rfc9218_7_1_malformed_priority_update_ends_the_connection(stream_id: int, payload: bytes) -> None:
    client = start(b"")
    client.frame(frames.PRIORITY_UPDATE, 0, stream_id, payload)
    assert client.failure is not None


def test_response_that_its_window_stops_does_not_stop_others() -> None:
    client = Machine().start((frames.INITIAL_WINDOW_SIZE, 0))
    client.request(stream_id=1)
    client.request(stream_id=3)
    client.feed(frames.window_update(3, 100))
    assert order(client, [1, 3], 10) == [3]


def test_output_is_taken_in_bounded_pieces() -> None:
    client = start(b"", b"")
    for stream_id in (1, 3):
        stream = client.made[stream_id]
        client.connection.send_head(stream, b"\x88")
        client.connection.send_data(stream, bytes(1 << 20))
        client.connection.end(stream)
    taken = b"".join(client.connection.take_output(100_000))
    assert 100_000 <= len(taken) < 130_000
    assert client.connection.has_output
    assert len(b"".join(client.connection.take_output(1 << 30))) > 2 * (1 << 20) - 130_000
    assert not client.connection.has_output
