"""Orders: the work of getting, keeping and renewing a domain's certificate, one row a domain.

Owns the SQL of ``orders``. The row is claimed work (`common.claims`): it holds what is due and when.

States, and what a row that comes due in one of them asks for
    running   a certificate is wanted: issue it. Edges hold handshakes until ``hold_until``
    failed    tried several times in vain: still tried, ever more slowly, but no client is held any more
    issued    there is a certificate: wait until every edge serves it; once that is so, look after it now and then,
              and renew it when ``renew_at`` has come

A certificate in service stays there whatever becomes of its order. A row disappears with its domain
(`common.db.certificates.release`). Fences are transaction ids, so a row that was deleted and made anew never gets a
fence its old holder knows.

Work is claimed in three lanes, so that no wave of renewals keeps a new domain waiting: awaited orders,
orders due by themselves (of these the renewals longest due first), and rechecks: orders of any kind whose domain's DNS
must be looked at again at once, because its owner or an operator asked for it. `Lane.find_due` shows what could be
claimed of one, so that the worker can share its slots between applications.
"""

# ruff: noqa: S608 - what is formatted into SQL here are constants of this module

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias

from asyncpg import Record

from common.db import audit, certificates, enrolments, outcomes, revocations
from common.db.certificates import Certificate
from common.db.claim_table import IS_FREE, ClaimTable
from common.db.monitored_domains import CHANNEL
from common.db.session import Connection
from common.errors import FrontageError

FAILED_AFTER_ATTEMPTS = 5
RENEWALS_A_DAY = 5
"""How often in 24 hours an application may have a domain's certificate renewed."""
FIRST_LOOK_SECONDS = 3600.0
"""How soon after it went live a certificate's issuer is first asked when to renew it."""

DNS_MOVED_AWAY = "the domain's DNS does not lead to us: point it here, and its certificate is looked after"
"""The `last_error` of such an order."""

_RECHECKED = (
    "rechecked_at = case when recheck_requested_at is null then rechecked_at else clock_timestamp() end,"
    " recheck_requested_at = null"
)
_NOTHING_PLACED = "placed_issuer = null, placed_url = null, placed_at = null, placed_key = null"

State: TypeAlias = Literal["running", "issued", "failed"]
Kind: TypeAlias = Literal["new", "renewal", "manual", "replacement"]
"""What an order is for; every order waits for its ``renewal`` once its certificate is live."""


class NotRenewable(FrontageError):
    """A renewal that makes no sense, in words for the domain's owner."""


@dataclass(frozen=True, slots=True)
class Validity:
    """What an order needs to know of the certificate in service."""

    not_before: datetime
    not_after: datetime
    is_live: bool
    issuer: str = "internal"


@dataclass(frozen=True, slots=True)
class PlacedOrder:
    """What this run's order at a CA is found again by; `key` is the envelope of its certificate's private key."""

    issuer: str
    url: str
    placed_at: datetime
    key: bytes


@dataclass(frozen=True, slots=True)
class Order:
    """A claimed row. `phases` are seconds; `waited_seconds` is how long it was due before it was claimed."""

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

    @property
    def key(self) -> str:
        return self.domain


@dataclass(frozen=True, slots=True)
class OrderState:
    """An order for people to look at. `failing_since`: when its owner was notified; `departed_at` when the domain's DNS
    was seen to have left."""

    state: State
    kind: Kind
    attempts: int
    last_error: str | None
    due_at: datetime | None
    renew_at: datetime | None
    phases: Mapping[str, float]
    requested_at: datetime
    finished_at: datetime | None
    failing_since: datetime | None
    departed_at: datetime | None
    placed_issuer: str | None


