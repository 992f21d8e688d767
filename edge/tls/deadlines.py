"""Keeps deadlines that are all equally far away and nearly always met: one timer for all of them.

Entries in the order of their coming are in the order of their deadlines too. A timer for each costs several times as
much to make and to cancel.
"""

from __future__ import annotations

import asyncio
from typing import Protocol


class Waiting(Protocol):
    """What has a deadline."""

    def on_deadline(self) -> None:
        """Act on the deadline."""


class Deadlines:
    """Keeps a worker's deadlines. `on_deadline` of each entry is called `seconds` later, unless it was discarded."""

    def __init__(self, loop: asyncio.AbstractEventLoop, seconds: float) -> None:
        self._loop = loop
        self._seconds = seconds
        self._due: dict[Waiting, float] = {}
        self._timer: asyncio.TimerHandle | None = None

    def add(self, waiting: Waiting) -> None:
        """Add an entry, which must not be there already."""
        self._due[waiting] = self._loop.time() + self._seconds
        if self._timer is None:
            self._timer = self._loop.call_later(self._seconds, self._sweep)

    def discard(self, waiting: Waiting) -> None:
        """Remove the entry, if it is there."""
        self._due.pop(waiting, None)

    def _sweep(self) -> None:
        self._timer = None
        now = self._loop.time()
        late = []
        for waiting, due in self._due.items():
            if due > now:
                self._timer = self._loop.call_at(due, self._sweep)
                break
            late.append(waiting)
        for waiting in late:
            if self._due.pop(waiting, None) is not None:  # the one before may have ended it
                waiting.on_deadline()
