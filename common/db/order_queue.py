"""The claim of orders: which rows of ``orders`` are due, and how a worker takes, keeps and puts back one of them.

An order is claimed work (`monitor.claims`): its row holds what is due and when. Fences are transaction ids, so a row
that was deleted and made anew never gets a fence that its former holder knows.

Orders are claimed in three lanes, so that no wave of renewals keeps a new domain waiting: awaited orders, orders due by
themselves (of these the renewals longest due first), and rechecks: orders of any kind whose domain's DNS must be looked
at again at once, because its owner or an operator asked for it. `Lane.find_due` shows what could be claimed of one, so
that the worker can share its slots between applications.
"""

# ruff: noqa: S608 - what is formatted into SQL here are constants of this module

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime

from asyncpg import Record

from common.db import outcomes
from common.db.claim_table import IS_FREE, ClaimTable
from common.db.orders import Kind, State
from common.db.renewal_risks import Risk
from common.db.revocations import REASONS
from common.db.session import Connection
from common.names import WILDCARD

FAILED_AFTER_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class Validity:
    """The certificate in service, as far as an order needs to know it."""

    not_before: datetime
    not_after: datetime
    is_live: bool
    issuer: str = "internal"
    is_compromised: bool = False
    """It is to be revoked for its key's sake."""
    is_to_replace: bool = False
    """An operator asked for another in its place (`common.db.replacements`)."""


@dataclass(frozen=True, slots=True)
class PlacedOrder:
    """The data by which this run's order at a CA is found again.

    `key` is the envelope of its certificate's private key.
    """

    issuer: str
    url: str
    placed_at: datetime
    key: bytes


@dataclass(frozen=True, slots=True)
class Order:
    """A claimed order. `phases` are seconds; `waited_seconds` is how long it was due before it was claimed."""

    domain: str
    application_id: str
    state: State
    fence: int
    attempts: int
    phases: Mapping[str, float]
    waited_seconds: float
    in_service: Validity | None
    kind: Kind = "new"
    renew_at: datetime | None = None
    is_renewal_due: bool = False
    dns_moved_away: bool = False
    is_recheck: bool = False
    claimed_at: datetime | None = None
    placed: PlacedOrder | None = None
    request_id: str | None = None
    """The request that this run is for; None for a renewal and its check, which no request asked for."""
    label: str | None = None
    """What the challenge of the domain, or of the name that the wildcard is of, is delegated to, where there is one."""
    is_prepared: bool = False
    """The domain is served before its DNS leads here (`common.db.preparations`)."""
    risk: Risk | None = None
    """What the last rehearsal of its renewal found."""
    is_test: bool = False
    """The application is for tests: the internal authority issues."""
    own_until: datetime | None = None
    """The end of the certificate that its partner brought, which is served in place of ours."""

    @property
    def key(self) -> str:
        """Return what identifies the claim in its table: the domain."""
        return self.domain

    @property
    def is_wildcard(self) -> bool:
        """Return whether the certificate is a wildcard's."""
        return self.domain.startswith(WILDCARD)


@dataclass(frozen=True, slots=True)
class DueOrder:
    """An order that could be claimed."""

    domain: str
    application_id: str
    is_routine: bool

    @property
    def tenant(self) -> str:
        """Return the application, between which monitors share their slots."""
        return self.application_id


TABLE = ClaimTable("orders", key="domain")
_MOST_VISITED = 200
_DUE = f"""
    select domain, application_id, is_routine from (
        select *, kind = 'renewal' as is_routine from orders
        where {{listed}} and due_at <= now() and {IS_FREE} order by due_at limit $1
    ) due order by case when is_routine then coalesce(renew_at, due_at) else due_at end
"""

# From one application that has orders to the next one, by the index; not by way of their orders.
_WALK = """
    with recursive walk (application_id, step) as (
        select (select application_id from orders where {listed} and application_id > $1
            order by application_id limit 1), 1
        union all
        select (select application_id from orders where {listed} and application_id > walk.application_id
            order by application_id limit 1), step + 1
        from walk where application_id is not null and step < $2
    )
    select application_id from walk where application_id is not null order by step
"""

