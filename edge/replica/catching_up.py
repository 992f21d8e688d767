"""What to do about the difference between a replica and the feed: decisions only."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import Enum
from itertools import zip_longest

from common.db.feed import Head, is_same_database
from edge.replica.store import ReplicaState

_REMOVABLE_SHARE = 0.05
_REVIEW_SECONDS = 60.0


class Step(Enum):
    """What to do next about the difference."""

    NOTHING = "nothing"
    CHANGES = "changes"
    COPY = "copy"


@dataclass(frozen=True, slots=True)
class HeldCopy:
    """A copy that would remove so many routes that an operator must confirm it."""

    identity: str
    version: int
    checksum: int
    routes: int
    removed_routes: int
    held_at: datetime
    read_at: float
    """Monotonic seconds."""

    def is_still_current(self, head: Head, now: float) -> bool:
        """Return whether copying again would show nothing new.

        A feed that moved is copied again, but not at every move: a copy is a lot of work.
        """
        if head.identity != self.identity or head.version < self.version:
            return False
        if head.version == self.version:
            return head.checksum == self.checksum  # else rolled back, and on
        return now - self.read_at < _REVIEW_SECONDS


def next_step(state: ReplicaState, head: Head) -> Step:
    """Return the step that the difference takes.

    Changes lead from the replica to the feed only in one database, with no gap and nothing lost. After a failover they
    do, unless the new primary lacks the last commits; that shows in the checksum.
    """
    is_other_database = state.identity is None or not is_same_database(state.identity, head.identity)
    lacks_tombstones = any(known < purged for known, purged in zip_longest(state.positions, head.purged, fillvalue=0))
    if is_other_database or head.version < state.version or lacks_tombstones:
        return Step.COPY
    if head.version > state.version or head.identity != state.identity:
        return Step.CHANGES
    return Step.NOTHING if state.equals(head) else Step.COPY


def is_mass_removal(routes: int, removed: int) -> bool:
    """Return whether so many routes are removed that an operator must confirm it."""
    return removed > routes * _REMOVABLE_SHARE
