"""The head of a response of HTTP/1.1 as a header block (RFC 9113 §8.3.2).

A line of a head is coded once, and remembered: of an application's heads, most lines are the same again and again.
"""

from __future__ import annotations

from typing import Final

from edge.http2 import hpack

_MAX_LINES: Final = 2048
_MAX_LINE_BYTES: Final = 256
_MAX_NAMES: Final = 512
# §8.2.2: fields of a connection of HTTP/1.1 have no meaning.
_DROPPED: Final = frozenset((b"connection", b"proxy-connection", b"keep-alive", b"transfer-encoding", b"upgrade"))
_STATUS_AT: Final = slice(9, 12)  # of ``HTTP/1.1 200 OK``


class HeadEncoder:
    """Encodes heads for a worker's connections: remembers up to 2,048 lines of 256 bytes, and 512 names."""

    __slots__ = ("_lines", "_names")

    def __init__(self) -> None:
        self._lines: dict[bytes, bytes] = {}
        self._names: dict[bytes, bytes] = {}

    def head(self, head: bytes) -> bytes:
        """Return the block of a head, which ends with the empty line."""
        known = self._lines
        lines = head[:-4].split(b"\r\n")
        status = lines[0][_STATUS_AT]
        lines[0] = known.get(status) or self._remember(status, hpack.field_literal(b":status", status))
        for at in range(1, len(lines)):
            line = lines[at]
            lines[at] = known[line] if line in known else self._field(line)
        return b"".join(lines)

    def trailers(self, block: bytes) -> bytes:
        """Return the block of trailer fields, each of which begins with CR LF."""
        return b"".join(self._field(line) for line in block.split(b"\r\n")[1:])

    def _field(self, line: bytes) -> bytes:
        name, _, value = line.partition(b":")
        start = self._names.get(name)
        if start is None:
            start = self._start_of(name)
        if not start:
            return b""
        value = value.strip(b" \t")
        length = len(value)
        coded = start + (b"%c%b" % (length, value) if length < 0x7F else hpack.string(value))
        return self._remember(line, coded) if len(line) <= _MAX_LINE_BYTES else coded

    def _start_of(self, name: bytes) -> bytes:
        lower = name.lower()
        start = b"" if lower in _DROPPED else hpack.name_literal(lower)
        if len(self._names) >= _MAX_NAMES:
            self._names.clear()
        self._names[name] = start
        return start

    def _remember(self, line: bytes, coded: bytes) -> bytes:
        if len(self._lines) >= _MAX_LINES:
            self._lines.clear()
        self._lines[line] = coded
        return coded
