"""RFC 9113 §3 to §5, the server's side: the start, frames, and the states of streams."""

from __future__ import annotations

import pytest

from edge.http2 import frames
from edge.http2.errors import ErrorCode, StreamFailed
from edge.http2.frames import (
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    HEADERS,
    INITIAL_WINDOW_SIZE,
    MAX_FRAME_SIZE,
    PING,
    PRIORITY,
    SETTINGS,
    WINDOW_UPDATE,
)
from edge.http2.open_streams import MAX_REMEMBERED
from edge.http2.request_streams import MAX_STREAMS
from edge.http2.streams import TRANSITIONS, StreamEvent, StreamState, advance
from tests.unit.edge.http2.conformance import CLOSED, PROTOCOL, SIZE, last_goaway, respond
from tests.unit.edge.http2.machine import GET, POST, Machine

# 3 Starting -------------------------------------------------------------------------------------------------


def test_rfc9113_3_4_server_preface_is_a_settings_frame() -> None:
    first = Machine().take()[0]
    assert (first.kind, first.flags, first.stream_id) == (SETTINGS, 0, 0)
    assert (frames.MAX_CONCURRENT_STREAMS, MAX_STREAMS) in frames.read_settings(first.payload)


@pytest.mark.parametrize("start", [b"GET / HTTP/1.1\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r ", b"\x16\x03\x01", b"PRX"])
def test_rfc9113_3_4_invalid_preface_is_a_connection_error(start: bytes) -> None:
    client = Machine()
    client.feed(start)
    assert client.failure is PROTOCOL


def test_rfc9113_3_4_preface_may_come_octet_by_octet() -> None:
    client = Machine()
    for octet in frames.PREFACE + frames.settings(()) + frames.frame(PING, 0, 0, b"12345678"):
        client.feed(bytes((octet,)))
    assert client.failure is None
    assert [frame.kind for frame in client.sent] == [SETTINGS, WINDOW_UPDATE, SETTINGS, PING]


@pytest.mark.parametrize("first", [frames.frame(PING, 0, 0, bytes(8)), frames.SETTINGS_ACK])
def test_rfc9113_3_4_first_frame_must_be_settings(first: bytes) -> None:
    client = Machine()
    client.feed(frames.PREFACE + first)
    assert client.failure is PROTOCOL


# 4 Frames ---------------------------------------------------------------------------------------------------


def test_rfc9113_4_1_unknown_frames_and_flags_are_ignored(client: Machine) -> None:
    client.frame(0xEE, 0xFF, 0, b"x")
    client.frame(0xEE, 0xFF, 7, b"x")
    client.frame(PING, 0xFE, 0, bytes(8))
    assert client.failure is None


def test_rfc9113_4_1_reserved_bit_is_ignored(client: Machine) -> None:
    client.frame(PING, 0, 1 << 31, bytes(8))
    assert client.failure is None
    client.frame(HEADERS, END_HEADERS | END_STREAM, 1 << 31 | 1, client.block(GET))
    assert client.made[1].whole


@pytest.mark.parametrize("kind", [DATA, HEADERS, SETTINGS, 0xEE])
def test_rfc9113_4_2_larger_frame_than_announced_is_refused(client: Machine, kind: int) -> None:
    client.post()
    client.feed(frames.header(kind, 0, 1, frames.MAX_FRAME_BYTES + 1))
    assert client.failure is SIZE


def test_rfc9113_4_2_frame_of_the_largest_size_is_read(client: Machine) -> None:
    client.post()
    client.frame(DATA, END_STREAM, 1, bytes(frames.MAX_FRAME_BYTES))
    assert client.made[1].content == bytes(frames.MAX_FRAME_BYTES)


