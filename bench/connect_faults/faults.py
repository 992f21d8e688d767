"""The faults that are drawn for a flow.

Where a fault happens: at a request that changes the zone, on its way through the proxy, or at a step of a monitor.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from random import Random


class WriteFault(StrEnum):
    """What becomes of one request that changes the zone."""

    FAIL = "a write fails"
    RATE_LIMIT = "a write is rate limited"
    SLOW = "a write is slow"
    LIE = "a write is accepted and not made"
    CUT_BEFORE = "the connection ends before a write"
    CUT_AFTER = "the connection ends after a write"
    KILL_BEFORE = "the API is killed before a write"
    KILL_AFTER = "the API is killed after a write"
    FOREIGN = "another party changes the zone during a write"


MONITOR_STEPS = ("checking", "propagating", "enrolling")
_MOST_WRITES = 5  # of a plan, by a provider's API
_CHANCE = 0.6


@dataclass(slots=True)
class Drawn:
    """The faults of one flow. `writes` are by the number of the zone's write requests, in order of arrival."""

    writes: dict[int, WriteFault]
    has_wrong_token: bool
    has_foreign_before: bool
    has_foreign_after: bool
    killed_at: set[str]
    """States in which both monitors are killed, once each."""


def draw(random: Random) -> Drawn:
    """Draw the faults of a flow.

    Each kind of fault is about as likely as every other; a flow has several.
    """
    kinds = list(WriteFault)
    writes = {number: random.choice(kinds) for number in range(3 * _MOST_WRITES) if random.random() < _CHANCE / 2}
    return Drawn(
        writes,
        has_wrong_token=random.random() < _CHANCE / 2,
        has_foreign_before=random.random() < _CHANCE,
        has_foreign_after=random.random() < _CHANCE,
        killed_at={step for step in MONITOR_STEPS if random.random() < _CHANCE / 4},
    )
