"""Our own header blocks, of responses."""

from __future__ import annotations

from hpack import Decoder

from edge.http2.hpack import EMPTY_TABLE, field_literal
from edge.http2.responses import HeadEncoder


def test_response_head_is_read_by_another_decoder() -> None:
    head = (
        b"HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nSet-Cookie: a=b\r\nset-cookie: c=d\r\nX-Own:\r\n"
        b"Content-Length: 12\r\nTransfer-Encoding: chunked\r\nConnection: close\r\nX-Long: %b\r\n\r\n" % (b"v" * 300)
    )
    encoder, decoder = HeadEncoder(), Decoder()
    for _ in range(2):
        assert decoder.decode(EMPTY_TABLE + encoder.head(head), raw=True) == [
            (b":status", b"200"),
            (b"content-type", b"text/html"),
            (b"set-cookie", b"a=b"),
            (b"set-cookie", b"c=d"),
            (b"x-own", b""),
            (b"content-length", b"12"),
            (b"x-long", b"v" * 300),
        ]
    assert decoder.decode(encoder.trailers(b"\r\nGrpc-Status: 0\r\nConnection: x"), raw=True) == [
        (b"grpc-status", b"0")
    ]


def test_field_of_the_static_table_is_one_octet() -> None:
    assert field_literal(b":status", b"404") == b"\x8d"


def test_head_encoder_forgets_lines_rather_than_grow() -> None:
    encoder = HeadEncoder()
    for number in range(10_000):
        encoder.head(b"HTTP/1.1 200 OK\r\nX-%d: %d\r\n\r\n" % (number, number))
    assert len(encoder._lines) <= 2048
    assert len(encoder._names) <= 512


def test_head_encoder_forgets_forms_rather_than_grow() -> None:
    encoder, decoder = HeadEncoder(), Decoder()
    for number in range(4_000):
        value = b"v" * (number % 300)
        block = encoder.fill(b"HTTP/1.1 200 OK\r\nX-%d: %%b\r\n\r\n" % (number % 7 * number), (value,))
        assert [*decoder.decode(EMPTY_TABLE + block, raw=True)][1][1] == value
    assert len(encoder._forms) <= 256
    assert len(encoder._filled) <= 512


def test_head_encoder_remembers_no_long_phrase_or_name() -> None:
    encoder, decoder = HeadEncoder(), Decoder()
    for number in range(40):
        phrase, name = b"OK %d " % number + b"p" * 60_000, b"x-%d-" % number + b"n" * 60_000
        block = encoder.head(b"HTTP/1.1 200 %b\r\n%b: 1\r\n\r\n" % (phrase, name))
        assert decoder.decode(EMPTY_TABLE + block, raw=True) == [(b":status", b"200"), (name, b"1")]
    assert sum(map(len, encoder._lines)) + sum(map(len, encoder._names)) < 60_000