async def request_order(
    connection: Connection, domain: str, application_id: str, *, hold_seconds: float, is_proven: bool = True
) -> bool:
    """Lead to a live certificate, in the transaction that enrols the domain and holds its lock. Returns whether there
    is one already. `is_proven`: the DNS was asked just now; else a monitor checks it first, as a recheck.

    A certificate in service is left alone; a kept one of the same application is adopted (its order only
    waits until the edges serve it); else one is ordered, and edges hold handshakes for `hold_seconds`.
    An order that already runs is not started over.
    """
    in_service = await certificates.find_in_service(connection, domain, application_id)
    if in_service is not None:
        return in_service == "live"
    adopted = await certificates.adopt(connection, domain, application_id)
    state = "issued" if adopted else "running"
    await connection.execute(
        "delete from orders where domain = $1 and (application_id <> $2 or state <> 'running')",
        domain,
        application_id,
    )
    await connection.execute(
        "insert into orders (domain, application_id, state, hold_until, due_at, recheck_requested_at)"
        " values ($1, $2, $3, now() + make_interval(secs => $4), now(),"
        " case when $5 then null else clock_timestamp() end)"
        " on conflict (domain) do update set hold_until = excluded.hold_until, due_at = excluded.due_at",
        domain,
        application_id,
        state,
        hold_seconds,
        is_proven,
    )
    return False


async def request_renewal(
    connection: Connection, domain: str, application_id: str, *, most_a_day: int | None = None
) -> None:
    """Have the domain's certificate renewed now. An order that runs already is as good, and does not count; one that
    waits for another attempt is tried at once, which counts as a renewal. `most_a_day`: None for an operator, whose
    renewals do not count.

    Raises: `NotRenewable`.
    """
    await certificates.lock_domain(connection, domain)
    row = await connection.fetchrow(
        "select state, live_at >= issued_at as is_live, due_at > now() and lease_until is null as is_postponed"
        " from orders left join certificates"
        " on certificates.domain = orders.domain and released_at is null"
        " where orders.domain = $1 and orders.application_id = $2",
        domain,
        application_id,
    )
    if row is None:
        raise NotRenewable("this domain has no certificate of yours")
    has_ended = row["state"] == "failed" or (row["state"] == "issued" and row["is_live"])
    if not has_ended and not row["is_postponed"]:
        return
    if most_a_day is not None:
        if await enrolments.count(connection, domain, "renewal", application_id) >= most_a_day:
            raise NotRenewable("this domain has been renewed too many times in 24 hours")
        await enrolments.record(connection, domain, "renewal", application_id)
    if has_ended:
        await _run_again(connection, domain, "new" if row["is_live"] is None else "manual")
    else:
        await connection.execute("update orders set due_at = now() where domain = $1", domain)
    await audit.record(connection, "certificate.renew", domain, application_id=application_id)


async def request_replacement(connection: Connection, domain: str, application_id: str, reason: int) -> bool:
    """Revoke what this application has for the domain (RFC 5280 §5.3.1), and order another in its place where it is in
    service. The other is given a moment to go live first; so that a revoked certificate is not served if possible.

    Returns whether there was a certificate.
    """
    await certificates.lock_domain(connection, domain)
    revoked = await certificates.mark_revoked(connection, domain, application_id, reason)
    if revoked is None:
        return False
    await revocations.request(connection, domain, application_id, revoked, reason)
    if revoked.is_in_service:
        await _run_again(connection, domain, "replacement")
    after = {"reason": reason}
    await audit.record(connection, "certificate.revoke", domain, application_id=application_id, after=after)
    return True


async def _run_again(connection: Connection, domain: str, kind: Kind) -> None:
    """Publish a run of its own, with a new key, holding no client. A worker that has the order now loses it."""
    await connection.execute(
        "update orders set state = 'running', kind = $2, hold_until = now(), due_at = now(), lease_until = null,"
        f" fence = pg_current_xact_id()::text::bigint, attempts = 0, phases = '{{}}', requested_at = now(),"
        f" finished_at = null, {_NOTHING_PLACED} where domain = $1",
        domain,
        kind,
    )


async def request_unproven(
    connection: Connection, domains: Collection[str], application_id: str, *, hold_seconds: float
) -> None:
    """Lead to live certificates of names that have no order, and no certificate of this application, in the
    transaction that enrols them and holds their locks. No DNS was asked about them: a monitor checks it first, as a
    recheck, so that no CA is asked for a name that leads elsewhere."""
    await connection.execute(
        "insert into orders (domain, application_id, state, hold_until, due_at, recheck_requested_at)"
        " select name, $2, 'running', now() + make_interval(secs => $3), now(), clock_timestamp()"
        " from unnest($1::text[]) name",
        list(domains),
        application_id,
        hold_seconds,
    )


