"""Deliveries: events on their way to a webhook, one row an event. ClaimedDelivery work (`monitor.claims`).

Owns the SQL of ``deliveries``. An application's webhook is its endpoint (`common.db.webhook_endpoints`).

Statuses
    pending      under way, or waiting for its next attempt, or for its endpoint to be enabled again
    delivered    answered 2xx
    failed       its schedule of retries is used up
    superseded   a later event made it obsolete before it arrived: `superseded_by` names that event
    The last three are settled. A replay makes any of them pending again; the event's id stays.

Rules
    An endpoint has at most `MOST_AT_ONCE` deliveries under way, over all monitors; one that fails, or has not answered
    yet, has one. A claim holds the rows of its endpoints, and takes them in the order of their ``due_at``: an endpoint
    that was served, and has more to send, goes to the end of the line.
    What makes a delivery claimable wakes its endpoint in the same transaction (`common.db.webhook_endpoints`).
    What is superseded while under way keeps its lease: it is delivered if the attempt succeeds, and not tried again
    if it fails.
    Deliveries of one domain do not wait for each other: receivers order them by ``sequence``.
"""

# ruff: noqa: S608 - what is formatted into SQL here are constants of this module

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

from asyncpg import Record

from common.actors import current_request_id
from common.db import webhook_endpoints
from common.db.claim_table import IS_FREE, ClaimTable
from common.db.paging import find_page
from common.db.session import Connection

if TYPE_CHECKING:
    from common.db.events import EventType  # which imports this module

MOST_AT_ONCE = 8
LOG_ENTRIES = 20
_TABLE = ClaimTable("deliveries", key="event_id")

Status: TypeAlias = Literal["pending", "delivered", "failed", "superseded"]
UndeliveredStatus: TypeAlias = Literal["failed", "superseded"]
LogEntry: TypeAlias = Mapping[str, Any]
"""An attempt: `at` (ISO 8601), `status` (of the answer, or null) and `error` (null when it was delivered)."""


@dataclass(frozen=True, slots=True)
class ClaimedDelivery:
    """A claimed delivery, with all that it takes to send it.

    Secrets are sealed. `failures` are attempts that failed; `is_slow` is about the endpoint.
    """

    event_id: str
    application_id: str
    fence: int
    attempts: int
    failures: int
    is_superseded: bool
    log: Sequence[LogEntry]
    event_type: str
    occurred_at: datetime
    domain: str | None
    subdomain: str | None
    sequence: int | None
    fields: Mapping[str, Any]
    url: str
    is_slow: bool
    secret: bytes
    previous_secret: bytes | None
    request_id: str | None = None

    @property
    def key(self) -> str:
        """Return what identifies the claim in its table: the event's id."""
        return self.event_id


@dataclass(frozen=True, slots=True)
class Delivery:
    """A delivery as its application sees it. `next_attempt_at` is there while it is pending."""

    event_id: str
    type: EventType
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
    """Make the event due for delivery at once, if the application has a webhook URL."""
    await connection.execute(
        "insert into deliveries (event_id, application_id, due_at, request_id)"
        " select $1, id, now(), $3 from applications where id = $2 and webhook_url is not null",
        event_id,
        application_id,
        current_request_id(),
    )


async def replay(connection: Connection, event_id: str, application_id: str) -> None:
    """Send the event once more, from the schedule's beginning; one that is under way gets its retries back."""
    await connection.execute(
        "insert into webhook_endpoints (application_id) values ($1) on conflict do nothing", application_id
    )
    await webhook_endpoints.wake(connection, application_id)
    await connection.execute(
        """
        insert into deliveries (event_id, application_id, due_at, request_id) values ($1, $2, now(), $3)
        on conflict (event_id) do update set status = 'pending', due_at = now(), settled_at = null,
            superseded_by = null, failures = 0, last_error = null, request_id = excluded.request_id
        """,
        event_id,
        application_id,
        current_request_id(),
    )


async def replay_settled(
    connection: Connection,
    application_id: str,
    since: datetime,
    until: datetime | None = None,
    *,
    status: UndeliveredStatus = "failed",
    most: int,
) -> int:
    """Send once more the deliveries with this status whose events happened from `since` on and before `until`.

    The oldest come first, at most `most`. Returns how many they are.
    """
    await webhook_endpoints.wake(connection, application_id)
    rows = await connection.fetch(
        """
        update deliveries set status = 'pending', due_at = now(), settled_at = null, superseded_by = null,
            failures = 0, last_error = null, request_id = $6
        where event_id = any(array(
            select event_id from deliveries where application_id = $1 and status = $4 and event_id >= $2
                and event_id < $3 order by event_id limit $5 for update)) returning event_id
        """,
        application_id,
        _first_event_id(since),
        "evt_g" if until is None else _first_event_id(until),
        status,
        most,
        current_request_id(),
    )
    return len(rows)


