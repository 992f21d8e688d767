"""Outcomes: the events about a domain's certificate, one for each product of the domain.

Called in the transaction that makes it so, and late in it (`common.db.events`).
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import UTC

from common.db import events
from common.db.session import Connection
from common.names import parse_enrollable

_PRODUCTS = ("power", "secure")


async def record_success(
    connection: Connection, domain: str, application_id: str, *, products: Collection[str] = _PRODUCTS
) -> None:
    """Record, for the products given, that the domain's certificate is live on the edges.

    A domain whose DNS leads elsewhere is inactive, whatever its certificate: nothing is recorded for it.
    """
    await _record(connection, domain, application_id, products, "success", {}, with_expiry=True)


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
    *,
    with_expiry: bool = False,
) -> None:
    """Record an event for each of the products that the application has the domain in."""
    rows = await connection.fetch(
        "select product, not_after from domains d left join certificates c on c.domain = d.domain"
        " and c.application_id = d.application_id and c.released_at is null"
        " where d.domain = $1 and d.application_id = $2 and product = any($3)"
        " and ($4 <> 'success' or departed_at is null) order by product",
        domain,
        application_id,
        products,
        status,
    )
    name = parse_enrollable(domain)
    for row in rows:
        product, expires_at = row["product"], row["not_after"] if with_expiry else None
        expiry = {"certificate_expires_at": expires_at.astimezone(UTC).isoformat()} if expires_at is not None else {}
        await events.record(
            connection,
            events.NewEvent(
                application_id,
                "domain.power" if product == "power" else "domain.secure",
                name.registrable,
                name.subdomain,
                {f"{product}_status": status, **fields, **expiry},
            ),
        )
