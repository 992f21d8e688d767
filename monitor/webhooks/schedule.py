"""Schedules the next attempt at a delivery.

Rules
    An event is tried at once, then after each of `RETRY_DELAYS_SECONDS`: ten attempts over three days and some hours,
    as Standard Webhooks recommends. A delay is never shorter than stated; up to a tenth is added at random, so that
    events that failed together are not retried together.
    ``Retry-After`` replaces the next delay, within a second and a day. It never adds an attempt.
"""

from __future__ import annotations

from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from random import Random

RETRY_DELAYS_SECONDS = (5, 300, 1800, 7200, 18_000, 36_000, 50_400, 72_000, 86_400)
MOST_ATTEMPTS = len(RETRY_DELAYS_SECONDS) + 1
_JITTER = 0.1
_SHORTEST_RETRY_AFTER_SECONDS = 1.0
_LONGEST_RETRY_AFTER_SECONDS = 86_400.0


def next_delay_seconds(failures: int, retry_after_seconds: float | None, random: Random) -> float | None:
    """Return the pause after so many failed attempts; None when the last one was made."""
    if failures >= MOST_ATTEMPTS:
        return None
    if retry_after_seconds is not None:
        return min(max(retry_after_seconds, _SHORTEST_RETRY_AFTER_SECONDS), _LONGEST_RETRY_AFTER_SECONDS)
    return RETRY_DELAYS_SECONDS[failures - 1] * random.uniform(1.0, 1.0 + _JITTER)


def parse_retry_after(text: str | None, now: datetime) -> float | None:
    """Return the seconds from now that ``Retry-After`` asks for; None for what is neither a number nor a date.

    RFC 9110 §10.2.3.
    """
    if text is None:
        return None
    if text.isascii() and text.isdigit():
        return min(float(text[:12]), _LONGEST_RETRY_AFTER_SECONDS)
    try:
        at = parsedate_to_datetime(text)
    except (ValueError, OverflowError):
        return None
    return (at.replace(tzinfo=at.tzinfo or UTC) - now).total_seconds()
