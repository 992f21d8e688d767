"""Sharing links as rows: what a page shows to every holder of its link, for a while.

Owns the SQL of ``shares``. A link shows records, or holds a whole configuration of the connect modal. The id is the
only key to it: it must stay unguessable, and only its application sees it in a list. A link carries no token.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from common.db.session import Connection

LIFETIME_DAYS = 30
_ID_BYTES = 24
_COLUMNS = "id, application_id, domain, subdomain, records, config, job_id, user_id, created_at, expires_at"


@dataclass(frozen=True, slots=True)
class Share:
    """`records` are in the API's form. `domain` is None where the person chooses it; `config` where there are only
    records."""

    id: str
    application_id: str
    domain: str | None
    subdomain: str | None
    records: Sequence[dict[str, Any]]
    config: Mapping[str, Any] | None
    job_id: str | None
    user_id: str | None
    created_at: datetime
    expires_at: datetime


async def share_records(
    connection: Connection,
    *,
    application_id: str,
    domain: str | None,
    subdomain: str | None,
    records: Sequence[Mapping[str, Any]],
    config: Mapping[str, Any] | None = None,
    job_id: str | None = None,
    user_id: str | None = None,
    lifetime_days: int = LIFETIME_DAYS,
) -> str:
    """The new link's id, for ``{base_url}/share/<id>``."""
    share_id = secrets.token_urlsafe(_ID_BYTES)
    await connection.execute(
        "insert into shares (id, application_id, domain, subdomain, records, config, job_id, user_id, expires_at)"
        " values ($1, $2, $3, $4, $5, $6, $7, $8, now() + make_interval(days => $9))",
        share_id,
        application_id,
        domain,
        subdomain,
        list(records),
        None if config is None else dict(config),
        job_id,
        user_id,
        lifetime_days,
    )
    return share_id


async def get_share(connection: Connection, share_id: str) -> Share | None:
    """None when there is no such link, or no longer; the links of an application that is being deleted open nothing."""
    row = await connection.fetchrow(
        f"select {_COLUMNS} from shares where id = $1 and expires_at > now()"  # noqa: S608 - our own columns
        " and exists (select from applications a where a.id = shares.application_id and a.deleting_at is null)",
        share_id,
    )
    return Share(**row) if row else None


async def list_shares(
    connection: Connection, application_id: str, *, before: datetime | None, limit: int
) -> list[Share]:
    """The application's links to the modal, newest first; those made before `before`."""
    rows = await connection.fetch(
        f"select {_COLUMNS} from shares"  # noqa: S608 - our own columns
        " where application_id = $1 and created_at < coalesce($2::timestamptz, 'infinity')"
        " and expires_at > now() order by created_at desc, id desc limit $3",
        application_id,
        before,
        limit,
    )
    return [Share(**row) for row in rows]


async def revoke(connection: Connection, application_id: str, share_id: str) -> bool:
    """Returns whether the application had such a link."""
    status = await connection.execute(
        "delete from shares where id = $1 and application_id = $2", share_id, application_id
    )
    return status != "DELETE 0"
