"""What tests of certificates that are looked after ask of the database."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from common.db import events
from common.db.pool import Database

from . import parts
from .parts import APPLICATION, DOMAIN


async def make_due(database: Database, *, renew: bool) -> None:
    async with database.transaction() as connection:
        await connection.execute(
            "update orders set due_at = now(), renew_at = case when $1 then now() else renew_at end", renew
        )


async def order_of(database: Database, domain: str = DOMAIN) -> dict[str, Any]:
    order = await parts.order_of(database, domain)
    assert order is not None
    return order


async def statuses_sent(database: Database) -> list[tuple[str, str]]:
    """The events of the application, oldest first: product and status."""
    async with database.connection() as connection:
        listed = await events.list_events(connection, APPLICATION, before=None, limit=100)
    return [
        (event.type.removeprefix("domain."), event.fields[f"{event.type.removeprefix('domain.')}_status"])
        for event in reversed(listed)
    ]


def is_looked_after(database: Database) -> Callable[[], Any]:
    async def is_so() -> bool:
        order = await order_of(database)
        return order["lease_until"] is None and order["due_at"] > datetime.now(UTC)

    return is_so
