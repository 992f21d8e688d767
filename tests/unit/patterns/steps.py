"""Counts the steps that a backtracking engine takes for a pattern and a text, instead of the time.

The pattern is parsed by `re` itself, and run the way `re` runs it: alternatives in order, repeats that give back one
round at a time, possessive ones that give back none. A step is a character that is read or a way that is tried, so that
the count does not depend on the machine. What a repeat of one character takes in at once counts a step a character.
"""

from __future__ import annotations

import re
import re._compiler as compiler  # type: ignore[import-not-found]
import re._constants as constants  # type: ignore[import-not-found]
import re._parser as parser  # type: ignore[import-not-found]
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final

Text = str | bytes
_Reader = Callable[[Any, int], Any]  # `re.Pattern.match`

_ONE_CHARACTER: Final = {constants.LITERAL, constants.NOT_LITERAL, constants.ANY, constants.IN}
_REPEATS: Final = {constants.MAX_REPEAT, constants.MIN_REPEAT, constants.POSSESSIVE_REPEAT}
_ONE, _RUN, _SPLIT, _JUMP, _PLACE, _AHEAD, _ATOMIC, _MOVED, _MARK, _SAVE, _BACK, _END = range(12)


class TooManySteps(Exception):
    """The limit is passed."""


class Program:
    """One pattern, ready to be counted."""

    def __init__(self, pattern: re.Pattern[Any]) -> None:
        self.pattern = pattern
        self._tree = parser.parse(pattern.pattern, pattern.flags & ~re.DEBUG)
        self._code: list[tuple[Any, ...]] = []
        self._registers = 2 * self._tree.state.groups
        self.wraps: tuple[tuple[int, int], ...] = ()
        self.start = self._compile_apart(self._tree)

    @property
    def tree(self) -> parser.SubPattern:
        return self._tree

    def count(self, text: Text, *, is_full: bool, is_search: bool, limit: int) -> int:
        """Return the steps of one `fullmatch` or `match`, or of finding all matches.

        Raises: `TooManySteps` past `limit`.
        """
        run = _Run(self._code, text, limit, self._registers)
        if not is_search:
            run.match(self.start, 0, (-1,) * self._registers, is_full=is_full)
            return run.steps
        position = 0
        while position <= len(text):
            end = run.match(self.start, position, (-1,) * self._registers, is_full=False)
            position = end[0] if end is not None and end[0] > position else position + 1
        return run.steps

    def matches(self, text: Text) -> bool:
        """Return whether the whole text matches."""
        run = _Run(self._code, text, 1_000_000, self._registers)
        return run.match(self.start, 0, (-1,) * self._registers, is_full=True) is not None

    def reader(self, nodes: Iterable[Any]) -> _Reader:
        """Return a matcher for some nodes of the tree, under the flags that hold where they stand."""
        inner = parser.SubPattern(self._tree.state, list(nodes))
        for add, drop in reversed(self.wraps):
            inner = parser.SubPattern(self._tree.state, [(constants.SUBPATTERN, (None, add, drop, inner))])
        match: Callable[[Any, int], Any] = compiler.compile(inner, self.pattern.flags & ~re.DEBUG).match
        return match

    def _compile_apart(self, nodes: Iterable[Any]) -> int:
        """Compile what is matched on its own: its code begins at the returned place."""
        code, self._code = self._code, []
        inner: list[tuple[Any, ...]] = self._code
        self._emit_all(nodes)
        inner.append((_END,))
        self._code = code
        return self._append(inner)

    def _append(self, inner: list[tuple[Any, ...]]) -> int:
        start = len(self._code) + 1
        self._code.append((_JUMP, start + len(inner)))
        self._code += [_moved(each, start) for each in inner]
        return start

    def _emit_all(self, nodes: Iterable[Any]) -> None:
        for node in nodes:
            self._emit(*node)

    def _emit(self, kind: Any, value: Any) -> None:
        if kind in _ONE_CHARACTER:
            self._code.append((_ONE, self.reader([(kind, value)])))
        elif kind is constants.AT or (kind in (constants.ASSERT, constants.ASSERT_NOT) and value[0] < 0):
            self._code.append((_PLACE, self.reader([(kind, value)])))
        elif kind is constants.SUBPATTERN:
            self._emit_group(*value)
        elif kind is constants.BRANCH:
            self._emit_branch(value[1])
        elif kind in _REPEATS:
            self._emit_repeat(kind, *value)
        elif kind is constants.ATOMIC_GROUP:
            self._emit_apart(_ATOMIC, value, False)
        elif kind in (constants.ASSERT, constants.ASSERT_NOT):
            self._emit_apart(_AHEAD, value[1], kind is constants.ASSERT_NOT)
        elif kind is constants.GROUPREF:
            self._code.append((_BACK, value))
        else:
            raise NotImplementedError(f"{kind} in {self.pattern.pattern!r}")

    def _emit_apart(self, operation: int, nodes: Iterable[Any], is_negated: bool) -> None:
        self._code.append((operation, self._compile_apart(nodes), is_negated))

    def _emit_group(self, group: int | None, add: int, drop: int, nodes: Iterable[Any]) -> None:
        wraps = self.wraps
        self.wraps = (*wraps, (add, drop)) if add or drop else wraps
        if group is not None:
            self._code.append((_SAVE, 2 * group - 2))
        self._emit_all(nodes)
        if group is not None:
            self._code.append((_SAVE, 2 * group - 1))
        self.wraps = wraps

    def _emit_branch(self, alternatives: list[Any]) -> None:
        ends = []
        for nodes in alternatives[:-1]:
            split = self._hole()
            self._emit_all(nodes)
            ends.append(self._hole())
            self._code[split] = (_SPLIT, split + 1, len(self._code))
        self._emit_all(alternatives[-1])
        for end in ends:
            self._code[end] = (_JUMP, len(self._code))

    def _emit_repeat(self, kind: Any, least: int, most: Any, nodes: Any) -> None:
        unbounded = most is constants.MAXREPEAT
        if len(nodes) == 1 and nodes[0][0] in _ONE_CHARACTER:
            greedy = (constants.POSSESSIVE_REPEAT, (least, most, nodes))
            self._code.append((_RUN, self.reader([greedy]), least, kind))
        elif kind is constants.POSSESSIVE_REPEAT:
            self._emit_apart(_ATOMIC, [(constants.MAX_REPEAT, (least, most, nodes))], False)
        else:
            for _ in range(least):
                self._emit_all(nodes)
            if unbounded:
                self._emit_loop(kind, nodes)
            else:
                self._emit_optional(kind, most - least, nodes)

    def _emit_loop(self, kind: Any, nodes: Any) -> None:
        register = self._registers
        self._registers += 1
        split = self._hole()
        self._code.append((_MARK, register))
        self._emit_all(nodes)
        self._code += [(_MOVED, register), (_JUMP, split)]
        self._close_split(split, kind)

    def _emit_optional(self, kind: Any, times: int, nodes: Any) -> None:
        splits = []
        for _ in range(times):
            splits.append(self._hole())
            self._emit_all(nodes)
        for split in splits:
            self._close_split(split, kind)

    def _close_split(self, split: int, kind: Any) -> None:
        ways = (split + 1, len(self._code))
        self._code[split] = (_SPLIT, *(ways if kind is constants.MAX_REPEAT else ways[::-1]))

    def _hole(self) -> int:
        self._code.append(())
        return len(self._code) - 1


