"""Header compression (RFC 7541): blocks to fields, for requests, and the literals of which our own blocks are made.

The decoder's tables hold fields that were judged when they came in (`edge.http2.fields`); a block that refers to them
costs a list index a field. Our own blocks never use the dynamic table: a response's head is put together from parts
that are the same for all connections (`edge.http2.responses`).

Most blocks are like earlier ones, and only what differs is decoded. A browser's next script or image often differs from
an earlier one in its path alone. Such a block is found by the octets before and behind the path, as long as the table
has not changed (`recall`). A block with another cookie differs in a few values, of which some go into the table. It is
compared with the last block (`read_like`, `edge.http2.block_form`).
"""

from __future__ import annotations

from typing import Any, Final

from edge.http2.block_form import (
    FEW_FIELDS,
    FIRST_DYNAMIC,
    MAX_ADDED,
    MAX_LIKE_BYTES,
    BlockForm,
    FormLearner,
    Literal,
)
from edge.http2.errors import ConnectionFailed, ErrorCode
from edge.http2.fields import FIELD_OVERHEAD_BYTES, LINE_OVERHEAD_BYTES, PATH, Field, make_field, size_of
from edge.http2.huffman import decode as decode_huffman
from edge.http2.literals import KnownLiterals
from edge.http2.static_table import STATIC_FIELDS

TABLE_BYTES: Final = 4096
"""Size of the decoder's dynamic table: what a client may use without asking (RFC 9113 §6.5.2)."""

MAX_SIMILAR: Final = 12
"""Blocks of a connection that are remembered by what surrounds their path. A page has some eight kinds of requests."""

_MAX_INTEGER_OCTETS: Final = 4  # behind the first: no length or index of ours is above 2^28
_MAX_SIZE_UPDATES: Final = 2  # §4.2: the lowest and the last size, at most

_NO_FIELD: Final[Field] = (-1, b"", b"", b"")  # at index 0
_STATIC: Final = [_NO_FIELD, *(make_field(name, value) for name, value in STATIC_FIELDS)]
_LENGTH: Final = 0x7F  # of a string, where it is one octet: the bits beside Huffman's
_HUFFMAN: Final = 0x80
_SIZE_BEYOND_LINE: Final = FIELD_OVERHEAD_BYTES - LINE_OVERHEAD_BYTES


