"""An application's domains as the rows of a file: what an import compares with, and what an export writes.

Owns no table. What a row means for what is there is decided by `api.services.domain_import`.
"""

# ruff: noqa: S608 - what is formatted into SQL here are constants of this module

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from common import records as dns
from common.db.pool import Database
from common.db.session import Connection
from common.domain_settings import NO_SETTINGS, SETTINGS, DomainSettings
from common.records import Record

_SETTINGS = ", ".join(SETTINGS)
_READ_AT_ONCE = 500
_WATCHED_AT_ONCE = 50  # each has up to 130 KB of records


@dataclass(frozen=True, slots=True)
class EnrolmentRow:
    """A row of Power or Secure."""

    product: Literal["power", "secure"]
    domain: str
    settings: DomainSettings = NO_SETTINGS


@dataclass(frozen=True, slots=True)
class MonitorRow:
    """A row of Monitor; `domain` is the apex."""

    domain: str
    subdomain: str | None
    records: tuple[Record, ...]
    user_id: str | None = None
    job_id: str | None = None
    user_email: str | None = None


Row: TypeAlias = EnrolmentRow | MonitorRow


async def find(connection: Connection, application_id: str, rows: Sequence[Row]) -> list[Row]:
    """Return the application's own rows under the names of these rows."""
    names = list({row.domain for row in rows if isinstance(row, EnrolmentRow)})
    apexes = list({row.domain for row in rows if isinstance(row, MonitorRow)})
    found: list[Row] = []
    if names:
        found += map(
            _enrolment,
            await connection.fetch(
                f"select product, domain, {_SETTINGS} from domains where domain = any($1) and application_id = $2",
                names,
                application_id,
            ),
        )
    if apexes:
        subdomains = list({row.subdomain or "" for row in rows if isinstance(row, MonitorRow)})
        found += map(
            _watch,
            await connection.fetch(
                "select domain, subdomain, dns_records, user_id, job_id, user_email from monitored_domains"
                " where application_id = $2 and domain = any($1) and coalesce(subdomain, '') = any($3)",
                apexes,
                application_id,
                subdomains,
            ),
        )
    return found


async def read(database: Database, application_id: str) -> AsyncIterator[list[Row]]:
    """Yield all that the application has, some rows at a time, each in a short query of its own."""
    for product in ("power", "secure"):
        after = ""
        while rows := await _read_enrolments(database, application_id, product, after):
            after = rows[-1].domain
            yield [*rows]
    after = ""
    while watched := await _read_watched(database, application_id, after):
        after = watched[-1][0]
        yield [row for _, row in watched]


async def _read_enrolments(database: Database, application_id: str, product: str, after: str) -> list[EnrolmentRow]:
    """Return the application's next rows of a product, by name."""
    async with database.connection() as connection:
        rows = await connection.fetch(
            f"select product, domain, {_SETTINGS} from domains"
            " where application_id = $1 and product = $2 and domain > $3 order by domain limit $4",
            application_id,
            product,
            after,
            _READ_AT_ONCE,
        )
    return list(map(_enrolment, rows))


async def _read_watched(database: Database, application_id: str, after: str) -> list[tuple[str, MonitorRow]]:
    """Return the application's next rows of Monitor, each with its whole name."""
    async with database.connection() as connection:
        rows = await connection.fetch(
            "select monitored_name(domain, subdomain) as name, domain, subdomain, dns_records, user_id, job_id,"
            " user_email from monitored_domains where application_id = $1"
            " and monitored_name(domain, subdomain) > $2 order by monitored_name(domain, subdomain) limit $3",
            application_id,
            after,
            _WATCHED_AT_ONCE,
        )
    return [(row["name"], _watch(row)) for row in rows]


def _enrolment(row: Any) -> EnrolmentRow:
    return EnrolmentRow(row["product"], row["domain"], DomainSettings.of(row))


def _watch(row: Any) -> MonitorRow:
    records = tuple(map(dns.from_json, row["dns_records"]))
    return MonitorRow(row["domain"], row["subdomain"], records, row["user_id"], row["job_id"], row["user_email"])
