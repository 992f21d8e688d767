"""Which responses are compressed, what their heads then say, and that what comes out is what went in."""

from __future__ import annotations

import zlib
from typing import Literal

import brotli
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.http.compression import CompressedBody, choose_coding, compress
from edge.http.framing import CHUNKED, UNTIL_CLOSE
from edge.http.request import HeadLimits, parse_any
from edge.http.response import parse

PAGE = b"Content-Type: text/html\r\n"
GET = b"GET / HTTP/1.1\r\nHost: a.example\r\n"
LONG = b"Content-Length: 5000\r\n"


def answered(
    fields: bytes,
    request: bytes = GET + b"Accept-Encoding: gzip\r\n",
    line: bytes = b"HTTP/1.1 200 OK",
    compression: Literal["on", "always"] = "on",
) -> tuple[bytes, CompressedBody | None]:
    head = parse_any(request + b"\r\n", HeadLimits())
    raw = line + b"\r\n" + fields + b"\r\n"
    return compress(raw, parse(raw, head.method), head, compression)


@pytest.mark.parametrize(
    ("fields", "coding"),
    [
        (b"", b""),
        (b"gzip", b"gzip"),
        (b"gzip, br", b"br"),
        (b"gzip;q=1.0, br;q=0.5", b"gzip"),
        (b"gzip;q=0, br;q=0", b""),
        (b"*", b"br"),
        (b"*;q=0", b""),
        (b"identity;q=1, *;q=0", b""),
        (b"deflate", b""),
        (b"GZIP ; q=0.3", b"gzip"),
        (b"gzip;q=2, br;q=x", b""),
        (b"," * 5000 + b"gzip", b""),
    ],
)
def test_the_coding_is_the_one_that_the_client_prefers(fields: bytes, coding: bytes) -> None:
    assert choose_coding(b"\r\nAccept-Encoding: " + fields) == coding


@pytest.mark.parametrize(
    "fields",
    [
        b"Content-Type: image/png\r\n" + LONG,
        LONG,
        PAGE + b"Content-Length: 1023\r\n",
        PAGE + LONG + b"Content-Encoding: gzip\r\n",
        PAGE + LONG + b"Cache-Control: public, no-transform\r\n",
        PAGE + LONG + b"Content-Range: bytes 0-4999/9000\r\n",
    ],
)
def test_what_is_not_worth_it_or_not_ours_to_change_stays_to_the_byte(fields: bytes) -> None:
    assert answered(fields) == (b"HTTP/1.1 200 OK\r\n" + fields + b"\r\n", None)


@pytest.mark.parametrize("line", [b"HTTP/1.1 206 Partial Content", b"HTTP/1.1 304 Not Modified", b"HTTP/1.1 204 None"])
def test_parts_and_answers_without_a_body_stay(line: bytes) -> None:
    fields = PAGE + b'ETag: "a"\r\n'
    assert answered(fields, line=line) == (line + b"\r\n" + fields + b"\r\n", None)


def test_the_head_says_what_is_sent() -> None:
    head, body = answered(PAGE + LONG + b'ETag: "a"\r\nAccept-Ranges: bytes\r\nRepr-Digest: md5=:a:\r\nX-Own: b\r\n')
    assert body is not None
    assert head == (
        b'HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nETag: W/"a"\r\nX-Own: b'
        b"\r\nContent-Encoding: gzip\r\nVary: Accept-Encoding\r\nTransfer-Encoding: chunked\r\n\r\n"
    )


def test_a_client_that_takes_none_gets_the_body_as_it_is_and_caches_know_why() -> None:
    head, body = answered(PAGE + LONG, GET)
    assert body is None
    assert head == b"HTTP/1.1 200 OK\r\n" + PAGE + LONG + b"Vary: Accept-Encoding\r\n\r\n"


def test_head_has_the_fields_of_get_and_no_body() -> None:
    head, body = answered(PAGE + LONG, GET.replace(b"GET", b"HEAD") + b"Accept-Encoding: br\r\n")
    assert body is None
    assert head == b"HTTP/1.1 200 OK\r\n" + PAGE + b"Content-Encoding: br\r\nVary: Accept-Encoding\r\n\r\n"


@pytest.mark.parametrize(
    ("target", "fields", "is_always", "is_compressed"),
    [
        (b"/?q=secret", b"Set-Cookie: a=b\r\n", False, False),
        (b"/?q=secret", b"Set-Cookie: a=b\r\n", True, True),
        (b"/", b"Set-Cookie: a=b\r\n", False, True),
        (b"/?q=secret", b"", False, True),
    ],
)
def test_what_sets_a_cookie_and_may_reflect_the_request_is_compressed_only_where_asked(
    target: bytes, fields: bytes, is_always: bool, is_compressed: bool
) -> None:
    request = GET.replace(b" / ", b" " + target + b" ") + b"Accept-Encoding: gzip\r\n"
    _, body = answered(PAGE + LONG + fields, request, compression="always" if is_always else "on")
    assert (body is not None) == is_compressed


def decoded(coding: bytes, data: bytes) -> bytes:
    return brotli.decompress(data) if coding == b"br" else zlib.decompress(data, 31)


def unchunked(data: bytes) -> bytes:
    content = b""
    while True:
        size, _, data = data.partition(b"\r\n")
        length = int(size, 16)
        if not length:
            assert data == b"\r\n"
            return content
        content, data = content + data[:length], data[length + 2 :]


@given(st.lists(st.binary(min_size=1, max_size=300), max_size=8), st.sampled_from([b"br", b"gzip"]), st.booleans())
def test_a_body_of_known_length_comes_out_as_it_went_in(pieces: list[bytes], coding: bytes, is_http2: bool) -> None:
    content = b"".join(pieces)
    body = CompressedBody(coding, len(content), 2 if is_http2 else 1, takes_trailers=False)
    sent = b"".join(map(body.frame, pieces or [b""]))
    assert body.is_complete
    assert decoded(coding, sent if is_http2 else unchunked(sent)) == content


@pytest.mark.parametrize("coding", [b"br", b"gzip"])
@pytest.mark.parametrize("size", [CHUNKED, UNTIL_CLOSE])
def test_what_is_streamed_arrives_piece_by_piece(coding: bytes, size: int) -> None:
    body = CompressedBody(coding, size, 2, takes_trailers=False)
    decoder = brotli.Decompressor() if coding == b"br" else zlib.decompressobj(31)
    decode = decoder.process if coding == b"br" else decoder.decompress
    for piece in (b"data: 1\n\n", b"data: 2\n\n"):
        assert decode(body.frame(b"%x\r\n%b\r\n" % (len(piece), piece) if size == CHUNKED else piece)) == piece
    last = body.frame(b"0\r\n\r\n") if size == CHUNKED else body.end()
    assert last is not None
    assert decode(last) == b""
    assert body.is_complete


def test_a_body_that_the_origin_breaks_off_does_not_end() -> None:
    body = CompressedBody(b"gzip", 10, 1, takes_trailers=False)
    body.frame(b"half")
    assert body.end() is None
    assert not body.is_complete


def test_trailers_go_on_behind_the_last_chunk() -> None:
    body = CompressedBody(b"gzip", CHUNKED, 1, takes_trailers=True)
    assert body.frame(b"2\r\nok\r\n0\r\nX-Checked: yes\r\n\r\n").endswith(b"\r\n0\r\nX-Checked: yes\r\n\r\n")