def _first_event_id(at: datetime) -> str:
    """Return an id that no event of that moment or later is below: ids begin with the microseconds since 1970."""
    return f"evt_{max(0, int(at.timestamp() * 1_000_000)):014x}"


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

_UNDER_WAY = "from deliveries where application_id = endpoint.application_id and lease_until > now()"
_ROOM = f"""
    (case when failing_since is null and answered_at is not null then {MOST_AT_ONCE} else 1 end)
        - (select count(*) {_UNDER_WAY})"""
_WAITING = f"from deliveries where application_id = endpoint.application_id and status = 'pending' and {IS_FREE}"

_DUE_ENDPOINTS = "due_at is not null and disabled_at is null and {}"
_QUICK, _SLOW = _DUE_ENDPOINTS.format("not is_slow"), _DUE_ENDPOINTS.format("is_slow")  # as the indexes have them

_LOCK_DUE = """
    (select application_id from webhook_endpoints where {} and due_at <= now() and application_id <> all(${})
        order by due_at limit ${} for no key update skip locked)"""
_LOCK_ENDPOINTS = f"""
    with quick as materialized {_LOCK_DUE.format(_QUICK, 3, 1)}, slow as materialized {_LOCK_DUE.format(_SLOW, 3, 2)}
    select application_id from quick union all select application_id from slow
"""

# Each endpoint's first, then each endpoint's second, and so on, of each of the two kinds as many as it may have.
_CLAIM = f"""
    with line as materialized (
        select endpoint.application_id, is_slow, place,
            case when resumes_at > now() or webhook_url is null then 0 else greatest(0, {_ROOM}) end as room
        from unnest($1::text[]) with ordinality as line (application_id, place)
        join webhook_endpoints endpoint using (application_id) join applications on id = endpoint.application_id
    ), shown as materialized (
        select event_id, is_slow, place, row_number() over (partition by endpoint.application_id) as turn
        from line endpoint cross join lateral (
            select event_id {_WAITING} and due_at <= now() order by due_at, event_id limit room
            for update skip locked) first
    ), ranked as (
        select event_id, is_slow, row_number() over (partition by is_slow order by turn, place) as rank from shown
    ), claimed as (
        update deliveries set {ClaimTable.taken("$4")}
        from ranked where deliveries.event_id = ranked.event_id
            and rank <= case when is_slow then $3::bigint else $2::bigint end
        returning deliveries.*, is_slow
    )
    select event_id, claimed.application_id, fence, attempts, failures, superseded_by is not null as is_superseded,
        claimed.request_id,
        log, type as event_type, events.created_at as occurred_at, domain, subdomain, sequence, fields,
        webhook_url as url, is_slow, webhook_secret as secret,
        case when previous_webhook_until > now() then previous_webhook_secret end as previous_secret
    from claimed join events on events.id = event_id join applications on applications.id = claimed.application_id
"""

# Where there is room: when the first delivery may go, at the end of the line; and when a lease may lapse, in any case.
_MOVE_ENDPOINTS = f"""
    update webhook_endpoints set due_at = line.due_at
    from (
        select endpoint.application_id, least(
            case when webhook_url is not null and disabled_at is null and {_ROOM} > 0
                then (select greatest(due_at, resumes_at, clock_timestamp()) {_WAITING} order by due_at limit 1) end,
            (select min(lease_until) {_UNDER_WAY})) as due_at
        from webhook_endpoints endpoint join applications on id = endpoint.application_id
        where endpoint.application_id = any($1)
    ) line
    where webhook_endpoints.application_id = line.application_id
"""


async def claim(
    connection: Connection,
    /,
    *,
    most: int,
    lease_seconds: float,
    most_slow: int | None = None,
    full: Collection[str] = (),
) -> list[ClaimedDelivery]:
    """Claim up to `most` deliveries of quick endpoints, and up to `most_slow` (by default as many) of slow ones.

    Nothing is claimed of the applications that are `full`.

    These are statements of their own, since each must see what those before it waited for: what is under way is counted
    once the endpoints are locked, so that two monitors never both take an endpoint's last room; and ``due_at`` is moved
    only where no delivery is about to be added, once that is certain.
    """
    most_slow = most if most_slow is None else most_slow
    rows = await connection.fetch(_LOCK_ENDPOINTS, most, most_slow, list(full))
    if not rows:
        return []
    endpoints = [row["application_id"] for row in rows]
    claimed = await connection.fetch(_CLAIM, endpoints, most, most_slow, lease_seconds)
    settled = await connection.fetch(
        "select application_id from webhook_endpoints where application_id = any($1) for update skip locked", endpoints
    )
    await connection.execute(_MOVE_ENDPOINTS, [row["application_id"] for row in settled])
    return [_claimed(row) for row in claimed]


