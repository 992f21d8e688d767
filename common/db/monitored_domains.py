"""Monitored domains as rows: which records are watched under which name, for which application.

Owns the SQL of ``monitored_domains`` as partners see them, and of the tallies by which a page is found. Checking them,
and what a check writes, is `common.db.checks`' business, but for having one made at once.

Rules
    one row a name and application; every change of it is made under its lock, so that changes at once take turns
    a name that is new, or whose records change, is due at once, and the monitors are woken
    the results of the last check are kept for the records that stay (`common.record_sets.carry_over`)

Functions that write need a transaction; the caller opens it.
"""

# ruff: noqa: S608 - what is formatted into SQL here are constants of this module

from __future__ import annotations

import secrets
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from typing import Any, Literal

import orjson
from asyncpg import Connection, Record

from common import records as dns
from common.record_sets import LastResult, Records, State, carry_over, distinct

CHANNEL = "frontage_monitoring"

Edit = Callable[[Records], Records]

_WHERE = "where application_id = $1 and domain = $2 and coalesce(subdomain, '') = coalesce($3, '')"

_COLUMNS = """id, application_id, domain, subdomain, user_id, job_id, user_email, source, date_added, dns_records,
    records_present, records_missing, missing_records_last_detected, last_checked_at,
    coalesce(updated_at, date_added) as updated_at"""

# As text: a page of two hundred names holds up to 26 MB, and many times that as objects.
_LISTED = """id, application_id, domain, subdomain, user_id, job_id, user_email, source, date_added, dns_records::text,
    records_present::text, records_missing::text, missing_records_last_detected, last_checked_at,
    coalesce(updated_at, date_added) as updated_at"""

_PAGE = f"""
    with start as materialized (select begins_at, before from find_monitored($1, $2, $3, $4)), page as (
        select id from monitored_domains
        where application_id = $1 and date_added >= (select begins_at from start) and date_added < $3
        order by date_added, id offset (select before from start) limit $5
    )
    select {_LISTED} from page join monitored_domains using (id) order by date_added, id
"""


@dataclass(frozen=True, slots=True)
class MonitoredKey:
    """The key of a row: `domain` is registrable and in canonical form, `subdomain` None for the apex."""

    application_id: str
    domain: str
    subdomain: str | None = None

    @property
    def name(self) -> str:
        """Return the whole name."""
        return f"{self.subdomain}.{self.domain}" if self.subdomain else self.domain


@dataclass(frozen=True, slots=True)
class Labels:
    """The values that the partner wants echoed. None: not given."""

    user_id: str | None = None
    job_id: str | None = None
    user_email: str | None = None


@dataclass(frozen=True, slots=True)
class MonitoredDomain:
    """A row of a monitored domain. Records are as stored: JSON objects in the API's form."""

    id: str
    key: MonitoredKey
    labels: Labels
    source: str
    date_added: datetime
    dns_records: list[dict[str, Any]]
    records_present: list[dict[str, Any]] | None
    records_missing: list[dict[str, Any]] | None
    missing_records_last_detected: datetime | None
    last_checked_at: datetime | None
    updated_at: datetime
    """When its records or labels were last changed by a call."""


@dataclass(frozen=True, slots=True)
class MonitoredPage:
    """Names in the order of their list, each read when the iteration reaches it."""

    rows: list[Record]

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[MonitoredDomain]:
        return map(_monitored, self.rows)


@dataclass(frozen=True, slots=True)
class LastCheck:
    """The result of a name's last check, as `common.db.checks` stores it; `evidence` is JSON."""

    state: State
    checked_at: datetime | None
    evidence: Any


async def is_vouched(connection: Connection[Record], row_id: str) -> bool:
    """Return whether the name's records were given with full rights, or by a flow of a registered configuration."""
    return bool(
        await connection.fetchval("select vouched or source = 'api' from monitored_domains where id = $1", row_id)
    )


async def list_records(connection: Connection[Record], key: MonitoredKey, *, lock: bool = False) -> Records | None:
    """Return the records watched under the name, or None where it is not watched.

    With `lock`, other changes of the name wait until the transaction ends.
    """
    stored = await connection.fetchval(
        f"select dns_records from monitored_domains {_WHERE}{' for update' if lock else ''}", *_values(key)
    )
    return None if stored is None else _records(stored)


async def vouch(connection: Connection[Record], key: MonitoredKey) -> None:
    """Note that the name's records are given with full rights."""
    await connection.execute(f"update monitored_domains set vouched = true {_WHERE} and not vouched", *_values(key))


async def change(
    connection: Connection[Record], key: MonitoredKey, edit: Edit, labels: Labels | None = None
) -> tuple[Records, Records] | None:
    """Watch what `edit` makes of the records watched now, and return those before and after.

    Returns None where the name is not watched.
    """
    row = await connection.fetchrow(
        "select id, dns_records, state, records_present, records_missing"
        f" from monitored_domains {_WHERE} for no key update",
        *_values(key),
    )
    if row is None:
        return None
    if labels is not None and labels != Labels():
        await _set_labels(connection, row["id"], labels)
    before = _records(row["dns_records"])
    after = distinct(edit(before))
    if after != before:
        seen = LastResult(row["state"], _maybe_records(row["records_present"]), _maybe_records(row["records_missing"]))
        await _rewrite(connection, row["id"], after, carry_over(seen, after))
    return before, after


async def remove(
    connection: Connection[Record], key: MonitoredKey, *, only_if_empty: bool = False
) -> int | Literal["absent", "not empty"]:
    """Stop watching the name; return how many records it had, or why it is not removed."""
    row = await connection.fetchrow(
        f"select id, jsonb_array_length(dns_records) as records from monitored_domains {_WHERE} for update",
        *_values(key),
    )
    if row is None:
        return "absent"
    if only_if_empty and row["records"]:
        return "not empty"
    await connection.execute("delete from monitored_domains where id = $1", row["id"])
    removed: int = row["records"]
    return removed


