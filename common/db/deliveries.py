"""Deliveries: events on their way to a webhook, one row an event. Claimed work (`common.claims`).

Owns the SQL of ``deliveries``. An application's webhook is its endpoint (`common.db.webhook_endpoints`).

Statuses
    pending      under way, or waiting for its next attempt, or for its endpoint to be enabled again
    delivered    answered 2xx
    failed       its schedule of retries is used up
    superseded   it was old news before it arrived: `superseded_by` says by which event
    The last three are settled. A replay makes any of them pending again; the event's id stays.

Rules
    An endpoint has at most `MOST_AT_ONCE` deliveries under way, over all monitors; one that fails has one. So a slow
    partner keeps nobody else's waiting. Whoever claims holds the endpoint's row meanwhile.
    What is superseded while under way keeps its lease: it is delivered if the attempt succeeds, and not tried again
    if it fails.
    Deliveries of one domain do not wait for each other: receivers order them by ``sequence``.
"""

# ruff: noqa: S608 - what is formatted into SQL here are constants of this module

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Literal, TypeAlias

from asyncpg import Record

from common.db import webhook_endpoints
from common.db.paging import find_page
from common.db.session import Connection
from common.errors import FenceLost

MOST_AT_ONCE = 8
LOG_ENTRIES = 20

Status: TypeAlias = Literal["pending", "delivered", "failed", "superseded"]
LogEntry: TypeAlias = Mapping[str, Any]
"""An attempt: `at` (ISO 8601), `status` (of the answer, or null) and `error` (null when it was delivered)."""


@dataclass(frozen=True, slots=True)
class Claimed:
    """A claimed row, with what it takes to send it. Secrets are sealed. `failures` are attempts that failed."""

    event_id: str
    application_id: str
    fence: int
    attempts: int
    failures: int
    is_superseded: bool
    log: Sequence[LogEntry]
    event_type: str
    domain: str | None
    subdomain: str | None
    sequence: int | None
    fields: Mapping[str, Any]
    url: str
    secret: bytes
    previous_secret: bytes | None

    @property
    def key(self) -> str:
        return self.event_id


@dataclass(frozen=True, slots=True)
class Delivery:
    """As its application sees it. `next_attempt_at` is there while it is pending."""

    event_id: str
    type: str
    domain: str | None
    subdomain: str | None
    status: Status
    superseded_by: str | None
    failures: int
    last_error: str | None
    log: Sequence[LogEntry]
    created_at: datetime
    next_attempt_at: datetime | None
    settled_at: datetime | None


async def add(connection: Connection, event_id: str, application_id: str) -> None:
    """Send the event at once, if the application has a webhook URL."""
    await connection.execute(
        """
        with added as (
            insert into deliveries (event_id, application_id, due_at)
            select $1, id, now() from applications where id = $2 and webhook_url is not null
            returning application_id
        )
        insert into webhook_endpoints (application_id) select application_id from added on conflict do nothing
        """,
        event_id,
        application_id,
    )


async def replay(connection: Connection, event_id: str, application_id: str) -> None:
    """Send it once more, from the schedule's beginning; one that is under way gets its retries back."""
    await connection.execute(
        "insert into webhook_endpoints (application_id) values ($1) on conflict do nothing", application_id
    )
    await connection.execute(
        """
        insert into deliveries (event_id, application_id, due_at) values ($1, $2, now())
        on conflict (event_id) do update set status = 'pending', due_at = now(), settled_at = null,
            superseded_by = null, failures = 0, last_error = null
        """,
        event_id,
        application_id,
    )


async def supersede(
    connection: Connection,
    by_event_id: str,
    application_id: str,
    domain: str | None,
    subdomain: str | None,
    event_type: str,
) -> None:
    """Settle the domain's deliveries of `event_type` that have not arrived; those under way once they come back."""
    await connection.execute(
        """
        update deliveries set superseded_by = $1,
            status = case when lease_until > clock_timestamp() then status else 'superseded' end,
            due_at = case when lease_until > clock_timestamp() then due_at end,
            settled_at = case when lease_until > clock_timestamp() then null else clock_timestamp() end
        from events where events.id = event_id and events.application_id = $2 and domain = $3
            and subdomain is not distinct from $4 and type = $5 and status = 'pending'
        """,
        by_event_id,
        application_id,
        domain,
        subdomain,
        event_type,
    )