class HeaderDecoder:
    """The decoder of one connection. Its blocks must be decoded all, in order.

    `surroundings` are what stands before and behind the path in the last block that `decode` returned the fields of,
    where blocks can be like it in all but the path, else b"". `similar` is what the owner keeps by such surroundings:
    it is empty once the table has changed, after which the same octets mean something else. `form` is that of the
    last block, if it has one; a block with surroundings has none.
    A block with more than `max_fields` fields ends the connection, since HPACK does not bound how much a block decodes
    to. The size of the fields is bounded by the caller. `literals` are shared with other connections.
    """

    __slots__ = (
        "_learner",
        "_literals",
        "_max_fields",
        "_max_table_bytes",
        "_path_at",
        "_similar_at",
        "_table",
        "_table_bytes",
        "form",
        "similar",
        "surroundings",
    )

    def __init__(self, max_fields: int, literals: KnownLiterals) -> None:
        self._max_fields = max_fields
        self._literals = literals
        self._learner = FormLearner()
        self._table = _STATIC.copy()
        self._table_bytes = 0
        self._max_table_bytes = TABLE_BYTES
        self.form: BlockForm | None = None
        self.surroundings = b""
        self.similar: dict[bytes, Any] = {}
        self._similar_at = 0  # where their paths begin
        self._path_at = 0  # where that of the last block does, if it has surroundings

    @property
    def dynamic_table(self) -> list[tuple[bytes, bytes]]:
        """Return the names and values, newest first."""
        return [(field[2], field[3]) for field in self._table[FIRST_DYNAMIC:]]

    def decode(self, block: bytes) -> list[Field]:
        """Return the fields of a block; the list may change with the next one.

        Raises: `ConnectionFailed` (§2.3.3, §4.2, §5, §6).
        """
        form = self.form
        if form is not None and self.read_like(form, block):
            return form.fields
        return self.decode_unlike(block)

    def decode_unlike(self, block: bytes) -> list[Field]:
        """Return what `decode` does, for a block that is known not to have the last one's form."""
        try:
            return self._decode(block)
        except IndexError:
            raise ConnectionFailed(ErrorCode.COMPRESSION_ERROR, "truncated header block or unknown index") from None

    def keep(self, value: Any) -> None:
        """Keep a value for blocks that differ in their path alone from the last one, which has `surroundings`."""
        similar = self.similar
        if self._path_at != self._similar_at or len(similar) >= MAX_SIMILAR:
            similar.clear()
            self._similar_at = self._path_at
        similar[self.surroundings] = value

    def forget(self) -> None:
        """Forget what earlier blocks were like."""
        self.form = None
        self._learner = FormLearner()
        self.similar = {}

    def recall(self, block: bytes) -> tuple[Any, bytes] | None:
        """Return what is kept for a block that differs from earlier ones in its path alone, and the path.

        None is returned where nothing is, and nothing is changed. Raises: `ConnectionFailed` (§5.2).
        """
        at = self._similar_at
        octet = block[at] if at < len(block) else _LENGTH
        end = at + 1 + (octet & _LENGTH)
        kept = self.similar.get(block[:at] + block[end:])
        if kept is None or end > len(block) or octet & _LENGTH == _LENGTH:
            return None
        literal = block[at - 1 : end]
        field = self._literals.get(literal)
        if field is None:
            field, _ = self._new_field(block, at, b":path", literal)
        return kept, field[3]

    def read_like(self, form: BlockForm, block: bytes) -> bool:
        """Return whether a block has the form of the last one, which is still `self.form`.

        Then `form.fields` are this block's: those of the gaps are of the same kinds as before. Else the form must not
        be used again, and nothing else is changed.
        """
        known, learn, back, fields = self._literals.get, self._literals.learn, form.back, form.fields
        end, size = 0, len(block)
        try:
            for gap in form.gaps:
                value_at = end + gap.size
                before = block[end:value_at]
                if (before.translate(back) if gap.moves else before) != gap.before:
                    return False
                octet = block[value_at]
                end = value_at + 1 + (octet & _LENGTH)
                if end > size:  # what is there of it must not be learnt
                    return False
                literal = block[value_at - gap.lead : end]
                if literal == gap.known:
                    field = gap.field
                elif gap.is_added:
                    field = None
                else:
                    field = known(literal)
                if field is None:
                    if octet & _LENGTH == _LENGTH:
                        value, end = _string(block, value_at)
                    elif octet >= _HUFFMAN:
                        value = decode_huffman(block[value_at + 1 : end])
                    else:
                        value = block[value_at + 1 : end]
                    field = make_field(gap.name, value)
                    if not gap.is_added:
                        learn(literal, field)
                if field[0] != gap.kind:
                    return False
                fields[gap.place] = field
        except IndexError:
            return False
        behind = block[end:]
        if form.added:
            if behind.translate(back) != form.behind or not self._add_like(form):
                return False
        elif behind != form.behind:
            return False
        form.uses += 1
        return True

    def _add_like(self, form: BlockForm) -> bool:
        """Put a form's new fields into the table; return False, and change nothing, where it would lose one in use."""
        table, fields, added, held = self._table, form.fields, form.added, self._table_bytes
        length = len(table)
        for place in added:
            held += len(fields[place][1]) + _SIZE_BEYOND_LINE
        if held > self._max_table_bytes:  # §4.4
            while held > self._max_table_bytes:
                length -= 1
                if length <= form.highest_behind or length < FIRST_DYNAMIC:
                    return False
                held -= len(table[length][1]) + _SIZE_BEYOND_LINE
            del table[length:]
        for place in added:
            table.insert(FIRST_DYNAMIC, fields[place])
        self._table_bytes = held
        if length <= form.highest or not form.move():
            self.form = None
        return True

    def _new_field(self, block: bytes, value_at: int, name: bytes, literal: bytes) -> tuple[Field, int]:
        """Return the field of a literal that is not known, and where it ends.

        `literal` are its octets, up to the 128th at least; b"" where it means something in this connection alone.

        Raises: IndexError behind the block's end.
        """
        octet = block[value_at]
        code_at = value_at + 1
        end = code_at + (octet & _LENGTH)
        if end > len(block) or octet & _LENGTH == _LENGTH:
            value, end = _string(block, value_at)
        elif octet < _HUFFMAN:
            value = block[code_at:end]
        else:
            value = decode_huffman(block[code_at:end])
        field = make_field(name, value)
        if literal:
            self._literals.learn(literal, field)
        return field, end

    def _decode(self, block: bytes) -> list[Field]:
        """Return the fields, and remember them. Raises: IndexError behind the block's or a table's end."""
        table, known, most = self._table, self._literals.get, self._max_fields
        fields: list[Field] = []
        literals: list[Literal] = []
        add, end = fields.append, len(block)
        position = added = 0
        has_own_name = False
        while position < end and len(fields) <= most:
            octet = block[position]
            if octet >= 0x80:  # §6.1: often many of them
                count = len(fields)
                for following in block[position : position + most]:
                    if not 0x80 < following < 0xFF:
                        break
                    add(table[following - 0x80])
                position += len(fields) - count
                if count == len(fields):
                    index, position = _long_index(block, position)
                    add(table[index])
                continue
            if 0x20 <= octet < 0x40:  # §4.2
                position, added = self._resize(block, position), MAX_ADDED + 1
                continue
            start, position = position, position + 1
            is_added = octet >= 0x40  # §6.2.1; else §6.2.2, §6.2.3
            index = octet - 0x40 if is_added else octet & 0x0F
            if index == (0x3F if is_added else 0x0F):
                index, position = _integer(block, position, index)
            name = table[index][2]
            if not index:
                name, position = _string(block, position)
            if index < FIRST_DYNAMIC:  # the same octets mean the same in all connections
                value_at = position
                position += 1 + (block[position] & _LENGTH)
                literal = block[start:position]
                field = known(literal)
                if field is None:
                    field, position = self._new_field(block, value_at, name, literal)
                literals.append((start, value_at, position, len(fields), is_added))
            else:
                field, position = self._new_field(block, position, name, b"")
                has_own_name = True
            add(field)
            if is_added:
                added += 1
                self._add(field)
        if len(fields) > most:
            raise ConnectionFailed(ErrorCode.ENHANCE_YOUR_CALM, "too many fields", "header_fields")
        if added and has_own_name:  # which the next block states by another index
            added = MAX_ADDED + 1
        self._learn(block, literals, fields, added)
        return fields

    def _learn(self, block: bytes, literals: list[Literal], fields: list[Field], added: int) -> None:
        """Remember the surroundings of a block's path, or its form, unless it has evicted what that refers to."""
        if len(literals) == 1 and not added:
            start, path_at, end, place, _ = literals[0]
            is_short = path_at - start == 1 and end - path_at <= _LENGTH and len(block) <= MAX_LIKE_BYTES
            if fields[place][0] == PATH and is_short and len(fields) <= FEW_FIELDS:
                self._path_at, self.surroundings = path_at, block[:path_at] + block[end:]
                self._learner.pass_over(self.form)
                self.form = None
                return
        self.surroundings = b""
        form = self._learner.learn(block, literals, fields, added, self.form)
        self.form = form if form is not None and form.highest < len(self._table) else None

    def _add(self, field: Field) -> None:
        """Put a field into the table; one larger than the table empties it (§4.4)."""
        if self.similar:
            self.similar.clear()
        table = self._table
        table.insert(FIRST_DYNAMIC, field)
        held = self._table_bytes + len(field[1]) + _SIZE_BEYOND_LINE
        while held > self._max_table_bytes:
            held -= len(table.pop()[1]) + _SIZE_BEYOND_LINE
        self._table_bytes = held

    def _resize(self, block: bytes, position: int) -> int:
        """Take the updates of the table's size that a block begins with; return where they end (§4.2, §6.3)."""
        if position:
            raise _invalid_resize()
        self.similar.clear()
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
