"""Deadlines that share one timer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

from edge.tls.deadlines import Deadlines
from tests.waiting import until


class Waiting:
    def __init__(self, name: str, reported: list[str], then: Callable[[], None] = lambda: None) -> None:
        self.name = name
        self.reported = reported
        self.then = then

    def on_deadline(self) -> None:
        self.reported.append(self.name)
        self.then()


async def test_each_is_reported_once_in_order_and_discarded_ones_are_not() -> None:
    loop = asyncio.get_running_loop()
    deadlines, reported = Deadlines(loop, 0.05), list[str]()
    met, first = Waiting("met", reported), Waiting("first", reported)
    begun_at = loop.time()
    deadlines.add(met)
    deadlines.add(first)
    deadlines.discard(met)
    await asyncio.sleep(0.02)
    deadlines.add(Waiting("later", reported))
    await until(lambda: len(reported) >= 1)
    assert reported == ["first"]
    assert loop.time() - begun_at > 0.04
    await until(lambda: len(reported) >= 2)
    assert loop.time() - begun_at > 0.06
    deadlines.add(Waiting("afterwards", reported))  # the timer had come to rest
    await until(lambda: len(reported) >= 3)
    assert reported == ["first", "later", "afterwards"]


async def test_whom_another_ended_at_the_same_time_is_not_told() -> None:
    deadlines, reported = Deadlines(asyncio.get_running_loop(), 0.02), list[str]()
    second = Waiting("second", reported)
    deadlines.add(Waiting("first", reported, then=lambda: deadlines.discard(second)))
    deadlines.add(second)
    deadlines.add(Waiting("third", reported))
    await until(lambda: len(reported) >= 2)
    assert reported == ["first", "third"]