# Claims -----------------------------------------------------------------------------------------------------

_ROOM = f"""
    (case when failing_since is null then {MOST_AT_ONCE} else 1 end) - (select count(*) from deliveries under_way
        where under_way.application_id = endpoint.application_id and under_way.lease_until > now())"""
_IS_FREE = "status = 'pending' and (lease_until is null or lease_until <= now())"
_IS_OPEN = "disabled_at is null and webhook_url is not null"


async def claim(connection: Connection, /, *, most: int, lease_seconds: float) -> list[Claimed]:
    """Two statements: what is under way is counted once the endpoints are locked, so that no two monitors both
    take an endpoint's last room."""
    endpoints = await connection.fetch(
        f"""
        select endpoint.application_id from webhook_endpoints endpoint
        join applications on id = endpoint.application_id
        cross join lateral (select min(due_at) as due_at from deliveries
            where deliveries.application_id = endpoint.application_id and {_IS_FREE}) first
        where {_IS_OPEN} and first.due_at <= now() and {_ROOM} > 0
        order by first.due_at limit $1
        for update of endpoint skip locked
        """,
        most,
    )
    if not endpoints:
        return []
    rows = await connection.fetch(
        f"""
        with due as materialized (
            select event_id from webhook_endpoints endpoint
            cross join lateral (
                select event_id from deliveries
                where deliveries.application_id = endpoint.application_id and due_at <= now() and {_IS_FREE}
                order by due_at, event_id limit greatest(0, {_ROOM})
                for update skip locked) first
            where endpoint.application_id = any($1) limit $2
        ), claimed as (
            update deliveries set fence = pg_current_xact_id()::text::bigint, attempts = attempts + 1,
                lease_until = clock_timestamp() + make_interval(secs => $3)
            from due where deliveries.event_id = due.event_id
            returning deliveries.*
        )
        select event_id, claimed.application_id, fence, attempts, failures, superseded_by is not null as is_superseded,
            log, type as event_type, domain, subdomain, sequence, fields, webhook_url as url,
            webhook_secret as secret,
            case when previous_webhook_until > now() then previous_webhook_secret end as previous_secret
        from claimed join events on events.id = event_id join applications on applications.id = claimed.application_id
        """,
        [row["application_id"] for row in endpoints],
        most,
        lease_seconds,
    )
    return [_claimed(row) for row in rows]


async def extend(connection: Connection, claims: Collection[Claimed], /, *, lease_seconds: float) -> set[str]:
    rows = await connection.fetch(
        """
        update deliveries set lease_until = clock_timestamp() + make_interval(secs => $3)
        from unnest($1::text[], $2::bigint[]) as held (event_id, fence)
        where deliveries.event_id = held.event_id and deliveries.fence = held.fence and lease_until is not null
        returning deliveries.event_id
        """,
        [claimed.event_id for claimed in claims],
        [claimed.fence for claimed in claims],
        lease_seconds,
    )
    return {row["event_id"] for row in rows}


async def postpone(connection: Connection, claimed: Claimed, /, *, delay_seconds: float, last_error: str) -> None:
    """For failures of ours: they are no step of the schedule."""
    await connection.execute(
        "update deliveries set lease_until = null, last_error = $3,"
        " due_at = case when status = 'pending' then clock_timestamp() + make_interval(secs => $4) end"
        " where event_id = $1 and fence = $2 and lease_until is not null",
        claimed.event_id,
        claimed.fence,
        last_error,
        delay_seconds,
    )


