"""What many client connections of a worker are due for together does not keep the loop from the others."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from pathlib import Path

from edge.proxy.exchange import Exchange
from tests.component.peers import Edge, edge
from tests.waiting import until

EXPENSIVE_SECONDS = 0.000_5


class LoopTurns:
    """Counts the turns of the loop."""

    def __init__(self) -> None:
        self.count = 0
        self._loop = asyncio.get_running_loop()
        self._next = self._loop.call_soon(self._count)

    def stop(self) -> None:
        self._next.cancel()

    def _count(self) -> None:
        self.count += 1
        self._next = self._loop.call_soon(self._count)


class Overdue:
    """A client connection whose deadline has passed, and that takes its time to act on it."""

    def __init__(self, proxy: Edge, turns: LoopTurns, acted: list[int]) -> None:
        self._proxy = proxy
        self._turns = turns
        self._acted = acted
        self.deadline = 0.0

    def on_deadline(self) -> None:
        self._acted.append(self._turns.count)
        until_ = time.perf_counter() + EXPENSIVE_SECONDS
        while time.perf_counter() < until_:
            pass
        self.abort()

    def is_busy(self) -> bool:
        return False

    def exchanges(self) -> Sequence[Exchange]:
        return ()

    def cut(self, exchange: Exchange) -> None:
        raise AssertionError

    def check_disconnect(self) -> None:
        raise AssertionError

    def expect_last_request(self) -> None:
        raise AssertionError

    def abort(self) -> None:
        self._proxy.worker.connections.discard(self)


async def test_connections_that_are_overdue_together_act_in_different_turns_of_the_loop(tmp_path: Path) -> None:
    async with edge(tmp_path) as proxy:
        turns, acted = LoopTurns(), list[int]()
        proxy.worker.connections.update(Overdue(proxy, turns, acted) for _ in range(50))
        await until(lambda: len(acted) == 50)
        turns.stop()
        assert len(set(acted)) == 50


class Leaving(Overdue):
    """One whose deadline ends another connection, and puts off that of a third."""

    def on_deadline(self) -> None:
        super().on_deadline()
        ended, put_off = self._proxy.worker.connections
        ended.abort()
        put_off.deadline = float("inf")


async def test_an_overdue_connection_that_has_ended_or_gone_on_is_left_alone(tmp_path: Path) -> None:
    async with edge(tmp_path) as proxy:
        turns, acted = LoopTurns(), list[int]()
        leaving = [Leaving(proxy, turns, acted) for _ in range(3)]
        proxy.worker.connections.update(leaving)
        await until(lambda: len(acted) > 0)
        await until(lambda: not proxy.worker.deferred)
        turns.stop()
        assert len(acted) == 1
        assert len(proxy.worker.connections) == 1
        proxy.worker.connections.clear()


class Told(Overdue):
    """One that takes its time to tell its client that the worker leaves."""

    def __init__(self, proxy: Edge, turns: LoopTurns, acted: list[int]) -> None:
        super().__init__(proxy, turns, acted)
        self.deadline = float("inf")

    def expect_last_request(self) -> None:
        self.on_deadline()


async def test_clients_are_told_in_different_turns_of_the_loop_and_before_their_worker_is_idle(tmp_path: Path) -> None:
    async with edge(tmp_path) as proxy:
        turns, told = LoopTurns(), list[int]()
        proxy.worker.connections.update(Told(proxy, turns, told) for _ in range(50))
        proxy.worker.drain()
        counts = []
        while not proxy.worker.is_idle():
            counts.append(len(told))
            await asyncio.sleep(0)
        turns.stop()
        assert len(set(told)) == len(told) == 50
        assert max(counts) == 49
