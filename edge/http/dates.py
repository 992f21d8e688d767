"""Dates as messages state them (RFC 9110 §5.6.7)."""

from __future__ import annotations

import re
from email.utils import formatdate
from functools import lru_cache
from typing import Final

START: Final = b"\r\nDate: "
"""Stands before the date in a block of fields."""

_DATE: Final = re.compile(rb"\r\ndate:", re.IGNORECASE)


@lru_cache(maxsize=2)
def date_field(unix_seconds: int) -> bytes:
    """Return ``\\r\\nDate: …``, as a block of fields."""
    return START + formatdate(unix_seconds, usegmt=True).encode()


def has_date(block: bytes) -> bool:
    """Return whether the block has a Date."""
    return _DATE.search(block) is not None