async def next_due_seconds(connection: Connection, /) -> float | None:
    """Endpoints without room are left out: the end of an attempt makes room, and whoever ends it looks again."""
    seconds: float | None = await connection.fetchval(
        f"""
        select extract(epoch from min(first.due_at) - clock_timestamp())::float8 from webhook_endpoints endpoint
        join applications on id = endpoint.application_id
        cross join lateral (select min(due_at) as due_at from deliveries
            where deliveries.application_id = endpoint.application_id and {_IS_FREE}) first
        where {_IS_OPEN} and {_ROOM} > 0
        """
    )
    return seconds


async def record_delivered(connection: Connection, claimed: Claimed, entry: LogEntry) -> None:
    """Raises: `FenceLost`."""
    await webhook_endpoints.note_success(connection, claimed.application_id)
    await _settle(connection, claimed, "delivered", None, entry)


async def record_failed(connection: Connection, claimed: Claimed, entry: LogEntry, delay_seconds: float | None) -> None:
    """To be tried again after `delay_seconds`, or never. Call it after `webhook_endpoints.note_failure`.

    Raises: `FenceLost`.
    """
    if delay_seconds is None:
        await _settle(connection, claimed, "failed", entry["error"], entry)
        return
    status = await connection.execute(
        """
        update deliveries set lease_until = null, failures = failures + 1, last_error = $3, log = $4,
            status = case when superseded_by is null then 'pending' else 'superseded' end,
            due_at = case when superseded_by is null then clock_timestamp() + make_interval(secs => $5) end,
            settled_at = case when superseded_by is not null then clock_timestamp() end
        where event_id = $1 and fence = $2 and lease_until is not null
        """,
        claimed.event_id,
        claimed.fence,
        entry["error"],
        _logged(claimed, entry),
        delay_seconds,
    )
    _require_one(status, claimed)


async def record_superseded(connection: Connection, claimed: Claimed) -> None:
    """It was superseded under a lease that lapsed. Raises: `FenceLost`."""
    status = await connection.execute(
        "update deliveries set status = 'superseded', lease_until = null, due_at = null, settled_at = clock_timestamp()"
        " where event_id = $1 and fence = $2 and lease_until is not null and superseded_by is not null",
        claimed.event_id,
        claimed.fence,
    )
    _require_one(status, claimed)


async def _settle(
    connection: Connection, claimed: Claimed, status: Status, last_error: str | None, entry: LogEntry
) -> None:
    """Raises: `FenceLost`."""
    written = await connection.execute(
        """
        update deliveries set lease_until = null, due_at = null, settled_at = clock_timestamp(), last_error = $4,
            status = $3, superseded_by = null, log = $5, failures = failures + ($4::text is not null)::int
        where event_id = $1 and fence = $2 and lease_until is not null
        """,
        claimed.event_id,
        claimed.fence,
        status,
        last_error,
        _logged(claimed, entry),
    )
    _require_one(written, claimed)


def _logged(claimed: Claimed, entry: LogEntry) -> list[LogEntry]:
    return [*claimed.log, entry][-LOG_ENTRIES:]


def _require_one(status: str, claimed: Claimed) -> None:
    if status != "UPDATE 1":
        raise FenceLost(f"the delivery of {claimed.event_id} is another's now")


def _claimed(row: Record) -> Claimed:
    return Claimed(**row)


# Reading ----------------------------------------------------------------------------------------------------


async def list_deliveries(
    connection: Connection,
    application_id: str,
    *,
    before: str | None,
    limit: int,
    status: Status | None = None,
    event_id: str | None = None,
) -> list[Delivery]:
    """The application's, newest event first; those of events older than the event `before`."""
    key = {"deliveries.application_id": application_id} | ({"status": status} if status else {})
    page = find_page(key, "event_id", before=before, limit=limit, filters={"event_id": event_id})
    rows = await connection.fetch(
        f"""
        select event_id, type, domain, subdomain, status, superseded_by, failures, last_error, log,
            events.created_at, due_at as next_attempt_at, settled_at
        from deliveries join events on events.id = event_id
        {page.clause}
        """,
        *page.values,
    )
    return [Delivery(**row) for row in rows]
