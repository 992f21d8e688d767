"""Waits until a change is live, which means applied by every edge with a lease. The wait is bounded, so that a dead
edge cannot delay a request for long."""

from __future__ import annotations

import asyncio

from common.clock import Clock
from common.db import edge_nodes, feed
from common.db.pool import Database
from common.retry_pauses import RetryPauses

_FIRST_LOOK_SECONDS = 0.005
_LAST_LOOK_SECONDS = 0.05


async def await_edges(database: Database, clock: Clock, *, within_seconds: float) -> list[str]:
    """Wait for what is committed now to be live. Returns the edges that had not applied it in time.

    Raises: `DatabaseUnavailable`.
    """
    deadline = clock.monotonic() + within_seconds
    pauses = RetryPauses(first=_FIRST_LOOK_SECONDS, longest=_LAST_LOOK_SECONDS)
    async with database.connection() as connection:
        head = await feed.read_head(connection)  # the version committed, or a later one
    while True:
        async with database.connection() as connection:
            missing = await edge_nodes.nodes_behind(connection, head.identity, head.version)
        if not missing or clock.monotonic() >= deadline:
            return missing
        await asyncio.sleep(pauses.next_seconds())
