"""Orders: the work of getting, keeping and renewing a domain's certificate, one row a domain.

Owns the SQL of ``orders``. The row is claimed work (`common.claims`): it says by itself what is due and when.

States, and what a row that comes due in one of them asks for
    running   a certificate is wanted: issue it. Edges hold handshakes until ``hold_until``
    failed    tried several times in vain: still tried, ever more slowly, but nobody is held any more
    issued    there is a certificate: wait until every edge serves it; once that is so, renew it

A row disappears with its domain (`common.db.certificates.release`). Fences are transaction ids, so a row that
was deleted and made anew never gets a fence its old holder knows.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from asyncpg import Record

from common.db import certificates
from common.db.certificates import Certificate
from common.db.session import Connection
from common.errors import FenceLost

FAILED_AFTER_ATTEMPTS = 5


@dataclass(frozen=True, slots=True)
class Validity:
    """What an order needs to know of the certificate in service."""

    not_before: datetime
    not_after: datetime
    is_live: bool


@dataclass(frozen=True, slots=True)
class Order:
    """A claimed row. `phases` are seconds; `waited_seconds` is how long it was due before it was claimed."""

    domain: str
    application_id: str
    state: Literal["running", "issued", "failed"]
    fence: int
    attempts: int
    phases: Mapping[str, float]
    waited_seconds: float
    in_service: Validity | None

    @property
    def key(self) -> str:
        return self.domain


async def request_order(connection: Connection, domain: str, application_id: str, *, hold_seconds: float) -> None:
    """Lead to a live certificate, in the transaction that enrols the domain.

    A certificate in service is left alone; a kept one of the same application is adopted (its order only
    waits until the edges serve it); else one is ordered, and edges hold handshakes for `hold_seconds`.
    An order that already runs is not started over.
    """
    await certificates.lock_domain(connection, domain)
    if await certificates.is_in_service(connection, domain, application_id):
        return
    adopted = await certificates.adopt(connection, domain, application_id)
    state = "issued" if adopted else "running"
    await connection.execute(
        "delete from orders where domain = $1 and (application_id <> $2 or state <> 'running')",
        domain,
        application_id,
    )
    await connection.execute(
        "insert into orders (domain, application_id, state, hold_until, due_at)"
        " values ($1, $2, $3, now() + make_interval(secs => $4), now())"
        " on conflict (domain) do update set hold_until = excluded.hold_until, due_at = excluded.due_at",
        domain,
        application_id,
        state,
        hold_seconds,
    )


async def claim(connection: Connection, /, *, most: int, lease_seconds: float) -> list[Order]:
    rows = await connection.fetch(
        """
        with due as materialized (
            select domain from orders
            where due_at <= now() and (lease_until is null or lease_until <= now())
            order by due_at limit $1
            for update skip locked
        ), claimed as (
            update orders set fence = pg_current_xact_id()::text::bigint, attempts = attempts + 1,
                lease_until = clock_timestamp() + make_interval(secs => $2)
            from due where orders.domain = due.domain
            returning orders.*
        )
        select claimed.domain, claimed.application_id, state, fence, attempts, phases,
            extract(epoch from clock_timestamp() - due_at)::float8 as waited_seconds,
            not_before, not_after, live_at >= issued_at as is_live
        from claimed left join certificates
            on certificates.domain = claimed.domain and certificates.application_id = claimed.application_id
            and released_at is null
        """,
        most,
        lease_seconds,
    )
    return [_order(row) for row in rows]


async def extend(connection: Connection, claims: Collection[Order], /, *, lease_seconds: float) -> set[str]:
    rows = await connection.fetch(
        """
        update orders set lease_until = clock_timestamp() + make_interval(secs => $3)
        from unnest($1::text[], $2::bigint[]) as held (domain, fence)
        where orders.domain = held.domain and orders.fence = held.fence and lease_until is not null
        returning orders.domain
        """,
        [order.domain for order in claims],
        [order.fence for order in claims],
        lease_seconds,
    )
    return {row["domain"] for row in rows}


async def postpone(connection: Connection, order: Order, /, *, delay_seconds: float, last_error: str) -> None:
    await connection.execute(
        """
        update orders set lease_until = null, last_error = $3,
            due_at = clock_timestamp() + make_interval(secs => $4),
            state = case when state = 'running' and attempts >= $5 then 'failed' else state end
        where domain = $1 and fence = $2
        """,
        order.domain,
        order.fence,
        last_error,
        delay_seconds,
        FAILED_AFTER_ATTEMPTS,
    )


async def next_due_seconds(connection: Connection, /) -> float | None:
    seconds: float | None = await connection.fetchval(
        """
        select extract(epoch from due_at - clock_timestamp())::float8 from orders
        where due_at is not null and (lease_until is null or lease_until <= now())
        order by due_at limit 1
        """
    )
    return seconds


async def record_renewal_begun(connection: Connection, order: Order) -> None:
    """Publish that an issued order runs again, holding nobody. Raises: `FenceLost`."""
    await _write_fenced(
        connection,
        "update orders set state = 'running', hold_until = now(), phases = '{}', requested_at = now(),"
        " finished_at = null where domain = $1 and fence = $2",
        order,
    )


async def record_issued(
    connection: Connection, order: Order, certificate: Certificate, phases: Mapping[str, float]
) -> None:
    """Store what the issuer gave and end the order's run, in the caller's transaction. Raises: `FenceLost`."""
    await certificates.lock_domain(connection, order.domain)
    await _write_fenced(
        connection,
        "update orders set state = 'issued', phases = $3, last_error = null where domain = $1 and fence = $2",
        order,
        phases,
    )
    await certificates.store(connection, order.domain, order.application_id, certificate)


async def record_live(connection: Connection, order: Order, renew_at: datetime, phases: Mapping[str, float]) -> None:
    """The edges serve the certificate: rest until its renewal. Raises: `FenceLost`."""
    await certificates.lock_domain(connection, order.domain)
    await _write_fenced(
        connection,
        "update orders set due_at = $3, phases = $4, lease_until = null, attempts = 0, finished_at = now()"
        " where domain = $1 and fence = $2",
        order,
        renew_at,
        phases,
    )
    await certificates.set_live(connection, order.domain)


async def _write_fenced(connection: Connection, statement: str, order: Order, *values: object) -> None:
    if await connection.execute(statement, order.domain, order.fence, *values) != "UPDATE 1":
        raise FenceLost(f"the order of {order.domain} is another's now")


def _order(row: Record) -> Order:
    validity = row["not_before"] and Validity(row["not_before"], row["not_after"], bool(row["is_live"]))
    return Order(
        domain=row["domain"],
        application_id=row["application_id"],
        state=row["state"],
        fence=row["fence"],
        attempts=row["attempts"],
        phases=row["phases"],
        waited_seconds=row["waited_seconds"],
        in_service=validity,
    )
