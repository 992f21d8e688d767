"""RFC 9113, the server's side: each rule by its section."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from edge.http2 import frames
from edge.http2.errors import ErrorCode, StreamFailed
from edge.http2.frames import (
    ACK,
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HAS_PRIORITY,
    HEADERS,
    INITIAL_WINDOW_SIZE,
    MAX_FRAME_SIZE,
    PADDED,
    PING,
    PRIORITY,
    PUSH_PROMISE,
    RST_STREAM,
    SETTINGS,
    WINDOW_UPDATE,
)
from edge.http2.open_streams import CONNECTION_WINDOW, STREAM_WINDOW
from edge.http2.request_streams import MAX_STREAMS
from edge.http2.streams import TRANSITIONS, StreamEvent, StreamState, advance
from tests.unit.edge.http2.machine import GET, POST, Machine

PROTOCOL = ErrorCode.PROTOCOL_ERROR
SIZE = ErrorCode.FRAME_SIZE_ERROR
FLOW = ErrorCode.FLOW_CONTROL_ERROR
CLOSED = ErrorCode.STREAM_CLOSED


@pytest.fixture
def client() -> Machine:
    return Machine().start()


def last_goaway(client: Machine) -> tuple[int, int]:
    (frame,) = [frame for frame in client.sent if frame.kind == GOAWAY]
    return frames.read_word(frame.payload)[0], frames.read_word(frame.payload, 4)[0]


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


# 6.1 DATA ---------------------------------------------------------------------------------------------------


def test_rfc9113_6_1_data_on_stream_0_is_a_connection_error(client: Machine) -> None:
    client.frame(DATA, 0, 0, b"x")
    assert client.failure is PROTOCOL


def test_rfc9113_6_1_padding_is_taken_off(client: Machine) -> None:
    client.post()
    client.frame(DATA, PADDED, 1, b"\x03abc\0\0\0")
    client.frame(DATA, PADDED | END_STREAM, 1, b"\x00d")
    assert (client.made[1].content, client.made[1].whole) == (b"abcd", True)


@pytest.mark.parametrize("payload", [b"\x01", b"\x05abcd", b"\xff"])
def test_rfc9113_6_1_padding_longer_than_the_payload_is_a_connection_error(client: Machine, payload: bytes) -> None:
    client.post()
    client.frame(DATA, PADDED, 1, payload)
    assert client.failure is PROTOCOL


@pytest.mark.parametrize("kind", [DATA, HEADERS])
def test_rfc9113_6_1_padded_frame_without_its_length_is_refused(client: Machine, kind: int) -> None:
    client.post()
    client.frame(kind, PADDED | END_HEADERS | END_STREAM, 1 if kind == DATA else 3, b"")
    assert client.failure is SIZE


# 6.2 HEADERS ------------------------------------------------------------------------------------------------


def test_rfc9113_6_2_padding_and_priority_are_taken_off(client: Machine) -> None:
    block = client.block(GET)
    flags = PADDED | HAS_PRIORITY | END_HEADERS | END_STREAM
    client.frame(HEADERS, flags, 1, b"\x04" + bytes(5) + block + bytes(4))
    assert client.made[1].head == b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n"


def test_rfc9113_6_2_padding_longer_than_the_payload_is_a_connection_error(client: Machine) -> None:
    client.frame(HEADERS, PADDED | END_HEADERS, 1, b"\x09\x82\x87\x84")
    assert client.failure is PROTOCOL


def test_rfc9113_6_2_headers_without_all_of_its_priority_is_a_connection_error(client: Machine) -> None:
    client.frame(HEADERS, HAS_PRIORITY | END_HEADERS, 1, bytes(4))
    assert client.failure is SIZE


# 6.3 PRIORITY -----------------------------------------------------------------------------------------------


def test_rfc9113_6_3_priority_is_taken_in_any_state(client: Machine) -> None:
    client.frame(PRIORITY, 0, 9, bytes(5))
    client.request(stream_id=9)
    client.frame(PRIORITY, 0, 9, bytes(5))
    assert client.failure is None


@pytest.mark.parametrize(("stream_id", "size", "code"), [(0, 5, PROTOCOL), (1, 4, SIZE), (1, 6, SIZE)])
def test_rfc9113_6_3_malformed_priority_is_refused(client: Machine, stream_id: int, size: int, code: int) -> None:
    client.frame(PRIORITY, 0, stream_id, bytes(size))
    assert client.failure is code


# 6.4 RST_STREAM ---------------------------------------------------------------------------------------------


def test_rfc9113_7_unknown_error_codes_mean_nothing_special(client: Machine) -> None:
    client.post()
    client.frame(RST_STREAM, 0, 1, (0xDEAD).to_bytes(4))
    client.frame(GOAWAY, 0, 0, bytes(4) + (0xDEAD).to_bytes(4))
    assert client.made[1].code == 0xDEAD
    assert client.failure is None


def test_rfc9113_6_4_reset_ends_the_stream_and_is_not_answered(client: Machine) -> None:
    client.post()
    assert client.feed(frames.rst_stream(1, ErrorCode.CANCEL)) == []
    assert client.made[1].code == ErrorCode.CANCEL
    assert client.connection.streams == {}


@pytest.mark.parametrize(
    ("stream_id", "size", "code"), [(0, 4, PROTOCOL), (1, 3, SIZE), (1, 5, SIZE), (3, 4, PROTOCOL)]
)
def test_rfc9113_6_4_malformed_reset_is_refused(client: Machine, stream_id: int, size: int, code: int) -> None:
    client.request()
    client.frame(RST_STREAM, 0, stream_id, bytes(size))
    assert client.failure is code


# 6.5 SETTINGS -----------------------------------------------------------------------------------------------


def test_rfc9113_6_5_settings_are_acknowledged_once_each(client: Machine) -> None:
    acks = [frame for frame in client.feed(frames.settings(()) * 3) if (frame.kind, frame.flags) == (SETTINGS, ACK)]
    assert [frame.payload for frame in acks] == [b""] * 3
    assert client.feed(frames.SETTINGS_ACK) == []


@pytest.mark.parametrize(
    ("flags", "stream_id", "size", "code"),
    [(ACK, 0, 6, SIZE), (0, 1, 0, PROTOCOL), (0, 0, 5, SIZE), (ACK, 1, 0, PROTOCOL)],
)
def test_rfc9113_6_5_malformed_settings_are_refused(
    client: Machine, flags: int, stream_id: int, size: int, code: int
) -> None:
    client.frame(SETTINGS, flags, stream_id, bytes(size))
    assert client.failure is code


@pytest.mark.parametrize(
    ("name", "value", "code"),
    [
        (frames.ENABLE_PUSH, 2, PROTOCOL),
        (frames.INITIAL_WINDOW_SIZE, 2**31, FLOW),
        (frames.MAX_FRAME_SIZE, 16_383, PROTOCOL),
        (frames.MAX_FRAME_SIZE, 2**24, PROTOCOL),
        (frames.ENABLE_PUSH, 0, None),
        (frames.ENABLE_PUSH, 1, None),
        (frames.INITIAL_WINDOW_SIZE, 2**31 - 1, None),
        (frames.MAX_FRAME_SIZE, 2**24 - 1, None),
        (frames.HEADER_TABLE_SIZE, 0, None),
        (frames.MAX_CONCURRENT_STREAMS, 0, None),
        (0xBEEF, 2**32 - 1, None),
    ],
)
def test_rfc9113_6_5_2_values_of_settings(client: Machine, name: int, value: int, code: int | None) -> None:
    client.feed(frames.settings(((name, value),)))
    assert client.failure is code


# 6.6 – 6.8 --------------------------------------------------------------------------------------------------


def test_rfc9113_6_6_push_promise_from_a_client_is_a_connection_error(client: Machine) -> None:
    client.request()
    client.frame(PUSH_PROMISE, END_HEADERS, 1, b"\0\0\0\2\x82")
    assert client.failure is PROTOCOL


def test_rfc9113_6_7_ping_is_answered_with_its_payload(client: Machine) -> None:
    (answer,) = client.frame(PING, 0, 0, b"\0\1\2\3\4\5\6\7")
    assert (answer.kind, answer.flags, answer.payload) == (PING, ACK, b"\0\1\2\3\4\5\6\7")
    assert client.frame(PING, ACK, 0, bytes(8)) == []


@pytest.mark.parametrize(("stream_id", "size", "code"), [(1, 8, PROTOCOL), (0, 7, SIZE), (0, 9, SIZE)])
def test_rfc9113_6_7_malformed_ping_is_refused(client: Machine, stream_id: int, size: int, code: int) -> None:
    client.frame(PING, 0, stream_id, bytes(size))
    assert client.failure is code


def test_rfc9113_6_8_goaway_of_the_client_lets_its_streams_end(client: Machine) -> None:
    client.request()
    client.frame(GOAWAY, 0, 0, bytes(8))
    assert client.connection.client_is_leaving
    assert set(client.connection.streams) == {1}


@pytest.mark.parametrize(("stream_id", "size", "code"), [(1, 8, PROTOCOL), (0, 7, SIZE)])
def test_rfc9113_6_8_malformed_goaway_is_refused(client: Machine, stream_id: int, size: int, code: int) -> None:
    client.frame(GOAWAY, 0, stream_id, bytes(size))
    assert client.failure is code


def test_rfc9113_6_8_graceful_end_serves_what_came_before_the_second_goaway(client: Machine) -> None:
    client.request(stream_id=1)
    client.connection.go_away(is_final=False)
    (first,) = client.take()
    assert frames.read_word(first.payload)[0] == 2**31 - 1
    client.request(stream_id=3)
    client.connection.go_away(is_final=True)
    (second,) = client.take()
    assert frames.read_word(second.payload)[0] == 3
    client.request([*POST, (b"x-new", b"1")], 5, END_HEADERS)
    client.frame(DATA, END_STREAM, 5, b"content")
    assert set(client.made) == {1, 3}
    assert client.failure is None


def test_rfc9113_6_8_later_goaway_names_no_later_stream(client: Machine) -> None:
    client.request(stream_id=1)
    client.connection.go_away(is_final=True)
    client.request([*GET, (b"x-new", b"1")], 3)  # may be on its way elsewhere, too
    client.request([*GET, (b"x-new", b"1")], 5)
    client.frame(PING, 0, 0, b"short")
    named = [frames.read_word(frame.payload)[0] for frame in client.sent if frame.kind == GOAWAY]
    assert named == [1, 1]
    assert client.failure is SIZE


# 6.9 Flow control -------------------------------------------------------------------------------------------


def respond(client: Machine, stream_id: int, size: int) -> None:
    stream = client.made[stream_id]
    client.connection.send_head(stream, b"\x88")
    client.connection.send_data(stream, bytes(size))
    client.connection.end(stream)


def sent_bytes(client: Machine, stream_id: int) -> int:
    return sum(len(frame.payload) for frame in client.sent if (frame.kind, frame.stream_id) == (DATA, stream_id))


@pytest.mark.parametrize(("stream_id", "code"), [(0, PROTOCOL), (1, None)])
def test_rfc9113_6_9_window_update_by_0_is_an_error(client: Machine, stream_id: int, code: int | None) -> None:
    client.request()
    client.feed(frames.window_update(stream_id, 0))
    assert client.failure is code
    assert client.made[1].code == PROTOCOL


def test_rfc9113_6_9_window_update_of_another_length_is_a_connection_error(client: Machine) -> None:
    client.frame(WINDOW_UPDATE, 0, 0, bytes(3))
    assert client.failure is SIZE


def test_rfc9113_6_9_1_windows_above_the_maximum_are_errors(client: Machine) -> None:
    client.request()
    client.feed(frames.window_update(1, 2**31 - 1))
    assert client.reset_code(1) == FLOW
    assert client.failure is None
    client.feed(frames.window_update(0, 2**31 - 1))
    assert client.failure is FLOW


def test_rfc9113_6_9_1_no_more_is_sent_than_either_window_allows(client: Machine) -> None:
    client.request(stream_id=1)
    client.request(stream_id=3)
    respond(client, 1, 100_000)
    client.take()
    assert sent_bytes(client, 1) == 65_535
    respond(client, 3, 10)
    client.take()
    assert sent_bytes(client, 3) == 0
    client.feed(frames.window_update(0, 5))
    assert sent_bytes(client, 3) == 5
    client.feed(frames.window_update(0, 100))
    assert (sent_bytes(client, 1), sent_bytes(client, 3)) == (65_535, 10)
    client.feed(frames.window_update(1, 50))
    assert sent_bytes(client, 1) == 65_585


def test_rfc9113_6_9_1_data_beyond_our_windows_is_an_error(client: Machine) -> None:
    client.post()
    client.connection.pause(client.made[1])
    for _ in range(STREAM_WINDOW // 16_384):
        client.frame(DATA, 0, 1, bytes(16_384))
    assert client.reset_code(1) is None
    client.frame(DATA, 0, 1, b"x")
    assert client.reset_code(1) == FLOW


def test_rfc9113_6_9_1_data_beyond_the_connections_window_is_a_connection_error(client: Machine) -> None:
    for number in range(CONNECTION_WINDOW // STREAM_WINDOW + 1):
        client.post(2 * number + 1)
        client.connection.pause(client.made[2 * number + 1])
        for _ in range(STREAM_WINDOW // 16_384):
            client.frame(DATA, 0, 2 * number + 1, bytes(16_384))
    assert client.failure is FLOW


def test_rfc9113_6_9_paused_stream_gets_no_credit_until_it_is_resumed(client: Machine) -> None:
    client.post()
    stream = client.made[1]
    client.connection.pause(stream)
    for _ in range(STREAM_WINDOW // 16_384):
        client.frame(DATA, 0, 1, bytes(16_384))
    assert not [frame for frame in client.sent if frame.kind == WINDOW_UPDATE]
    client.connection.resume(stream)
    (update,) = client.take()
    assert (update.stream_id, frames.read_word(update.payload)[0]) == (1, STREAM_WINDOW)


def test_rfc9113_6_9_padding_counts_and_is_returned(client: Machine) -> None:
    client.post()
    for _ in range(4 * CONNECTION_WINDOW // 256):
        client.frame(DATA, PADDED, 1, b"\xfe" + bytes(255))
    assert client.failure is None
    assert client.reset_code(1) is None


def test_rfc9113_6_9_2_initial_window_moves_the_windows_of_open_streams() -> None:
    client = Machine().start((frames.INITIAL_WINDOW_SIZE, 0))
    client.request()
    respond(client, 1, 100)
    client.take()
    assert [frame.kind for frame in client.sent] == [HEADERS]
    client.feed(frames.settings(((frames.INITIAL_WINDOW_SIZE, 30),)))
    assert sent_bytes(client, 1) == 30
    client.feed(frames.settings(((frames.INITIAL_WINDOW_SIZE, 10),)))  # 20 below zero
    client.feed(frames.window_update(1, 20))
    assert sent_bytes(client, 1) == 30
    client.feed(frames.window_update(1, 1000))
    assert sent_bytes(client, 1) == 100


def test_rfc9113_6_9_2_change_that_overflows_a_window_is_a_connection_error(client: Machine) -> None:
    client.request()
    client.feed(frames.window_update(1, 2**31 - 1 - 65_535))
    client.feed(frames.settings(((frames.INITIAL_WINDOW_SIZE, 65_536),)))
    assert client.failure is FLOW


# 6.10 CONTINUATION ------------------------------------------------------------------------------------------


def test_rfc9113_6_10_block_may_come_in_frames(client: Machine) -> None:
    block = client.block([*GET, (b"x-long", b"v" * 100)])
    client.frame(HEADERS, END_STREAM, 1, block[:1])
    client.frame(CONTINUATION, 0, 1, block[1:9])
    client.frame(CONTINUATION, 0, 1, b"")
    client.frame(CONTINUATION, END_HEADERS, 1, block[9:])
    assert client.made[1].whole
    assert b"x-long: " + b"v" * 100 in client.made[1].head


@pytest.mark.parametrize("stream_id", [0, 1])
def test_rfc9113_6_10_continuation_without_headers_is_a_connection_error(client: Machine, stream_id: int) -> None:
    client.request()
    client.frame(CONTINUATION, END_HEADERS, stream_id, b"\x82")
    assert client.failure is PROTOCOL


# 8 Requests and responses -----------------------------------------------------------------------------------


def test_rfc9113_8_1_trailers_end_the_request(client: Machine) -> None:
    client.post()
    client.frame(DATA, 0, 1, b"content")
    client.request([(b"x-checksum", b"1")])
    assert client.made[1].whole
    assert client.made[1].trailers_received == b"\r\nx-checksum: 1"


def test_rfc9113_8_1_trailers_without_end_stream_are_malformed(client: Machine) -> None:
    client.post()
    client.request([(b"x-checksum", b"1")], flags=END_HEADERS)
    assert client.reset_code(1) == PROTOCOL


@pytest.mark.parametrize(
    ("name", "value"),
    [
        (b":path", b"/"),
        (b"X-Upper", b"1"),
        (b"x", b"a\r\nb"),
        (b"connection", b"x"),
        (b"transfer-encoding", b"chunked"),
        (b"te", b"gzip"),
    ],
)
def test_rfc9113_8_1_trailers_are_malformed_by_the_rules_of_fields(client: Machine, name: bytes, value: bytes) -> None:
    client.post()
    client.request([(name, value)])
    assert client.reset_code(1) == PROTOCOL
    assert not client.made[1].whole


def test_rfc9113_8_1_response_before_the_requests_end_is_followed_by_a_reset_without_error(client: Machine) -> None:
    client.post()
    respond(client, 1, 10)
    client.take()
    assert client.reset_code(1) == ErrorCode.NO_ERROR
    assert client.made[1].code is None
    client.frame(DATA, END_STREAM, 1, b"late")
    assert client.failure is None


def test_rfc9113_8_1_response_is_headers_data_and_trailers(client: Machine) -> None:
    client.request()
    stream = client.made[1]
    client.connection.send_interim(stream, b"\x08\x03103")
    client.connection.send_head(stream, b"\x88")
    client.connection.send_data(stream, b"content")
    client.connection.end(stream, b"\x00\x01a\x01b")
    assert [(frame.kind, frame.flags) for frame in client.take()] == [
        (HEADERS, END_HEADERS),
        (HEADERS, END_HEADERS),
        (DATA, 0),
        (HEADERS, END_HEADERS | END_STREAM),
    ]


def test_rfc9113_8_1_response_without_content_ends_with_its_headers(client: Machine) -> None:
    client.request()
    client.connection.send_head(client.made[1], b"\x89")
    client.connection.end(client.made[1])
    assert [(frame.kind, frame.flags) for frame in client.take()] == [(HEADERS, END_HEADERS | END_STREAM)]


def test_rfc9113_8_1_response_head_may_need_continuation(client: Machine) -> None:
    client.request()
    client.connection.send_head(client.made[1], b"\x88" * 40_000)
    client.connection.end(client.made[1])
    sent = client.take()
    assert [(frame.kind, frame.flags) for frame in sent] == [
        (HEADERS, END_STREAM),
        (CONTINUATION, 0),
        (CONTINUATION, END_HEADERS),
    ]
    assert sum(len(frame.payload) for frame in sent) == 40_001  # and the update of the table's size


Change = Callable[[list[tuple[bytes, bytes]]], list[tuple[bytes, bytes]]]


def with_field(name: bytes, value: bytes) -> Change:
    return lambda fields: [*fields, (name, value)]


def with_pseudo(name: bytes, value: bytes) -> Change:
    return lambda fields: [(n, value if n == name else v) for n, v in fields]


def without(name: bytes) -> Change:
    return lambda fields: [field for field in fields if field[0] != name]


@pytest.mark.parametrize(
    "change",
    [
        # 8.2.1
        with_field(b"X-Upper", b"1"),
        with_field(b"x y", b"1"),
        with_field(b"x\r\ny", b"1"),
        with_field(b"x:y", b"1"),
        with_field(b"", b"1"),
        with_field(b"x\x80", b"1"),
        with_field(b"x\x7f", b"1"),
        with_field(b"x", b"a\r\nhost: b"),
        with_field(b"x", b"a\nb"),
        with_field(b"x", b"a\rb"),
        with_field(b"x", b"a\0b"),
        with_field(b"x", b" a"),
        with_field(b"x", b"a\t"),
        with_field(b"cookie", b"a\r\nb"),
        with_field(b"content-length", b"1\r\n"),
        # 8.2.2
        with_field(b"connection", b"close"),
        with_field(b"proxy-connection", b"keep-alive"),
        with_field(b"keep-alive", b"timeout=5"),
        with_field(b"transfer-encoding", b"chunked"),
        with_field(b"upgrade", b"websocket"),
        with_field(b"te", b"gzip"),
        with_field(b"te", b"trailers, gzip"),
        # 8.3
        with_field(b":path", b"/again"),
        with_field(b":method", b"GET"),
        with_field(b":unknown", b"1"),
        with_field(b":status", b"200"),
        lambda fields: [(b"x", b"1"), *fields],
        lambda fields: [*fields[:2], (b"x", b"1"), *fields[2:]],
        lambda fields: [*fields, *fields],
        lambda fields: [(b":method", b"GET"), *fields],
        without(b":method"),
        without(b":scheme"),
        without(b":path"),
        # 8.3.1
        with_pseudo(b":method", b""),
        with_pseudo(b":method", b"GE T"),
        with_pseudo(b":method", b"GET /x HTTP/1.1\r\nhost: b"),
        with_pseudo(b":path", b""),
        with_pseudo(b":path", b"x"),
        with_pseudo(b":path", b"*"),
        with_pseudo(b":path", b"/a b"),
        with_pseudo(b":path", b"/\x01"),
        with_pseudo(b":path", b"/ HTTP/1.1\r\nhost: b"),
        with_pseudo(b":path", b"https://b.example/"),
        with_pseudo(b":scheme", b""),
        with_pseudo(b":scheme", b"ftp"),
        with_pseudo(b":scheme", b"https "),
        with_pseudo(b":authority", b"a b"),
        with_pseudo(b":authority", b"a\r\nx: y"),
        with_field(b"host", b"b.example"),
        # 8.5
        with_pseudo(b":method", b"CONNECT"),
    ],
)
@pytest.mark.parametrize("indexed", [True, False])
def test_rfc9113_8_malformed_requests_are_stream_errors(client: Machine, change: Change, indexed: bool) -> None:
    if not indexed:
        client.encoder.header_table_size = 0
    for stream_id in (1, 3):  # the second one refers to the table
        client.request(change(GET), stream_id)
        assert client.reset_code(stream_id) == PROTOCOL
    assert client.failure is None


def test_rfc9113_8_1_1_malformed_request_found_by_the_owner_is_a_stream_error() -> None:
    client = Machine(refuses=True).start()
    client.request()
    assert client.reset_code(1) == PROTOCOL
    assert client.failure is None


def test_rfc9113_8_2_3_cookie_fields_are_joined(client: Machine) -> None:
    client.request([*GET, (b"a", b"1"), (b"cookie", b"x=1"), (b"b", b"2"), (b"cookie", b"y=2"), (b"cookie", b"z=3")])
    assert client.made[1].head == (
        b"GET / HTTP/1.1\r\nHost: a.example\r\na: 1\r\ncookie: x=1; y=2; z=3\r\nb: 2\r\n\r\n"
    )


@pytest.mark.parametrize(
    ("fields", "flags", "head"),
    [
        ([*GET, (b"host", b"A.example")], END_STREAM, b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n"),
        ([*GET[:3], (b"host", b"a.example")], END_STREAM, b"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n"),
        ([*GET, (b"te", b"trailers")], END_STREAM, b"GET / HTTP/1.1\r\nHost: a.example\r\nte: trailers\r\n\r\n"),
        (
            [(b":method", b"OPTIONS"), *with_pseudo(b":path", b"*")(GET)[1:]],
            END_STREAM,
            b"OPTIONS * HTTP/1.1\r\nHost: a.example\r\n\r\n",
        ),
        ([(b":method", b"CONNECT"), GET[3]], END_STREAM, b"CONNECT a.example HTTP/1.1\r\nHost: a.example\r\n\r\n"),
        (POST, 0, b"POST / HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked\r\n\r\n"),
        (POST, END_STREAM, b"POST / HTTP/1.1\r\nHost: a.example\r\n\r\n"),
        (
            [*POST, (b"content-length", b"3")],
            0,
            b"POST / HTTP/1.1\r\nHost: a.example\r\ncontent-length: 3\r\n\r\n",
        ),
    ],
)
def test_rfc9113_8_3_1_request_as_a_head_of_http_1_1(
    client: Machine, fields: list[tuple[bytes, bytes]], flags: int, head: bytes
) -> None:
    client.request(fields, flags=END_HEADERS | flags)
    assert client.made[1].head == head
    assert client.failure is None


def test_machine_does_a_bounded_amount_of_work_at_once(client: Machine) -> None:
    client.connection.receive(frames.frame(0xEE, 0, 0) * 400 + frames.frame(PRIORITY, 0, 1, bytes(5)) * 400)
    assert client.connection.has_more
    client.connection.receive(frames.frame(PING, 0, 0, bytes(8)))
    while client.connection.has_more:
        client.connection.receive(b"")
    assert [frame.kind for frame in client.take()] == [PING]


def test_input_cut_anywhere_reads_the_same() -> None:
    whole = Machine().start()
    block = whole.block([*POST, (b"x", b"y" * 50)])
    stream = (
        frames.frame(HEADERS, 0, 1, block[:7])
        + frames.frame(CONTINUATION, END_HEADERS, 1, block[7:])
        + frames.frame(PING, 0, 0, bytes(8))
        + frames.frame(DATA, END_STREAM, 1, b"content")
    )
    sent = whole.feed(stream)
    for at in range(len(stream)):
        client = Machine().start()
        assert client.feed(stream[:at]) + client.feed(stream[at:]) == sent
        assert client.made[1].content == b"content"
        assert not client.connection.is_in_head


def test_heads_that_differ_in_their_path_alone_are_read_by_what_they_share(client: Machine) -> None:
    fields = [*GET, (b"cookie", b"a=b"), (b"priority", b"u=1"), (b"cookie", b"c=d")]
    for number, path in enumerate((b"/1", b"/2", b"/", b"/1", b"*", b"/3", b"", b"/4", b"/a b", b"/5")):
        stream_id = 2 * number + 1
        client.request([(name, path if name == b":path" else value) for name, value in fields], stream_id)
        if path[:1] != b"/" or b" " in path:
            assert client.reset_code(stream_id) == PROTOCOL
            continue
        assert client.made[stream_id].urgency == 1
        assert client.made[stream_id].head == (
            b"GET %b HTTP/1.1\r\nHost: a.example\r\ncookie: a=b; c=d\r\npriority: u=1\r\n\r\n" % path
        )
    client.request([*fields, (b"x", b"y")], 41)
    assert client.made[41].head.endswith(b"\r\nx: y\r\n\r\n")
    client.request(fields, 43, END_HEADERS)
    assert client.made[43].head.endswith(b"\r\nTransfer-Encoding: chunked\r\n\r\n")


# Heads of requests that are like the one before -------------------------------------------------------------

_ALIKE: list[list[tuple[bytes, bytes]]] = [
    [*GET, (b"x", b"1"), (b"cookie", b"a=b"), (b"priority", b"u=1")],
    [*GET, (b"y", b"2"), (b"cookie", b"c=d"), (b"priority", b"u=6")],  # of the same kinds
    [*GET[:2], (b":path", b"/other?x"), GET[3], (b"y", b"2"), (b"cookie", b"c=d"), (b"priority", b"u=6")],
    [*GET[:2], (b":path", b"other"), GET[3], (b"y", b"2"), (b"cookie", b"c=d"), (b"priority", b"u=6")],
    [*GET[:3], (b":authority", b"b.example"), (b"y", b"2"), (b"cookie", b"c=d"), (b"priority", b"u=6")],
    [(b":method", b"HEAD"), *GET[1:], (b"y", b"2"), (b"cookie", b"c=d"), (b"priority", b"u=6")],
    [*GET[:1], (b":scheme", b"ftp"), *GET[2:], (b"y", b"2"), (b"cookie", b"c=d"), (b"priority", b"u=6")],
    [*GET, (b"connection", b"close"), (b"cookie", b"c=d"), (b"priority", b"u=6")],
    [*GET, (b"y", b"2"), (b"cookie", b"c=d"), (b"cookie", b"e=f")],
    [*GET, (b"priority", b"u=1"), (b"priority", b"u=2")],
    [*GET, (b"priority", b"u=3"), (b"priority", b"u=4")],
    [(b":method", b"OPTIONS"), GET[1], (b":path", b"*"), GET[3]],
    [(b":method", b"GET"), GET[1], (b":path", b"*"), GET[3]],
    [*GET, (b"host", b"a.example")],
    [*GET, (b"host", b"b.example")],
    GET[:3],
    [],
    [*GET],
    [*GET, (b"content-length", b"0")],
    [*GET, (b"content-length", b"7")],
]


@pytest.mark.parametrize("first", range(len(_ALIKE)))
def test_head_is_the_same_whatever_request_came_before_it(first: int) -> None:
    for second in _ALIKE:
        alone, behind = Machine().start(), Machine().start()
        alone.request(second)
        behind.request(_ALIKE[first])
        for stream_id in (3, 5):
            behind.request(second, stream_id)
            assert behind.made[stream_id].head == alone.made[1].head
            assert behind.reset_code(stream_id) == alone.reset_code(1)
            assert behind.made[stream_id].urgency == alone.made[1].urgency
