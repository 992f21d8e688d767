"""Sharing links as rows: the records that a page shows to every holder of its link, for a while.

Owns the SQL of ``shares``. The id is the only key there is: it must stay unguessable, and is never listed.
"""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from common.db.session import Connection

LIFETIME_DAYS = 30
_ID_BYTES = 24


@dataclass(frozen=True, slots=True)
class Share:
    """`records` are in the API's form."""

    application_id: str
    domain: str
    subdomain: str | None
    records: Sequence[dict[str, Any]]
    expires_at: datetime


async def share_records(
    connection: Connection,
    *,
    application_id: str,
    domain: str,
    subdomain: str | None,
    records: Sequence[dict[str, Any]],
) -> str:
    """The new link's id, for ``{base_url}/share/<id>``."""
    share_id = secrets.token_urlsafe(_ID_BYTES)
    await connection.execute(
        "insert into shares (id, application_id, domain, subdomain, records, expires_at)"
        " values ($1, $2, $3, $4, $5, now() + make_interval(days => $6))",
        share_id,
        application_id,
        domain,
        subdomain,
        records,
        LIFETIME_DAYS,
    )
    return share_id


async def get_share(connection: Connection, share_id: str) -> Share | None:
    """None when there is no such link, or no longer."""
    row = await connection.fetchrow(
        "select application_id, domain, subdomain, records, expires_at from shares"
        " where id = $1 and expires_at > now()",
        share_id,
    )
    return Share(**row) if row else None
