"""Turns: a bound that holds, shares that are even, and nobody who wants little behind those who want much."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from monitor.checks.turns import Turns


class Crowd:
    """Parties that want room, and go on wanting it. `let_in` tells who had it, in order."""

    def __init__(self, room: int) -> None:
        self.turns = Turns(room, longest_seconds=60)
        self.let_in: list[str] = []
        self.inside = 0
        self.most_inside = 0
        self._tasks: list[asyncio.Task[None]] = []

    def come(self, party: str, wanted: int) -> asyncio.Task[None]:
        task = asyncio.create_task(self._take(party, wanted))
        self._tasks.append(task)
        return task

    async def _take(self, party: str, wanted: int) -> None:
        async with self.turns.take(party, wanted):
            self.let_in.append(party)
            self.inside += wanted
            self.most_inside = max(self.inside, self.most_inside)
            try:
                await asyncio.sleep(0)
            finally:
                self.inside -= wanted

    async def all_gone(self) -> None:
        for task in self._tasks:
            with suppress(asyncio.CancelledError):
                await task
        assert not self.inside


async def test_there_is_never_more_at_once_than_room() -> None:
    crowd = Crowd(10)
    for number in range(100):
        crowd.come(f"p{number % 7}", 1 + number % 10)
    await crowd.all_gone()
    assert crowd.most_inside == 10
    assert len(crowd.let_in) == 100


async def test_who_wants_little_does_not_wait_for_a_party_that_wants_much() -> None:
    crowd = Crowd(50)
    for _ in range(100):
        crowd.come("large", 50)
    await asyncio.sleep(0)
    crowd.come("small", 2)
    await crowd.all_gone()
    assert crowd.let_in.index("small") <= 2


async def test_parties_share_evenly_whoever_came_first() -> None:
    crowd = Crowd(10)
    for party in ("a", "b", "c"):
        for _ in range(30):
            crowd.come(party, 10)
    await crowd.all_gone()
    for first in range(3, 80):
        some = crowd.let_in[first : first + 9]
        assert all(some.count(party) >= 2 for party in "abc"), (first, some)


async def test_a_large_wish_is_not_overtaken_for_ever() -> None:
    crowd = Crowd(10)
    crowd.come("first", 10)
    crowd.come("large", 10)
    for _ in range(100):
        crowd.come("small", 1)
    await crowd.all_gone()
    assert crowd.let_in.index("large") <= 12


async def test_who_is_cancelled_leaves_no_gap() -> None:
    crowd = Crowd(10)
    waiting = [crowd.come(f"p{number}", 10) for number in range(10)]
    await asyncio.sleep(0)
    for task in waiting[::2]:
        task.cancel()
    await crowd.all_gone()
    assert crowd.let_in == ["p0", "p1", "p3", "p5", "p7", "p9"]
    crowd.come("after", 10)
    await crowd.all_gone()
    assert crowd.let_in[-1] == "after"


async def test_who_waits_for_others_lets_the_next_ones_in_after_a_while() -> None:
    turns, over = Turns(10, longest_seconds=0), asyncio.Event()

    async def wait_in_turn() -> None:
        async with turns.take("slow", 10):
            await over.wait()

    slow = [asyncio.create_task(wait_in_turn()) for _ in range(5)]
    async with asyncio.timeout(5), turns.take("quick", 10):
        assert not any(task.done() for task in slow)
    over.set()
    await asyncio.gather(*slow)
    async with asyncio.timeout(5), turns.take("after", 10):
        pass
    assert repr(turns) == "<Turns has room for 10, 0 wait>"
