"""RFC 9113 §8, the server's side: requests and responses."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from edge.http2 import frames
from edge.http2.errors import ErrorCode
from edge.http2.frames import CONTINUATION, DATA, END_HEADERS, END_STREAM, HEADERS, PING, PRIORITY
from tests.unit.edge.http2.conformance import PROTOCOL, respond
from tests.unit.edge.http2.machine import GET, POST, Machine

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
    assert [frame.kind for frame in client.take()] == [HEADERS, DATA]  # in one write, curl 7.88 drops the response
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
