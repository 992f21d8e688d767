"""The chunked coding read the plain way, a chunk at a time: what `edge.http.chunks` must agree with on every input."""

from __future__ import annotations

import re
from typing import Final

from edge.http.error_responses import BAD_REQUEST, BODY_TOO_LARGE, HEAD_TOO_LARGE, Rejected

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
    + rb'|"(?:[^"\\\x00-\x08\x0a-\x1f\x7f]|\\[\t -~])*"))?)*'
)
_TRAILER_LINE: Final = re.compile(_TOKEN + rb":[\t \x21-\x7e\x80-\xff]*")

_SIZE, _DATA, _DATA_END, _TRAILERS, _DONE = range(5)


class PlainChunkReader:
    """Decodes one body, one chunk after the other; as `ChunkReader`, but for what it returns and has no bounds for."""

    __slots__ = ("_may_pad", "_pending", "_remaining", "_room", "_state", "rest", "trailers")

    def __init__(self, max_bytes: int | None = None, *, may_pad: bool = False) -> None:
        self._room = max_bytes
        self._may_pad = may_pad
        self._state = _SIZE
        self._remaining = 0
        self._pending = b""
        self.rest = b""
        self.trailers = b""

    @property
    def is_done(self) -> bool:
        return self._state == _DONE

    def feed(self, data: bytes) -> list[bytes]:
        """Return the pieces of content in `data`, in order, none empty. Raises: `Rejected`."""
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
                    raise Rejected(BAD_REQUEST)
                position += 2
                self._state = _SIZE
            else:
                end = data.find(b"\n", position, position + _MAX_LINE_BYTES)
                if end < 0:
                    if len(data) - position >= _MAX_LINE_BYTES:
                        raise Rejected(HEAD_TOO_LARGE if self._state == _TRAILERS else BAD_REQUEST)
                    return self._keep(data, position, pieces, None)
                if data[end - 1 : end] != b"\r" or end == position:
                    raise Rejected(BAD_REQUEST)
                self._read_line(data[position : end - 1])
                position = end + 1
        self.rest = data[position:]
        return pieces

    def _keep(self, data: bytes, position: int, pieces: list[bytes], only: bytes | None) -> list[bytes]:
        self._pending = data[position:]
        if only is not None and self._pending not in (b"", only):
            raise Rejected(BAD_REQUEST)
        return pieces

    def _read_line(self, line: bytes) -> None:
        if self._state == _SIZE:
            self._read_size(line)
        elif not line:
            self._state = _DONE
        else:
            if _TRAILER_LINE.fullmatch(line) is None:
                raise Rejected(BAD_REQUEST)
            self.trailers += b"\r\n" + line
            if len(self.trailers) > _MAX_TRAILER_BYTES:
                raise Rejected(HEAD_TOO_LARGE)

    def _read_size(self, line: bytes) -> None:
        match = _SIZE_LINE.fullmatch(line.rstrip(b" \t") if self._may_pad else line)
        if match is None:
            raise Rejected(BAD_REQUEST)
        self._remaining = int(match[1], 16)
        self._state = _DATA if self._remaining else _TRAILERS
        if self._room is not None:
            self._room -= self._remaining
            if self._room < 0:
                raise Rejected(BODY_TOO_LARGE)
