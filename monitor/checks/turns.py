"""Turns: so much at once, and whoever asks for a lot does not keep the others waiting.

Self-clocked fair queueing: each who waits has a place, behind the last one of the same party, or, for a party that has
none, behind whoever was let in last; and behind it by as much as is wanted. So parties get equal shares, those who
want little are served at once, and what a party leaves the others have. A turn is for work, not for waiting: after a
while it ends for the others, though not for who has it.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Turns:
    """Owned by whoever bounds its work by it. Mutable state: the room that is free, who waits, the place of the last
    who was let in, and the last place that each party has had since somebody has to wait."""

    def __init__(self, room: int, *, longest_seconds: float) -> None:
        self._free = room
        self._longest_seconds = longest_seconds
        self._waiting: list[tuple[int, int, int, asyncio.Future[None]]] = []  # a heap by place, and by who came first
        self._arrivals = itertools.count()
        self._served = 0
        self._last: dict[str, int] = {}

    def __repr__(self) -> str:
        return f"<Turns has room for {self._free}, {len(self._waiting)} wait>"

    @asynccontextmanager
    async def take(self, party: str, wanted: int) -> AsyncIterator[None]:
        """Room for so much, which must be no more than all there is, once it is our turn."""
        if self._waiting or wanted > self._free:
            await self._wait(party, wanted)
        else:
            self._free -= wanted
        held = [wanted]

        def leave() -> None:
            while held:
                self._leave(held.pop())

        timer = asyncio.get_running_loop().call_later(self._longest_seconds, leave)
        try:
            yield
        finally:
            timer.cancel()
            leave()

    async def _wait(self, party: str, wanted: int) -> None:
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        place = self._last[party] = max(self._served, self._last.get(party, 0)) + wanted
        heapq.heappush(self._waiting, (place, next(self._arrivals), wanted, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():  # let in, and cancelled before we knew
                self._leave(wanted)
            raise

    def _leave(self, wanted: int) -> None:
        self._free += wanted
        while self._waiting and (self._waiting[0][3].cancelled() or self._waiting[0][2] <= self._free):
            place, _, next_wanted, turn = heapq.heappop(self._waiting)
            if not turn.cancelled():
                self._served, self._free = place, self._free - next_wanted
                turn.set_result(None)
        if not self._waiting:
            self._last.clear()
