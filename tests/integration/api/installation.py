"""What runs beside the API: leases of a monitor and of edges, as the API's own database shows them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from common.db import edge_nodes, feed, monitor_nodes
from common.db.edge_nodes import SERVING, Condition
from common.db.listener import Listener
from common.db.pool import Database
from common.errors import DatabaseUnavailable


async def lease_monitor(database: Database, *, stopped: tuple[str, ...] = ()) -> None:
    """A monitor that runs for an hour."""
    async with database.transaction() as connection:
        await monitor_nodes.report(connection, "monitor-1", "host-1", "internal 00", stopped)
        await connection.execute("update monitor_nodes set lease_until = now() + interval '1 hour'")


async def end_monitors(database: Database) -> None:
    async with database.connection() as connection:
        await connection.execute("update monitor_nodes set lease_until = now()")


async def lease_edge(database: Database, node_id: str = "edge-1", condition: Condition = SERVING) -> None:
    """An edge that runs for an hour and has applied what is committed now."""
    async with database.transaction() as connection:
        head = await feed.read_head(connection)
        await edge_nodes.report(connection, node_id, head.identity, head.version, condition)
        await connection.execute("update edge_nodes set lease_until = now() + interval '1 hour'")


class FollowingEdge:
    """An edge that applies each change at once, until it is stopped. Its lease lasts longer than any test."""

    def __init__(self, dsn: str, database: Database) -> None:
        self._database = database
        self._changed = asyncio.Event()
        self._listener = Listener(dsn, self._changed.set)
        self._tasks: list[asyncio.Task[None]] = []

    @classmethod
    @asynccontextmanager
    async def running(cls, dsn: str, database: Database) -> AsyncIterator[FollowingEdge]:
        edge = cls(dsn, database)
        await lease_edge(database)
        edge._tasks = [asyncio.create_task(edge._listener.run()), asyncio.create_task(edge._follow())]
        try:
            yield edge
        finally:
            await edge.stop()

    async def stop(self) -> None:
        """It applies nothing any more."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def end(self) -> None:
        """It runs no more."""
        await self.stop()
        async with self._database.connection() as connection:
            await connection.execute("delete from edge_nodes")

    async def _follow(self) -> None:
        while True:
            await self._changed.wait()
            self._changed.clear()
            with suppress(DatabaseUnavailable):
                await lease_edge(self._database)
