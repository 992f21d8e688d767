"""What many are due for together leaves the loop to others in between."""

from __future__ import annotations

import asyncio

import pytest

from edge.transport.deferred_work import DeferredWork
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


def queue() -> DeferredWork:
    times = iter(range(1_000_000))
    return DeferredWork(asyncio.get_running_loop(), clock=lambda: float(next(times)))  # each piece takes a turn


async def test_pieces_run_in_later_turns_of_the_loop() -> None:
    turns, pieces = Turns(), queue()
    pieces.add_all([turns.piece] * 50)
    pieces.add_all([turns.piece] * 50)
    assert len(pieces) == 100
    turns.go_on()
    await until(lambda: not pieces)
    turns.is_over = True
    assert turns.ran_in == sorted(set(turns.ran_in)), "two in one turn"
    assert len(turns.ran_in) == 100


async def test_queues_do_not_wait_for_each_other() -> None:
    many, few, left = queue(), queue(), list[int]()
    many.add_all([lambda: None] * 100)
    few.add_all([lambda: left.append(len(many))] * 3)
    await until(lambda: not few)
    assert min(left) >= 90


async def test_worker_that_ends_runs_all_at_once() -> None:
    turns, pieces = Turns(), queue()
    pieces.add_all([turns.piece] * 100)
    pieces.finish()
    assert turns.ran_in == [0] * 100
    await let_run()
    assert len(turns.ran_in) == 100


async def test_piece_that_fails_keeps_no_other_from_running(caplog: pytest.LogCaptureFixture) -> None:
    turns, pieces = Turns(), queue()

    def fail() -> None:
        raise ValueError("of one connection")

    pieces.add_all([fail, turns.piece])
    await until(lambda: not pieces)
    await until(lambda: len(turns.ran_in) == 1)
    assert "of one connection" in caplog.text
