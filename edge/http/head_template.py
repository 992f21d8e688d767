"""Reads a head by comparing it with earlier ones, instead of parsing it.

Programs and browsers send the same fields again and again: with another target, another cookie, another referrer. What
is identical needs no second validation, and the changed value of a field that is only forwarded needs to be validated
and nothing else. Every field that decides (Host, Connection, framing, forged and hop-by-hop fields) must be identical;
so must the order of fields. Pure; `tests.unit.edge.test_head_template` compares the results with `request.parse_any`.

A pattern only finds the values, by the lengths of what lies between them: a literal costs it ten instructions an octet,
a member of a character class twenty-five. What it found, put into the constant parts, must make the same head again;
and values are validated by `bytes.translate` with a table that maps allowed octets to themselves.
"""

from __future__ import annotations

import re
from typing import Final

from edge.http.request import ORDINARY_LINE, RequestHead

_MAX_VALUES: Final = 8
_VALUE_OCTETS: Final = frozenset((0x09, *range(0x20, 0x7F), *range(0x80, 0x100)))  # RFC 9110 §5.5
_VALUE: Final = bytes(octet if octet in _VALUE_OCTETS else 0x20 for octet in range(256))
_LINE: Final = b"%b %b HTTP/1.1"  # what `ORDINARY_LINE` reads


class HeadTemplate:
    """Heads that differ from one another in their targets and in values of some forwarded fields only.

    Behind the request line such a head is: a constant part, a value, …, a constant part.
    """

    __slots__ = ("_forwarded", "_head", "_pattern")

    def __init__(self, constants: list[bytes], forwarded: list[bytes]) -> None:
        """`forwarded` is what goes on of each of the constant parts, in place of it."""
        gaps = [b".{%d}" % len(constant) for constant in constants]
        self._pattern = re.compile(ORDINARY_LINE.pattern + rb"([^\r]*+)".join(gaps), re.DOTALL)
        self._head = _LINE + _with_gaps(constants)
        self._forwarded = _with_gaps(forwarded)

    @classmethod
    def learn(cls, before: bytes, raw: bytes, head: RequestHead) -> HeadTemplate | None:
        """What `raw`, which was read as `head`, has in common with the head before it; None for too little.

        Compiling the pattern takes a fraction of a millisecond, unless one with the same lengths was compiled lately.
        """
        old, new = before.split(b"\r\n")[1:-2], raw.split(b"\r\n")[1:-2]
        if len(old) != len(new):
            return None
        forwarded_lines = iter(head.kept.split(b"\r\n")[1:])
        expected = next(forwarded_lines, None)
        constants, forwarded = [b""], [b""]
        for line_before, line in zip(old, new, strict=True):
            is_forwarded = line == expected
            is_same = line == line_before
            constant = b"\r\n" + (line if is_same else line[: line.find(b":") + 1])
            constants[-1] += constant
            if is_forwarded:
                forwarded[-1] += constant
                expected = next(forwarded_lines, None)
            if not is_same:
                if not (is_forwarded and line_before.startswith(constant[2:])):
                    return None
                constants.append(b"")
                forwarded.append(b"")
        constants[-1] += b"\r\n\r\n"
        return cls(constants, forwarded) if 1 < len(constants) <= 1 + _MAX_VALUES else None

    def read(self, raw: bytes) -> tuple[bytes, bytes, bytes] | None:
        """Method, target and forwarded fields of the head in `raw`; None for one that differs in more."""
        match = self._pattern.fullmatch(raw)
        if match is None:
            return None
        groups = match.groups()
        if self._head % groups != raw:
            return None
        values = groups[2:]
        content = b"".join(values)
        if content.translate(_VALUE) != content:
            return None
        return groups[0], groups[1], self._forwarded % values


def _with_gaps(parts: list[bytes]) -> bytes:
    """A format for `%`, with a gap between each two of the parts."""
    return b"%b".join(part.replace(b"%", b"%%") for part in parts)


def is_comparable(raw: bytes, head: RequestHead) -> bool:
    """Whether other heads may be read by their likeness to `head`, read from `raw`: in origin-form, without a body."""
    return (
        raw.startswith((b"GET /", b"HEAD /"))
        and head.minor == 1
        and not (head.fields.body or head.fields.upgrade or head.fields.expects_continue)
    )