def _moved(instruction: tuple[Any, ...], by: int) -> tuple[Any, ...]:
    operation, *rest = instruction
    if operation in (_SPLIT, _JUMP):
        return (operation, *(target + by for target in rest))
    if operation in (_AHEAD, _ATOMIC):
        return (operation, rest[0] + by, rest[1])
    return instruction


class _Run:
    """One count over one text."""

    def __init__(self, code: list[tuple[Any, ...]], text: Text, limit: int, registers: int) -> None:
        self._code = code
        self._text = text
        self._limit = limit
        self.steps = 0

    def match(
        self, start: int, position: int, registers: tuple[int, ...], *, is_full: bool
    ) -> tuple[int, tuple[int, ...]] | None:
        """Return where the first match from `position` ends, and what its groups hold."""
        # What is still to be tried: an instruction, its registers, and the positions from there on, next one last.
        waiting: list[tuple[int, tuple[int, ...], Iterator[int]]] = []
        at = start
        while True:
            self.steps += 1
            if self.steps > self._limit:
                raise TooManySteps
            instruction = self._code[at]
            following = at + 1
            operation = instruction[0]
            if operation == _END:
                if not is_full or position == len(self._text):
                    return position, registers
                following = -1
            elif operation == _ONE:
                position, following = (position + 1, following) if instruction[1](self._text, position) else (0, -1)
            elif operation == _PLACE:
                following = following if instruction[1](self._text, position) else -1
            elif operation == _RUN:
                found = self._run(instruction, position)
                if found is None:
                    following = -1
                else:
                    position, others = found
                    if others:
                        waiting.append((following, registers, iter(others)))
            elif operation == _SPLIT:
                waiting.append((instruction[2], registers, iter((position,))))
                following = instruction[1]
            elif operation == _JUMP:
                following = instruction[1]
            elif operation in (_SAVE, _MARK):
                registers = (*registers[: instruction[1]], position, *registers[instruction[1] + 1 :])
            elif operation == _MOVED:
                following = following if registers[instruction[1]] != position else -1
            elif operation == _BACK:
                begin, end = registers[2 * instruction[1] - 2 : 2 * instruction[1]]
                self.steps += end - begin
                same = begin >= 0 and self._text[begin:end] == self._text[position : position + end - begin]
                position, following = (position + end - begin, following) if same else (0, -1)
            else:
                inner = self.match(instruction[1], position, registers, is_full=False)
                if (inner is None) != instruction[2]:
                    following = -1
                elif operation == _ATOMIC and inner is not None:
                    position, registers = inner
            at = following
            while at < 0:
                if not waiting:
                    return None
                at, registers, positions = waiting[-1]
                position = next(positions, -1)
                if position < 0:
                    waiting.pop()
                    at = -1

    def _run(self, instruction: tuple[Any, ...], position: int) -> tuple[int, range] | None:
        """The first end of a repeat of one character, and the others in the order of trying."""
        _, reader, least, kind = instruction
        found = reader(self._text, position)
        if found is None:
            self.steps += least
            return None
        end = found.end()
        if kind is constants.MIN_REPEAT:  # each is taken as it is needed
            return position + least, range(position + least + 1, end + 1)
        self.steps += end - position
        if kind is constants.POSSESSIVE_REPEAT:
            return end, range(0)
        return end, range(end - 1, position + least - 1, -1)
