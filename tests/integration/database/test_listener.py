"""The listener: woken by commits, and after everything it might have missed."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from common.db.listener import Listener
from common.db.pool import Database
from tests.beside import beside
from tests.rows import add_application

NAME = "listener under test"


class Woken:
    def __init__(self) -> None:
        self._event = asyncio.Event()
        self.count = 0

    def __call__(self) -> None:
        self.count += 1
        self._event.set()

    async def wait(self) -> None:
        await asyncio.wait_for(self._event.wait(), 10)
        self._event.clear()


@asynccontextmanager
async def listening(dsn: str) -> AsyncIterator[Woken]:
    woken = Woken()
    async with beside(Listener(dsn, woken, application_name=NAME, heartbeat_seconds=0.1).run()):
        await woken.wait()  # LISTEN stands
        yield woken


async def test_commit_wakes_once_a_transaction(dsn: str, database: Database) -> None:
    async with listening(dsn) as woken:
        async with database.transaction() as connection:
            for number in range(5):
                await add_application(connection, f"app-{number}")
            assert woken.count == 1
        await woken.wait()
        assert woken.count == 2


async def test_cut_connection_is_replaced_and_wakes(dsn: str, database: Database) -> None:
    async with listening(dsn) as woken, database.connection() as connection:
        for _ in range(2):
            cut = await connection.fetch(
                "select pg_terminate_backend(pid) from pg_stat_activity where application_name = $1", NAME
            )
            assert len(cut) == 1
            await woken.wait()
        await add_application(connection)
        await woken.wait()
