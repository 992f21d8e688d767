"""Reads a head by comparing it with earlier ones, instead of parsing it.

Programs and browsers send the same fields again and again: with another target, another cookie, another referrer. What
is identical needs no second validation, and the changed value of a field that is only forwarded needs to be validated
and nothing else. Every field that decides (Host, Connection, framing, forged and hop-by-hop fields) must be identical;
so must the order of fields. Pure; `tests.unit.edge.test_head_template` compares the results with `request.parse_any`.
"""

from __future__ import annotations

from typing import Final

from edge.http.head_pattern import HeadPattern, with_gaps
from edge.http.request import ORDINARY_LINE, RequestHead

_MAX_VALUES: Final = 8
_LINE: Final = b"%b %b HTTP/1.1"  # what `ORDINARY_LINE` reads


class HeadTemplate(HeadPattern):
    """Heads that differ from one another in their targets and in values of some forwarded fields only.

    Behind the request line such a head is: a constant part, a value, …, a constant part.
    """

    __slots__ = ("forwarded",)

    def __init__(self, constants: list[bytes], forwarded: list[bytes]) -> None:
        """`forwarded` is what goes on of each of the constant parts, in place of it.

        The groups of a head that was read are its method, its target, and the values that fill `self.forwarded`.
        """
        super().__init__(constants, ORDINARY_LINE, _LINE)
        self.forwarded = with_gaps(forwarded)

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


def is_comparable(raw: bytes, head: RequestHead) -> bool:
    """Whether other heads may be read by their likeness to `head`, read from `raw`: in origin-form, without a body."""
    return (
        raw.startswith((b"GET /", b"HEAD /"))
        and head.minor == 1
        and not (head.fields.body or head.fields.upgrade or head.fields.expects_continue)
    )