async def find(connection: Connection[Record], key: MonitoredKey) -> MonitoredDomain | None:
    """Return what is watched under this key, or None."""
    row = await connection.fetchrow(f"select {_COLUMNS} from monitored_domains {_WHERE}", *_values(key))
    return None if row is None else _monitored(row)


async def find_last_check(connection: Connection[Record], key: MonitoredKey) -> LastCheck | None:
    """Return the result of the name's last check, or None if it is not watched."""
    row = await connection.fetchrow(
        f"select state, last_checked_at, evidence from monitored_domains {_WHERE}", *_values(key)
    )
    return None if row is None else LastCheck(*row)


async def list_page(
    connection: Connection[Record], application_id: str, *, offset: int, limit: int, dates: tuple[date, date] | None
) -> MonitoredPage:
    """Return the application's names in the order they were added, the first `offset` left out.

    `dates` are the first and the last day on which they were added, in UTC.
    """
    return MonitoredPage(await connection.fetch(_PAGE, application_id, *_bounds(dates), offset, limit))


async def find_listed(connection: Connection[Record], application_id: str, names: Sequence[str]) -> MonitoredPage:
    """Return these whole names of the application, in their order."""
    rows = await connection.fetch(
        f"select {_LISTED} from unnest($2::text[]) with ordinality wanted (name, place) join monitored_domains m"
        " on monitored_name(m.domain, m.subdomain) = wanted.name and m.application_id = $1 order by place",
        application_id,
        names,
    )
    return MonitoredPage(rows)


def _bounds(dates: tuple[date, date] | None) -> tuple[datetime, datetime]:
    """Return the moments at which the days begin and end; without days, all moments."""
    first, last = dates or (date.min, date.max)
    end = min(last, date.max - timedelta(days=1)) + timedelta(days=1)
    return _midnight(first), _midnight(end)


def _midnight(day: date) -> datetime:
    return datetime(day.year, day.month, day.day, tzinfo=UTC)


async def insert(
    connection: Connection[Record],
    key: MonitoredKey,
    records: Records,
    labels: Labels,
    *,
    source: str = "api",
    vouched: bool = True,
) -> bool:
    """Insert the name if it is not watched, wake the monitors, and return whether it was inserted."""
    inserted = await connection.fetchval(
        """
        insert into monitored_domains
            (application_id, domain, subdomain, id, dns_records, user_id, job_id, user_email, source, vouched)
        values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
        on conflict (application_id, domain, coalesce(subdomain, '')) do nothing
        returning true
        """,
        *_values(key),
        f"mon_{secrets.token_hex(12)}",
        _as_json(records),
        labels.user_id,
        labels.job_id,
        labels.user_email,
        source,
        vouched,
    )
    if inserted:
        await _wake_monitors(connection)
    return bool(inserted)


async def _set_labels(connection: Connection[Record], row_id: str, labels: Labels) -> None:
    """Set the labels that are given."""
    await connection.execute(
        "update monitored_domains set user_id = coalesce($2, user_id), job_id = coalesce($3, job_id),"
        " user_email = coalesce($4, user_email), updated_at = now() where id = $1",
        row_id,
        labels.user_id,
        labels.job_id,
        labels.user_email,
    )


async def _rewrite(connection: Connection[Record], row_id: str, records: Records, seen: LastResult) -> None:
    """Store the records and what is known of them, and have them checked at once.

    A check that runs now goes by the records it began with: it no longer counts.
    """
    await connection.execute(
        "update monitored_domains set dns_records = $2, state = $3, records_present = $4, records_missing = $5,"
        " updated_at = now() where id = $1",
        row_id,
        _as_json(records),
        seen.state,
        None if seen.present is None else _as_json(seen.present),
        None if seen.missing is None else _as_json(seen.missing),
    )
    await connection.execute(
        """
        update checks set fence = pg_current_xact_id()::text::bigint, attempts = 0, lease_until = null,
            requested_at = clock_timestamp(), due_at = clock_timestamp()
        where id = $1
        """,
        row_id,
    )
    await _wake_monitors(connection)


async def _wake_monitors(connection: Connection[Record]) -> None:
    await connection.execute("select wake_listeners($1)", CHANNEL)


def _values(key: MonitoredKey) -> tuple[str, str, str | None]:
    return key.application_id, key.domain, key.subdomain


def _as_json(records: Iterable[dns.Record]) -> list[dict[str, Any]]:
    return [dns.as_json(record) for record in records]


def _records(stored: list[dict[str, Any]]) -> Records:
    return tuple(map(dns.from_json, stored))


def _maybe_records(stored: list[dict[str, Any]] | None) -> Records | None:
    return None if stored is None else _records(stored)


def _decoded(stored: Any) -> Any:
    return orjson.loads(stored) if isinstance(stored, str) else stored


def _monitored(row: Record) -> MonitoredDomain:
    return MonitoredDomain(
        id=row["id"],
        key=MonitoredKey(row["application_id"], row["domain"], row["subdomain"]),
        labels=Labels(row["user_id"], row["job_id"], row["user_email"]),
        source=row["source"],
        date_added=row["date_added"],
        dns_records=_decoded(row["dns_records"]),
        records_present=_decoded(row["records_present"]),
        records_missing=_decoded(row["records_missing"]),
        missing_records_last_detected=row["missing_records_last_detected"],
        last_checked_at=row["last_checked_at"],
        updated_at=row["updated_at"],
    )
