"""Links to the page that shows a customer how one domain is, as rows.

Owns the SQL of ``status_links``. The id is the only key to the page: it must stay unguessable. An application has one
link at most for a domain; a new one ends the former.
"""

# ruff: noqa: S608 - what is formatted into SQL here are constants of this module

from __future__ import annotations

import secrets
from dataclasses import dataclass
from datetime import datetime

from common.db.session import Connection

LIFETIME_DAYS = 90
_ID_BYTES = 24


@dataclass(frozen=True, slots=True)
class StatusLink:
    """A link that has not ended."""

    id: str
    application_id: str
    domain: str
    created_at: datetime
    expires_at: datetime


_COLUMNS = "id, application_id, domain, created_at, expires_at"


async def put(connection: Connection, application_id: str, domain: str, *, days: int) -> StatusLink:
    """Make the link to a domain's page, and end the former one."""
    row = await connection.fetchrow(
        "insert into status_links (id, application_id, domain, expires_at)"
        " values ($1, $2, $3, now() + make_interval(days => $4))"
        " on conflict (application_id, domain) do update"
        " set id = excluded.id, created_at = now(), expires_at = excluded.expires_at"
        f" returning {_COLUMNS}",
        secrets.token_urlsafe(_ID_BYTES),
        application_id,
        domain,
        days,
    )
    assert row is not None, "the statement returns the row"
    return StatusLink(**row)


async def find(connection: Connection, application_id: str, domain: str) -> StatusLink | None:
    """Return the link to the page of an application's domain, or None."""
    row = await connection.fetchrow(
        f"select {_COLUMNS} from status_links where application_id = $1 and domain = $2 and expires_at > now()",
        application_id,
        domain,
    )
    return StatusLink(**row) if row else None


async def get(connection: Connection, link_id: str) -> StatusLink | None:
    """Return the link with this id, or None when there is none, or no longer."""
    row = await connection.fetchrow(
        f"select {_COLUMNS} from status_links where id = $1 and expires_at > now()", link_id
    )
    return StatusLink(**row) if row else None


async def revoke(connection: Connection, application_id: str, domain: str) -> bool:
    """End the link, and return whether there was one."""
    deleted = await connection.execute(
        "delete from status_links where application_id = $1 and domain = $2 and expires_at > now()",
        application_id,
        domain,
    )
    return deleted != "DELETE 0"
