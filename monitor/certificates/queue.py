"""The orders of a lane as a worker's queue: each application gets its share of the worker's slots.

An order takes seconds, most of them spent waiting for a CA that asks a slow domain; so there are many slots, and no
application takes all of them (`common.concurrency_shares`).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from random import Random

from common.claims import POLL_SECONDS, Runner
from common.concurrency_shares import ConcurrencyShares
from common.db import order_queue
from common.db.order_queue import Lane, Order
from common.db.pool import Connection, Database

AWAITED_AT_ONCE = 48
ROUTINE_AT_ONCE = 16
RECHECKS_AT_ONCE = 16


class OrderQueue:
    """Mutable state: the application after which the next look at applications' lines begins."""

    def __init__(self, lane: Lane, shares: ConcurrencyShares) -> None:
        self._lane = lane
        self._shares = shares
        self._after = ""
        self.extend = lane.extend
        self.postpone = lane.postpone
        self.next_due_seconds = lane.next_due_seconds

    async def claim(self, connection: Connection, /, *, most: int, lease_seconds: float) -> list[Order]:
        due, self._after = await self._lane.find_due(
            connection, most=most, full=self._shares.full(free=most), after=self._after
        )
        chosen = self._shares.choose(due, free=most)
        return await order_queue.claim_due(connection, chosen, lease_seconds=lease_seconds)


def make_runner(
    database: Database,
    lane: Lane,
    perform: Callable[[Order], Awaitable[None]],
    random: Random,
    *,
    concurrency: int,
    poll_seconds: float = POLL_SECONDS,
) -> Runner[Order]:
    """To be run by the role, and woken when an order may be due."""
    shares = ConcurrencyShares()

    async def hold_and_perform(order: Order) -> None:
        with shares.hold(order.application_id):
            await perform(order)

    return Runner(
        database,
        OrderQueue(lane, shares),
        hold_and_perform,
        concurrency=concurrency,
        random=random,
        poll_seconds=poll_seconds,
    )
