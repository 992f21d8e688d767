"""Reads a head by comparing it with earlier ones, instead of parsing it.

Programs and browsers send the same fields again and again: with another target, another cookie, another referrer. What
is identical needs no second validation, and the changed value of a field that is only forwarded needs to be validated
and nothing else. Every field that decides (Host, Connection, framing, forged and hop-by-hop fields) must be identical;
so must the order of fields. Pure; `tests.unit.edge.test_head_template` compares the results with `request.parse_any`.

No octet is looked at by a pattern where that can be helped: constant parts are cut out by their lengths and compared as
a whole, values are validated by `bytes.translate` with a table that maps allowed octets to themselves. In a pattern a
literal costs ten instructions, a member of a character class twenty-five.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from operator import itemgetter
from typing import Final

from edge.http.request import ORDINARY_LINE, RequestHead

# A pattern takes a quarter of a millisecond to compile, and 10 µs more for each of its groups.
_MAX_VALUES: Final = 8
_MAX_RUNS: Final = 8
_VALUE_OCTETS: Final = frozenset((0x09, *range(0x20, 0x7F), *range(0x80, 0x100)))  # RFC 9110 §5.5
_VALUE: Final = bytes(octet if octet in _VALUE_OCTETS else 0x20 for octet in range(256))


class HeadTemplate:
    """Heads that differ from one another in their targets and in values of some forwarded fields only.

    `_pattern` cuts such a head into method, target, runs of lines that are forwarded and, within and between these, the
    constant parts, which must be `_constants`, and the values.
    """

    __slots__ = ("_constants", "_constants_of", "_pattern", "_runs", "_values_of")

    def __init__(self, runs: list[tuple[bool, list[bytes]]]) -> None:
        """`runs` are the lines behind the request line, by whether they are forwarded: constants, a value between each
        two of them."""
        pattern, group = ORDINARY_LINE.pattern, 2
        constants: list[int] = []
        values: list[int] = []
        kept: list[int] = []
        for is_kept, parts in runs:
            if is_kept:
                kept.append(group)
                group += 1
            constants += range(group, group + 2 * len(parts), 2)
            values += range(group + 1, group + 2 * len(parts) - 1, 2)
            group += 2 * len(parts) - 1
            run = rb"([^\r]*+)".join(b"(.{%d})" % len(constant) for constant in parts)
            pattern += b"(%b)" % run if is_kept else run
        self._pattern = re.compile(pattern, re.DOTALL)
        self._constants = tuple(constant for _, parts in runs for constant in parts)
        self._constants_of = _getter(constants)
        self._values_of = _getter([*values, values[-1]])  # the last one twice, as there may be one only
        self._runs = kept

    @classmethod
    def learn(cls, before: bytes, raw: bytes, head: RequestHead) -> HeadTemplate | None:
        """What `raw`, which was read as `head`, has in common with the head before it; None for too little.

        Compiling the pattern takes a fraction of a millisecond, unless one with the same lengths was compiled lately.
        """
        old, new = before.split(b"\r\n")[1:-2], raw.split(b"\r\n")[1:-2]
        if len(old) != len(new):
            return None
        forwarded = iter(head.kept.split(b"\r\n")[1:])
        expected = next(forwarded, None)
        runs: list[tuple[bool, list[bytes]]] = []
        values = 0
        for line_before, line in zip(old, new, strict=True):
            is_kept = line == expected
            if is_kept:
                expected = next(forwarded, None)
            if not runs or runs[-1][0] is not is_kept:
                runs.append((is_kept, [b""]))
            parts = runs[-1][1]
            if line == line_before:
                parts[-1] += b"\r\n" + line
                continue
            name = line[: line.find(b":") + 1]
            values += 1
            if not (is_kept and line_before.startswith(name)) or values > _MAX_VALUES:
                return None
            parts[-1] += b"\r\n" + name
            parts.append(b"")
        runs.append((False, [b"\r\n\r\n"]))
        return cls(runs) if values and len(runs) <= _MAX_RUNS else None

    def read(self, raw: bytes) -> tuple[bytes, bytes, bytes] | None:
        """Method, target and forwarded fields of the head in `raw`; None for one that differs in more."""
        match = self._pattern.fullmatch(raw)
        if match is None:
            return None
        groups = match.groups()
        if self._constants_of(groups) != self._constants:
            return None
        values = b"".join(self._values_of(groups))
        if values.translate(_VALUE) != values:
            return None
        runs = self._runs
        kept = groups[runs[0]] if len(runs) == 1 else b"".join([groups[run] for run in runs])
        return groups[0], groups[1], kept


def _getter(groups: list[int]) -> Callable[[tuple[bytes, ...]], tuple[bytes, ...]]:
    """Returns these groups, two at least: `itemgetter` returns a single one by itself."""
    first, second, *others = groups
    return itemgetter(first, second, *others)


def is_comparable(raw: bytes, head: RequestHead) -> bool:
    """Whether other heads may be read by their likeness to `head`, read from `raw`: in origin-form, without a body."""
    return (
        raw.startswith((b"GET /", b"HEAD /"))
        and head.minor == 1
        and not (head.fields.body or head.fields.upgrade or head.fields.expects_continue)
    )
