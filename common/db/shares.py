"""Sharing links as rows: what a page shows to every holder of its link, for a while.

Owns the SQL of ``shares``. A link shows records, or holds a whole configuration of the connect modal. The id is the
only key to it: it must stay unguessable, and only its application sees it in a list. A link carries no token.

Rules
    a link that a link's flow made (`parent_id`) ends with that one at the latest, and is revoked with it
    a revoked link ends the flows that were opened by it (`common.db.connect_flows`)
    a link that a token made ends with the client secret that signed the token (``secret_generation``), one that an API
        key made when that key is revoked (``by_key``), or the key that began its flow (``flow_by_key``)
    `vouched`: its configuration was given with full rights, or registered; else a browser gave it
"""

# ruff: noqa: S608 - what is formatted into SQL here are constants of this module

from __future__ import annotations

import secrets
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from common.db import flow_ends
from common.db.application_secrets import is_of_living_secret
from common.db.session import Connection
from common.errors import FrontageError

LIFETIME_DAYS = 30
_ID_BYTES = 24
_COLUMNS = """id, application_id, domain, subdomain, records, config, job_id, user_id, created_at, expires_at,
    vouched, configuration_id, secret_generation"""
_LIVING = f"expires_at > now() and {is_of_living_secret('shares')}"


class ParentEnded(FrontageError):
    """The link that a new one is derived from has ended."""


@dataclass(frozen=True, slots=True)
class Provenance:
    """The origin of a link: what it was made from, and what ends it beside its own time.

    `parent_id`: the link that its flow was opened by; `configuration_id`: the registered configuration that it holds;
    `by_key`: the API key that it was made with; `flow_by_key`: the one that began the flow that it was made from.
    """

    vouched: bool = False
    parent_id: str | None = None
    configuration_id: str | None = None
    secret_generation: int | None = None
    by_key: str | None = None
    flow_by_key: str | None = None


@dataclass(frozen=True, slots=True)
class Share:
    """A sharing link. `records` are in the API's form.

    `domain` is None where the person chooses it; `config` where there are only records.
    """

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
    vouched: bool
    configuration_id: str | None
    secret_generation: int | None


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
    provenance: Provenance = Provenance(),
) -> str:
    """Make a link, and return its id, for ``{base_url}/share/<id>``. It ends no later than what it is made from.

    Raises: `ParentEnded`.
    """
    latest = await _latest_end(connection, application_id, provenance)
    share_id = secrets.token_urlsafe(_ID_BYTES)
    await connection.execute(
        "insert into shares (id, application_id, domain, subdomain, records, config, job_id, user_id, vouched,"
        " parent_id, configuration_id, secret_generation, by_key, flow_by_key, expires_at) values ($1, $2, $3, $4, $5,"
        " $6, $7, $8, $9, $10, $11, $12, $13, $14, least(now() + make_interval(days => $15), $16))",
        share_id,
        application_id,
        domain,
        subdomain,
        list(records),
        None if config is None else dict(config),
        job_id,
        user_id,
        provenance.vouched,
        provenance.parent_id,
        provenance.configuration_id,
        provenance.secret_generation,
        provenance.by_key,
        provenance.flow_by_key,
        lifetime_days,
        latest,
    )
    return share_id


async def _latest_end(connection: Connection, application_id: str, provenance: Provenance) -> datetime | None:
    """Return when what the link is made from ends, and lock it, so that it is not revoked at the same moment.

    Raises: `ParentEnded`.
    """
    ends: list[datetime | None] = []
    for table, of_id in (("shares", provenance.parent_id), ("connect_configurations", provenance.configuration_id)):
        if of_id is not None:
            row = await connection.fetchrow(
                f"select expires_at from {table} where id = $1 and application_id = $2 and"
                f" (expires_at is null or expires_at > now()) and {is_of_living_secret(table)} for key share",
                of_id,
                application_id,
            )
            if row is None:
                raise ParentEnded(of_id)
            ends.append(row["expires_at"])
    return min(filter(None, ends), default=None)


async def is_living(connection: Connection, application_id: str, share_id: str) -> bool:
    """Return whether the link still opens flows."""
    found = await connection.fetchval(
        f"select true from shares where id = $1 and application_id = $2 and {_LIVING}", share_id, application_id
    )
    return bool(found)


async def lock_living(connection: Connection, application_id: str, share_id: str) -> bool:
    """Keep the link from being revoked until the transaction ends, and return whether it still opens flows."""
    found = await connection.fetchval(
        f"select true from shares where id = $1 and application_id = $2 and {_LIVING} for key share",
        share_id,
        application_id,
    )
    return bool(found)


async def get_share(connection: Connection, share_id: str) -> Share | None:
    """Return the link, or None when there is none, or no longer.

    The links of an application that is being deleted open nothing.
    """
    row = await connection.fetchrow(
        f"select {_COLUMNS} from shares where id = $1 and {_LIVING}"
        " and exists (select from applications a where a.id = shares.application_id and a.deleting_at is null)",
        share_id,
    )
    return Share(**row) if row else None


async def list_shares(
    connection: Connection, application_id: str, *, before: datetime | None, limit: int
) -> list[Share]:
    """Return the application's links to the modal, newest first; those made before `before`."""
    rows = await connection.fetch(
        f"select {_COLUMNS} from shares"
        " where application_id = $1 and created_at < coalesce($2::timestamptz, 'infinity')"
        f" and {_LIVING} order by created_at desc, id desc limit $3",
        application_id,
        before,
        limit,
    )
    return [Share(**row) for row in rows]


async def revoke(connection: Connection, application_id: str, share_id: str) -> bool:
    """Revoke the link and those derived from it, and end their flows; return whether the application had it."""
    revoked = await _fetch_ids(
        connection, "delete from shares where id = $1 and application_id = $2 returning id", share_id, application_id
    )
    await _end_derived(connection, revoked)
    return bool(revoked)


async def revoke_of_configuration(connection: Connection, configuration_id: str) -> None:
    """Revoke the links that hold a registered configuration, as `revoke` does."""
    await _end_derived(
        connection,
        await _fetch_ids(connection, "delete from shares where configuration_id = $1 returning id", configuration_id),
    )


async def _end_derived(connection: Connection, revoked: Collection[str]) -> None:
    """End the flows of revoked links, and revoke the links derived from them, level by level.

    A link that is being derived from a revoked one is there once that one's lock is free.
    """
    while revoked:
        await flow_ends.end_of_links(connection, revoked)
        revoked = await _fetch_ids(
            connection, "delete from shares where parent_id = any($1) returning id", list(revoked)
        )


async def _fetch_ids(connection: Connection, statement: str, *values: object) -> list[str]:
    """Run a statement that returns ids, and return these."""
    return [row["id"] for row in await connection.fetch(statement, *values)]
