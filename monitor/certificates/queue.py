"""The orders of a lane as a worker's queue: each application gets its share of the worker's slots.

An order takes seconds, most of them spent waiting for a CA that asks a slow domain; so there are many slots, and no
application takes all of them (`monitor.concurrency_shares`).

Rechecks give way to awaited orders: an import asks for as many as it has names, and each takes CPU time of the
monitor, of Postgres and of the edges. While awaited orders were claimed within `_GIVE_WAY_SECONDS`, rechecks begin in
groups of `_GROUP`, one group in `_GROUP_SECONDS`; else as fast as they can. So each begins at some time, however long
that goes on.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from random import Random

from common.clock import Clock
from common.db import order_queue
from common.db.order_queue import Lane, Order
from common.db.pool import Connection, Database
from monitor.claims import POLL_SECONDS, Runner
from monitor.concurrency_shares import ConcurrencyShares

AWAITED_AT_ONCE = 48
ROUTINE_AT_ONCE = 16
RECHECKS_AT_ONCE = 16

_GIVE_WAY_SECONDS = 2.0
_GROUP = 4
_GROUP_SECONDS = 0.5


class Precedence:
    """When orders of one lane were claimed last, and when another lane, which gives way, may claim its next group.

    Mutable state: both times.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._claimed_at = -math.inf
        self._next_group_at = -math.inf

    def note_claim(self) -> None:
        """Record that orders of the lane that goes first were claimed now."""
        self._claimed_at = self._clock.monotonic()

    def room(self, free: int) -> int:
        """Return how many of the `free` slots the lane that gives way may use now."""
        now = self._clock.monotonic()
        if now - self._claimed_at >= _GIVE_WAY_SECONDS:
            return free
        if now < self._next_group_at:
            return 0
        self._next_group_at = now + _GROUP_SECONDS
        return min(free, _GROUP)


class OrderQueue:
    """The queue of one lane's orders, shared fairly between applications.

    Mutable state: `_after`, the application after which the next search for due orders begins.
    """

    def __init__(
        self,
        lane: Lane,
        shares: ConcurrencyShares,
        *,
        precedence: Precedence | None = None,
        gives_way_to: Precedence | None = None,
    ) -> None:
        self._lane = lane
        self._shares = shares
        self._precedence = precedence
        self._gives_way_to = gives_way_to
        self._after = ""
        self.extend = lane.extend
        self.postpone = lane.postpone
        self.next_due_seconds = lane.next_due_seconds

    async def claim(self, connection: Connection, /, *, most: int, lease_seconds: float) -> list[Order]:
        """Claim up to `most` due orders, fewer while the lane gives way or an application has its share."""
        room = most if self._gives_way_to is None else self._gives_way_to.room(most)
        if not room:
            return []
        due, self._after = await self._lane.find_due(
            connection, most=most, full=self._shares.full(free=most), after=self._after
        )
        chosen = self._shares.choose(due, free=most)[:room]
        claimed = await order_queue.claim_due(connection, chosen, lease_seconds=lease_seconds)
        if claimed and self._precedence is not None:
            self._precedence.note_claim()
        return claimed


def make_runner(
    database: Database,
    lane: Lane,
    perform: Callable[[Order], Awaitable[None]],
    random: Random,
    *,
    concurrency: int,
    poll_seconds: float = POLL_SECONDS,
    precedence: Precedence | None = None,
    gives_way_to: Precedence | None = None,
) -> Runner[Order]:
    """Create the runner of a lane. The role runs it, and wakes it when an order may be due.

    `precedence` is noted when orders of this lane are claimed; `gives_way_to` belongs to a lane that comes before it.
    """
    shares = ConcurrencyShares()

    async def hold_and_perform(order: Order) -> None:
        with shares.hold(order.application_id):
            await perform(order)

    return Runner(
        database,
        OrderQueue(lane, shares, precedence=precedence, gives_way_to=gives_way_to),
        hold_and_perform,
        concurrency=concurrency,
        random=random,
        poll_seconds=poll_seconds,
    )