async def describe(connection: Connection, domain: str) -> OrderState | None:
    row = await connection.fetchrow(
        "select state, kind, attempts, last_error, due_at, renew_at, phases, requested_at, finished_at,"
        " failed_at as failing_since, placed_issuer,"
        " (select max(departed_at) from domains d where d.domain = orders.domain) as departed_at"
        " from orders where domain = $1",
        domain,
    )
    return None if row is None else OrderState(**row)


async def request_rechecks(connection: Connection, domains: Collection[str], application_id: str) -> int:
    """Have a monitor check the DNS of those of the names that were seen to lead elsewhere, under their locks.
    Returns how many they are."""
    rows = await connection.fetch(
        f"""
        update orders set recheck_requested_at = clock_timestamp(),
            due_at = case when {IS_FREE} then least(due_at, clock_timestamp()) else due_at end,
            attempts = case when {IS_FREE} then 0 else attempts end
        where domain = any($1) and application_id = $2
            and exists (select from domains d where d.domain = orders.domain and departed_at is not null)
        returning domain
        """,
        list(domains),
        application_id,
    )
    return len(rows)


async def request_recheck(
    connection: Connection,
    domain: str,
    application_id: str | None = None,
    *,
    only_moved_away: bool = False,
    pause_seconds: float = 0.0,
) -> bool:
    """Have a monitor check the domain's DNS again at once, and act on it: a domain whose DNS is back becomes active.
    Without `application_id`, whichever application has the domain.

    `only_moved_away`: only if its DNS was seen to lead elsewhere. `pause_seconds` is the shortest time between two such
    checks: a request that comes earlier is due then. Call this before the transaction locks rows of the domain.
    Returns whether there was anything to check.
    """
    await certificates.lock_domain(connection, domain)
    holder = await connection.fetchval(
        f"""
        update orders set recheck_requested_at = clock_timestamp(),
            due_at = case when {IS_FREE} then least(due_at,
                greatest(clock_timestamp(), rechecked_at + make_interval(secs => $4))) else due_at end,
            attempts = case when {IS_FREE} then 0 else attempts end
        where domain = $1 and application_id = coalesce($2, application_id)
            and (not $3 or exists (select from domains d where d.domain = $1 and departed_at is not null))
        returning application_id
        """,
        domain,
        application_id,
        only_moved_away,
        pause_seconds,
    )
    if holder is None:
        return False
    if not only_moved_away:  # else another request's consequence, or a diagnosis
        await audit.record(connection, "domain.recheck", domain, application_id=holder)
    await connection.execute("select wake_listeners($1)", CHANNEL)
    return True


@dataclass(frozen=True, slots=True)
class Due:
    """An order that could be claimed."""

    domain: str
    application_id: str
    is_routine: bool

    @property
    def tenant(self) -> str:
        return self.application_id


_TABLE = ClaimTable("orders", key="domain")
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
        renew_at, coalesce(renew_at <= now(), false) as is_renewal_due,
        exists (select from domains d where d.domain = claimed.domain and departed_at is not null) as dns_moved_away,
        recheck_requested_at is not null as is_recheck, clock_timestamp() as claimed_at,
        placed_issuer, placed_url, placed_at, placed_key,
        extract(epoch from clock_timestamp() - due_at)::float8 as waited_seconds,
        not_before, not_after, issuer, live_at >= issued_at as is_live
    from claimed left join certificates
        on certificates.domain = claimed.domain and certificates.application_id = claimed.application_id
        and released_at is null
    order by due_at
