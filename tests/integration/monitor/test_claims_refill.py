"""A runner whose work is quick and plentiful claims by the dozen, and leaves nothing behind."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from contextlib import suppress
from dataclasses import dataclass
from random import Random

import pytest

from common.db.pool import Connection, Database
from monitor.claims import Runner
from tests.waiting import let_run


@dataclass(frozen=True)
class Task:
    key: str
    fence: int = 1
    attempts: int = 1


class Plenty:
    """So much is due; nothing of it ever fails."""

    def __init__(self, count: int) -> None:
        self.due = [Task(str(number)) for number in range(count)]
        self.asked_for: list[int] = []

    async def claim(self, connection: Connection, /, *, most: int, lease_seconds: float) -> list[Task]:
        self.asked_for.append(most)
        claimed, self.due = self.due[:most], self.due[most:]
        return claimed

    async def extend(self, connection: Connection, claims: Collection[Task], /, *, lease_seconds: float) -> set[str]:
        return {task.key for task in claims}

    async def postpone(self, connection: Connection, claim: Task, /, *, delay_seconds: float, last_error: str) -> None:
        raise AssertionError(last_error)

    async def next_due_seconds(self, connection: Connection, /) -> float | None:
        return None


@pytest.mark.parametrize("refill", [1, 8, 20])
async def test_all_is_done_however_many_it_claims_at_a_time(database: Database, refill: int) -> None:
    queue, done, all_done = Plenty(200), set[str](), asyncio.Event()

    async def perform(task: Task) -> None:
        await let_run()
        done.add(task.key)
        if len(done) == 200:
            all_done.set()

    runner = Runner[Task](database, queue, perform, concurrency=20, refill=refill, random=Random(1), poll_seconds=60)
    running = asyncio.create_task(runner.run())
    try:
        await asyncio.wait_for(all_done.wait(), 20)
    finally:
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
    assert min(queue.asked_for) >= refill
