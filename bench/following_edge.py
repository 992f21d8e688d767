"""A stand-in for an edge: reports that it has applied all that is committed. Without an edge no certificate is live."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from common.db import edge_nodes, feed
from common.db.pool import Database
from common.errors import DatabaseUnavailable

_PAUSE_SECONDS = 0.01


@asynccontextmanager
async def following_edge(database: Database) -> AsyncIterator[None]:
    """Run the stand-in for the block; its lease ends a little later."""
    task = asyncio.create_task(_follow(database), name="following edge")
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _follow(database: Database) -> None:
    while True:
        with suppress(DatabaseUnavailable):
            async with database.connection() as connection:
                await edge_nodes.report(connection, "following", *await feed.read_version(connection))
        await asyncio.sleep(_PAUSE_SECONDS)
