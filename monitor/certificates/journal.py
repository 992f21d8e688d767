"""The journal of a claimed order: its row and the CA's ledger, written before and after what is asked of a CA.

One for each attempt. Everything is written under the order's fence, so that a monitor that lost the order to another
asks a CA nothing more. While Postgres is away nothing can be reserved, so nothing is ordered.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Sequence
from contextlib import suppress
from datetime import datetime
from typing import TypeAlias

from common.db import ca_ledger, delegations, order_outcomes
from common.db.ca_ledger import LIMIT_DESCRIPTIONS, WAITS_FOR_LIMIT, LimitReached, Limits, Urgency
from common.db.order_queue import Order, PlacedOrder
from common.db.pool import Connection, Database
from common.errors import DatabaseUnavailable
from monitor.certificates.issuer import ChallengeKind, IssuanceFailed, Placed
from monitor.claims import write_when_available

UpdateZone: TypeAlias = Callable[[str, Collection[str]], Awaitable[None]]
"""Has a name server of the operator's answer TXT values at a label. Raises: `IssuanceFailed`."""


class OrderJournal:
    """The `Journal` of one attempt at a claimed order. Created by `Issuance` for each attempt.

    Mutable state: `_reservation`, the ledger's entry of the order about to be placed; `placed`.
    """

    def __init__(
        self,
        database: Database,
        order: Order,
        limits: Limits,
        urgency: Urgency,
        now: Callable[[], datetime],
        *,
        ways: Sequence[ChallengeKind],
        placed: Placed | None,
        sealed_key: bytes,
        update_zone: UpdateZone | None = None,
    ) -> None:
        """Create the journal; `placed` is set only where `sealed_key` holds the very key of that order's request."""
        self._database = database
        self._order = order
        self._limits = limits
        self._urgency = urgency
        self._now = now
        self._sealed_key = sealed_key
        self._reservation: int | None = None
        self.ways = ways
        self._update_zone = update_zone
        self._has_published = False
        self.placed = placed

    async def publish_challenges(self, values: Collection[str]) -> None:
        """Have the edges answer these values at the domain's label.

        Raises: `FenceLost`, `DatabaseUnavailable`, `IssuanceFailed`.
        """
        answered: Collection[str] = values

        async def write(connection: Connection) -> None:
            nonlocal answered
            answered = await order_outcomes.publish_challenges(connection, self._order, values)

        await write_when_available(self._database, write)
        if self._update_zone is not None and self._order.label is not None:
            self._has_published = True
            await self._update_zone(self._order.label, answered)

    async def end_challenges(self) -> None:
        """Remove what this attempt has published in a zone that edges do not answer, as far as that can be done."""
        if self._has_published and self._update_zone is not None and self._order.label is not None:
            with suppress(IssuanceFailed, DatabaseUnavailable):
                async with self._database.connection() as connection:
                    others = await delegations.find_other_values(
                        connection, self._order.domain, self._order.application_id
                    )
                await self._update_zone(self._order.label, others)

    async def reserve(self, issuer: str, *, is_exempt: bool = False) -> None:
        """Count in the CA's ledger an order that is about to be placed.

        Raises: `IssuanceFailed` (rate_limited), `FenceLost`, `DatabaseUnavailable`.
        """
        async with self._database.transaction() as connection:
            found = await ca_ledger.reserve(
                connection, self._order, issuer, self._limits, self._urgency, is_exempt=is_exempt
            )
        if isinstance(found, LimitReached):
            raise IssuanceFailed(
                explain_full_limit(found), retry_after_seconds=self._seconds_until(found.free_at), kind="rate_limited"
            )
        self._reservation = found

    async def record_placed(self, placed: Placed) -> None:
        """Store the placed order with its sealed key, and assign it to its reservation.

        Raises: `FenceLost`, `DatabaseUnavailable`.
        """

        async def write(connection: Connection) -> None:
            kept = PlacedOrder(placed.issuer, placed.url, placed.placed_at, self._sealed_key)
            await order_outcomes.record_placed(connection, self._order, kept)
            if self._reservation is not None:
                await ca_ledger.record_placed(connection, self._reservation, placed.url)

        await write_when_available(self._database, write)
        self.placed, self._reservation = placed, None

    async def give_back(self, issuer: str) -> None:
        """Remove the reservation from the ledger, if there is one."""
        reservation, self._reservation = self._reservation, None
        if reservation is None:
            return
        with suppress(
            DatabaseUnavailable
        ):  # then it counts until its window has passed: the ledger errs on the safe side
            async with self._database.transaction() as connection:
                await ca_ledger.cancel_reservation(connection, reservation)

    async def record_failed_validation(self, placed: Placed) -> None:
        """Drop the placed order, and count its failed validation in the ledger.

        Raises: `FenceLost`, `DatabaseUnavailable`.
        """

        async def write(connection: Connection) -> None:
            await order_outcomes.forget_placed(connection, self._order)
            await ca_ledger.record_failed_validation(connection, placed.issuer, self._order.domain, placed.url)

        await write_when_available(self._database, write)
        self.placed = None

    def _seconds_until(self, moment: datetime) -> float:
        """Return the seconds until then, at least one."""
        return max((moment - self._now()).total_seconds(), 1.0)


def explain_full_limit(full: LimitReached) -> str:
    """Explain to the domain's owner which limit is used up, and until when."""
    return (
        f"{WAITS_FOR_LIMIT}{full.most} of {full.most} {LIMIT_DESCRIPTIONS[full.limit]} are used,"
        f" and the next is free at {full.free_at:%Y-%m-%d %H:%M} UTC"
    )
