"""Exchanges that are cancelled together leave the loop to others in between."""

from __future__ import annotations

import asyncio

from edge.proxy.cancellations import Cancellations
from edge.transport.deferred_work import DeferredWork
from tests.waiting import let_run, until


class Stream:
    """Counts how it is cancelled, and how often others had the loop before that."""

    def __init__(self, turns: list[int]) -> None:
        self.turns = turns
        self.cancelled: list[tuple[int, bool]] = []

    def cancel_exchange(self, *, disconnected: bool) -> None:
        self.cancelled.append((len(self.turns), disconnected))


async def test_exchanges_are_cancelled_in_later_turns_of_the_loop() -> None:
    loop = asyncio.get_running_loop()
    times = iter(range(1_000_000))
    cancellations = Cancellations(DeferredWork(loop, clock=lambda: float(next(times))))  # each piece takes a turn
    turns: list[int] = []
    streams = [Stream(turns) for _ in range(100)]
    is_over = False

    def others() -> None:
        turns.append(1)
        if not is_over:
            loop.call_soon(others)

    cancellations.add(streams, disconnected=True)
    assert len(cancellations) == 100
    others()
    await until(lambda: not cancellations)
    is_over = True
    at = [turn for stream in streams for turn, _ in stream.cancelled]
    assert at == sorted(set(at)), "two in one turn"
    assert all(disconnected for stream in streams for _, disconnected in stream.cancelled)


async def test_worker_that_ends_cancels_all_at_once() -> None:
    cancellations = Cancellations(DeferredWork(asyncio.get_running_loop()))
    streams = [Stream([]) for _ in range(100)]
    cancellations.add(streams, disconnected=False)
    cancellations.finish()
    assert [stream.cancelled for stream in streams] == [[(0, False)]] * 100
    await let_run()
    assert all(len(stream.cancelled) == 1 for stream in streams)
