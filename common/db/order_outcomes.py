"""What became of a claimed order: each step and each end of its run, written under the order's fence.

The certificate that an order stores, its events and the state of its domain are written in the same transaction.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from datetime import datetime

from common.db import certificates, delegations, feed, outcomes, preparations, renewal_risks, revocations
from common.db.certificates import Certificate
from common.db.order_queue import TABLE, Order, PlacedOrder, notify_failed
from common.db.orders import DNS_MOVED_AWAY, NOTHING_PLACED
from common.db.renewal_risks import Risk
from common.db.session import Connection

FIRST_RENEWAL_CHECK_SECONDS = 3600.0
"""How soon after it went live a certificate's issuer is first asked when to renew it."""

_RECHECKED = (
    "rechecked_at = case when recheck_requested_at is null then rechecked_at else clock_timestamp() end,"
    " recheck_requested_at = null"
)


async def defer(connection: Connection, order: Order, *, delay_seconds: float, words: str) -> None:
    """Put the order off because a CA's limit is reached, or no edge can serve the certificate: no failure, no attempt.

    Raises: `FenceLost`.
    """
    await TABLE.write(
        connection,
        order,
        "lease_until = null, last_error = $3, attempts = attempts - 1,"
        " due_at = clock_timestamp() + make_interval(secs => $4), state = case when $5 then 'issued' else state end",
        words,
        delay_seconds,
        order.in_service is not None and order.in_service.is_live,
    )


async def record_renewal_begun(connection: Connection, order: Order) -> None:
    """Publish that an order runs again whose domain has a certificate, holding no client.

    Raises: `FenceLost`.
    """
    await TABLE.write(
        connection,
        order,
        "state = 'running', hold_until = now(), phases = '{}',"
        " request_id = case when kind = 'renewal' then null else request_id end,"
        " requested_at = case when state = 'issued' then now() else requested_at end, finished_at = null",
    )


async def record_placed(connection: Connection, order: Order, placed: PlacedOrder) -> None:
    """Store what the order at the CA, and the key of its certificate, are found again by.

    Raises: `FenceLost`.
    """
    await TABLE.write(
        connection,
        order,
        "placed_issuer = $3, placed_url = $4, placed_at = $5, placed_key = $6",
        placed.issuer,
        placed.url,
        placed.placed_at,
        placed.key,
    )


async def forget_placed(connection: Connection, order: Order) -> None:
    """Delete what was stored of the order at the CA, because that order has come to nothing.

    Raises: `FenceLost`.
    """
    await TABLE.write(connection, order, NOTHING_PLACED)
    await _end_challenges(connection, order)


async def publish_challenges(connection: Connection, order: Order, values: Collection[str]) -> Collection[str]:
    """Have edges answer these values where the domain's challenge is delegated to, until the order's run ends.

    Return all that is answered there then (`delegations.set_values`).

    Raises: `FenceLost`.
    """
    await TABLE.write(connection, order, "fence = fence")
    return await delegations.set_values(connection, order.domain, order.application_id, values)


async def _end_challenges(connection: Connection, order: Order) -> None:
    if order.label is not None:
        await delegations.set_values(connection, order.domain, order.application_id, ())


async def record_issued(
    connection: Connection, order: Order, certificate: Certificate, phases: Mapping[str, float]
) -> None:
    """Store what the issuer gave and end the order's run, in the caller's transaction.

    Raises: `FenceLost`.
    """
    await feed.set_request_id(connection)
    await certificates.lock_domain(connection, order.domain)
    await TABLE.write(
        connection,
        order,
        f"state = 'issued', phases = $3, last_error = null, {NOTHING_PLACED}",
        phases,
    )
    await certificates.store(connection, order.domain, order.application_id, certificate)
    await _end_challenges(connection, order)


async def record_live(connection: Connection, order: Order, renew_at: datetime, phases: Mapping[str, float]) -> None:
    """Record that the edges serve the certificate, notify its owner, and have its renewal checked later.

    Raises: `FenceLost`.
    """
    await certificates.lock_domain(connection, order.domain)
    await TABLE.write(
        connection,
        order,
        f"due_at = least($3, now() + make_interval(secs => $5)), renew_at = $3, phases = $4, {_RECHECKED},"
        " issued_kind = kind, kind = 'renewal', lease_until = null, attempts = 0, finished_at = now(),"
        " failed_at = null, last_error = null, renewal_risk = null",
        renew_at,
        phases,
        FIRST_RENEWAL_CHECK_SECONDS,
    )
    await certificates.set_live(connection, order.domain)
    await revocations.make_due(connection, order.domain)
    await preparations.record_served(connection, order.domain, order.application_id)
    await outcomes.record_success(connection, order.domain, order.application_id)


