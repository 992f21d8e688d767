"""Orders: the work of getting, keeping and renewing a domain's certificate, one row for each domain.

Owns the requests: what an enrolment, an owner or an operator asks of ``orders``, and how a row is described. Workers
claim the rows in `common.db.order_queue` and write what became of them in `common.db.order_outcomes`. ``request_id`` is
the request that made the order, or made it run again.

States, and what a row that comes due in one of them asks for
    running   a certificate is wanted: issue it. Edges hold handshakes until ``hold_until``
    failed    several attempts failed: still tried, ever more slowly, but no client is held any more
    issued    there is a certificate: wait until every edge serves it; once that is so, look after it now and then,
              and renew it when ``renew_at`` has come

A certificate in service stays there whatever becomes of its order. A row disappears with its domain
(`common.db.certificates.release`).
"""

# ruff: noqa: S608 - what is formatted into SQL here are constants of this module

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal, TypeAlias

from common.actors import current_request_id
from common.db import certificates, enrolments, revocations
from common.db.claim_table import IS_FREE
from common.db.monitored_domains import CHANNEL
from common.db.renewal_risks import Risk
from common.db.session import Connection
from common.errors import FrontageError

RENEWALS_A_DAY = 5
"""How often in 24 hours an application may have a domain's certificate renewed."""

DNS_MOVED_AWAY = "the domain's DNS does not lead to us: point it here, and its certificate is looked after"
DNS_BYPASSES_TARGET = (
    "the domain's DNS leads here, but not through this application's cname target: point its CNAME to that target, and"
    " its certificate is looked after"
)
DNS_REASONS = (DNS_MOVED_AWAY, DNS_BYPASSES_TARGET)
"""The `last_error` of an order that waits for the domain's owner to change the DNS."""

_SHOWN_KIND = "case when finished_at is null then kind else coalesce(issued_kind, 'new') end"
"""What the run that is under way, or else the last one, is for: ``kind`` is the next one's once a run has finished. An
order that finished before 0068 counts as new."""

_RECHECKED_FOR = "request_id = case when kind = 'renewal' then {} else request_id end"
"""A check is caused by the request that asks for it; an order that runs for a request stays that request's."""

NOTHING_PLACED = "placed_issuer = null, placed_url = null, placed_at = null, placed_key = null"

State: TypeAlias = Literal["running", "issued", "failed"]
Kind: TypeAlias = Literal["new", "renewal", "manual", "replacement"]
"""What an order is for; every order waits for its ``renewal`` once its certificate is live."""


class NotRenewable(FrontageError):
    """A renewal that makes no sense, in words for the domain's owner."""


@dataclass(frozen=True, slots=True)
class OrderState:
    """An order for people to look at.

    `kind`: what the run is for that is under way, or was the last. `failing_since`: when its owner was notified;
    `departed_at` when the domain's DNS was seen to have left; `risk`: what the last rehearsal of its renewal found.
    """

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
    request_id: str | None = None
    risk: Risk | None = None

    def waits_until(self, now: datetime) -> datetime | None:
        """Return when work on it goes on, where it was put off for the reason in `last_error`; else None."""
        is_put_off = self.last_error is not None and self.due_at is not None and self.due_at > now
        return self.due_at if is_put_off else None


async def request_order(
    connection: Connection, domain: str, application_id: str, *, hold_seconds: float, is_proven: bool = True
) -> bool:
    """Order a certificate for the domain, unless it has one; return whether one is live already.

    Runs in the transaction that enrols the domain and holds its lock. `is_proven`: the DNS was asked just now; else a
    monitor checks it first, as a recheck.

    A certificate in service is left alone; a kept one of the same application is adopted (its order only waits until
    the edges serve it); else one is ordered, and edges hold handshakes for `hold_seconds`. An order that already runs
    is not started over.
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
        "insert into orders (domain, application_id, state, hold_until, due_at, recheck_requested_at, request_id)"
        " values ($1, $2, $3, now() + make_interval(secs => $4), now(),"
        " case when $5 then null else clock_timestamp() end, $6)"
        " on conflict (domain) do update set hold_until = excluded.hold_until, due_at = excluded.due_at",
        domain,
        application_id,
        state,
        hold_seconds,
        is_proven,
        current_request_id(),
    )
    return False


async def request_renewal(
    connection: Connection, domain: str, application_id: str, *, most_a_day: int | None = None
) -> bool:
    """Have the domain's certificate renewed now; return False where an order runs already, which does not count.

    An order that waits for another attempt is tried at once, which counts as a renewal. `most_a_day`: None for an
    operator, whose renewals do not count.

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
        return False
    if most_a_day is not None:
        if await enrolments.count(connection, domain, "renewal", application_id) >= most_a_day:
            raise NotRenewable("this domain has been renewed too many times in 24 hours")
        await enrolments.record(connection, domain, "renewal", application_id)
    if has_ended:
        await _start_new_run(connection, domain, "new" if row["is_live"] is None else "manual")
    else:
        await connection.execute("update orders set due_at = now() where domain = $1", domain)
    return True


