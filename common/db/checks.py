"""Checks as claimed work: which monitored domains are due, and what a check found out.

Owns the SQL of ``checks``, by which monitors work on ``monitored_domains`` (partners' side of it:
`common.db.monitored_domains`), and of ``mass_guard``.

Rules
    each application has lines of its own, of requested checks and of routine ones, so that a claiming monitor can
    see to it that no application keeps another waiting
    an outcome is written only under the claim's own fence, which an edit moves: a check of what was is forgotten; and
    under its lease, which it ends: so that it is written once, even if the first commit was not answered
    a domain's row in ``monitored_domains`` is locked before its row here, and the lower id before the higher
    ``last_checked_at`` is when the last check began, whatever it could find out; the rest is what is known
    a transaction that raises alarms holds the guard's row until the transaction ends, so that they are counted in turn
"""

# ruff: noqa: S608 - what is formatted into SQL here are constants of this module

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import Any

import orjson
from asyncpg import Record as Row

from common.db.claim_table import IS_FREE, ClaimTable
from common.db.monitored_domains import CHANNEL
from common.db.session import Connection
from common.record_sets import LastResult, Records, State
from common.records import as_json, from_json


@dataclass(frozen=True, slots=True)
class DueCheck:
    """A row that could be claimed. `is_routine`: due by time, not by request."""

    id: str
    application_id: str
    is_routine: bool

    @property
    def tenant(self) -> str:
        """Return the application, between which monitors share their capacity."""
        return self.application_id


@dataclass(frozen=True, slots=True)
class Check:
    """A claimed row: whose records to check, and what was known of them.

    `has_long_ttl`: at the last check a record had a TTL longer than the check interval. `reported` is what was last
    reported missing, if its return is still to be reported; `held_at` is since when more is missing than that, and held
    back.
    """

    id: str
    application_id: str
    domain: str
    subdomain: str | None
    user_id: str | None
    job_id: str | None
    records: Records
    seen: LastResult
    reported: Records | None
    held_at: datetime | None
    fence: int
    attempts: int
    claimed_at: datetime
    has_long_ttl: bool = False

    @property
    def key(self) -> str:
        """Return what identifies the claim in its table: the monitored domain's id."""
        return self.id


@dataclass(frozen=True, slots=True)
class CheckOutcome:
    """The result of a check, to be written. `reported` and `held_at` as in `Check`; `evidence` is JSON.

    `has_turned`: from all present to something missing. Not `is_complete`: something could not be asked.
    """

    check: Check
    state: State
    present: Records | None
    missing: Records | None
    has_found_missing: bool
    has_turned: bool
    is_complete: bool
    reported: Records | None
    held_at: datetime | None
    evidence: Sequence[Any]
    due_at: datetime
    has_long_ttl: bool = False


_TABLE = ClaimTable("checks", key="id")

_DUE = f"""
    select id, application_id, requested_at is null as is_routine from checks
    where due_at <= now() and {IS_FREE} order by due_at limit $1
"""

# Ordered and bounded by rows of both columns, as one index alone has them: by `application_id = … order by due_at` the
# planner may walk all that is due, once for each application (seen: 7 s, where one has nearly all of it).
_IN_LINE = f"""
    from checks where (application_id, due_at) >= (applications.id, timestamptz '-infinity')
        and (application_id, due_at) <= (applications.id, now()) and {IS_FREE} and requested_at is {{}}
    order by application_id, due_at
"""
_REQUESTED, _ROUTINE = _IN_LINE.format("not null"), _IN_LINE.format("null")

_LINES = f"""
    with waiting as materialized (
        select id from applications, lateral (
            select (select due_at {_REQUESTED} limit 1) as requested, (select due_at {_ROUTINE} limit 1) as routine
            offset 0 -- once each
        ) due
        where applications.id <> all($2) and (requested is not null or routine is not null)
        order by requested, routine limit $1
    ), shown as materialized (
        select $1 / greatest(count(*), 1) + 1 as most from waiting
    )
    select line.id, line.application_id, is_routine from waiting as applications, lateral (
        (select id, application_id, false as is_routine, due_at {_REQUESTED} limit (select most from shown))
        union all
        (select id, application_id, true, due_at {_ROUTINE} limit (select most from shown))
    ) line
    order by due_at
"""

_CLAIM = f"""
    with free as materialized (
        select id from checks where id = any($1) and due_at <= now() and {IS_FREE} order by id for update skip locked
    )
    update checks set {ClaimTable.taken("$2")}
    where id = any(array(select id from free))
    returning id, fence, attempts, has_long_ttl
"""

