"""RFC 9113 §6, the server's side: each type of frame but WINDOW_UPDATE."""

from __future__ import annotations

import pytest

from edge.http2 import frames
from edge.http2.errors import ErrorCode
from edge.http2.frames import (
    ACK,
    CONTINUATION,
    DATA,
    END_HEADERS,
    END_STREAM,
    GOAWAY,
    HAS_PRIORITY,
    HEADERS,
    PADDED,
    PING,
    PRIORITY,
    PUSH_PROMISE,
    RST_STREAM,
    SETTINGS,
)
from tests.unit.edge.http2.conformance import FLOW, PROTOCOL, SIZE
from tests.unit.edge.http2.machine import GET, POST, Machine

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