async def record_renewal_check(
    connection: Connection, order: Order, renew_at: datetime, *, next_check_seconds: float, risk: Risk | None = None
) -> None:
    """Record that nothing is to be done for the certificate now, and when it is checked again.

    `risk` is what the rehearsal found; its owner is notified once it counts.

    Raises: `FenceLost`.
    """
    await TABLE.write(
        connection,
        order,
        "renew_at = $3, due_at = least($3, clock_timestamp() + make_interval(secs => $4)),"
        f" lease_until = null, attempts = 0, last_error = null, renewal_risk = $5, {_RECHECKED}",
        renew_at,
        next_check_seconds,
        None if risk is None else risk.as_stored(),
    )
    is_new = risk is not None and risk.counts and (order.risk is None or not order.risk.counts)
    if is_new and risk is not None and order.in_service is not None:
        not_after = max(filter(None, (order.in_service.not_after, order.own_until)))
        await renewal_risks.record_event(connection, order.domain, order.application_id, risk, not_after)


async def record_dns_moved_away(
    connection: Connection, order: Order, reason: str | None, *, next_check_seconds: float
) -> None:
    """Record that the domain's DNS does not lead to the application: nothing is ordered for it until it is back.

    Its certificate serves on. `reason`: one of `orders.DNS_REASONS`; None where the DNS could not be asked, and the one
    so far stands. The owner is notified once, but not of a name that an operator enrolled before it led here: its DNS
    is yet to be moved. A recheck requested since the order was claimed is due at once.

    Raises: `FenceLost`.
    """
    await certificates.lock_domain(connection, order.domain)
    await TABLE.write(
        connection,
        order,
        "lease_until = null, last_error = coalesce($3, last_error),"
        " due_at = clock_timestamp() + case when recheck_requested_at > $6 then interval '0'"
        "     else make_interval(secs => $4) end,"
        " recheck_requested_at = case when recheck_requested_at > $6 then recheck_requested_at end,"
        " rechecked_at = case when recheck_requested_at is null then rechecked_at else clock_timestamp() end,"
        " state = case when $5 then 'issued' else 'failed' end",
        reason,
        next_check_seconds,
        order.in_service is not None and order.in_service.is_live,
        order.claimed_at,
    )
    await _record_departure(connection, order, reason)


async def record_dns_left(connection: Connection, order: Order, reason: str | None) -> None:
    """Record that the domain's DNS does not lead to the application, of a domain whose challenge is delegated.

    Its certificate is looked after nevertheless, so that it is served at once when the DNS is back.

    Raises: `FenceLost`.
    """
    await certificates.lock_domain(connection, order.domain)
    await TABLE.write(connection, order, "fence = fence")
    await _record_departure(connection, order, reason)


async def _record_departure(connection: Connection, order: Order, reason: str | None) -> None:
    moved_away = await connection.fetch(
        "update domains set departed_at = now() where domain = $1 and departed_at is null returning claim", order.domain
    )
    is_yet_to_come = order.in_service is None and all(row["claim"] == "operator" for row in moved_away)
    if moved_away and not is_yet_to_come:
        await notify_failed(connection, order, reason or DNS_MOVED_AWAY)


async def record_dns_returned(connection: Connection, order: Order) -> None:
    """Record that the domain's DNS leads to us again, and notify its owner if it is served.

    Raises: `FenceLost`.
    """
    await certificates.lock_domain(connection, order.domain)
    returned = await connection.execute(
        "update domains set departed_at = null where domain = $1 and departed_at is not null", order.domain
    )
    await TABLE.write(connection, order, f"last_error = null, failed_at = null, attempts = 1, {_RECHECKED}")
    if returned != "UPDATE 0" and order.in_service is not None and order.in_service.is_live:
        await outcomes.record_success(connection, order.domain, order.application_id)