_READ = """
    select id, application_id, domain, subdomain, user_id, job_id, dns_records, state, records_present, records_missing,
        reported_missing, alarm_held_at, claims.fence, claims.attempts, claims.has_long_ttl,
        clock_timestamp() as claimed_at
    from unnest($1::text[], $2::bigint[], $3::int[], $4::bool[]) as claims (id, fence, attempts, has_long_ttl)
        join monitored_domains using (id)
"""

_RECORD = """
    with outcomes as materialized (
        select * from unnest($1::text[], $2::bigint[], $3::text[], $4::text[], $5::text[], $6::text[], $7::text[],
                $8::timestamptz[], $9::timestamptz[], $10::timestamptz[], $11::bool[], $12::bool[], $13::bool[],
                $14::bool[], $15::bool[])
            as o (id, fence, state, present, missing, reported, evidence, held_at, claimed_at, due_at,
                is_complete, has_found_missing, has_turned, is_recheck, has_long_ttl)
    ), locked as materialized (
        select id from monitored_domains where id = any($1) order by id for no key update
    ), ours as materialized (
        select checks.id from checks join outcomes o using (id, fence) join locked using (id)
        where lease_until is not null order by checks.id for update of checks
    ), counted as (
        update checks set lease_until = null,
            due_at = case when requested_at > o.claimed_at then checks.due_at else o.due_at end,
            requested_at = case when requested_at > o.claimed_at then requested_at end,
            attempts = case when o.is_complete then 0 else attempts end, has_long_ttl = o.has_long_ttl,
            turned_missing_at = case when o.has_turned then o.claimed_at else turned_missing_at end,
            rechecked_at = case when o.is_recheck then o.claimed_at else rechecked_at end
        from outcomes o join ours using (id) where checks.id = o.id
        returning checks.id
    )
    update monitored_domains set state = o.state, records_present = o.present::jsonb,
        records_missing = o.missing::jsonb, reported_missing = o.reported::jsonb, evidence = o.evidence::jsonb,
        alarm_held_at = o.held_at, last_checked_at = o.claimed_at,
        missing_records_last_detected = case when o.has_found_missing then o.claimed_at
            else missing_records_last_detected end
    from outcomes o join counted using (id) where monitored_domains.id = o.id
    returning monitored_domains.id
"""


async def find_due(connection: Connection, /, *, most: int, full: Collection[str] = ()) -> list[DueCheck]:
    """Return checks that are due and free, the longest due first.

    That is all of them, or, if there are more than `most`, the beginnings of applications' lines, an equal part of
    `most` of each, without those of applications that are `full`.
    """
    rows = await connection.fetch(_DUE, most + 1)
    if len(rows) > most:
        rows = await connection.fetch(_LINES, most, list(full))
    return [DueCheck(*row) for row in rows]


async def claim(connection: Connection, due: Collection[DueCheck], /, *, lease_seconds: float) -> list[Check]:
    """Claim those of the checks that are still due and free, and read what they are about.

    The records are read when the rows are ours: an edit from then on moves the fence, an edit before has been seen.
    """
    taken = await connection.fetch(_CLAIM, [each.id for each in due], lease_seconds)
    rows = await connection.fetch(_READ, *(list(column) for column in zip(*taken, strict=True))) if taken else []
    return [_check(row) for row in rows]


extend = _TABLE.extend
next_due_seconds = partial(_TABLE.next_due_seconds, condition="true")


async def postpone(connection: Connection, check: Check, /, *, delay_seconds: float) -> None:
    """End the claim without a result, and make the check due again in `delay_seconds`."""
    await _TABLE.try_write(
        connection, check, "lease_until = null, due_at = clock_timestamp() + make_interval(secs => $3)", delay_seconds
    )


async def record_outcomes(connection: Connection, outcomes: Sequence[CheckOutcome]) -> set[str]:
    """Write the outcomes and end their leases, and return the ids of those that were still held under their own fence.

    A domain whose check was requested once more since this one began stays due.
    """
    rows = await connection.fetch(
        _RECORD,
        [outcome.check.id for outcome in outcomes],
        [outcome.check.fence for outcome in outcomes],
        [outcome.state for outcome in outcomes],
        [_dump(outcome.present) for outcome in outcomes],
        [_dump(outcome.missing) for outcome in outcomes],
        [_dump(outcome.reported) for outcome in outcomes],
        [orjson.dumps(outcome.evidence).decode() for outcome in outcomes],
        [outcome.held_at for outcome in outcomes],
        [outcome.check.claimed_at for outcome in outcomes],
        [outcome.due_at for outcome in outcomes],
        [outcome.is_complete for outcome in outcomes],
        [outcome.has_found_missing for outcome in outcomes],
        [outcome.has_turned for outcome in outcomes],
        [outcome.check.seen.state != "unchecked" for outcome in outcomes],
        [outcome.has_long_ttl for outcome in outcomes],
    )
    return {row["id"] for row in rows}


