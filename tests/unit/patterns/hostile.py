"""Hostile texts for a pattern, made from its own parts.

For every repeat of the pattern: what leads to it, then many of what it takes, then something that fits nowhere. And
what leads to it, again and again, for patterns that are searched for.
"""

from __future__ import annotations

import re._constants as constants  # type: ignore[import-not-found]
from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from tests.unit.patterns.steps import Program, Text

_CANDIDATES: Final = (
    " a0\t.-/;\"\\,=:%_*'?#[(@\r\n<&!~\x00\x7f\xe9ABCDEFGHIJKLMNOPQRSTUVWXYZbcdefghijklmnopqrstuvwxyz123456789"
)
_REPEATS: Final = {constants.MAX_REPEAT, constants.MIN_REPEAT, constants.POSSESSIVE_REPEAT}
_TAILS: Final = ("\x00", "x", "\n")
_LONG: Final = 256  # times: a repeat of no more costs little
_MOST_PUMPS: Final = 5


class _Hostile(NamedTuple):
    prefix: str
    pump: str
    then: str  # another pump, for the second half of the text
    tail: str


class HostileTexts:
    """The texts of one pattern, in any length."""

    def __init__(self, program: Program) -> None:
        self._program = program
        self._is_bytes = isinstance(program.pattern.pattern, bytes)
        self._before: list[str] = []  # what the repeat before takes
        self.kinds: list[_Hostile] = []
        for is_full in (False, True):
            parts = list(dict.fromkeys(self._parts(program.tree, "", is_full)))
            kinds = [(prefix, pump, "") for prefix, pump in parts] + [("", prefix + pump, "") for prefix, pump in parts]
            kinds += [(*part, then) for part in parts for then in _following(parts, part)]
            self.kinds += [_Hostile(*kind, tail) for kind in kinds for tail in _TAILS]
        self.kinds = list(dict.fromkeys(self.kinds))

    def text(self, kind: _Hostile, length: int) -> Text:
        """Return `length` characters, more or less."""
        half = length // 2 if kind.then else length
        then = kind.then * (half // len(kind.then)) if kind.then else ""
        return self._encoded(kind.prefix + kind.pump * (half // max(1, len(kind.pump))) + then + kind.tail)

    def _encoded(self, text: str) -> Text:
        return text.encode("latin-1") if self._is_bytes else text

    def _parts(self, nodes: Any, prefix: str, is_full: bool) -> Iterator[tuple[str, str]]:
        """Each repeat's lead and content. `is_full`: the lead has the optional parts as well."""
        for kind, value in nodes:
            if kind in _REPEATS:
                yield from self._of_repeat(prefix, is_full, *value)
            elif kind is constants.BRANCH:
                for alternative in value[1]:
                    yield from self._parts(alternative, prefix, is_full)
            elif kind is constants.SUBPATTERN:
                yield from self._in_group(value, prefix, is_full)
            elif kind is constants.ATOMIC_GROUP:
                yield from self._parts(value, prefix, is_full)
            elif kind is constants.ASSERT:
                yield from self._parts(value[1], prefix, is_full)
            prefix += self._word([(kind, value)], is_full)

    def _in_group(self, value: Any, prefix: str, is_full: bool) -> Iterator[tuple[str, str]]:
        wraps = self._program.wraps
        self._program.wraps = (*wraps, value[1:3]) if value[1] or value[2] else wraps
        yield from list(self._parts(value[3], prefix, is_full))
        self._program.wraps = wraps

    def _of_repeat(self, prefix: str, is_full: bool, least: int, most: int, nodes: Any) -> Iterator[tuple[str, str]]:
        yield from self._parts(nodes, prefix, is_full)
        if most < _LONG:
            return
        if len(nodes) == 1 and nodes[0][0] in (constants.IN, constants.ANY, constants.NOT_LITERAL, constants.LITERAL):
            characters = self._characters(nodes)
            others = [each for each in characters if each not in self._before]  # where the repeat before must end
            self._before = characters
            for character in dict.fromkeys([*others[:2], *characters[:_MOST_PUMPS]]):
                yield prefix, character
        else:
            for alternative in _alternatives(nodes):
                for full in (False, True):
                    yield prefix, self._word(alternative, full)

    def _characters(self, nodes: Any) -> list[str]:
        matches = self._program.reader(nodes)
        found = [each for each in _CANDIDATES if matches(self._encoded(each), 0)]
        return found or [each for each in map(chr, range(256)) if matches(self._encoded(each), 0)]

    def _word(self, nodes: Any, is_full: bool) -> str:
        """Return a short text that the nodes match, unless a look-around forbids it."""
        return "".join(self._word_of(kind, value, is_full) for kind, value in nodes)

    def _word_of(self, kind: Any, value: Any, is_full: bool) -> str:
        if kind in (constants.LITERAL, constants.NOT_LITERAL, constants.ANY, constants.IN):
            found = self._characters([(kind, value)])
            return next((each for each in found if each != " "), found[0] if found else "")
        if kind in _REPEATS:
            return self._word(value[2], is_full) * int(max(value[0], is_full and value[1] > 0))
        if kind is constants.BRANCH:
            return self._word(value[1][0], is_full)
        if kind is constants.SUBPATTERN:
            return self._word(value[3], is_full)
        return self._word(value, is_full) if kind is constants.ATOMIC_GROUP else ""


def _following(parts: list[tuple[str, str]], part: tuple[str, str]) -> list[str]:
    """What the next repeat behind `part` takes and `part`'s own does not begin with."""
    prefixes = list(dict.fromkeys(prefix for prefix, _ in parts))
    place = prefixes.index(part[0]) + 1
    if place == len(prefixes):
        return []
    return [pump for prefix, pump in parts if prefix == prefixes[place] and pump and pump != part[1]][:3]


def _alternatives(nodes: Any) -> list[Any]:
    if len(nodes) == 1 and nodes[0][0] is constants.BRANCH:
        return list(nodes[0][1][1])
    if len(nodes) == 1 and nodes[0][0] is constants.SUBPATTERN:
        return _alternatives(nodes[0][1][3])
    return [nodes]
