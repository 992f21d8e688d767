"""The head of a response of HTTP/1.1 as a header block (RFC 9113 §8.3.2).

A line of a head is coded once, and remembered: of an application's heads, most lines are the same again and again.
Fields that differ from head to head (dates, tags, cookies) are not remembered for long.
"""

from __future__ import annotations

from typing import Final

from edge.http2 import hpack

_MAX_LINES: Final = 2048
_MAX_LINE_BYTES: Final = 256  # of a line, or a name, that is remembered
_MAX_NAMES: Final = 512
_MAX_FORMS: Final = 256
_MAX_FILLED: Final = 512  # forms for values of certain lengths
_MAX_VALUES: Final = 64  # remembered of each name
# §8.2.2: fields of a connection of HTTP/1.1 have no meaning.
_DROPPED: Final = frozenset((b"connection", b"proxy-connection", b"keep-alive", b"transfer-encoding", b"upgrade"))
_STATUS_AT: Final = slice(9, 12)  # of ``HTTP/1.1 200 OK``
_strip: Final = bytes.strip
_SHORT: Final = [bytes((length,)) for length in range(0x7F)]  # §5.1 of RFC 7541


class _Name:
    """A field's name as it is coded, b"" for one that is dropped, and how many more of its lines are remembered."""

    __slots__ = ("start", "values_left")

    def __init__(self, name: bytes) -> None:
        self.start = b"" if name in _DROPPED else hpack.name_literal(name)
        self.values_left = _MAX_VALUES


class HeadEncoder:
    """Encodes heads for a worker's connections.

    It remembers up to 2,048 lines and 512 names of 256 bytes, 256 forms, and 512 for values of certain lengths.
    """

    __slots__ = ("_filled", "_forms", "_lines", "_names")

    def __init__(self) -> None:
        self._forms: dict[bytes, list[bytes]] = {}
        self._filled: dict[tuple[bytes | int, ...], bytes] = {}  # by the form and the lengths
        self._lines: dict[bytes, bytes] = {}
        self._names: dict[bytes, _Name] = {}

    def head(self, head: bytes) -> bytes:
        """Return the block of a head, which ends with the empty line."""
        lines = head[:-4].split(b"\r\n")
        coded = list(map(self._lines.get, lines))
        if coded[0] is None:
            coded[0] = self._status(lines[0])
        return b"".join([line if line is not None else self._field(lines[at]) for at, line in enumerate(coded)])

    def _status(self, line: bytes) -> bytes:
        coded = hpack.field_literal(b":status", line[_STATUS_AT])
        return self._remember(line, coded) if len(line) <= _MAX_LINE_BYTES else coded  # its phrase is the origin's

    def fill(self, form: bytes, values: tuple[bytes, ...]) -> bytes:
        """Return the block of the head ``form % values``; each value is a field's."""
        values = tuple(map(_strip, values))  # of blanks: other white space stands in no value
        text = self._filled.get((form, *map(len, values)))
        return text % values if text is not None else self._fill_anew(form, values)

    def _fill_anew(self, form: bytes, values: tuple[bytes, ...]) -> bytes:
        """Return what `fill` does; values of the same lengths then only need to be put between the coded parts."""
        parts = self._forms.get(form)
        if parts is None:
            parts = self._code(form, len(values))
        if not parts:
            return self.head(form % values)
        lengths = [*(hpack.integer(len(value), 7) for value in values), b""]
        text = b"%b".join((part + length).replace(b"%", b"%%") for part, length in zip(parts, lengths, strict=True))
        if len(self._filled) >= _MAX_FILLED:
            self._filled.clear()
        self._filled[form, *map(len, values)] = text
        return text % values

    def _code(self, form: bytes, gaps: int) -> list[bytes]:
        """Return the constant parts of a form, coded; nothing where a field that has a value is dropped."""
        if len(self._forms) >= _MAX_FORMS:
            self._forms.clear()
        texts = (form % ((b"\0",) * gaps)).removesuffix(b"\r\n\r\n").split(b"\0")
        status_line = texts[0].partition(b"\r\n")[0]
        texts[0] = texts[0].removeprefix(status_line)
        parts = [hpack.field_literal(b":status", status_line[_STATUS_AT])]
        for text in texts[:-1]:
            before, _, name = text.rpartition(b"\r\n")
            start = self._name(name.partition(b":")[0]).start
            if not start:
                parts.clear()
                break
            parts[-1] += self.trailers(before) + start
            parts.append(b"")
        else:
            parts[-1] += self.trailers(texts[-1])
        self._forms[form] = parts
        return parts

    def trailers(self, block: bytes) -> bytes:
        """Return the block of trailer fields, each of which begins with CR LF."""
        return b"".join(self._field(line) for line in block.split(b"\r\n")[1:])

    def _field(self, line: bytes) -> bytes:
        before, _, value = line.partition(b":")
        name = self._names.get(before) or self._name(before)
        value = value.strip(b" \t")
        length = len(value)
        coded = name.start + (_SHORT[length] + value if length < 0x7F else hpack.string(value))
        if not name.start:
            coded = b""
        if name.values_left and len(line) <= _MAX_LINE_BYTES:
            name.values_left -= 1
            return self._remember(line, coded)
        return coded

    def _name(self, before: bytes) -> _Name:
        name = _Name(before.lower())
        if len(before) > _MAX_LINE_BYTES:
            return name
        if len(self._names) >= _MAX_NAMES:
            self._names.clear()
        self._names[before] = name
        return name

    def _remember(self, line: bytes, coded: bytes) -> bytes:
        if len(self._lines) >= _MAX_LINES:
            self._lines.clear()
            self._names.clear()
        self._lines[line] = coded
        return coded
