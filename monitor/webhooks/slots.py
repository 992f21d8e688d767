"""Slots: how many attempts run at once, so that endpoints that hang do not keep others from theirs.

Rules
    an attempt at a quick endpoint (one that answered the last attempt in time, or none yet) counts against the quick
        slots for `QUICK_SECONDS`; from then on only against all slots, so that any number of endpoints which begin to
        hang at once pass through the quick slots within moments
    an endpoint with an attempt older than that gets no other meanwhile
    an attempt at a slow endpoint counts against the slow slots until it ends
Within each kind endpoints take turns (`common.db.deliveries.claim`).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from common.clock import Clock
from common.db.deliveries import ClaimedDelivery

QUICK_SECONDS = 0.5
MOST_QUICK = 256
MOST_SLOW = 192
MOST_AT_ONCE = 768  # what neither of the two takes is for endpoints that have just begun to hang


@dataclass(frozen=True, slots=True)
class FreeSlots:
    """How many attempts may start; `hanging` are the applications that may start none."""

    quick: int
    slow: int
    hanging: list[str]


@dataclass(frozen=True, slots=True)
class _Attempt:
    application_id: str
    is_slow: bool
    started_at: float


class Slots:
    """The slots of this process. Mutable state: the attempts that run, the oldest first."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._running: dict[str, _Attempt] = {}

    def __repr__(self) -> str:
        return f"<Slots {self.free()}>"

    @contextmanager
    def hold(self, claimed: ClaimedDelivery) -> Iterator[None]:
        """Count the attempt for the block."""
        key = f"{claimed.key} {claimed.fence}"
        self._running[key] = _Attempt(claimed.application_id, claimed.is_slow, self._clock.monotonic())
        try:
            yield
        finally:
            del self._running[key]

    def free(self) -> FreeSlots:
        """Return how many attempts of each kind may start now."""
        recent = self._clock.monotonic() - QUICK_SECONDS
        kinds = Counter(
            "slow" if attempt.is_slow else "quick" if attempt.started_at > recent else "hanging"
            for attempt in self._running.values()
        )
        hanging = {
            attempt.application_id
            for attempt in self._running.values()
            if not attempt.is_slow and attempt.started_at <= recent
        }
        return FreeSlots(max(0, MOST_QUICK - kinds["quick"]), max(0, MOST_SLOW - kinds["slow"]), sorted(hanging))
