"""Header fields as bytes: what a valid block is, and cutting named fields out of one.

A block is ``\\r\\nName: value`` repeated, without the empty line: what stands between a start line and the end.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable
from typing import Final

TOKEN: Final = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]"

# Possessive quantifiers: linear whatever is sent. Field values: RFC 9110 §5.5, obs-text included, no controls.
# The group's own must be greedy: before 3.11.5 (Debian 12 has 3.11.2) a possessive group never matches (gh-106052).
LINES: Final = rb"(?:\r\n" + TOKEN + rb"++:[\t \x21-\x7e\x80-\xff]*+)*"


def any_of(names: bytes) -> bytes:
    """Return a pattern for one of the names, in any case; they may be patterns themselves, parted by blanks.

    By first letters, which the engine tells apart before it tries anything: half as expensive.
    """
    rests: dict[str, list[str]] = {}
    for name in names.decode("ascii").split():
        rests.setdefault(name[0], []).append(name[1:])
    return "|".join(f"[{first}{first.upper()}](?i:{'|'.join(rest)})" for first, rest in rests.items()).encode("ascii")


def lines_but(names: bytes) -> bytes:
    """Return `LINES` without the fields of these names, which are for `any_of`."""
    return LINES.replace(rb"\r\n", rb"\r\n(?!(?:" + any_of(names) + rb"):)")


def splitter(names: bytes) -> re.Pattern[bytes]:
    """Return a pattern for `re.Pattern.split` that cuts the named fields, which are for `any_of`, out of a block.

    The result alternates kept slice, name, value, kept slice, …
    """
    return re.compile(rb"\r\n(" + any_of(names) + rb"):[ \t]*+([^\r\n]*)")


def tokens(values: Iterable[bytes]) -> list[bytes]:
    """Return the members of a comma-separated list field, in lower case (RFC 9110 §5.6.1: empty ones are ignored)."""
    return [token for part in b",".join(values).lower().split(b",") if (token := part.strip(b" \t"))]


def without(block: bytes, names: Container[bytes]) -> bytes:
    """Return the block without the fields of these names (in lower case); one pass, however many the names."""
    lines = block.split(b"\r\n")
    return b"\r\n".join(line for line in lines if line.partition(b":")[0].lower() not in names)
