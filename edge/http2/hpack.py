"""Header compression (RFC 7541): blocks to fields, for requests, and the literals of which our own blocks are made.

The decoder's tables hold fields that were judged when they came in (`edge.http2.fields`); a block that refers to them
costs a list index a field. Our own blocks never use the dynamic table: a response's head is put together from parts
that are the same for all connections (`edge.http2.responses`).

A block that holds the same octets as one before it, between two blocks that changed no table, has the same fields;
so it has, but for one, where it differs from it in a value that no table takes: a browser's next path (`read_like`).
"""

from __future__ import annotations

import sys
from typing import Final

from edge.http2.errors import ConnectionFailed, ErrorCode
from edge.http2.fields import FIELD_OVERHEAD_BYTES, LINE_OVERHEAD_BYTES, Field, make_field, size_of
from edge.http2.huffman import Start
from edge.http2.huffman import decode as decode_huffman
from edge.http2.literals import KnownLiterals
from edge.http2.static_table import STATIC_FIELDS

TABLE_BYTES: Final = 4096
"""Size of the decoder's dynamic table: what a client may use without asking (RFC 9113 §6.5.2)."""

_MAX_INTEGER_OCTETS: Final = 4  # behind the first: no length or index of ours is above 2^28
_MAX_SIZE_UPDATES: Final = 2  # §4.2: the lowest and the last size, at most
_FIRST_DYNAMIC: Final = len(STATIC_FIELDS) + 1

_NO_FIELD: Final[Field] = (-1, b"", b"", b"")  # at index 0
_STATIC: Final = [_NO_FIELD, *(make_field(name, value) for name, value in STATIC_FIELDS)]
_REMEMBERED_BYTES: Final = 512
_LENGTH: Final = 0x7F  # of a string, where it is one octet: the bits beside Huffman's
_HUFFMAN: Final = 0x80
_SIZE_BEYOND_LINE: Final = FIELD_OVERHEAD_BYTES - LINE_OVERHEAD_BYTES


class DecodedBlock:
    """A block and its fields, by which blocks are read that differ from it in the last literal's value alone.

    `before` and `behind` that value stand at `lead` and `tail`; `before` is empty where there is no literal. `start` is
    what such values begin with: a site's paths, for example. It is no tuple: a tuple's fields cost ten times as much to
    read.
    """

    __slots__ = (
        "before",
        "behind",
        "behind_bytes",
        "block",
        "field_at",
        "fields",
        "lead",
        "literal_at",
        "start",
        "tail",
    )

    def __init__(
        self, block: bytes, literal_at: int, value_at: int, value_end: int, fields: list[Field], field_at: int
    ) -> None:
        self.block: Final = block
        self.literal_at: Final = literal_at
        self.lead: Final = slice(value_at)
        self.tail: Final = slice(value_end - len(block) or sys.maxsize, None)
        self.before: Final = block[self.lead]
        self.behind: Final = block[self.tail]
        self.behind_bytes: Final = len(self.behind)
        self.start: Start | None = None
        self.fields: Final = fields
        self.field_at: Final = field_at


