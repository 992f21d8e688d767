"""Deadlines that share one timer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

from edge.tls.deadlines import Deadlines
from tests.unit.edge.link import StillLoop


class Waiting:
    def __init__(self, name: str, reported: list[str], then: Callable[[], None] = lambda: None) -> None:
        self.name = name
        self.reported = reported
        self.then = then

    def on_deadline(self) -> None:
        self.reported.append(self.name)
        self.then()


class Clock:
    """A loop whose time passes when it is told to."""

    def __init__(self) -> None:
        self.still = StillLoop()
        self.loop = cast("asyncio.AbstractEventLoop", self.still)

    def pass_seconds(self, seconds: float) -> None:
        self.still.now += seconds
        self.still.call_due()


def test_each_is_reported_once_in_order_and_discarded_ones_are_not() -> None:
    clock, reported = Clock(), list[str]()
    deadlines = Deadlines(clock.loop, 5)
    met = Waiting("met", reported)
    deadlines.add(met)
    deadlines.add(Waiting("first", reported))
    deadlines.discard(met)
    clock.pass_seconds(2)
    deadlines.add(Waiting("later", reported))
    clock.pass_seconds(2)
    assert reported == []
    clock.pass_seconds(1)
    assert reported == ["first"]
    clock.pass_seconds(1)
    assert reported == ["first"]
    clock.pass_seconds(1)
    assert reported == ["first", "later"]
    deadlines.add(Waiting("afterwards", reported))  # the timer had come to rest
    clock.pass_seconds(5)
    clock.pass_seconds(5)
    assert reported == ["first", "later", "afterwards"]


def test_one_that_another_ended_at_the_same_time_is_not_reported() -> None:
    clock, reported = Clock(), list[str]()
    deadlines = Deadlines(clock.loop, 5)
    second = Waiting("second", reported)
    deadlines.add(Waiting("first", reported, then=lambda: deadlines.discard(second)))
    deadlines.add(second)
    deadlines.add(Waiting("third", reported))
    clock.pass_seconds(5)
    assert reported == ["first", "third"]
