"""Inputs that are small for their sender and costly to read: each is what one client, or one origin, sends."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Final

from edge.http.response import MAX_FIELDS
from edge.http2 import frames, huffman
from edge.http2.hpack import field_literal, string
from edge.http2.request_streams import MAX_STREAMS

OFFENDER_HOST: Final = "offender.customer.localhost"
END_BYTES: Final = 8

_GET: Final = b"GET /%b HTTP/1.1\r\nHost: %b\r\n%b\r\n"
_CHUNKED: Final = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
_LAST: Final = b"0\r\n\r\n"


@dataclass(frozen=True, slots=True)
class Offence:
    """An input of one client, or of one origin.

    `make` gives the bytes: of a client's connection, or of an origin's answer to `GET /<key>`. `connections` are open
    at once; `record_bytes`: over TLS, in records of so many bytes; `ends_together`: each connection waits with its last
    `END_BYTES` for the others; `is_http2`: over TLS, in HTTP/2.
    """

    key: str
    title: str
    make: Callable[[Random], bytes]
    by_origin: bool = False
    connections: int = 1
    record_bytes: int = 0
    is_handshake: bool = False
    ends_together: bool = False
    is_http2: bool = False


def asking(key: str) -> bytes:
    """Return the request that has an origin answer with an offence."""
    return _GET % (key.encode(), OFFENDER_HOST.encode(), b"Connection: close\r\n")


def _post(*fields: bytes) -> bytes:
    block = b"".join(field + b"\r\n" for field in (b"Transfer-Encoding: chunked", *fields))
    return b"POST / HTTP/1.1\r\nHost: %b\r\n%b\r\n" % (OFFENDER_HOST.encode(), block)


def _chunk(content: bytes, extension: bytes = b"") -> bytes:
    return b"%x%b\r\n%b\r\n" % (len(content), extension, content)


def _many(chunk: bytes, count: int) -> Callable[[Random], bytes]:
    return lambda _: chunk * count


def _up(chunk: bytes, count: int) -> Callable[[Random], bytes]:
    return lambda _: _post(b"Connection: close") + chunk * count + _LAST


def _down(chunk: bytes, count: int) -> Callable[[Random], bytes]:
    return lambda _: _CHUNKED + chunk * count + _LAST


def _mixed_chunks(rng: Random) -> bytes:
    """Return small chunks: sizes, upper case, leading zeros, extensions and contents that look like framing vary."""
    contents = [b"\r\n", b"0\r\n\r\n", b"\n", b"x" * rng.randint(1, 40), bytes(rng.randbytes(rng.randint(1, 8)))]
    block = [
        rng.choice((b"", b"0", b"00")) + _chunk(rng.choice(contents), rng.choice((b"", b"", b";a=b", b';a="\\""')))
        for _ in range(5_000)
    ]
    return b"".join(block) * 30


def _trailers(rng: Random) -> bytes:
    lines = b"".join(b"%x:%b\r\n" % (rng.randrange(256), b"y" * rng.randrange(4)) for _ in range(2_000))
    return (_post() + b"0\r\n" + lines + b"\r\n") * 40


def _heads(rng: Random) -> bytes:
    fields = b"".join(b"X-%d: %b\r\n" % (rng.getrandbits(32), b"y" * 290) for _ in range(98))
    return _GET % (b"", OFFENDER_HOST.encode(), fields) * 100


def _unanswerable(rng: Random) -> bytes:
    host = b"%x.nobody.localhost" % rng.getrandbits(32)
    return _GET % (b"", host, b"") * 5_000


def _frames(rng: Random) -> bytes:
    frame = b"\x82\x81" + rng.randbytes(5)  # RFC 6455 §5.2: one masked byte
    upgrade = b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
    return _GET % (b"frames-up", OFFENDER_HOST.encode(), upgrade) + frame * 500_000


def _interim(rng: Random) -> bytes:
    hint = b"HTTP/1.1 103 Early Hints\r\n" + b"Te:x\r\n" * rng.randint(1, 1_300) + b"\r\n"
    return hint * 32 + b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"


def _fields_down(rng: Random) -> bytes:
    return b"HTTP/1.1 200 OK\r\n" + b"Te:%c\r\n" % rng.randrange(97, 123) * 9_300 + b"Content-Length: 0\r\n\r\n"


def _last_get() -> bytes:
    """Return a request that ends the connection, so that the offender begins again."""
    return _GET % (b"", OFFENDER_HOST.encode(), b"Connection: close\r\n")


def _head_of(field: bytes, part: bytes, separator: bytes) -> Callable[[Random], bytes]:
    """Return a maker of heads of 31 KB with one field of many parts, each head another."""

    def make(rng: Random) -> bytes:
        value = separator.join([part] * ((31_000 - len(field)) // len(part + separator)))
        host = OFFENDER_HOST.encode()
        line = b"%b: %b\r\n" % (field, value)
        return b"".join(_GET % (b"%x" % rng.getrandbits(32), host, line) for _ in range(40)) + _last_get()

    return make


def _many_shapes(rng: Random) -> bytes:
    """Return heads below 4 KB of ever other names: four alike, then one that differs; each is worth learning from."""
    out = []
    for _ in range(800):
        names = [b"X-%x" % rng.getrandbits(32) for _ in range(11)]
        out += [_with_values(names, b"%d" % turn * rng.randint(1, 300)) for turn in range(6)]
    return b"".join(out) + _last_get()


def _with_values(names: list[bytes], value: bytes) -> bytes:
    return _GET % (b"", OFFENDER_HOST.encode(), b"".join(b"%b: %b\r\n" % (name, value) for name in names))


def _full_head(*lines: bytes) -> Callable[[Random], bytes]:
    """Return a maker of an answer of these fields, 64 KB or as many of them as an origin may send."""

    def make(_: Random) -> bytes:
        block = b"".join(lines)
        return (
            b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n"
            + block * min(64_000 // len(block), (MAX_FIELDS - 1) // len(lines))
            + b"\r\n"
        )

    return make


def _dribble(rng: Random) -> bytes:
    return _GET % (b"", OFFENDER_HOST.encode(), b"X: %b\r\n" % (b"y" * rng.randint(500, 3_000)))


# HTTP/2 -----------------------------------------------------------------------------------------------------

_PREFACE: Final = frames.PREFACE + frames.settings(()) + frames.window_update(0, 1 << 30)
_WHOLE: Final = frames.END_HEADERS | frames.END_STREAM


def _block(host: bytes, path: bytes, *fields: tuple[bytes, bytes], method: bytes = b"GET") -> bytes:
    """Return a header block that adds its path to the dynamic table."""
    pseudo = ((b":method", method), (b":scheme", b"https"), (b":authority", host))
    before = b"".join(field_literal(*field) for field in pseudo)
    added = b"\x44" + string(path)  # indexed: the table changes
    return before + added + b"".join(field_literal(*field) for field in fields)


def _asks(number: int, block: bytes, flags: int = _WHOLE) -> bytes:
    return frames.frame(frames.HEADERS, flags, 2 * number + 1, block)


def _http2_refusals(rng: Random) -> bytes:
    """Return requests for unknown names, which are answered at once."""
    host = b"%x.nobody.localhost" % rng.getrandbits(32)
    return _PREFACE + b"".join(_asks(number, _block(host, b"/%d" % number)) for number in range(5_000))


def _http2_heads(rng: Random) -> bytes:
    """Return heads of 15 KB, each different."""
    out = []
    for number in range(400):
        fields = [(b"x-%x" % rng.getrandbits(32), b"y" * 290) for _ in range(48)]
        out.append(_asks(number, _block(OFFENDER_HOST.encode(), b"/%d" % number, *fields)))
    return _PREFACE + b"".join(out)


def _http2_fields(rng: Random) -> bytes:
    """Return heads of 240 fields of a few octets, in Huffman's code."""
    name = b"\0" + _coded(b"x")
    out = []
    for number in range(600):
        fields = b"".join(name + _coded(b"%04x" % rng.getrandbits(16)) for _ in range(240))
        out.append(_asks(number, _block(OFFENDER_HOST.encode(), b"/%d" % number) + fields))
    return _PREFACE + b"".join(out)