# Bounded by rows of both columns, so that each line is read by the index of lines (see common.db.checks).
_IN_LINE = f"""
    from orders where {{listed}} and (application_id, due_at) >= (applications.id, timestamptz '-infinity')
        and (application_id, due_at) <= (applications.id, now()) and {IS_FREE}
    order by application_id, due_at
"""

_LINES = f"""
    with waiting as materialized (
        select id from unnest($2::text[]) as applications (id) where exists (select {_IN_LINE} limit 1)
    ), shown as materialized (
        select $1 / greatest(count(*), 1) + 1 as most from waiting
    )
    select line.domain, line.application_id, is_routine from waiting as applications, lateral (
        select domain, application_id, due_at, kind = 'renewal' as is_routine {_IN_LINE} limit (select most from shown)
    ) line
    order by due_at
"""

_CLAIM = f"""
    with due as materialized (
        select domain from orders where domain = any($1) and due_at <= now() and {IS_FREE}
        order by domain for update skip locked
    ), claimed as (
        update orders set {ClaimTable.taken("$2")} from due where orders.domain = due.domain returning orders.*
    )
    select claimed.domain, claimed.application_id, state, kind, fence, attempts, phases,
        renew_at, coalesce(renew_at <= now(), false) or replace_requested_at is not null as is_renewal_due,
        replace_requested_at is not null as is_to_replace,
        exists (select from domains d where d.domain = claimed.domain and departed_at is not null) as dns_moved_away,
        recheck_requested_at is not null as is_recheck, clock_timestamp() as claimed_at,
        placed_issuer, placed_url, placed_at, placed_key, renewal_risk,
        case when kind <> 'renewal' or recheck_requested_at is not null then request_id end as request_id,
        extract(epoch from clock_timestamp() - due_at)::float8 as waited_seconds,
        not_before, not_after, issuer, live_at >= issued_at as is_live, revoke_reason,
        (select label from acme_delegations a
            where a.application_id = claimed.application_id and a.domain = ltrim(claimed.domain, '*.')) as label,
        exists (select from preparations p where p.application_id = claimed.application_id
            and p.domain = claimed.domain and p.state in ('issuing', 'prepared')) as is_prepared,
        (select is_test from applications a where a.id = claimed.application_id) as is_test,
        (select not_after from own_certificates o where o.domain = claimed.domain) as own_until
    from claimed left join certificates
        on certificates.domain = claimed.domain and certificates.application_id = claimed.application_id
        and released_at is null
    order by due_at
"""


@dataclass(frozen=True, slots=True)
class Lane:
    """Some orders, as a queue of their own. `listed` is the condition of the lane's indexes.

    `most_visited`: the applications that one look for due orders reads.
    """

    listed: str
    most_visited: int = _MOST_VISITED

    async def find_due(
        self, connection: Connection, /, *, most: int, full: Collection[str] = (), after: str = ""
    ) -> tuple[list[DueOrder], str]:
        """Return orders that are due and free, and the last application that was read, as `after` for the next call.

        That is all of them, or, if there are more than `most`, the beginnings of applications' lines, of those that
        follow `after` in the order of their ids and are not `full`. An empty `after` begins with the first application.
        """
        rows = await connection.fetch(_DUE.format(listed=self.listed), most + 1)
        if len(rows) <= most:
            return [DueOrder(*row) for row in rows], after
        visited = await connection.fetch(_WALK.format(listed=self.listed), after, self.most_visited)
        applications = [row["application_id"] for row in visited]
        shown = [each for each in applications if each not in set(full)]
        rows = await connection.fetch(_LINES.format(listed=self.listed), most, shown)
        return [DueOrder(*row) for row in rows], applications[-1] if len(applications) == self.most_visited else ""

    async def claim(self, connection: Connection, /, *, most: int, lease_seconds: float) -> list[Order]:
        """Claim at most `most` due orders of the lane, without regard to their applications."""
        rows = await connection.fetch(_DUE.format(listed=self.listed), most)
        return await claim_due(connection, [DueOrder(*row) for row in rows], lease_seconds=lease_seconds)

    async def next_due_seconds(self, connection: Connection, /) -> float | None:
        """Return in how many seconds the lane's next order is due: negative when overdue, None without one."""
        return await TABLE.next_due_seconds(connection, condition=self.listed)

    async def extend(self, connection: Connection, claims: Collection[Order], /, *, lease_seconds: float) -> set[str]:
        """Extend the leases of the claims, as `extend` of this module."""
        return await extend(connection, claims, lease_seconds=lease_seconds)

    async def postpone(self, connection: Connection, order: Order, /, *, delay_seconds: float, last_error: str) -> None:
        """Record a failed attempt, as `postpone` of this module."""
        await postpone(connection, order, delay_seconds=delay_seconds, last_error=last_error)


