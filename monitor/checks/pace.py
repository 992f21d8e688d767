"""The pace of routine checks: how many may begin just now, so that what was missed is made up for without a stampede.

A token bucket. Requested checks are not paced.
"""

from __future__ import annotations

from common.clock import Clock


class Pace:
    """Mutable state: the room there is, as of the moment it was last looked at."""

    def __init__(self, clock: Clock, *, most_a_second: float) -> None:
        self._clock = clock
        self._most_a_second = most_a_second
        self._room = most_a_second
        self._looked_at = clock.monotonic()

    def room(self) -> int:
        now = self._clock.monotonic()
        self._room = min(self._most_a_second, self._room + (now - self._looked_at) * self._most_a_second)
        self._looked_at = now
        return int(self._room)

    def take(self, count: int) -> None:
        self._room = max(0.0, self._room - count)
