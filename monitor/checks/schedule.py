"""Schedules a domain's next check.

Every domain has a place of its own in the interval, set by its id, so that however many are added or missed at once,
from the next round on they are spread evenly again; a round that was missed is made up for once, not as often as it was
missed. No domain waits longer than the interval.
"""

from __future__ import annotations

import zlib
from datetime import UTC, datetime, timedelta

from common.retry_pauses import retry_pause_seconds

_SOON_FRACTION = 1 / 60  # of the interval: a minute of an hour
_SHORTEST_SECONDS = 1.0


def next_due(domain_id: str, checked_at: datetime, interval_seconds: float) -> datetime:
    """Return the domain's next place in the interval after `checked_at`."""
    place = zlib.crc32(domain_id.encode()) / 2**32 * interval_seconds
    since = (checked_at.timestamp() - place) % interval_seconds
    return datetime.fromtimestamp(checked_at.timestamp() - since + interval_seconds, UTC)


def next_try(domain_id: str, checked_at: datetime, interval_seconds: float, attempts: int) -> datetime:
    """Return when to try again after a check that left questions open, the `attempts`-th in a row.

    The pauses grow from a minute of an hour to the interval.
    """
    first = max(_SHORTEST_SECONDS, interval_seconds * _SOON_FRACTION)
    pause = retry_pause_seconds(attempts, first=first, longest=interval_seconds)
    return min(next_due(domain_id, checked_at, interval_seconds), checked_at + timedelta(seconds=pause))