def _coded(text: bytes) -> bytes:
    code = huffman.encode(text)
    return bytes((0x80 | len(code),)) + code


def _http2_data(_: Random) -> bytes:
    """Return a request whose body has one octet a frame."""
    head = _asks(0, _block(OFFENDER_HOST.encode(), b"/", method=b"POST"), frames.END_HEADERS)
    return _PREFACE + head + frames.frame(frames.DATA, 0, 1, b"x") * 100_000 + frames.frame(frames.DATA, 1, 1)


def _http2_resets(_: Random) -> bytes:
    """Return requests that are reset at once: Rapid Reset."""
    block = _block(OFFENDER_HOST.encode(), b"/silent")
    pairs = (_asks(number, block) + frames.rst_stream(2 * number + 1, 8) for number in range(5_000))
    return _PREFACE + b"".join(pairs)


def _http2_breaks(_: Random) -> bytes:
    """Return as many requests as one connection may have, and a frame that ends it."""
    block = _block(OFFENDER_HOST.encode(), b"/silent")
    return _PREFACE + b"".join(_asks(number, block) for number in range(MAX_STREAMS)) + frames.frame(frames.PING, 0, 0)


def _http2_frames(rng: Random) -> bytes:
    """Return small frames of every kind, in any order, that break no rule but the budgets."""
    streams = 20
    kinds: tuple[Callable[[int], bytes], ...] = (
        lambda _: frames.frame(frames.PING, 0, 0, rng.randbytes(8)),
        lambda _: frames.settings(((frames.INITIAL_WINDOW_SIZE, rng.randrange(1 << 20)),)),
        lambda stream_id: frames.window_update(stream_id, 1),
        lambda stream_id: frames.frame(frames.PRIORITY, 0, stream_id, rng.randbytes(5)),
        lambda stream_id: frames.frame(frames.PRIORITY_UPDATE, 0, 0, stream_id.to_bytes(4, "big") + b"u=0, i"),
        lambda stream_id: frames.frame(0x77, 0, stream_id, rng.randbytes(rng.randrange(9))),
        lambda stream_id: frames.frame(frames.DATA, 0, stream_id),
    )
    block = _block(OFFENDER_HOST.encode(), b"/silent", method=b"POST")
    opened = b"".join(_asks(number, block, frames.END_HEADERS) for number in range(streams))
    chosen = rng.choices(kinds, weights=(10, 1, 20, 10, 10, 10, 10), k=20_000)
    return _PREFACE + opened + b"".join(make(2 * rng.randrange(streams) + 1) for make in chosen)


