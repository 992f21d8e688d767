"""Replacements of many certificates at once, after a CA has revoked them or has to.

Owns the search for certificates in service, and the column ``replace_requested_at``, which a new certificate clears. A
certificate that carries it is renewed as soon as its order is claimed, in the line of renewals: fairly between
applications, behind new domains, within the CA's limits as urgently as one that is about to expire
(`monitor.certificates.renewal.urgency`). So a request may be repeated, and goes on whatever becomes of its caller.
"""

# ruff: noqa: S608 - what is formatted into SQL here are constants of this module

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from common.db import locks
from common.db.session import Connection

MOST_COUNTED = 1_000_000


@dataclass(frozen=True, slots=True)
class Selection:
    """Which certificates in service; None selects by nothing.

    `issuer`: an authority's own name, ``internal``, or a CA's directory. `serials` are hexadecimal, in lower case
    without zeros before. `before`: valid from a time before.
    """

    issuer: str | None = None
    serials: Collection[str] | None = None
    before: datetime | None = None


@dataclass(frozen=True, slots=True)
class ListedCertificate:
    """A certificate in service, for people to look at. `serial` and `authority` are None where it cannot be read."""

    domain: str
    application_id: str
    serial: str | None
    authority: str | None
    issuer: str
    not_before: datetime
    not_after: datetime
    replace_requested_at: datetime | None


_SELECTED = (
    "released_at is null and ($1::text is null or authority = $1 or issuer = $1)"
    " and ($2::text[] is null or serial = any($2)) and ($3::timestamptz is null or not_before < $3)"
)


async def list_certificates(
    connection: Connection, selection: Selection, *, after: tuple[datetime, str] | None, limit: int
) -> list[ListedCertificate]:
    """Return certificates in service, oldest first, that follow the pair of first day and domain in `after`."""
    rows = await connection.fetch(
        "select domain, application_id, serial, authority, issuer, not_before, not_after, replace_requested_at"
        f" from certificates where {_SELECTED}"
        " and ($4::timestamptz is null or (not_before, domain) > ($4, $5)) order by not_before, domain limit $6",
        *_values(selection),
        *(after or (None, "")),
        limit,
    )
    return [ListedCertificate(**row) for row in rows]


async def count(connection: Connection, selection: Selection) -> int:
    """Count the certificates that are selected and whose replacement is not requested yet, up to `MOST_COUNTED`."""
    number: int = await connection.fetchval(
        f"select count(*) from (select from certificates where {_SELECTED}"
        " and replace_requested_at is null limit $4) selected",
        *_values(selection),
        MOST_COUNTED,
    )
    return number


async def request(connection: Connection, selection: Selection, *, most: int) -> int:
    """Request the replacement of at most `most` certificates, in a transaction; return how many these were.

    A worker that looks after one of them now loses its claim, so that what it decided before does not count.
    """
    rows = await connection.fetch(
        f"select domain from certificates where {_SELECTED}"
        " and replace_requested_at is null order by not_before, domain limit $4",
        *_values(selection),
        most,
    )
    domains = [row["domain"] for row in rows]
    await locks.hold(connection, "domain", *domains)
    await connection.execute(
        "with requested as (update certificates set replace_requested_at = clock_timestamp() where domain = any($4)"
        f" and {_SELECTED} and replace_requested_at is null returning domain, application_id)"
        " update orders set due_at = now(), lease_until = null, fence = pg_current_xact_id()::text::bigint,"
        " attempts = 0 from requested where orders.domain = requested.domain"
        " and orders.application_id = requested.application_id and state = 'issued' and kind = 'renewal'",
        *_values(selection),
        domains,
    )
    return len(domains)


async def count_requested(connection: Connection) -> int:
    """Count the certificates in service whose replacement is requested and not stored yet, up to `MOST_COUNTED`."""
    number: int = await connection.fetchval(
        "select count(*) from (select from certificates where replace_requested_at is not null"
        " and released_at is null limit $1) requested",
        MOST_COUNTED,
    )
    return number


def _values(selection: Selection) -> tuple[str | None, list[str] | None, datetime | None]:
    serials = None if selection.serials is None else list(selection.serials)
    return selection.issuer, serials, selection.before
