"""Outcomes: the events about a domain's certificate, one for each product of the domain.

Called in the transaction that makes it so, and late in it (`common.db.events`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from common.db import events
from common.db.session import Connection
from common.names import parse_domain

_PRODUCTS = ("power", "secure")


async def record_success(
    connection: Connection, domain: str, application_id: str, *, products: Collection[str] = _PRODUCTS
) -> None:
    """Record, for the products given, that the domain's certificate is live on the edges."""
    await _record(connection, domain, application_id, products, "success", {})


async def record_failure(connection: Connection, domain: str, application_id: str, reason: str) -> None:
    """Record that there is no new certificate; `reason` explains it to the owner."""
    await _record(connection, domain, application_id, _PRODUCTS, "failed", {"reason": reason})


async def record_end(connection: Connection, domain: str, application_id: str, reason: str) -> None:
    """Record that the application has lost the domain; call it while its rows are still there. `reason` is one word."""
    await _record(connection, domain, application_id, _PRODUCTS, "inactive", {"reason": reason})


async def _record(
    connection: Connection,
    domain: str,
    application_id: str,
    products: Collection[str],
    status: str,
    fields: Mapping[str, str],
) -> None:
    """Record an event for each of the products that the application has the domain in."""
    rows = await connection.fetch(
        "select product from domains where domain = $1 and application_id = $2 and product = any($3) order by product",
        domain,
        application_id,
        products,
    )
    name = parse_domain(domain)
    for row in rows:
        product = row["product"]
        await events.record(
            connection,
            events.NewEvent(
                application_id,
                "domain.power" if product == "power" else "domain.secure",
                name.registrable,
                name.subdomain,
                {f"{product}_status": status, **fields},
            ),
        )