class HeaderDecoder:
    """The decoder of one connection. Its blocks must be decoded all, in order.

    `max_fields`: of one block. One with more breaks the connection: HPACK has no other bound of what a block of 32 KB
    unfolds to. Below it, the bound of the fields' sizes is the caller's. `literals` are shared with other connections.
    """

    __slots__ = (
        "_known",
        "_literals",
        "_max_fields",
        "_max_table_bytes",
        "_table",
        "_table_bytes",
        "last",
    )

    def __init__(self, max_fields: int, literals: KnownLiterals) -> None:
        self._max_fields = max_fields
        self._literals = literals
        self._known = literals.get
        self._table = _STATIC.copy()
        self._table_bytes = 0
        self._max_table_bytes = TABLE_BYTES
        self.last: DecodedBlock | None = None  # a block that changed no table, nor did one since

    @property
    def dynamic_table(self) -> list[tuple[bytes, bytes]]:
        """Return the names and values, newest first."""
        return [(field[2], field[3]) for field in self._table[_FIRST_DYNAMIC:]]

    def decode(self, block: bytes) -> list[Field]:
        """Return the fields of a block; the list may be returned again.

        Raises: `ConnectionFailed` (§2.3.3, §4.2, §5, §6).
        """
        try:
            last = self.last
            if last is not None:
                if block == last.block:
                    return last.fields
                if (value := self.read_like(last, block)) is not None:
                    fields = last.fields.copy()
                    fields[last.field_at] = make_field(fields[last.field_at][2], value)
                    return fields
            return self._decode(block)
        except IndexError:
            raise ConnectionFailed(ErrorCode.COMPRESSION_ERROR, "truncated header block or unknown index") from None

    def read_like(self, last: DecodedBlock, block: bytes) -> bytes | None:
        """Return the value in which a block differs from `last`, which is still `self.last`.

        None where it differs in more, or is broken.
        """
        before = last.before
        if not before or block[last.lead] != before or block[last.tail] != last.behind:
            return None
        value_at = len(before)
        start, end = value_at + 1, len(block) - last.behind_bytes
        if start > end:  # the two overlap
            return None
        octet = block[value_at]
        length = octet & _LENGTH
        if length == _LENGTH:
            return _string_between(block, value_at, end)
        if length != end - start:
            return None
        if octet < _HUFFMAN:
            return block[start:end]
        literal, known = block[last.literal_at : end], self._known
        field = known(literal)
        if field is not None:
            return field[3]
        code = block[start:end]
        value = decode_huffman(code, last.start)
        if last.start is None:
            last.start = Start(code)
        literals = self._literals
        literals.until_kept -= 1
        if not literals.until_kept:
            literals.add(literal, make_field(last.fields[last.field_at][2], value))
        return value

    def _new_field(self, block: bytes, value_at: int, name: bytes, literal: bytes) -> tuple[Field, int]:
        """Return the field of a literal that is not known, and where it ends.

        `literal` are its octets, up to the 128th at least; b"" where it means something in this connection alone.

        Raises: IndexError behind the block's end.
        """
        octet = block[value_at]
        start = value_at + 1
        end = start + (octet & _LENGTH)
        if end > len(block) or octet & _LENGTH == _LENGTH:
            value, end = _string(block, value_at)
        elif octet < _HUFFMAN:
            value = block[start:end]
        else:
            value = decode_huffman(block[start:end])
        field = make_field(name, value)
        if literal:
            literals = self._literals
            literals.until_kept -= 1
            if not literals.until_kept:
                literals.add(literal, field)
        return field, end

    def _decode(self, block: bytes) -> list[Field]:
        """Return the fields, and remember them. Raises: IndexError behind the block's or a table's end."""
        table, known, most = self._table, self._known, self._max_fields
        fields: list[Field] = []
        add, end = fields.append, len(block)
        position = literal_at = value_at = value_end = field_at = 0  # of the last literal whose name is no table's
        has_changed = False
        while position < end and len(fields) <= most:
            octet = block[position]
            if octet >= 0x80:  # §6.1: often many of them
                count = len(fields)
                for following in block[position:]:
                    if not 0x80 < following < 0xFF:
                        break
                    add(table[following - 0x80])
                position += len(fields) - count
                if count == len(fields):
                    index, position = _long_index(block, position)
                    add(table[index])
                continue
            if 0x20 <= octet < 0x40:  # §4.2
                position, has_changed = self._resize(block, position), True
                continue
            start, position = position, position + 1
            is_added = octet >= 0x40  # §6.2.1; else §6.2.2, §6.2.3
            index = octet - 0x40 if is_added else octet & 0x0F
            if index == (0x3F if is_added else 0x0F):
                index, position = _integer(block, position, index)
            name = table[index][2]
            if not index:
                name, position = _string(block, position)
            if index < _FIRST_DYNAMIC:  # the same octets mean the same in all connections
                literal_at, value_at, field_at = start, position, len(fields)
                value_end = position + 1 + (block[position] & 0x7F)
                literal = block[start:value_end]
                field = known(literal)
                if field is None:
                    field, value_end = self._new_field(block, position, name, literal)
                position = value_end
            else:
                field, position = self._new_field(block, position, name, b"")
            add(field)
            if is_added:
                has_changed = True
                table.insert(_FIRST_DYNAMIC, field)
                held = self._table_bytes + len(field[1]) + _SIZE_BEYOND_LINE
                while held > self._max_table_bytes:  # §4.4: one larger than the table empties it
                    held -= len(table.pop()[1]) + _SIZE_BEYOND_LINE
                self._table_bytes = held
        if len(fields) > most:
            raise ConnectionFailed(ErrorCode.ENHANCE_YOUR_CALM, "too many fields", "header_fields")
        self.last = (
            DecodedBlock(block, literal_at, value_at, value_end, fields, field_at)
            if not has_changed and end <= _REMEMBERED_BYTES
            else None
        )
        return fields

    def _resize(self, block: bytes, position: int) -> int:
        """Take the updates of the table's size that a block begins with; return where they end (§4.2, §6.3)."""
        if position:
            raise _invalid_resize()
        updates = 0
        while position < len(block) and 0x20 <= block[position] < 0x40:
            size = block[position] & 0x1F
            position += 1
            if size == 0x1F:
                size, position = _integer(block, position, size)
            updates += 1
            if updates > _MAX_SIZE_UPDATES or size > TABLE_BYTES:
                raise _invalid_resize()
            self._max_table_bytes = size
            while self._table_bytes > size:
                self._table_bytes -= size_of(self._table.pop())
        return position