async def request_replacement(
    connection: Connection, domain: str, application_id: str, reason: int, *, at_once: bool = False
) -> bool:
    """Revoke the application's certificate of the domain (RFC 5280 §5.3.1), and order another where it is in service.

    The other goes live first, so that no revoked certificate is served; with `at_once` it is revoked now.

    Returns whether there was a certificate.
    """
    await certificates.lock_domain(connection, domain)
    revoked = await certificates.mark_revoked(connection, domain, application_id, reason)
    if revoked is None:
        return False
    await revocations.request(connection, domain, application_id, revoked, reason, at_once=at_once)
    if revoked.is_in_service:
        await _start_new_run(connection, domain, "replacement")
    return True


async def _start_new_run(connection: Connection, domain: str, kind: Kind) -> None:
    """Publish a new run of the order, with a new key, holding no client; a worker that has the order now loses it."""
    await connection.execute(
        "update orders set state = 'running', kind = $2, hold_until = now(), due_at = now(), lease_until = null,"
        f" fence = pg_current_xact_id()::text::bigint, attempts = 0, phases = '{{}}', requested_at = now(),"
        f" finished_at = null, request_id = $3, {NOTHING_PLACED} where domain = $1",
        domain,
        kind,
        current_request_id(),
    )


async def request_unproven(
    connection: Connection, domains: Collection[str], application_id: str, *, hold_seconds: float
) -> None:
    """Order certificates for names whose DNS was not asked, in the transaction that enrols them and holds their locks.

    The names have no order, and no certificate of this application. A monitor checks their DNS first, as a recheck, so
    that no CA is asked for a name that leads elsewhere.
    """
    await connection.execute(
        "insert into orders (domain, application_id, state, hold_until, due_at, recheck_requested_at, request_id)"
        " select name, $2, 'running', now() + make_interval(secs => $3), now(), clock_timestamp(), $4"
        " from unnest($1::text[]) name",
        list(domains),
        application_id,
        hold_seconds,
        current_request_id(),
    )


async def describe(connection: Connection, domain: str) -> OrderState | None:
    """Return the domain's order for people to look at, or None."""
    row = await connection.fetchrow(
        f"select state, {_SHOWN_KIND} as kind, attempts, last_error, due_at, renew_at, phases, requested_at,"
        " finished_at, failed_at as failing_since, placed_issuer, request_id, renewal_risk,"
        " (select max(departed_at) from domains d where d.domain = orders.domain) as departed_at"
        " from orders where domain = $1",
        domain,
    )
    if row is None:
        return None
    fields = dict(row)
    risk = Risk.read(fields.pop("renewal_risk"))
    return OrderState(**fields, risk=risk)


async def request_rechecks(connection: Connection, domains: Collection[str], application_id: str) -> int:
    """Have a monitor check the DNS of those of the names that were seen to lead elsewhere, under their locks.

    Returns how many they are.
    """
    rows = await connection.fetch(
        f"""
        update orders set recheck_requested_at = clock_timestamp(), {_RECHECKED_FOR.format("$3")},
            due_at = case when {IS_FREE} then least(due_at, clock_timestamp()) else due_at end,
            attempts = case when {IS_FREE} then 0 else attempts end
        where domain = any($1) and application_id = $2
            and exists (select from domains d where d.domain = orders.domain and departed_at is not null)
        returning domain
        """,
        list(domains),
        application_id,
        current_request_id(),
    )
    return len(rows)


async def request_recheck(
    connection: Connection,
    domain: str,
    application_id: str | None = None,
    *,
    only_moved_away: bool = False,
    pause_seconds: float = 0.0,
) -> str | None:
    """Have a monitor check the domain's DNS again at once, and act on it: a domain whose DNS is back becomes active.

    Without `application_id`, whichever application has the domain.

    `only_moved_away`: only if its DNS was seen to lead elsewhere. `pause_seconds` is the shortest time between two such
    checks: a request that comes earlier is due then. Call this before the transaction locks rows of the domain. Returns
    the application that has the domain, None where there is nothing to check.
    """
    await certificates.lock_domain(connection, domain)
    holder: str | None = await connection.fetchval(
        f"""
        update orders set recheck_requested_at = clock_timestamp(), {_RECHECKED_FOR.format("$5")},
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
        current_request_id(),
    )
    if holder is not None:
        await connection.execute("select wake_listeners($1)", CHANNEL)
    return holder
