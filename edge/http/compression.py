"""Compression of response bodies for origins that send none (RFC 9110 §8.4.1): which, and how. Bytes in, bytes out.

    a response is compressed where its type is text, its body is not known to be small, it has a status with a whole
        representation, and neither side has encoded it or forbidden to transform it
    never where it sets a cookie and the request has a query or a body, which it may reflect: then the length of what
        is compressed tells what it holds (BREACH); unless the application asks for that
    a strong entity tag becomes a weak one (RFC 9110 §8.8.1), and ranges are not offered
    what comes in pieces of unknown number is flushed with each piece: event streams and pages that are streamed
        arrive as they are made

One call compresses what was read at once, at speeds where that takes a few milliseconds at most.
"""

from __future__ import annotations

import re
import zlib
from typing import Final, Literal, Protocol, TypeAlias, cast

import brotli

from edge.http import chunks, fields
from edge.http.request import RequestHead
from edge.http.response import ResponseHead
from edge.http.response_body import ResponseBody

Compression: TypeAlias = Literal["off", "on", "always"]
"""`always`: also where a response that sets a cookie may reflect the request."""

SMALLEST_BYTES: Final = 1024
_STATUSES: Final = frozenset({200, 203, 400, 401, 403, 404, 405, 409, 410, 422, 500, 503})
_TEXT: Final = re.compile(
    rb"\r\ncontent-type:[ \t]*(?:text/|application/(?:[\w.-]+\+)?(?:json|xml|javascript|manifest\+json|wasm)\b"
    rb"|image/svg\+xml)",
    re.IGNORECASE,
)
_UNTOUCHABLE: Final = re.compile(
    rb"\r\n(?:content-encoding:|content-range:|cache-control:[^\r\n]*no-transform)", re.IGNORECASE
)
_SETS_COOKIE: Final = re.compile(rb"\r\nset-cookie:", re.IGNORECASE)
_ACCEPTED: Final = re.compile(rb"\r\naccept-encoding:([^\r\n]*)", re.IGNORECASE)
_MEMBER: Final = re.compile(rb"(\*|[a-z]+)[ \t]*(?:;[ \t]*q=([01](?:\.[0-9]{0,3})?))?")
_LENGTH: Final = re.compile(rb"\r\ncontent-length:[ \t]*([0-9]{1,18})[ \t]*\r\n", re.IGNORECASE)
_STRONG_TAG: Final = re.compile(rb"(\r\netag:[ \t]*)(?=\")", re.IGNORECASE)
# What describes the bytes of before: RFC 9530's digests are of the encoded form, too.
_REPLACED: Final = frozenset(
    b"content-length transfer-encoding accept-ranges content-md5 digest content-digest repr-digest".split()
)
_GZIP_LEVEL: Final = 4
_GZIP: Final = 16 + zlib.MAX_WBITS
_BROTLI_QUALITY: Final = 3
_BROTLI_WINDOW: Final = 18  # 256 KB: the default of 4 MB takes 9 MB for each response being sent
_MOST_MEMBERS: Final = 20


class _Encoder(Protocol):
    def process(self, data: bytes) -> bytes:
        """Return what is ready of the encoded form."""

    def flush(self) -> bytes:
        """Return all that the decoder needs for what was given."""

    def finish(self) -> bytes:
        """Return the end."""


class _Gzip:
    def __init__(self) -> None:
        self._stream = zlib.compressobj(_GZIP_LEVEL, zlib.DEFLATED, _GZIP)
        self.process = self._stream.compress
        self.finish = self._stream.flush

    def flush(self) -> bytes:
        return self._stream.flush(zlib.Z_SYNC_FLUSH)


def _make_brotli() -> brotli.Compressor:
    return brotli.Compressor(quality=_BROTLI_QUALITY, lgwin=_BROTLI_WINDOW)


class CompressedBody(ResponseBody):
    """Reads a body as `ResponseBody` does, and frames it encoded, for a client of HTTP/1.1 or HTTP/2."""

    __slots__ = ("_encoder", "_flushes", "_is_encoded_chunked")

    def __init__(self, coding: bytes, size: int, minor: int, *, takes_trailers: bool) -> None:
        super().__init__(size, 2, takes_trailers=takes_trailers)  # the content alone: the chunks are of what is encoded
        self._encoder = cast("_Encoder", _make_brotli() if coding == b"br" else _Gzip())
        self._flushes = size < 0
        self._is_encoded_chunked = minor == 1

    @property
    def ends_by_close(self) -> bool:
        """Return whether the client takes the connection's end for the body's."""
        return not self._is_encoded_chunked

    def frame(self, data: bytes) -> bytes:
        """Return what the client is sent of `data`. Raises: `Rejected` when the origin's coding is broken."""
        content = super().frame(data)
        encoded = self._encoder.process(content) if content else b""
        if self.is_complete:
            return self._last(encoded)
        if content and self._flushes:
            encoded += self._encoder.flush()
        return chunks.encode(encoded) if encoded and self._is_encoded_chunked else encoded

    def end(self) -> bytes | None:
        """As `ResponseBody.end`."""
        return None if super().end() is None else self._last(b"")

    def _last(self, encoded: bytes) -> bytes:
        encoded += self._encoder.finish()
        if not self._is_encoded_chunked:
            return encoded
        block, self.trailers = self.trailers, b""
        return chunks.encode(encoded) + chunks.last_chunk(block)


def choose_coding(kept: bytes) -> bytes:
    """Return the coding that the request's fields prefer of ``br`` and ``gzip``, b"" for none."""
    weights: dict[bytes, float] = {}
    members = b",".join(_ACCEPTED.findall(kept)).lower().split(b",", _MOST_MEMBERS)[:_MOST_MEMBERS]
    for member in members:
        found = _MEMBER.fullmatch(member.strip(b" \t"))
        if found is not None:
            weights[found[1]] = float(found[2] or 1)
    others = weights.get(b"*", 0.0)
    best = max((b"br", b"gzip"), key=lambda coding: weights.get(coding, others))
    return best if weights.get(best, others) > 0 else b""


def compress(
    sent: bytes, answer: ResponseHead, request: RequestHead, compression: Compression
) -> tuple[bytes, CompressedBody | None]:
    """Return the head that the client gets, and its body where that is to be compressed.

    `sent` is the head without compression. A response to HEAD has the fields of the one to GET, and no body.
    """
    if not _TEXT.search(sent) or answer.status not in _STATUSES or not request.minor or _UNTOUCHABLE.search(sent):
        return sent, None
    length = _LENGTH.search(sent)
    is_small = length is not None and int(length[1]) < SMALLEST_BYTES
    may_reflect = bool(request.fields.body) or b"?" in request.target
    if is_small or (compression != "always" and may_reflect and _SETS_COOKIE.search(sent)):
        return sent, None
    coding = choose_coding(request.kept)
    if not coding:
        return sent[:-2] + b"Vary: Accept-Encoding\r\n\r\n", None
    head = _STRONG_TAG.sub(rb"\1W/", fields.without(sent[:-4], _REPLACED))
    is_for_head = request.method == b"HEAD"
    framing = b"" if is_for_head else b"\r\nTransfer-Encoding: chunked"
    head = b"%b\r\nContent-Encoding: %b\r\nVary: Accept-Encoding%b\r\n\r\n" % (head, coding, framing)
    if is_for_head:
        return head, None
    takes_trailers = request.fields.takes_trailers
    return head, CompressedBody(coding, answer.body, request.minor, takes_trailers=takes_trailers)