"""


@dataclass(frozen=True, slots=True)
class Lane:
    """Some orders, as a queue of their own (`common.claims.Queue`). `listed` is the condition of the lane's indexes."""

    listed: str

    async def find_due(
        self, connection: Connection, /, *, most: int, full: Collection[str] = (), after: str = ""
    ) -> tuple[list[Due], str]:
        """What is due and free: all of it, or, if that is more than `most`, the beginnings of applications' lines, of
        those that follow `after` in the order of their ids and are not `full`.

        Returns it, and the last application it looked at, for the next call; empty: the next one begins anew.
        """
        rows = await connection.fetch(_DUE.format(listed=self.listed), most + 1)
        if len(rows) <= most:
            return [Due(*row) for row in rows], after
        visited = await connection.fetch(_WALK.format(listed=self.listed), after, _MOST_VISITED)
        applications = [row["application_id"] for row in visited]
        shown = [each for each in applications if each not in set(full)]
        rows = await connection.fetch(_LINES.format(listed=self.listed), most, shown)
        return [Due(*row) for row in rows], applications[-1] if len(applications) == _MOST_VISITED else ""

    async def claim(self, connection: Connection, /, *, most: int, lease_seconds: float) -> list[Order]:
        """Whose they are counts for nothing here."""
        rows = await connection.fetch(_DUE.format(listed=self.listed), most)
        return await claim_due(connection, [Due(*row) for row in rows], lease_seconds=lease_seconds)

    async def next_due_seconds(self, connection: Connection, /) -> float | None:
        return await _TABLE.next_due_seconds(connection, condition=self.listed)

    async def extend(self, connection: Connection, claims: Collection[Order], /, *, lease_seconds: float) -> set[str]:
        return await extend(connection, claims, lease_seconds=lease_seconds)

    async def postpone(self, connection: Connection, order: Order, /, *, delay_seconds: float, last_error: str) -> None:
        await postpone(connection, order, delay_seconds=delay_seconds, last_error=last_error)


AWAITED = Lane("due_at is not null and kind <> 'renewal' and recheck_requested_at is null")
ROUTINE = Lane("due_at is not null and kind = 'renewal' and recheck_requested_at is null")
RECHECKS = Lane("recheck_requested_at is not null")
_ALL = Lane("due_at is not null")

claim = _ALL.claim
next_due_seconds = _ALL.next_due_seconds


async def claim_due(connection: Connection, due: Collection[Due], *, lease_seconds: float) -> list[Order]:
    """Those of them that still are due and free, the longest due first."""
    if not due:
        return []
    rows = await connection.fetch(_CLAIM, [each.domain for each in due], lease_seconds)
    return [_order(row) for row in rows]


async def extend(connection: Connection, claims: Collection[Order], /, *, lease_seconds: float) -> set[str]:
    return await _TABLE.extend(connection, claims, lease_seconds=lease_seconds)


