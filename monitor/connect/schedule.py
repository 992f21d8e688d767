"""Decides when a flow's records are looked for.

At once, after 10, 20, 40 … seconds, then every 10 minutes; after 72 hours no more (`TIMEOUT`).
"""

from __future__ import annotations

from datetime import datetime, timedelta

from common.retry_pauses import retry_pause_seconds

TIMEOUT = timedelta(hours=72)
_FIRST_SECONDS = 10.0
_LONGEST_SECONDS = 600.0


def next_search(now: datetime, searches: int) -> datetime:
    """Return when to look for the records next, after so many searches."""
    return now + timedelta(seconds=retry_pause_seconds(searches, first=_FIRST_SECONDS, longest=_LONGEST_SECONDS))


def is_over(since: datetime, now: datetime) -> bool:
    """Return whether the records have been looked for long enough."""
    return now - since >= TIMEOUT
