"""The chunked transfer coding (RFC 9112 §7.1), read strictly and written again by us.

Extensions are read over and dropped; trailers are kept apart (`edge.http.trailers`). A size line that two readers
could understand differently (bare LF, sign, no digits, overflow, blanks where the grammar has none) is refused. Origins
alone may pad a size with blanks, as some servers do.

Chunks that arrive together are joined: what is written again costs by read and not by chunk.
"""

from __future__ import annotations

import re
from typing import Final

from edge.http.error_responses import BAD_REQUEST, BODY_TOO_LARGE, HEAD_TOO_LARGE, Rejected

LAST_CHUNK: Final = b"0\r\n\r\n"

STEPS_AT_ONCE: Final = 512
"""Chunks and lines that one call reads: a fifth of a millisecond, half of one where all of them have extensions."""

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
_PLAIN_SIZE_LINE: Final = re.compile(rb"([0-9A-Fa-f]{1,15})\r\n")
_TRAILER_LINE: Final = re.compile(_TOKEN + rb":[\t \x21-\x7e\x80-\xff]*")

_SIZE, _DATA, _DATA_END, _TRAILERS, _DONE = range(5)


def encode(data: bytes) -> bytes:
    """Return one chunk. `data` must not be empty: an empty chunk is the end."""
    return b"%x\r\n%b\r\n" % (len(data), data)


def last_chunk(trailers: bytes) -> bytes:
    """Return the end of a body with this block of trailer fields."""
    return b"0" + trailers + b"\r\n\r\n"


class ChunkReader:
    """Decodes one body of at most `max_bytes`.

    It is fed until `is_done`. `may_pad`: whether blanks may end a size line.

    Then `trailers` is the block of trailer fields, and `rest` what follows the body in the stream. While `has_more`, a
    call of `feed` without data reads on in what earlier calls were given.
    """

    __slots__ = ("_may_pad", "_position", "_remaining", "_room", "_state", "_unread", "has_more", "rest", "trailers")

    def __init__(self, max_bytes: int | None = None, *, may_pad: bool = False) -> None:
        self._room = max_bytes
        self._may_pad = may_pad
        self._state = _SIZE
        self._remaining = 0
        self._unread = b""
        self._position = 0  # where reading goes on in `_unread`
        self.has_more = False
        self.rest = b""
        self.trailers = b""

    @property
    def is_done(self) -> bool:
        """Return whether the body and its trailers have come to their end."""
        return self._state == _DONE

    def feed(self, data: bytes = b"") -> bytes:
        """Return the content of at most `STEPS_AT_ONCE` chunks, joined.

        Raises: `Rejected` when the coding is broken; the reader is of no use afterwards.
        """
        if self._unread:
            data = self._unread[self._position :] + data if data else self._unread
        position = 0 if data is not self._unread else self._position
        self._unread, self._position, self.has_more = b"", 0, False
        pieces: list[bytes] = []
        steps_left = STEPS_AT_ONCE
        while self._state != _DONE:
            if self._state == _SIZE:
                position = self._read_plain_chunks(data, position, pieces, steps_left)
            if len(pieces) >= steps_left and position < len(data):
                self._unread, self._position, self.has_more = data, position, True
                break
            steps_left -= 1
            end = self._read_part(data, position, pieces)
            if end < 0:
                self._unread = data[position:]
                break
            position = end
        else:
            self.rest = data[position:]
        return b"".join(pieces)

    def _read_plain_chunks(self, data: bytes, position: int, pieces: list[bytes], most: int) -> int:
        """Read chunks that are whole and have no extensions, until there are `most` pieces; return where they end.

        A run of small chunks is what costs time; everything else is left to `_read_part`.
        """
        read_size, append, first = _PLAIN_SIZE_LINE.match, pieces.append, len(pieces)
        while len(pieces) < most:
            line = read_size(data, position)
            if line is None:
                break
            begin = line.end()
            end = begin + int(line[1], 16)
            if end == begin or data[end : end + 2] != b"\r\n":
                break
            append(data[begin:end])
            position = end + 2
        self._take_room(sum(map(len, pieces[first:])) if self._room is not None else 0)
        return position

    def _read_part(self, data: bytes, position: int, pieces: list[bytes]) -> int:
        """Read one line, or what there is of a chunk's content; return where it ends, or -1 where bytes are missing."""
        if self._state == _DATA:
            return self._read_content(data, position, pieces)
        if self._state == _DATA_END:
            return self._read_content_end(data, position)
        end = data.find(b"\n", position, position + _MAX_LINE_BYTES)
        if end < 0:
            if len(data) - position >= _MAX_LINE_BYTES:
                raise Rejected(HEAD_TOO_LARGE if self._state == _TRAILERS else BAD_REQUEST)
            return -1
        if data[end - 1 : end] != b"\r" or end == position:
            raise Rejected(BAD_REQUEST)
        self._read_line(data[position : end - 1])
        return end + 1

    def _read_content(self, data: bytes, position: int, pieces: list[bytes]) -> int:
        piece = data[position : position + self._remaining]
        if not piece:
            return -1
        pieces.append(piece)
        self._remaining -= len(piece)
        if not self._remaining:
            self._state = _DATA_END
        return position + len(piece)

    def _read_content_end(self, data: bytes, position: int) -> int:
        found = data[position : position + 2]
        if not b"\r\n".startswith(found):
            raise Rejected(BAD_REQUEST)
        if len(found) < 2:
            return -1
        self._state = _SIZE
        return position + 2

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
        self._take_room(self._remaining)

    def _take_room(self, size: int) -> None:
        if self._room is not None:
            self._room -= size
            if self._room < 0:
                raise Rejected(BODY_TOO_LARGE)
