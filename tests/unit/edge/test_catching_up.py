"""What a difference between replica and feed leads to."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

import pytest

from common.db.feed import Head
from edge.replica.catching_up import HeldCopy, Step, is_mass_removal, next_step
from edge.replica.store import ReplicaState

STATE = ReplicaState(identity="one", version=7, checksum=5, positions=(4, 3))


@pytest.mark.parametrize(
    ("state", "head", "step"),
    [
        (ReplicaState(), Head("one", 0, 0), Step.COPY),  # never copied
        (STATE, Head("one", 7, 5), Step.NOTHING),
        (STATE, Head("one", 7, 5, (4, 3), (4, 3)), Step.NOTHING),  # purged up to what is known
        (STATE, Head("one", 9, 3, (5, 4), (4, 3)), Step.CHANGES),
        (STATE, Head("one", 9, 3, (4, 5), (0, 4)), Step.COPY),  # a tombstone may be missing
        (STATE, Head("another", 7, 5), Step.COPY),
        (replace(STATE, identity="1/A/2/x"), Head("1/B/2/x", 7, 5), Step.CHANGES),  # failed over
        (replace(STATE, identity="1/A/2/x"), Head("1/B/2/x", 6, 5), Step.COPY),  # and lost commits
        (replace(STATE, identity="1/A/2/x"), Head("1/B/2/y", 7, 5), Step.COPY),
        (STATE, Head("one", 6, 5), Step.COPY),  # rolled back
        (STATE, Head("one", 7, 6), Step.COPY),  # rolled back, and on
        (ReplicaState(identity="one", version=7, checksum=5, skew=3), Head("one", 7, 6), Step.NOTHING),
    ],
)
def test_next_step(state: ReplicaState, head: Head, step: Step) -> None:
    assert next_step(state, head) is step


@pytest.mark.parametrize(
    ("routes", "removed", "is_held"), [(0, 0, False), (100, 5, False), (100, 6, True), (1, 1, True)]
)
def test_more_than_one_route_in_twenty_is_mass_removal(routes: int, removed: int, is_held: bool) -> None:
    assert is_mass_removal(routes, removed) is is_held


def test_held_copy_is_reviewed_when_the_feed_has_moved_for_a_while() -> None:
    held = HeldCopy("one", 7, 5, routes=100, removed_routes=50, held_at=datetime.now(UTC), read_at=1000.0)
    assert held.is_still_current(Head("one", 7, 5), 9999.0)
    assert held.is_still_current(Head("one", 8, 5), 1001.0)
    assert not held.is_still_current(Head("one", 8, 5), 1061.0)
    assert not held.is_still_current(Head("one", 7, 6), 1001.0)
    assert not held.is_still_current(Head("one", 6, 5), 1001.0)
    assert not held.is_still_current(Head("another", 7, 5), 1001.0)
