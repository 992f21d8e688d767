"""Places: which of what is due may begin now, so that no application keeps another waiting.

A monitor looks at so many domains at once. One application may have half a million that are due, or hundreds that take
their full time because their name servers are gone.

Rules
    applications take turns; each begins with what it asked for, then with what has been due the longest
    who takes a place may then hold at most `_SHARE` times as many as are left free (dynamic thresholds: Choudhury and
    Hahne, "Dynamic queue length thresholds for shared-memory packet switches", 1998): one application alone gets two
    thirds of the places, two get two fifths each, and there is always room for the next
    what is merely due keeps to its pace (`monitor.checks.pace`)
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from common.db.checks import Due

_SHARE = 2


class Places:
    """Mutable state: how many places each application holds."""

    def __init__(self) -> None:
        self._held: Counter[str] = Counter()

    @contextmanager
    def hold(self, application_id: str) -> Iterator[None]:
        """While a check of the application runs."""
        self._held[application_id] += 1
        try:
            yield
        finally:
            self._held[application_id] -= 1
            if not self._held[application_id]:
                del self._held[application_id]

    def full(self, *, free: int) -> list[str]:
        """The applications that get no further place."""
        return [application_id for application_id, held in self._held.items() if not _has_room(held, free)]

    def choose(self, due: Sequence[Due], *, free: int, most_routine: int) -> list[Due]:
        """Of `due`, the longest due first, those that may begin in the `free` places."""
        chosen: list[Due] = []
        held = self._held.copy()
        routine = 0
        for each in _by_turns(due):
            if not _has_room(held[each.application_id], free - len(chosen)):
                continue
            if each.is_routine and routine == most_routine:
                continue
            chosen.append(each)
            held[each.application_id] += 1
            routine += each.is_routine
        return chosen


def _has_room(held: int, free: int) -> bool:
    return held + 1 <= _SHARE * (free - 1)


def _by_turns(due: Sequence[Due]) -> list[Due]:
    """The first of each application, then the second of each, and so on."""
    places: Counter[str] = Counter()
    turns = []
    for each in sorted(due, key=lambda each: each.is_routine):
        places[each.application_id] += 1
        turns.append((places[each.application_id], each))
    return [each for _, each in sorted(turns, key=lambda turn: turn[0])]