@pytest.mark.parametrize("limit", [16_384, 20_000])
def test_rfc9113_4_2_no_larger_frame_is_sent_than_the_client_takes(limit: int) -> None:
    client = Machine().start((MAX_FRAME_SIZE, limit), (INITIAL_WINDOW_SIZE, 1 << 20))
    client.request()
    client.connection.send_head(client.made[1], b"\x88" * 50_000)
    client.connection.send_data(client.made[1], bytes(50_000))
    client.connection.end(client.made[1])
    sent = client.take()
    assert {frame.kind for frame in sent} == {HEADERS, CONTINUATION, DATA}
    assert max(len(frame.payload) for frame in sent) <= limit


def test_rfc9113_4_3_block_that_does_not_decode_is_a_connection_error(client: Machine) -> None:
    client.frame(HEADERS, END_HEADERS | END_STREAM, 1, b"\xff\xff\xff\xff\xff\xff")
    assert client.failure is ErrorCode.COMPRESSION_ERROR


def test_rfc9113_4_3_block_of_an_ignored_request_still_changes_the_tables() -> None:
    client = Machine().start()
    for number in range(MAX_STREAMS + 1):
        client.request([*POST, (b"x-number", b"%d" % number)], 2 * number + 1, END_HEADERS)
    refused = 2 * MAX_STREAMS + 1
    assert client.reset_code(refused) == ErrorCode.REFUSED_STREAM
    client.frame(DATA, END_STREAM, 1)
    client.connection.reset(client.made[1], ErrorCode.CANCEL)
    client.request([*GET, (b"x-number", b"%d" % MAX_STREAMS)], refused + 2)
    assert b"x-number: %d\r\n" % MAX_STREAMS in client.made[refused + 2].head


@pytest.mark.parametrize(
    "between",
    [
        frames.frame(PING, 0, 0, bytes(8)),
        frames.frame(0xEE, 0, 0),
        frames.frame(CONTINUATION, END_HEADERS, 3, b""),
        frames.frame(HEADERS, END_HEADERS, 1, b"\x82"),
        frames.frame(DATA, 0, 1, b"x"),
    ],
)
def test_rfc9113_4_3_header_block_is_not_interrupted(client: Machine, between: bytes) -> None:
    client.frame(HEADERS, END_STREAM, 1, b"\x82")
    client.feed(between)
    assert client.failure is PROTOCOL


# 5.1 Stream states ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("state", StreamState)
@pytest.mark.parametrize("event", StreamEvent)
def test_rfc9113_5_1_every_event_has_one_outcome_in_every_state(state: StreamState, event: StreamEvent) -> None:
    following = TRANSITIONS[state].get(event)
    if following is not None:
        assert advance(state, event) is following
    else:
        with pytest.raises((StreamFailed, AssertionError)):
            advance(state, event)


@pytest.mark.parametrize(
    "frame",
    [
        frames.frame(DATA, 0, 1, b"x"),
        frames.rst_stream(1, 8),
        frames.window_update(1, 1),
        frames.frame(CONTINUATION, END_HEADERS, 1, b"\x82"),
    ],
)
def test_rfc9113_5_1_idle_stream_takes_headers_and_priority_only(client: Machine, frame: bytes) -> None:
    client.feed(frame)
    assert client.failure is PROTOCOL


def test_rfc9113_5_1_data_behind_the_end_of_the_request_is_stream_closed(client: Machine) -> None:
    client.request()
    client.frame(DATA, 0, 1, b"x")
    assert client.reset_code(1) == CLOSED


def test_rfc9113_5_1_headers_behind_the_end_of_the_request_is_stream_closed(client: Machine) -> None:
    client.request()
    client.request()
    assert client.reset_code(1) == CLOSED


@pytest.mark.parametrize("kind", [DATA, HEADERS])
def test_rfc9113_5_1_frames_on_a_stream_that_ended_both_ways_end_the_connection(kind: int) -> None:
    client = Machine(answers=True).start()
    client.request()
    client.frame(kind, END_HEADERS | END_STREAM, 1, b"\x82")
    assert client.failure is CLOSED


