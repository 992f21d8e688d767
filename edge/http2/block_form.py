"""What the header blocks of a connection have in common that differ in some values alone (RFC 7541).

A browser's requests are alike but for the path, and for a cookie, perhaps. Where such a value goes into the dynamic
table, all that was in there before moves on, so that the next block refers to the same fields by higher indices.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, TypeAlias

from edge.http2.fields import PATH, Field
from edge.http2.static_table import STATIC_FIELDS

FIRST_DYNAMIC: Final = len(STATIC_FIELDS) + 1
FEW_FIELDS: Final = 32
"""No fewer than browsers send. A block with more has no form, which may hold as much memory as the block's fields."""

MAX_ADDED: Final = 2
"""Fields that a block puts into the table. A block with more gets no form: a connection's first, for example."""

MAX_LIKE_BYTES: Final = 512
"""Octets of a block. A longer one gets no form, and its surroundings are not remembered."""

_PAYS_AFTER: Final = 3  # blocks that are read by a form: as much as it costs to make it
_MOST_IN_VAIN: Final = 3
_INDEXED: Final = 0x80  # an octet: index 0
_LAST_INDEX: Final = 0x7E  # of those that are one octet
_NO_INDEX: Final = 0xFF  # of one octet
_LENGTH: Final = 0x7F


def _moved_back(by: int) -> bytes:
    """Return, for `bytes.translate`, each octet that refers to the dynamic table with an index lower by so many.

    One that refers to what is newer becomes one that no form has: 0x80 may be the length of a name, of no octets.
    """
    first = _INDEXED + FIRST_DYNAMIC
    octets = bytearray(range(256))
    octets[first:] = bytes((_NO_INDEX,)) * by + octets[first : 256 - by]
    return bytes(octets)


_MOVED_BACK: Final = [_moved_back(by) for by in range(_LAST_INDEX - FIRST_DYNAMIC + 2)]


Literal: TypeAlias = "tuple[int, int, int, int, bool]"
"""Where a literal field stands in its block: where it, its value and the value's end are; its place among the fields;
and whether it goes into the table."""


class Gap:
    """A value in which blocks differ, of the field at `place`.

    `size` octets stand `before` it, the last `lead` of which begin its literal. `moves`: some refer to the dynamic
    table, by an index that is another one in the next block. `known` is a literal and its `field`, where it may
    stay the same, and takes no more than its octets to say so; else it is empty.
    """

    __slots__ = ("before", "field", "is_added", "kind", "known", "lead", "moves", "name", "place", "size")

    def __init__(self, block: bytes, behind: int, literal: Literal, field: Field, moves: bool) -> None:
        at, value_at, end, place, is_added = literal
        kind, _, name, _ = field
        self.place: Final = place
        self.is_added: Final = is_added
        self.before: Final = block[behind:value_at]
        self.size: Final = value_at - behind
        self.lead: Final = value_at - at
        self.moves: Final = moves and max(block[behind:at], default=0) >= _INDEXED + FIRST_DYNAMIC
        may_stay = moves and not is_added and block[value_at] & _LENGTH < _LENGTH
        self.known: Final = block[at:end] if may_stay else b""
        self.field: Final = field if self.known else None
        self.kind: Final = kind
        self.name: Final = name


class BlockForm:
    """The gaps of such blocks, and what stands `behind` the last one.

    `fields` are those of the last block that had the form. The fields of gaps that are `added` go into the dynamic
    table, so that what refers to it refers to higher indices in each block: `back` brings them back. `highest` is the
    highest one of the next block, `highest_behind` of what follows its first added field, which may evict others; 0:
    there is none. `uses` counts the blocks that have had the form.
    """

    __slots__ = ("_moved", "added", "back", "behind", "fields", "gaps", "highest", "highest_behind", "uses")

    def __init__(self, block: bytes, literals: Iterable[Literal], fields: list[Field], moves: bool) -> None:
        behind, gaps = 0, []
        for literal in literals:
            gaps.append(Gap(block, behind, literal, fields[literal[3]], moves))
            behind = literal[2]
        self.gaps: Final = tuple(gaps)
        self.added: Final = tuple(gap.place for gap in gaps if gap.is_added)
        self.behind: Final = block[behind:]
        self.fields: Final = fields
        self.uses = 0
        self._moved = 0
        self.back = _MOVED_BACK[0]
        self.highest = self.highest_behind = 0
        if moves:
            first = next(at for at, gap in enumerate(gaps) if gap.is_added)
            parts = [*(gap.before for gap in gaps), self.behind]
            self.highest_behind = _highest_index(parts[first + 1 :])
            self.highest = max(self.highest_behind, _highest_index(parts[: first + 1]))

    def move(self) -> bool:
        """Expect the next block, behind one that has added fields; return False where it cannot have the form."""
        by = len(self.added)
        if self.highest_behind:
            self.highest_behind += by
        if self.highest:
            self.highest += by
            if self.highest > _LAST_INDEX:
                return False
            self._moved += by
            self.back = _MOVED_BACK[self._moved]
        return True


def _highest_index(parts: list[bytes]) -> int:
    """Return the highest index of the dynamic table, 0 without one."""
    highest = max((max(part, default=0) for part in parts), default=0) - _INDEXED
    return highest if highest >= FIRST_DYNAMIC else 0


class FormLearner:
    """Learns the form of a connection's blocks: in which places they differ.

    To make a form costs several times what it costs to decode its block. Where the last ones did not pay, which the
    client may intend, others are made more and more seldom.
    """

    __slots__ = ("_fields", "_in_vain", "_pause", "_places")

    def __init__(self) -> None:
        self._fields: Sequence[Field] = ()  # of the last block, where a form may be made of it
        self._places = 0  # a bit each
        self._in_vain = 0  # forms, the last ones
        self._pause = 0  # blocks that get no form

    def pass_over(self, last: BlockForm | None) -> None:
        """Take a block that has not the `last` form, and of which none is made."""
        self._fields = ()
        if last is not None:
            self._in_vain = 0 if last.uses >= _PAYS_AFTER else min(self._in_vain + 1, _MOST_IN_VAIN)
            self._pause = (1 << self._in_vain) - 2

    def learn(
        self, block: bytes, literals: list[Literal], fields: list[Field], added: int, last: BlockForm | None
    ) -> BlockForm | None:
        """Return the form of a block, as far as it is known; None where it gets none.

        `literals` are those whose name is none of the dynamic table's; of all, `added` have gone into it. `last` is the
        form that this block has not.
        """
        before = self._fields
        self.pass_over(last)
        if added > MAX_ADDED or len(block) > MAX_LIKE_BYTES or len(fields) > FEW_FIELDS:
            return None
        self._fields = fields
        is_as_long = len(before) == len(fields)
        if not is_as_long:
            self._places = 0
        for _, _, _, place, _ in literals:
            if fields[place] != before[place] if is_as_long else fields[place][0] == PATH:
                self._places |= 1 << place
        self._pause -= 1
        if self._pause >= 0:
            return None
        if not added:
            chosen = [literal for literal in literals if self._places >> literal[3] & 1]
            return BlockForm(block, chosen, fields, moves=False)
        if any(value_at - at > 2 for at, value_at, _, _, _ in literals):
            return None  # octets of a name might look like an index
        form = BlockForm(block, literals, fields, moves=True)
        return form if form.move() else None
