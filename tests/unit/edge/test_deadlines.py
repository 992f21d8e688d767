"""Deadlines that share one timer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from edge.tls.deadlines import Deadlines
from tests.waiting import until


class Waiting:
    def __init__(self, name: str, told: list[str], then: Callable[[], None] = lambda: None) -> None:
        self.name = name
        self.told = told
        self.then = then

    def on_deadline(self) -> None:
        self.told.append(self.name)
        self.then()


async def test_each_is_told_once_in_order_and_whoever_was_discarded_is_not() -> None:
    loop = asyncio.get_running_loop()
    deadlines, told = Deadlines(loop, 0.05), list[str]()
    met, first = Waiting("met", told), Waiting("first", told)
    begun_at = loop.time()
    deadlines.add(met)
    deadlines.add(first)
    deadlines.discard(met)
    await asyncio.sleep(0.02)
    deadlines.add(Waiting("later", told))
    await until(lambda: len(told) >= 1)
    assert told == ["first"]
    assert loop.time() - begun_at > 0.04
    await until(lambda: len(told) >= 2)
    assert loop.time() - begun_at > 0.06
    deadlines.add(Waiting("afterwards", told))  # the timer had come to rest
    await until(lambda: len(told) >= 3)
    assert told == ["first", "later", "afterwards"]


async def test_whom_another_ended_at_the_same_time_is_not_told() -> None:
    deadlines, told = Deadlines(asyncio.get_running_loop(), 0.02), list[str]()
    second = Waiting("second", told)
    deadlines.add(Waiting("first", told, then=lambda: deadlines.discard(second)))
    deadlines.add(second)
    deadlines.add(Waiting("third", told))
    await until(lambda: len(told) >= 2)
    assert told == ["first", "third"]
