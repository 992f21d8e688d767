"""Waits until a change is live, which means applied by every edge with a lease.

The wait is bounded, so that a dead edge cannot delay a request for long; an edge that reports that it cannot serve or
follow is behind, and not waited for.
"""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from common.clock import Clock
from common.db import edge_nodes, feed
from common.db.edge_nodes import EdgeNode
from common.db.pool import Database
from common.retry_pauses import RetryPauses

_FIRST_LOOK_SECONDS = 0.005
_LAST_LOOK_SECONDS = 0.05
_ANNOUNCING_LOOK = 4  # 35 ms after the first, when edges have long applied a commit that did notify


@dataclass(frozen=True, slots=True)
class Reach:
    """How far a change has come: `alive` edges hold a lease, and of these the ones `behind` do not serve it.

    Edges that have `lapsed` report no more, and may serve what they last knew; those of them that are `lost` lapsed
    lately.
    """

    alive: int
    behind: tuple[EdgeNode, ...]
    lapsed: tuple[EdgeNode, ...] = ()
    lost: tuple[EdgeNode, ...] = ()

    @property
    def is_served(self) -> bool:
        """Whether an edge runs that serves the change, or will apply it by itself."""
        return sum(not edge.follows for edge in self.behind) < self.alive

    @property
    def labels(self) -> list[str]:
        """The labels of the edges that do not serve the change."""
        return [edge.label for edge in self.behind]


async def await_edges(database: Database, clock: Clock, *, within_seconds: float) -> Reach:
    """Wait until edges serve what is committed now, or for `within_seconds`.

    Raises: `DatabaseUnavailable`.
    """
    deadline = clock.monotonic() + within_seconds
    pauses = RetryPauses(first=_FIRST_LOOK_SECONDS, longest=_LAST_LOOK_SECONDS)
    looks = 0
    async with database.connection() as connection:
        identity, version = await feed.read_version(connection)  # the version committed, or a later one
    while True:
        async with database.connection() as connection:
            behind = await edge_nodes.nodes_behind(connection, identity, version)
            if not any(edge.follows for edge in behind) or clock.monotonic() >= deadline:
                lapsed = await edge_nodes.list_lapsed(connection)
                return Reach(
                    await edge_nodes.count_alive(connection),
                    tuple(behind),
                    tuple(edge for edge, _ in lapsed),
                    tuple(edge for edge, is_lost in lapsed if is_lost),
                )
            looks += 1
            if looks == _ANNOUNCING_LOOK:
                await feed.wake_listeners(connection)  # the commit may have left it to another one
        await asyncio.sleep(pauses.next_seconds())