AWAITED = Lane("due_at is not null and kind <> 'renewal' and recheck_requested_at is null")
ROUTINE = Lane("due_at is not null and kind = 'renewal' and recheck_requested_at is null")
RECHECKS = Lane("recheck_requested_at is not null")
_ALL = Lane("due_at is not null")


claim = _ALL.claim


next_due_seconds = _ALL.next_due_seconds


async def claim_due(connection: Connection, due: Collection[DueOrder], *, lease_seconds: float) -> list[Order]:
    """Claim those of the orders that are still due and free, the longest due first."""
    if not due:
        return []
    rows = await connection.fetch(_CLAIM, [each.domain for each in due], lease_seconds)
    return [_order(row) for row in rows]


async def extend(connection: Connection, claims: Collection[Order], /, *, lease_seconds: float) -> set[str]:
    """Extend the leases of the claims to `lease_seconds` from now, and return the domains still held."""
    return await TABLE.extend(connection, claims, lease_seconds=lease_seconds)


async def postpone(connection: Connection, order: Order, /, *, delay_seconds: float, last_error: str) -> None:
    """Record a failed attempt, and make the order due again in `delay_seconds`.

    The owner is notified once for a run of failures: when the order is given up as running.
    """
    row = await TABLE.try_write(
        connection,
        order,
        "lease_until = null, last_error = $3, due_at = clock_timestamp() + make_interval(secs => $4),"
        " state = case when state = 'running' and attempts >= $5 then 'failed' else state end",
        last_error,
        delay_seconds,
        FAILED_AFTER_ATTEMPTS,
        returning="state, failed_at",
    )
    if row is not None and row["state"] == "failed" and row["failed_at"] is None:
        await notify_failed(connection, order, last_error)


async def notify_failed(connection: Connection, order: Order, reason: str) -> None:
    """Notify the domain's owner that its order has failed, and record when."""
    await connection.execute("update orders set failed_at = now() where domain = $1", order.domain)
    await outcomes.record_failure(connection, order.domain, order.application_id, reason)


def _order(row: Record) -> Order:
    validity = row["not_before"] and Validity(
        row["not_before"],
        row["not_after"],
        bool(row["is_live"]),
        row["issuer"],
        row["revoke_reason"] == REASONS["keyCompromise"],
        row["is_to_replace"],
    )
    placed = row["placed_url"] and PlacedOrder(
        row["placed_issuer"], row["placed_url"], row["placed_at"], row["placed_key"]
    )
    return Order(
        domain=row["domain"],
        application_id=row["application_id"],
        state=row["state"],
        fence=row["fence"],
        attempts=row["attempts"],
        phases=row["phases"],
        waited_seconds=row["waited_seconds"],
        in_service=validity,
        kind=row["kind"],
        renew_at=row["renew_at"],
        is_renewal_due=row["is_renewal_due"],
        dns_moved_away=row["dns_moved_away"],
        is_recheck=row["is_recheck"],
        claimed_at=row["claimed_at"],
        placed=placed,
        request_id=row["request_id"],
        label=row["label"],
        is_prepared=row["is_prepared"],
        risk=Risk.read(row["renewal_risk"]),
        is_test=bool(row["is_test"]),
        own_until=row["own_until"],
    )
