"""The chunked transfer coding (RFC 9112 §7.1), read strictly and written again by us.

Extensions are read over and dropped, trailers are read over and dropped; a size line that two readers could
understand differently (bare LF, sign, white space before the size, no digits, overflow) is refused.
"""

from __future__ import annotations

import re
from typing import Final

from edge.http.refusals import BAD_REQUEST, HEAD_TOO_LARGE, Refused

LAST_CHUNK: Final = b"0\r\n\r\n"

_MAX_LINE_BYTES: Final = 4096
_MAX_TRAILER_BYTES: Final = 16_384
_TOKEN: Final = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
# chunk-ext = *( BWS ";" BWS token [ BWS "=" BWS ( token / quoted-string ) ] )
_SIZE_LINE: Final = re.compile(
    rb"([0-9A-Fa-f]{1,15})"
    rb"(?:[ \t]*;[ \t]*"
    + _TOKEN
    + rb"(?:[ \t]*=[ \t]*(?:"
    + _TOKEN
    + rb'|"(?:[^"\\\x00-\x08\x0a-\x1f\x7f]|\\[\t -~])*"))?)*[ \t]*'
)
_TRAILER_LINE: Final = re.compile(_TOKEN + rb":[\t \x21-\x7e\x80-\xff]*")

_SIZE, _DATA, _DATA_END, _TRAILERS, _DONE = range(5)


def encode(data: bytes) -> bytes:
    """One chunk. `data` must not be empty: an empty chunk is the end."""
    return b"%x\r\n%b\r\n" % (len(data), data)


class ChunkReader:
    """Decodes one body. Fed until `is_done`; then `rest` is what follows the body in the stream."""

    __slots__ = ("_pending", "_remaining", "_state", "_trailer_bytes", "rest")

    def __init__(self) -> None:
        self._state = _SIZE
        self._remaining = 0
        self._pending = b""
        self._trailer_bytes = 0
        self.rest = b""

    @property
    def is_done(self) -> bool:
        return self._state == _DONE

    def feed(self, data: bytes) -> list[bytes]:
        """The pieces of content in `data`, in order, none empty.

        Raises: `Refused` when the coding is broken; the reader is of no use afterwards.
        """
        if self._pending:
            data = self._pending + data
            self._pending = b""
        pieces: list[bytes] = []
        position = 0
        while self._state != _DONE:
            if self._state == _DATA:
                piece = data[position : position + self._remaining]
                if not piece:
                    return pieces
                pieces.append(piece)
                position += len(piece)
                self._remaining -= len(piece)
                if self._remaining:
                    return pieces
                self._state = _DATA_END
            elif self._state == _DATA_END:
                if len(data) - position < 2:
                    return self._keep(data, position, pieces, b"\r")
                if data[position : position + 2] != b"\r\n":
                    raise Refused(BAD_REQUEST)
                position += 2
                self._state = _SIZE
            else:
                end = data.find(b"\n", position, position + _MAX_LINE_BYTES)
                if end < 0:
                    if len(data) - position >= _MAX_LINE_BYTES:
                        raise Refused(HEAD_TOO_LARGE if self._state == _TRAILERS else BAD_REQUEST)
                    return self._keep(data, position, pieces, None)
                if data[end - 1 : end] != b"\r" or end == position:
                    raise Refused(BAD_REQUEST)
                self._read_line(data[position : end - 1])
                position = end + 1
        self.rest = data[position:]
        return pieces

    def _keep(self, data: bytes, position: int, pieces: list[bytes], only: bytes | None) -> list[bytes]:
        self._pending = data[position:]
        if only is not None and self._pending not in (b"", only):
            raise Refused(BAD_REQUEST)
        return pieces

    def _read_line(self, line: bytes) -> None:
        if self._state == _SIZE:
            match = _SIZE_LINE.fullmatch(line)
            if match is None:
                raise Refused(BAD_REQUEST)
            self._remaining = int(match[1], 16)
            self._state = _DATA if self._remaining else _TRAILERS
        elif not line:
            self._state = _DONE
        else:
            self._trailer_bytes += len(line)
            if self._trailer_bytes > _MAX_TRAILER_BYTES:
                raise Refused(HEAD_TOO_LARGE)
            if _TRAILER_LINE.fullmatch(line) is None:
                raise Refused(BAD_REQUEST)
