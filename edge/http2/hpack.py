"""Header compression (RFC 7541): blocks to fields, for requests, and the literals of which our own blocks are made.

The decoder's tables hold fields that were judged when they came in (`edge.http2.fields`); a block that refers to them
costs a list index a field. Our own blocks never use the dynamic table: a response's head is put together from parts
that are the same for all connections (`edge.http2.responses`).

A block that holds the same octets as one before it, between two blocks that changed no table, has the same fields.
"""

from __future__ import annotations

from typing import Final

from edge.http2.errors import ConnectionFailed, ErrorCode
from edge.http2.fields import FIELD_OVERHEAD_BYTES, LINE_OVERHEAD_BYTES, Field, make_field, size_of
from edge.http2.huffman import decode as decode_huffman
from edge.http2.static_table import STATIC_FIELDS

TABLE_BYTES: Final = 4096
"""Size of the decoder's dynamic table: what a client may use without asking (RFC 9113 §6.5.2)."""

_MAX_INTEGER_OCTETS: Final = 4  # behind the first: no length or index of ours is above 2^28
_MAX_SIZE_UPDATES: Final = 2  # §4.2: the lowest and the last size, at most
_FIRST_DYNAMIC: Final = len(STATIC_FIELDS) + 1

_STATIC: Final[list[Field | None]] = [None, *(make_field(name, value) for name, value in STATIC_FIELDS)]
_REMEMBERED_BYTES: Final = 512
_SIZE_BEYOND_LINE: Final = FIELD_OVERHEAD_BYTES - LINE_OVERHEAD_BYTES


class HeaderDecoder:
    """The decoder of one connection. Its blocks must be decoded all, in order.

    `max_fields`: of one block. One with more breaks the connection: HPACK has no other bound of what a block of 32 KB
    unfolds to. Below it, the bound of the fields' sizes is the caller's.
    """

    __slots__ = ("_last_block", "_last_fields", "_max_fields", "_max_table_bytes", "_table", "_table_bytes")

    def __init__(self, max_fields: int) -> None:
        self._max_fields = max_fields
        self._table: list[Field | None] = _STATIC.copy()
        self._table_bytes = 0
        self._max_table_bytes = TABLE_BYTES
        self._last_block: bytes | None = None  # that changed no table, nor did one since
        self._last_fields: list[Field] = []

    @property
    def dynamic_table(self) -> list[tuple[bytes, bytes]]:
        """Return the names and values, newest first."""
        return [(field[2], field[3]) for field in self._table[_FIRST_DYNAMIC:] if field is not None]

    def decode(self, block: bytes) -> list[Field]:
        """Return the fields of a block; the list may be returned again.

        Raises: `ConnectionFailed` (§2.3.3, §4.2, §5, §6).
        """
        if block == self._last_block:
            return self._last_fields
        try:
            fields, has_changed = self._decode(block)
        except IndexError:
            raise ConnectionFailed(ErrorCode.COMPRESSION_ERROR, "truncated header block or unknown index") from None
        if has_changed:
            self._last_block = None
        elif len(block) <= _REMEMBERED_BYTES:
            self._last_block, self._last_fields = block, fields
        return fields

    def _decode(self, block: bytes) -> tuple[list[Field], bool]:
        """Return the fields, and whether a table changed. Raises: IndexError behind the block's or a table's end."""
        table = self._table
        fields: list[Field] = []
        position, end, fields_left = 0, len(block), self._max_fields
        has_changed = False
        while position < end:
            octet = block[position]
            position += 1
            fields_left -= 1
            if fields_left < 0:
                raise ConnectionFailed(ErrorCode.ENHANCE_YOUR_CALM, "too many fields", "header_fields")
            if octet >= 0x80:  # §6.1
                index = octet & 0x7F
                if index == 0x7F:
                    index, position = _integer(block, position, index)
                field = table[index]
                if field is None:
                    raise IndexError
                fields.append(field)
                continue
            if octet >= 0x40:  # §6.2.1
                index, is_added = octet & 0x3F, True
                if index == 0x3F:
                    index, position = _integer(block, position, index)
            elif octet >= 0x20:  # §6.3
                position = self._resize(block, position - 1, may_follow=not fields)
                has_changed = True
                fields_left += 1
                continue
            else:  # §6.2.2, §6.2.3
                index, is_added = octet & 0x0F, False
                if index == 0x0F:
                    index, position = _integer(block, position, index)
            if index:
                named = table[index]
                assert named is not None
                name = named[2]
            else:
                name, position = _string(block, position)
            value, position = _string(block, position)
            field = make_field(name, value)
            fields.append(field)
            if is_added:
                has_changed = True
                self._add(field)
        return fields, has_changed

    def _add(self, field: Field) -> None:
        """Add a field to the table; one larger than the table empties it (§4.4)."""
        size = len(field[1]) + _SIZE_BEYOND_LINE
        held = self._table_bytes + size
        if held > self._max_table_bytes:
            held = self._evict(self._max_table_bytes - size) + size
            if size > self._max_table_bytes:
                return
        self._table_bytes = held
        self._table.insert(_FIRST_DYNAMIC, field)

    def _evict(self, room: int) -> int:
        """Drop the oldest fields until the rest takes no more than `room`; return its size."""
        table, held = self._table, self._table_bytes
        while held > room and len(table) > _FIRST_DYNAMIC:
            oldest = table.pop()
            assert oldest is not None
            held -= size_of(oldest)
        self._table_bytes = held
        return held

    def _resize(self, block: bytes, position: int, *, may_follow: bool) -> int:
        """Take the size updates that stand here; return where they end (§4.2, §6.3)."""
        updates = 0
        while position < len(block) and 0x20 <= block[position] < 0x40:
            size = block[position] & 0x1F
            position += 1
            if size == 0x1F:
                size, position = _integer(block, position, size)
            updates += 1
            if not may_follow or updates > _MAX_SIZE_UPDATES or size > TABLE_BYTES:
                raise ConnectionFailed(ErrorCode.COMPRESSION_ERROR, "invalid update of the dynamic table's size")
            self._max_table_bytes = size
            if self._table_bytes > size:
                self._evict(size)
        return position


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
