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

_VALUE: Final = rb"([\t \x21-\x7e\x80-\xff]*+)"  # RFC 9110 §5.5
_MAX_VALUES: Final = 8


class HeadTemplate:
    """The fields of a head, of which the values of some forwarded fields may vary.

    `_pattern` matches the fields as received, with a group for each such value; `_kept` is what is forwarded of them,
    with a place for each value.
    """

    __slots__ = ("_kept", "_pattern")

    def __init__(self, pattern: re.Pattern[bytes], kept: bytes) -> None:
        self._pattern = pattern
        self._kept = kept

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
        pattern, kept, values = b"", b"", 0
        for line_before, line in zip(old, new, strict=True):
            is_kept = bool(line) and line == expected
            if is_kept:
                expected = next(forwarded, None)
            constant = line
            if line != line_before:
                constant = line[: line.find(b":") + 1]
                values += 1
                if not is_kept or not line_before.startswith(constant) or values > _MAX_VALUES:
                    return None
            value, place = (b"", b"") if constant is line else (_VALUE, b"%b")
            pattern += rb"\r\n" + re.escape(constant) + value
            kept += b"\r\n" + constant.replace(b"%", b"%%") + place if is_kept else b""
        return cls(re.compile(pattern), kept)

    def forwarded_fields(self, raw: bytes, fields_at: int) -> bytes | None:
        """What is forwarded of the fields, which begin there; None where they differ in more than those values."""
        match = self._pattern.fullmatch(raw, fields_at)
        return None if match is None else self._kept % match.groups()


def read_similar(raw: bytes, fields_at: int, last: RequestHead, kept: bytes, limits: HeadLimits) -> RequestHead | None:
    """The head in `raw` whose fields, which begin there, decide the same as those of `last`; `kept` are forwarded.

    None where its request line needs more: all but a GET or HEAD in origin-form.
    """
    line = ORDINARY_LINE.fullmatch(raw, 0, fields_at)
    if line is None or len(raw) > limits.head_bytes:
        return None
    method, target = line.groups()
    if len(target) > limits.target_bytes:
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
    """Whether `read_similar` may take `head`, read from `raw`, as its last: in origin-form, without a body."""
    return (
        raw.startswith((b"GET /", b"HEAD /"))
        and head.minor == 1
        and not (head.body or head.upgrade or head.expects_continue)
    )