@pytest.mark.parametrize(
    "frame", [frames.window_update(1, 1), frames.rst_stream(1, 8), frames.frame(PRIORITY, 0, 1, bytes(5))]
)
def test_rfc9113_5_1_late_frames_on_a_closed_stream_are_ignored(frame: bytes) -> None:
    client = Machine(answers=True).start()
    client.request()
    client.feed(frame)
    assert client.failure is None


def test_rfc9113_5_1_frames_that_cross_our_reset_are_ignored_and_count_for_flow_control(client: Machine) -> None:
    client.post()
    client.connection.reset(client.made[1], ErrorCode.CANCEL)
    for _ in range(100):
        client.frame(DATA, 0, 1, bytes(16_384))
    client.request(stream_id=1, fields=[(b"x-trailer", b"1")])
    assert client.failure is None
    assert client.made[1].content == b""
    assert [frame.kind for frame in client.sent if frame.stream_id == 0] == [WINDOW_UPDATE] * 3


def test_rfc9113_5_1_1_even_stream_is_a_connection_error(client: Machine) -> None:
    client.request(stream_id=2)
    assert client.failure is PROTOCOL


def test_rfc9113_5_1_1_lower_stream_than_before_is_a_connection_error(client: Machine) -> None:
    client.request(stream_id=5)
    client.request(stream_id=3)
    assert client.failure is PROTOCOL


def serve(client: Machine, stream_id: int) -> None:
    client.request(stream_id=stream_id)
    respond(client, stream_id, 10)
    client.take()


@pytest.mark.parametrize(
    ("stream_id", "code"), [(1, PROTOCOL), (3, CLOSED), (5, PROTOCOL), (9, PROTOCOL), (11, CLOSED)]
)
def test_rfc9113_5_1_1_streams_that_were_passed_over_differ_from_closed_ones(
    client: Machine, stream_id: int, code: ErrorCode
) -> None:
    for opened in (3, 11):
        serve(client, opened)
    client.frame(DATA, 0, stream_id, b"late")
    assert client.failure is code


def test_ranges_of_streams_that_were_passed_over_are_forgotten_rather_than_grow(client: Machine) -> None:
    for number in range(1_500):
        serve(client, 4 * number + 3)
    assert len(client.connection._passed_over) <= MAX_REMEMBERED
    client.frame(DATA, 0, 4 * number + 1, b"late")
    assert client.failure is PROTOCOL


def test_stream_that_closed_long_ago_is_closed(client: Machine) -> None:
    for number in range(1_500):
        serve(client, 2 * number + 1)
    client.frame(DATA, 0, 1, b"late")
    assert client.failure is CLOSED


def test_rfc9113_5_1_1_headers_on_stream_0_is_a_connection_error(client: Machine) -> None:
    client.request(stream_id=0)
    assert client.failure is PROTOCOL


def test_rfc9113_5_1_2_streams_above_the_limit_are_refused(client: Machine) -> None:
    for number in range(MAX_STREAMS + 1):
        client.request(stream_id=2 * number + 1)
    assert client.reset_code(2 * MAX_STREAMS + 1) == ErrorCode.REFUSED_STREAM
    assert client.failure is None
    assert 2 * MAX_STREAMS + 1 not in client.made


# 5.4 Errors -------------------------------------------------------------------------------------------------


def test_rfc9113_5_4_1_goaway_names_the_last_stream_and_the_code(client: Machine) -> None:
    client.request(stream_id=7)
    client.frame(PING, 0, 0, b"short")
    assert last_goaway(client) == (7, SIZE)
    assert client.made[7].code == SIZE
    assert client.feed(frames.frame(PING, 0, 0, bytes(8))) == []


def test_rfc9113_5_4_2_stream_error_leaves_other_streams_alone(client: Machine) -> None:
    client.request(stream_id=1)
    client.request([*GET[:3]], stream_id=3)
    client.request([(b":method", b"GET")], stream_id=5)
    assert client.reset_code(5) == PROTOCOL
    assert client.failure is None
    assert set(client.connection.streams) == {1, 3}