# The mass guard ---------------------------------------------------------------------------------------------


async def lock_guard(connection: Connection) -> bool:
    """Lock the mass guard until the transaction ends, and return whether an operator has released alarms for now."""
    is_released: bool = await connection.fetchval(
        "select released_until > clock_timestamp() from mass_guard for update"
    )
    return is_released


async def count_turned(connection: Connection, *, others_than: Collection[str], within_seconds: float) -> Counter[str]:
    """Count, by application, the other domains that turned from present to missing in the last `within_seconds`."""
    rows = await connection.fetch(
        "select application_id, count(*) from checks"
        " where turned_missing_at > clock_timestamp() - make_interval(secs => $1) and id <> all($2)"
        " group by application_id",
        within_seconds,
        list(others_than),
    )
    return Counter({row["application_id"]: row["count"] for row in rows})


async def count_rechecked(
    connection: Connection, *, others_than: Collection[str], within_seconds: float
) -> Counter[str]:
    """Count, by application, the other domains of a known state that were checked in the last `within_seconds`."""
    rows = await connection.fetch(
        "select application_id, count(*) from checks"
        " where rechecked_at > clock_timestamp() - make_interval(secs => $1) and id <> all($2)"
        " group by application_id",
        within_seconds,
        list(others_than),
    )
    return Counter({row["application_id"]: row["count"] for row in rows})


async def release_alarms(connection: Connection, *, for_seconds: float) -> int:
    """Release alarms for a while: held ones are checked once more at once, and sent if confirmed. Return how many."""
    await connection.execute(
        "update mass_guard set released_until = clock_timestamp() + make_interval(secs => $1)", for_seconds
    )
    released = await connection.fetch(
        """
        with held as materialized (
            select checks.id from checks join monitored_domains using (id) where alarm_held_at is not null
            order by checks.id for update of checks
        )
        update checks set requested_at = clock_timestamp(), due_at = clock_timestamp()
        where id = any(array(select id from held)) returning id
        """
    )
    await connection.execute("select wake_listeners($1)", CHANNEL)
    return len(released)


# How it all fares -------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Backlog:
    """Work that waits: `held` domains whose alarms are held back; how long the longest due check has waited."""

    held: int
    overdue_seconds: float


async def measure_backlog(connection: Connection, *, held_within_seconds: float | None = None) -> Backlog:
    """Count the held alarms, and measure how late checks are.

    `held_within_seconds` leaves out alarms that have been held for longer.
    """
    row = await connection.fetchrow(
        """
        select (select count(*) from monitored_domains where alarm_held_at is not null
                and ($1::float8 is null or alarm_held_at > clock_timestamp() - make_interval(secs => $1))) as held,
            (select extract(epoch from clock_timestamp() - min(due_at)) from checks)::float8 as overdue
        """,
        held_within_seconds,
    )
    assert row is not None, "counts come without exception"
    return Backlog(row["held"], max(0.0, row["overdue"] or 0.0))


def _check(row: Row) -> Check:
    return Check(
        id=row["id"],
        application_id=row["application_id"],
        domain=row["domain"],
        subdomain=row["subdomain"],
        user_id=row["user_id"],
        job_id=row["job_id"],
        records=_records(row["dns_records"]) or (),
        seen=LastResult(row["state"], _records(row["records_present"]), _records(row["records_missing"])),
        reported=_records(row["reported_missing"]),
        held_at=row["alarm_held_at"],
        fence=row["fence"],
        attempts=row["attempts"],
        claimed_at=row["claimed_at"],
        has_long_ttl=row["has_long_ttl"],
    )


def _records(stored: list[dict[str, Any]] | None) -> Records | None:
    return None if stored is None else tuple(map(from_json, stored))


def _dump(records: Records | None) -> str | None:
    """Return the records as JSON text, or None."""
    return None if records is None else orjson.dumps([as_json(record) for record in records]).decode()