def _invalid_resize() -> ConnectionFailed:
    return ConnectionFailed(ErrorCode.COMPRESSION_ERROR, "invalid update of the dynamic table's size")


def _long_index(block: bytes, position: int) -> tuple[int, int]:
    """Return an index that does not fit into its octet, and where it ends. Raises: IndexError for 0."""
    if block[position] == 0x80:
        raise IndexError
    return _integer(block, position + 1, 0x7F)


def _integer(block: bytes, position: int, value: int) -> tuple[int, int]:
    """Return an integer whose prefix is full (§5.1), and where it ends."""
    shift = 0
    for _ in range(_MAX_INTEGER_OCTETS):
        octet = block[position]
        position += 1
        value += (octet & 0x7F) << shift
        if octet < 0x80:
            return value, position
        shift += 7
    raise ConnectionFailed(ErrorCode.COMPRESSION_ERROR, "an integer is too large")


def _string(block: bytes, position: int) -> tuple[bytes, int]:
    """Return a string literal (§5.2), and where it ends."""
    octet = block[position]
    length = octet & 0x7F
    position += 1
    if length == 0x7F:
        length, position = _integer(block, position, length)
    end = position + length
    if end > len(block):
        raise IndexError
    text = block[position:end]
    return (decode_huffman(text) if octet >= 0x80 else text), end


def _string_between(block: bytes, position: int, end: int) -> bytes | None:
    """Return a string literal that ends there; None for one that does not."""
    try:
        value, value_end = _string(block, position)
    except IndexError:
        return None
    return value if value_end == end else None


def integer(value: int, prefix_bits: int, first: int = 0) -> bytes:
    """Return an integer (§5.1); `first` are the bits before its prefix."""
    limit = (1 << prefix_bits) - 1
    if value < limit:
        return bytes((first | value,))
    octets = bytearray((first | limit,))
    value -= limit
    while value >= 0x80:
        octets.append(value & 0x7F | 0x80)
        value >>= 7
    octets.append(value)
    return bytes(octets)


def string(text: bytes) -> bytes:
    """Return a string literal, without Huffman coding."""
    length = len(text)
    return bytes((length,)) + text if length < 0x7F else integer(length, 7) + text


EMPTY_TABLE: Final = integer(0, 5, 0x20)
"""Stands at the start of the first block that we send: from then on the client need not keep a table for us, whatever
size its settings state (§4.2)."""

_NAME_INDICES: Final = {name: at for at, (name, _) in reversed(list(enumerate(STATIC_FIELDS, 1)))}
_FIELD_INDICES: Final = {field: at for at, field in enumerate(STATIC_FIELDS, 1) if field[1]}


def name_literal(name: bytes) -> bytes:
    """Return the start of a literal field that is not indexed (§6.2.2), up to its value."""
    index = _NAME_INDICES.get(name)
    return b"\0" + string(name) if index is None else integer(index, 4)


def field_literal(name: bytes, value: bytes) -> bytes:
    """Return a field that leaves no trace in the client's table."""
    index = _FIELD_INDICES.get((name, value))
    return integer(index, 7, 0x80) if index is not None else name_literal(name) + string(value)
