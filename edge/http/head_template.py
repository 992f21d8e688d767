"""Reads a request's head by comparing it with earlier ones, instead of parsing it.

Programs and browsers send the same fields again and again: with another target, another cookie, another referrer. What
is identical needs no second validation, and the changed value of a field that is only forwarded needs to be validated
and nothing else. Every other field that decides (Connection, framing, forged and hop-by-hop fields) must be identical,
and so must the order of fields; but for Host and the Content-Length of an upload, whose values are the caller's to
judge. `tests.unit.edge.test_head_template` compares the results with `request.parse_any`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from operator import itemgetter
from typing import Any, Final, TypeVar

from edge.http.head_pattern import HeadPattern, with_gaps
from edge.http.request import ORDINARY_LINE, RequestHead

_MAX_VALUES: Final = 12
_LINE: Final = b"%b %b HTTP/1.1"  # what both start lines read
_UPLOAD_LINE: Final = re.compile(ORDINARY_LINE.pattern.replace(b"GET|HEAD", b"POST|PUT|PATCH"))
_UPLOADS: Final = (b"POST /", b"PUT /", b"PATCH /")
_BEFORE_VALUES: Final = 2  # groups: the method and the target
_HOST, _LENGTH = b"host", b"content-length"

_Template = TypeVar("_Template", bound="HeadTemplate")


class HeadTemplate(HeadPattern):
    """Heads that differ from one another in their methods, targets and values of some fields only.

    Its groups (`read`) are the method, the target and the values. `forwarded % select(groups)` is the block of fields
    that go on. `host_at` and `length_at` are the groups of Host and Content-Length, 0 for one that does not vary.
    `varying` are the names, in lower case, of the fields whose values are read.
    """

    __slots__ = ("forwarded", "host_at", "length_at", "select", "varying")

    def __init__(self, lines: _Lines, start: re.Pattern[bytes]) -> None:
        super().__init__(lines.constants, start, _LINE)
        names = lines.names
        self.varying: Final = frozenset(names)
        self.host_at = _BEFORE_VALUES + names.index(_HOST) if _HOST in names else 0
        self.length_at = _BEFORE_VALUES + names.index(_LENGTH) if _LENGTH in names else 0
        self.forwarded = with_gaps(lines.forwarded)
        self.select = _selector([at for at, name in enumerate(names, _BEFORE_VALUES) if name not in (_HOST, _LENGTH)])

    @classmethod
    def learn(
        cls: type[_Template], before: bytes, raw: bytes, head: RequestHead, varying: frozenset[bytes] = frozenset()
    ) -> _Template | None:
        """Return what `raw`, which was read as `head`, has in common with the head before it; None for too little.

        Fields named in `varying` differed earlier. Compiling the pattern takes a fraction of a millisecond, unless one
        with the same lengths was compiled lately.
        """
        old, new = before.split(b"\r\n")[1:-2], raw.split(b"\r\n")[1:-2]
        if len(old) != len(new):
            return None
        is_upload = raw.startswith(_UPLOADS)
        lines = _Lines(head.kept, (_HOST, _LENGTH) if is_upload else (_HOST,))
        for line_before, line in zip(old, new, strict=True):
            if not lines.add(line_before, line, varying):
                return None
        lines.constants[-1] += b"\r\n\r\n"
        start = _UPLOAD_LINE if is_upload else ORDINARY_LINE
        return cls(lines, start) if 1 <= len(lines.names) <= _MAX_VALUES else None


class _Lines:
    """The lines of a head, joined to constant parts as they are added. Values of `names` stand between these."""

    __slots__ = ("_expected", "_kept", "_readable", "constants", "forwarded", "names")

    def __init__(self, kept: bytes, readable: tuple[bytes, ...]) -> None:
        """Begin with the fields that go on. `readable` are fields that may vary although they are not forwarded."""
        self._readable = readable
        self._kept: Iterator[bytes] = iter(kept.split(b"\r\n")[1:])
        self._expected = next(self._kept, None)
        self.constants = [b""]
        self.forwarded = [b""]
        self.names: list[bytes] = []

    def add(self, before: bytes, line: bytes, varying: frozenset[bytes]) -> bool:
        """Add a line of the head; False where the two heads have too little in common."""
        is_forwarded = line == self._expected
        if is_forwarded:
            self._expected = next(self._kept, None)
        name, colon, _ = line.partition(b":")
        lower = name.lower()
        varies = line != before or lower in varying
        constant = b"\r\n" + (name + colon if varies else line)
        if varies:
            is_readable = is_forwarded or (lower in self._readable and lower not in self.names)
            if not (is_readable and before.startswith(constant[2:])):
                return False
        self.constants[-1] += constant
        if is_forwarded:
            self.forwarded[-1] += constant
        if varies:
            self.names.append(lower)
            self.constants.append(b"")
            if is_forwarded:
                self.forwarded.append(b"")
        return True


def _selector(groups: list[int]) -> Callable[[tuple[bytes, ...]], Any]:
    """Return what picks these groups, as `%` takes them."""
    return itemgetter(*groups) if groups else _select_none


def _select_none(_: tuple[bytes, ...]) -> tuple[()]:
    return ()


def is_comparable(raw: bytes, head: RequestHead) -> bool:
    """Return whether other heads may be read by their likeness to `head`, read from `raw`.

    Those are of HTTP/1.1, in origin-form, and without anything that must be answered before the request is forwarded.
    """
    facts = head.fields
    is_upload = bool(facts.body)
    return (
        raw.startswith(_UPLOADS if is_upload else (b"GET /", b"HEAD /"))
        and head.minor != 0
        and not (facts.upgrade or facts.expects_continue or (is_upload and facts.takes_trailers))
    )
