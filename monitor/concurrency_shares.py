"""Concurrency shares: which due work may start, so that no tenant takes all the slots of a worker.

A worker runs a bounded number of jobs at once. One tenant may have half a million jobs due, or hundreds that take
their full time-out.

Rules
    tenants take turns; each starts its requested work before its routine work, then in the order given
    after a start the tenant holds at most `_SHARE` times as many slots as are left free (dynamic thresholds: Choudhury
        and Hahne, "Dynamic queue length thresholds for shared-memory packet switches", 1998): one tenant alone gets
        two thirds of the slots, two get two fifths each, and the next one always finds a free slot
    at most `most_routine` routine jobs start at once
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Protocol, TypeVar

_SHARE = 2


class Candidate(Protocol):
    """Work that is due. `is_routine`: no request waits for it."""

    @property
    def tenant(self) -> str:
        """Return the tenant that the work belongs to."""

    @property
    def is_routine(self) -> bool:
        """Return whether no request waits for the work."""


C = TypeVar("C", bound=Candidate)


class ConcurrencyShares:
    """Shares the slots of one worker between tenants.

    Mutable state: how many slots each tenant holds; tenants without any are not kept.
    """

    def __init__(self) -> None:
        self._held: Counter[str] = Counter()

    def __repr__(self) -> str:
        return f"<ConcurrencyShares {dict(self._held)}>"

    @contextmanager
    def hold(self, tenant: str) -> Iterator[None]:
        """Count one slot of the tenant for the block."""
        self._held[tenant] += 1
        try:
            yield
        finally:
            self._held[tenant] -= 1
            if not self._held[tenant]:
                del self._held[tenant]

    def full(self, *, free: int) -> list[str]:
        """Return the tenants that may not start anything while `free` slots are left."""
        return [tenant for tenant, held in self._held.items() if not _has_room(held, free)]

    def choose(self, due: Sequence[C], *, free: int, most_routine: int | None = None) -> list[C]:
        """Return the work of `due` that may start in the `free` slots, in the order in which to start it."""
        chosen: list[C] = []
        held = self._held.copy()
        routine = 0
        for candidate in _take_turns(due):
            if not _has_room(held[candidate.tenant], free - len(chosen)):
                continue
            if candidate.is_routine and routine == most_routine:
                continue
            chosen.append(candidate)
            held[candidate.tenant] += 1
            routine += candidate.is_routine
        return chosen


def _has_room(held: int, free: int) -> bool:
    """Return whether a tenant that holds so many slots may take one more of the free ones."""
    return held + 1 <= _SHARE * (free - 1)


def _take_turns(due: Sequence[C]) -> list[C]:
    """Order the work so that each tenant's first comes first, then each tenant's second, and so on."""
    rounds: Counter[str] = Counter()
    turns = []
    for candidate in sorted(due, key=lambda candidate: candidate.is_routine):
        rounds[candidate.tenant] += 1
        turns.append((rounds[candidate.tenant], candidate))
    return [candidate for _, candidate in sorted(turns, key=lambda turn: turn[0])]
