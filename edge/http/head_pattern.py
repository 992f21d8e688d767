"""Finds the values in a head that has the constant parts of earlier heads.

A pattern only finds the values, by the lengths of what lies between them: a literal costs it ten instructions an octet,
a member of a character class twenty-five. What it found, put into the constant parts, must make the same head again;
and values are validated by `bytes.translate` with a table that maps allowed octets to themselves.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any, Final

_VALUE_OCTETS: Final = frozenset((0x09, *range(0x20, 0x7F), *range(0x80, 0x100)))  # RFC 9110 §5.5
VALUE: Final = bytes(octet if octet in _VALUE_OCTETS else 0x20 for octet in range(256))
"""For `bytes.translate`, which leaves valid values as they are."""


class HeadPattern:
    """Finds the values in heads: a start with groups of its own, then a constant part, a value, …, a constant part.

    That last one is `end`, and `tail` its place: many other heads differ there, which costs a tenth of a match to see.
    Without a start, the first one is `beginning`, and `lead` its place.
    """

    __slots__ = ("_head", "_match", "_sizes", "beginning", "end", "lead", "tail")

    def __init__(self, constants: Sequence[bytes], start: re.Pattern[bytes] | None = None, line: bytes = b"") -> None:
        """Compile the pattern. `start` validates its own groups; `line` makes the same start of them."""
        gaps = [b".{%d}" % len(constant) for constant in constants]
        source = start.pattern if start is not None else b""
        self._match = re.compile(source + rb"([^\r]*+)".join(gaps), re.DOTALL).fullmatch
        self._sizes = [len(constant) for constant in constants]
        self._head = line + with_gaps(constants)
        self.beginning: Final = constants[0]
        self.lead: Final = slice(len(self.beginning))
        self.end: Final = constants[-1]
        self.tail: Final = slice(-len(self.end) or sys.maxsize, None)

    def read(self, head: bytes) -> tuple[bytes, ...] | None:
        """Return the groups of a head, all of valid octets; None for a head that differs in more."""
        match = self._match(head)
        if match is None:
            return None
        groups = match.groups()
        content = b"".join(groups)
        return groups if self._head % groups == head and content.translate(VALUE) == content else None

    def places(self, values: Sequence[bytes]) -> Callable[[bytes], Any]:
        """Return what takes values as long as these, of which there are two or more, out of a head without a start.

        Where they stand there (``_head % values`` is that head) and are valid, they are what `read` finds.
        """
        slices, at = [], 0
        for size, value in zip(self._sizes, values, strict=False):
            slices.append(slice(at + size, at + size + len(value)))
            at = slices[-1].stop
        return itemgetter(*slices)


def with_gaps(parts: Sequence[bytes]) -> bytes:
    """Return a format for `%`, with a gap between each two of the parts."""
    return b"%b".join(part.replace(b"%", b"%%") for part in parts)
