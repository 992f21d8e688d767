"""Priorities of responses (RFC 9218): the values of the Priority field of a request, and of PRIORITY_UPDATE frames.

Read are the parameters `u` (urgency) and `i` (incremental). One that is absent or invalid has its default; unknown ones
are ignored.
"""

from __future__ import annotations

import re
from typing import Final

DEFAULT_URGENCY: Final = 3
URGENCIES: Final = 8  # 0 is the most urgent
_MAX_BYTES: Final = 64
_URGENCY: Final = re.compile(rb"(?:^|,)[ \t]*u=([0-7])[ \t]*(?:,|;|$)")
_INCREMENTAL: Final = re.compile(rb"(?:^|,)[ \t]*i(?:=\?(1|0))?[ \t]*(?:,|;|$)")


def read_priority(value: bytes) -> tuple[int, bool]:
    """Return the urgency, and whether pieces of the response are of use (§4)."""
    value = value[:_MAX_BYTES]
    urgency, incremental = _URGENCY.search(value), _INCREMENTAL.search(value)
    return (
        int(urgency[1]) if urgency is not None else DEFAULT_URGENCY,
        incremental is not None and incremental[1] != b"0",
    )
