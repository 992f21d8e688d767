"""The rate limit of routine checks: how many may begin now.

It spreads checks that are overdue, after an outage for example, over time. A token bucket; requested checks are not
limited.
"""

from __future__ import annotations

from common.clock import Clock


class CheckRateLimit:
    """Limits routine checks to `checks_per_second`.

    Mutable state: the tokens left, and the time of the last refill.
    """

    def __init__(self, clock: Clock, *, checks_per_second: float) -> None:
        self._clock = clock
        self._checks_per_second = checks_per_second
        self._tokens = checks_per_second
        self._refilled_at = clock.monotonic()

    def available(self) -> int:
        """Return how many checks may begin now."""
        now = self._clock.monotonic()
        self._tokens = min(self._checks_per_second, self._tokens + (now - self._refilled_at) * self._checks_per_second)
        self._refilled_at = now
        return int(self._tokens)

    def take(self, count: int) -> None:
        """Count checks that have begun."""
        self._tokens = max(0.0, self._tokens - count)
