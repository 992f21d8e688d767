"""Reads a head by comparing it with those before it on the same connection, instead of parsing it.

Programs and browsers send the same fields again and again: with another target, another cookie, another referrer. What
is identical needs no second validation, and the changed value of a field that is only forwarded needs to be validated
and nothing else. Every field that decides (Host, Connection, framing, forged and hop-by-hop fields) must be identical;
so must the order of fields. Pure; `tests.unit.edge.test_head_template` compares the results with `request.parse_any`.
"""

from __future__ import annotations

import re
from typing import Final

from edge.http.request import ORDINARY_LINE, HeadLimits, RequestHead

_VALUE: Final = rb"[\t \x21-\x7e\x80-\xff]*+"  # RFC 9110 §5.5
_MAX_VALUES: Final = 8


class HeadTemplate:
    """Heads that differ from one another in their targets and in values of some forwarded fields only.

    `_pattern` matches such a head. Its groups are the method, the target, and each run of lines that are forwarded.
    """

    __slots__ = ("_pattern",)

    def __init__(self, pattern: re.Pattern[bytes]) -> None:
        self._pattern = pattern

    @classmethod
    def learn(cls, before: bytes, raw: bytes, head: RequestHead) -> HeadTemplate | None:
        """What `raw`, which was read as `head`, has in common with the head before it; None for too little.

        Compiling the pattern takes about a millisecond.
        """
        old, new = before.split(b"\r\n")[1:], raw.split(b"\r\n")[1:]
        if len(old) != len(new):
            return None
        forwarded = iter(head.kept.split(b"\r\n")[1:])
        expected = next(forwarded, None)
        pattern, values, is_in_run = ORDINARY_LINE.pattern, 0, False
        for line_before, line in zip(old, new, strict=True):
            is_kept = bool(line) and line == expected
            if is_kept:
                expected = next(forwarded, None)
            constant, value = line, b""
            if line != line_before:
                constant, value = line[: line.find(b":") + 1], _VALUE
                values += 1
                if not is_kept or not line_before.startswith(constant) or values > _MAX_VALUES:
                    return None
            if is_kept is not is_in_run:
                pattern += b"(" if is_kept else b")"
                is_in_run = is_kept
            pattern += rb"\r\n" + re.escape(constant) + value
        return cls(re.compile(pattern)) if values else None

    def read(self, raw: bytes, last: RequestHead, limits: HeadLimits) -> RequestHead | None:
        """The head in `raw`; None where it differs in more from `last`, which this was learnt from or has read."""
        match = self._pattern.fullmatch(raw)
        if match is None:
            return None
        groups = match.groups()
        kept = groups[2] if len(groups) == 3 else b"".join(groups[2:])
        return _like(last, groups[0], groups[1], kept, raw, limits)


def read_line(raw: bytes, fields_at: int, last: RequestHead, limits: HeadLimits) -> RequestHead | None:
    """The head in `raw`, whose fields, which begin there, are those of `last`.

    None where its request line needs more: all but a GET or HEAD in origin-form.
    """
    line = ORDINARY_LINE.fullmatch(raw, 0, fields_at)
    return None if line is None else _like(last, line[1], line[2], last.kept, raw, limits)


def _like(
    last: RequestHead, method: bytes, target: bytes, kept: bytes, raw: bytes, limits: HeadLimits
) -> RequestHead | None:
    """A head with the decisions of `last`; None above a limit."""
    if len(raw) > limits.head_bytes or len(target) > limits.target_bytes:
        return None
    return RequestHead(
        method,
        target,
        1,
        last.host,
        last.host_port,
        last.host_as_received,
        last.keep_alive,
        kept,
        0,
        b"",
        False,
        last.takes_trailers,
        last.forwarded_for,
        last.forwarded_proto,
        last.via,
    )


def is_comparable(raw: bytes, head: RequestHead) -> bool:
    """Whether other heads may be read by their likeness to `head`, read from `raw`: in origin-form, without a body."""
    return (
        raw.startswith((b"GET /", b"HEAD /"))
        and head.minor == 1
        and not (head.body or head.upgrade or head.expects_continue)
    )