async def extend(connection: Connection, claims: Collection[ClaimedDelivery], /, *, lease_seconds: float) -> set[str]:
    """Extend the claims' leases to `lease_seconds` from now, or end them with zero; return the event ids still held."""
    if lease_seconds <= 0:
        for application_id in sorted({claimed.application_id for claimed in claims}):
            await webhook_endpoints.wake(connection, application_id)
    return await _TABLE.extend(connection, claims, lease_seconds=lease_seconds)


async def postpone(
    connection: Connection, claimed: ClaimedDelivery, /, *, delay_seconds: float, last_error: str
) -> None:
    """End the claim after an error of ours, which is no step of the schedule; it is due again in `delay_seconds`."""
    await webhook_endpoints.wake(connection, claimed.application_id)
    await _TABLE.try_write(
        connection,
        claimed,
        "lease_until = null, last_error = $3,"
        " due_at = case when status = 'pending' then clock_timestamp() + make_interval(secs => $4) end",
        last_error,
        delay_seconds,
    )


async def next_due_seconds(connection: Connection, /) -> float | None:
    """Return in how many seconds the next endpoint is due, or None if none is."""
    seconds: float | None = await connection.fetchval(
        f"""
        select extract(epoch from least(
            (select due_at from webhook_endpoints where {_QUICK} order by due_at limit 1),
            (select due_at from webhook_endpoints where {_SLOW} order by due_at limit 1)) - clock_timestamp())::float8
        """
    )
    return seconds


async def record_delivered(
    connection: Connection, claimed: ClaimedDelivery, entry: LogEntry, *, is_slow: bool = False
) -> None:
    """Settle the delivery as delivered, and note the endpoint's success.

    Raises: `FenceLost`.
    """
    await webhook_endpoints.note_success(connection, claimed.application_id, is_slow=is_slow)
    await _settle(connection, claimed, "delivered", None, entry)


async def record_failed(
    connection: Connection, claimed: ClaimedDelivery, entry: LogEntry, delay_seconds: float | None
) -> None:
    """Record a failed attempt, to be tried again after `delay_seconds`, or never (None).

    Call it after `webhook_endpoints.note_failure`.

    Raises: `FenceLost`.
    """
    if delay_seconds is None:
        await _settle(connection, claimed, "failed", entry["error"], entry)
        return
    await _TABLE.write(
        connection,
        claimed,
        "lease_until = null, failures = failures + 1, last_error = $3, log = $4,"
        " status = case when superseded_by is null then 'pending' else 'superseded' end,"
        " due_at = case when superseded_by is null then clock_timestamp() + make_interval(secs => $5) end,"
        " settled_at = case when superseded_by is not null then clock_timestamp() end",
        entry["error"],
        _append_to_log(claimed, entry),
        delay_seconds,
    )


async def record_superseded(connection: Connection, claimed: ClaimedDelivery) -> None:
    """Settle a delivery that was superseded under a lease that lapsed, unless it was replayed since.

    Raises: `FenceLost`.
    """
    await webhook_endpoints.wake(connection, claimed.application_id)
    await _TABLE.write(
        connection,
        claimed,
        "lease_until = null, status = case when superseded_by is null then status else 'superseded' end,"
        " due_at = case when superseded_by is null then due_at end,"
        " settled_at = case when superseded_by is not null then clock_timestamp() end",
    )


async def _settle(
    connection: Connection, claimed: ClaimedDelivery, status: Status, last_error: str | None, entry: LogEntry
) -> None:
    """Settle the delivery with this status, and add the attempt to its log.

    Raises: `FenceLost`.
    """
    await _TABLE.write(
        connection,
        claimed,
        "lease_until = null, due_at = null, settled_at = clock_timestamp(), last_error = $4,"
        " status = $3, superseded_by = null, log = $5, failures = failures + ($4::text is not null)::int",
        status,
        last_error,
        _append_to_log(claimed, entry),
    )


def _append_to_log(claimed: ClaimedDelivery, entry: LogEntry) -> list[LogEntry]:
    """Return the delivery's log with this attempt at the end, cut to the last `LOG_ENTRIES`."""
    return [*claimed.log, entry][-LOG_ENTRIES:]


def _claimed(row: Record) -> ClaimedDelivery:
    return ClaimedDelivery(**row)


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
    """Return the application's deliveries, newest event first: those of events older than the event `before`."""
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
