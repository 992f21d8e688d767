"""Rows that many tests begin with, written past the API."""

from __future__ import annotations

from common.db.session import Connection


async def add_application(connection: Connection, application_id: str = "app") -> None:
    """Store an application without secrets, unless it is there."""
    await connection.execute(
        "insert into applications (id, name, cname_target, client_secret, webhook_secret)"
        " values ($1, $1, $1, '', '') on conflict do nothing",
        application_id,
    )


async def power(connection: Connection, domain: str, url: str, application_id: str = "app") -> None:
    """Store the application and its domain in Power, or the domain's new origin."""
    await add_application(connection, application_id)
    await connection.execute(
        "insert into domains (domain, product, application_id, application_url) values ($1, 'power', $3, $2)"
        " on conflict (domain, product) do update set application_url = excluded.application_url",
        domain,
        url,
        application_id,
    )
