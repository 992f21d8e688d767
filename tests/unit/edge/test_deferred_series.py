"""What many are due for together leaves the loop to others in between."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest

from edge.transport.deferred_work import DeferredSeries, DeferredWork
from tests.waiting import let_run, until


class Turns:
    """Counts turns of the loop, and notes in which one each piece ran."""

    def __init__(self) -> None:
        self.count = 0
        self.ran_in: list[int] = []
        self.is_over = False

    def go_on(self) -> None:
        self.count += 1
        if not self.is_over:
            asyncio.get_running_loop().call_soon(self.go_on)

    def piece(self) -> None:
        self.ran_in.append(self.count)


def series() -> DeferredSeries:
    times = iter(range(1_000_000))
    return DeferredSeries(DeferredWork(asyncio.get_running_loop(), clock=lambda: float(next(times))))  # a turn each


async def test_pieces_run_in_later_turns_of_the_loop() -> None:
    turns, pieces = Turns(), series()
    pieces.add([turns.piece] * 50)
    pieces.add([turns.piece] * 50)
    assert len(pieces) == 100
    turns.go_on()
    await until(lambda: not pieces)
    turns.is_over = True
    assert turns.ran_in == sorted(set(turns.ran_in)), "two in one turn"
    assert len(turns.ran_in) == 100


async def test_other_deferred_work_comes_in_between() -> None:
    order: list[str] = []

    def note(name: str) -> Callable[[], None]:
        return lambda: order.append(name)

    deferred = DeferredWork(asyncio.get_running_loop())
    pieces = DeferredSeries(deferred)
    pieces.add(map(note, "abc"))
    deferred.add(note("other"))
    await until(lambda: not pieces)
    assert order == ["a", "other", "b", "c"]


async def test_worker_that_ends_runs_all_at_once() -> None:
    turns, pieces = Turns(), series()
    pieces.add([turns.piece] * 100)
    pieces.finish()
    assert turns.ran_in == [0] * 100
    await let_run()
    assert len(turns.ran_in) == 100


async def test_piece_that_fails_keeps_no_other_from_running(caplog: pytest.LogCaptureFixture) -> None:
    turns, pieces = Turns(), series()

    def fail() -> None:
        raise ValueError("of one connection")

    pieces.add([fail, turns.piece])
    await until(lambda: not pieces)
    await until(lambda: len(turns.ran_in) == 1)
    assert "of one connection" in caplog.text