async def postpone(connection: Connection, order: Order, /, *, delay_seconds: float, last_error: str) -> None:
    """A failed attempt. The owner is notified once for a run of failures: when the order is given up as running."""
    row = await _TABLE.try_write(
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
        await _tell_failed(connection, order, last_error)


async def _tell_failed(connection: Connection, order: Order, reason: str) -> None:
    await connection.execute("update orders set failed_at = now() where domain = $1", order.domain)
    await outcomes.record_failure(connection, order.domain, order.application_id, reason)


async def defer(connection: Connection, order: Order, *, delay_seconds: float, words: str) -> None:
    """Put the order off because a CA's limit is reached, or no edge can serve the certificate: no failure, and no
    attempt. Raises: `FenceLost`."""
    await _TABLE.write(
        connection,
        order,
        "lease_until = null, last_error = $3, attempts = attempts - 1,"
        " due_at = clock_timestamp() + make_interval(secs => $4), state = case when $5 then 'issued' else state end",
        words,
        delay_seconds,
        order.in_service is not None and order.in_service.is_live,
    )


async def record_renewal_begun(connection: Connection, order: Order) -> None:
    """Publish that an order runs again whose domain has a certificate, holding no client. Raises: `FenceLost`."""
    await _TABLE.write(
        connection,
        order,
        "state = 'running', hold_until = now(), phases = '{}',"
        " requested_at = case when state = 'issued' then now() else requested_at end, finished_at = null",
    )


async def record_placed(connection: Connection, order: Order, placed: PlacedOrder) -> None:
    """Keep what the order at the CA, and the key of its certificate, are found again by. Raises: `FenceLost`."""
    await _TABLE.write(
        connection,
        order,
        "placed_issuer = $3, placed_url = $4, placed_at = $5, placed_key = $6",
        placed.issuer,
        placed.url,
        placed.placed_at,
        placed.key,
    )


async def forget_placed(connection: Connection, order: Order) -> None:
    """The order at the CA has come to nothing. Raises: `FenceLost`."""
    await _TABLE.write(connection, order, _NOTHING_PLACED)


async def record_issued(
    connection: Connection, order: Order, certificate: Certificate, phases: Mapping[str, float]
) -> None:
    """Store what the issuer gave and end the order's run, in the caller's transaction. Raises: `FenceLost`."""
    await certificates.lock_domain(connection, order.domain)
    await _TABLE.write(
        connection,
        order,
        f"state = 'issued', phases = $3, last_error = null, {_NOTHING_PLACED}",
        phases,
    )
    await certificates.store(connection, order.domain, order.application_id, certificate)


async def record_live(connection: Connection, order: Order, renew_at: datetime, phases: Mapping[str, float]) -> None:
    """The edges serve the certificate: tell its owner, and rest until the first look. Raises: `FenceLost`."""
    await certificates.lock_domain(connection, order.domain)
    await _TABLE.write(
        connection,
        order,
        f"due_at = least($3, now() + make_interval(secs => $5)), renew_at = $3, phases = $4, {_RECHECKED},"
        " kind = 'renewal', lease_until = null, attempts = 0, finished_at = now(), failed_at = null",
        renew_at,
        phases,
        FIRST_LOOK_SECONDS,
    )
    await certificates.set_live(connection, order.domain)
    await revocations.hasten(connection, order.domain)
    await outcomes.record_success(connection, order.domain, order.application_id)


async def record_look(connection: Connection, order: Order, renew_at: datetime, *, look_again_seconds: float) -> None:
    """Looked after: nothing to do before then. Raises: `FenceLost`."""
    await _TABLE.write(
        connection,
        order,
        "renew_at = $3, due_at = least($3, clock_timestamp() + make_interval(secs => $4)),"
        f" lease_until = null, attempts = 0, {_RECHECKED}",
        renew_at,
        look_again_seconds,
    )


async def record_dns_moved_away(connection: Connection, order: Order, *, look_again_seconds: float) -> None:
    """The domain's DNS leads elsewhere: nothing is ordered for it until it is back. Its certificate serves on. The
    owner is notified once, but not of a name that an operator enrolled before it led here: its DNS is yet to be moved.
    A recheck requested since the order was claimed is due at once. Raises: `FenceLost`.
    """
    await certificates.lock_domain(connection, order.domain)
    await _TABLE.write(
        connection,
        order,
        "lease_until = null, last_error = $3,"
        " due_at = clock_timestamp() + case when recheck_requested_at > $6 then interval '0'"
        "     else make_interval(secs => $4) end,"
        " recheck_requested_at = case when recheck_requested_at > $6 then recheck_requested_at end,"
        " rechecked_at = case when recheck_requested_at is null then rechecked_at else clock_timestamp() end,"
        " state = case when $5 then 'issued' else 'failed' end",
        DNS_MOVED_AWAY,
        look_again_seconds,
        order.in_service is not None and order.in_service.is_live,
        order.claimed_at,
    )
    moved_away = await connection.fetch(
        "update domains set departed_at = now() where domain = $1 and departed_at is null returning claim", order.domain
    )
    is_yet_to_come = order.in_service is None and all(row["claim"] == "operator" for row in moved_away)
    if moved_away and not is_yet_to_come:
        await _tell_failed(connection, order, DNS_MOVED_AWAY)


async def record_dns_returned(connection: Connection, order: Order) -> None:
    """The domain's DNS leads to us again; its owner is notified if it is served. Raises: `FenceLost`."""
    await certificates.lock_domain(connection, order.domain)
    returned = await connection.execute(
        "update domains set departed_at = null where domain = $1 and departed_at is not null", order.domain
    )
    await _TABLE.write(connection, order, f"last_error = null, failed_at = null, attempts = 1, {_RECHECKED}")
    if returned != "UPDATE 0" and order.in_service is not None and order.in_service.is_live:
        await outcomes.record_success(connection, order.domain, order.application_id)


def _order(row: Record) -> Order:
    validity = row["not_before"] and Validity(row["not_before"], row["not_after"], bool(row["is_live"]), row["issuer"])
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
    )