_LINE: Final = b"x" * 48 + b"\r\n"

OFFENCES: Final = (
    Offence("chunks-up", "300,000 chunks of one byte up", _up(_chunk(b"x"), 300_000)),
    Offence("million-chunks-up", "1.2 million chunks of one byte up", _up(_chunk(b"x"), 1_200_000)),
    Offence("mixed-up", "small chunks of every kind up", lambda rng: _post() + _mixed_chunks(rng) + _LAST),
    Offence("trailers-up", "2,000 trailers, and again", _trailers),
    Offence("records-up", "TLS records of one byte up", _up(_chunk(b"x" * 16), 4_000), record_bytes=1),
    Offence("unanswerable", "5,000 pipelined requests for unknown names", _unanswerable),
    Offence("heads", "pipelined heads of 30 KB", _heads),
    Offence("frames-up", "WebSocket frames of one byte up", _frames),
    Offence("connection", "heads with 10,000 names in Connection", _head_of(b"Connection", b"a", b", ")),
    Offence("commas", "heads with 31,000 commas in Connection", _head_of(b"Connection", b",", b"")),
    Offence("codings", "heads with 4,000 elements in TE", _head_of(b"TE", b"a;q=0.1", b",")),
    Offence(
        "addresses", "heads with 3,000 addresses in X-Forwarded-For", _head_of(b"X-Forwarded-For", b"10.0.0.1", b",")
    ),
    Offence("vias", "heads with 6,000 elements in Via", _head_of(b"Via", b"1.1 a", b",")),
    Offence("cookies", "heads with 8,000 cookies", _head_of(b"Cookie", b"a=b", b";")),
    Offence("blanks", "heads with 31,000 blanks before a value", _head_of(b"Content-Length", b" ", b"")),
    Offence("many-shapes", "heads that are worth learning from, each anew", _many_shapes),
    Offence("dribbles", "64 connections that send byte by byte", _dribble, connections=64),
    Offence(
        "uploads-together", "64 requests with bodies that end together", _up(b"", 0), connections=64, ends_together=True
    ),
    Offence("csv-down", "200,000 lines of 50 bytes down, a chunk each", _down(_chunk(_LINE), 200_000), by_origin=True),
    Offence("chunks-down", "300,000 chunks of one byte down", _down(_chunk(b"x"), 300_000), by_origin=True),
    Offence(
        "million-chunks-down", "1.2 million chunks of one byte down", _down(_chunk(b"x"), 1_200_000), by_origin=True
    ),
    Offence("mixed-down", "small chunks of every kind down", lambda rng: _CHUNKED + _mixed_chunks(rng) + _LAST, True),
    Offence("interim-down", "32 interim responses of up to 8 KB", _interim, by_origin=True),
    Offence("fields-down", "a response with 9,300 fields, which are too many", _fields_down, by_origin=True),
    Offence("cookies-down", "a response with 999 cookies", _full_head(b"Set-Cookie:a\r\n"), by_origin=True),
    Offence(
        "links-down",
        "a response with 3,900 links",
        _full_head(b"Link: " + b", ".join([b"</a>;rel=b"] * 5) + b"\r\n"),
        by_origin=True,
    ),
    Offence("refresh-down", "a response of Refresh", _full_head(b"Refresh: 5;url=/a\r\n"), by_origin=True),
    Offence("location-down", "a response of Location", _full_head(b"Location: //127.0.0.1/a\r\n"), by_origin=True),
    Offence(
        "named-down",
        "a response whose Connection names 9,000 fields",
        _full_head(b"Connection: " + b",".join([b"abc"] * 15_500) + b"\r\n"),
        by_origin=True,
    ),
    Offence("h2-refusals", "HTTP/2: 5,000 requests for unknown names", _http2_refusals, is_http2=True),
    Offence("h2-heads", "HTTP/2: heads of 15 KB", _http2_heads, is_http2=True),
    Offence("h2-fields", "HTTP/2: heads of 240 fields", _http2_fields, is_http2=True),
    Offence("h2-data", "HTTP/2: 100,000 DATA frames of one byte", _http2_data, is_http2=True),
    Offence("h2-resets", "HTTP/2: requests that are reset at once", _http2_resets, is_http2=True),
    Offence("h2-breaks", "HTTP/2: connections that break with 100 requests", _http2_breaks, is_http2=True),
    Offence("h2-frames", "HTTP/2: small frames of every kind", _http2_frames, is_http2=True),
    Offence("handshakes", "64 connections of whole TLS handshakes", _many(b"", 0), connections=64, is_handshake=True),
)
BY_KEY: Final = {offence.key: offence for offence in OFFENCES}
