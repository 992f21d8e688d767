"""The ledger: what was ordered at authorities that count, so that we stop before they have to stop us.

Owns the SQL of ``ca_ledger``. An order is reserved before it is sent and counts from then on; one that surely never was
made is given back. All of it under one lock an issuer, so that any number of monitors count as one.

Rules
    Limits are counted over sliding windows. An authority that refills a bucket steadily (Let's Encrypt) is never asked
    for more than it has: what fits every window of a length fits a bucket that refills in that length.
    Of each limit the less urgent take a part only, so that a wave of renewals leaves room for new domains, new domains
    for what is about to expire (`SHARES`), and all of them for what replaces a compromised certificate (`_RESERVE`).
    Of the account's orders an application takes at most `_APPLICATION_SHARE` times as many as it leaves free (dynamic
    thresholds, as in `monitor.concurrency_shares`): alone it gets four fifths, and the next one that asks finds a slot.
    For compromised certificates it may go on to `_COMPROMISED_APPLICATION_SHARE` times as many: 19 twentieths.
    A renewal that the authority suggested itself (RFC 9773) is written down, and not counted.
    An order that failed made no certificate: it counts for the account, not for the domain's certificates.

Functions that write need a transaction; the caller opens it.
"""

# ruff: noqa: S608 - what is formatted into SQL here are constants of this module

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import Literal, TypeAlias

from common.db import locks
from common.db.order_queue import Order
from common.db.session import Connection
from common.errors import FenceLost
from common.names import parse_enrollable
from common.settings import Settings

Urgency: TypeAlias = Literal["compromised", "expiring", "new", "renewal", "manual"]

SHARES: Mapping[Urgency, float] = MappingProxyType(
    {"compromised": 1.0, "expiring": 1.0, "new": 0.9, "renewal": 0.6, "manual": 0.6}
)
_RESERVE = 0.05
"""The part of each limit that is kept for replacing certificates whose key is compromised."""

_APPLICATION_SHARE = 4
_COMPROMISED_APPLICATION_SHARE = 19

WAITS_FOR_LIMIT = "waiting for the certificate authority: "
"""The beginning of the last error of an order that waits for a slot."""

HOUR_SECONDS = 3600.0
ACCOUNT_WINDOW_SECONDS = 3 * HOUR_SECONDS
WEEK_SECONDS = 7 * 24 * HOUR_SECONDS
KEPT_DAYS = 8


@dataclass(frozen=True, slots=True)
class Limits:
    """The numbers that an authority allows; the defaults are Let's Encrypt's (2025).

    Orders of an account in 3 hours; certificates of a registered domain, and of the very same names, in 7 days;
    validations of one name that may fail in an hour.
    """

    orders_per_account: int = 300
    certificates_per_registered_domain: int = 50
    certificates_per_exact_set: int = 5
    failed_validations: int = 5

    @classmethod
    def of(cls, settings: Settings) -> Limits:
        """Return the limits that the settings give."""
        return cls(
            settings.acme_orders_per_account,
            settings.acme_certificates_per_registered_domain,
            settings.acme_certificates_per_exact_set,
            settings.acme_failed_validations,
        )


@dataclass(frozen=True, slots=True)
class LimitReached:
    """A limit that leaves no room now, and when it will."""

    limit: str
    most: int
    free_at: datetime


@dataclass(frozen=True, slots=True)
class _LimitScope:
    """What a limit counts: entries of a window that meet the condition, of the account or of one name."""

    condition: str
    seconds: float
    column: str | None


_ORDER = "kind = 'order' and not is_exempt"
_SCOPES: Mapping[str, _LimitScope] = MappingProxyType(
    {
        "orders_per_account": _LimitScope(_ORDER, ACCOUNT_WINDOW_SECONDS, None),
        "certificates_per_registered_domain": _LimitScope(
            f"{_ORDER} and state <> 'failed'", WEEK_SECONDS, "registered_domain"
        ),
        "certificates_per_exact_set": _LimitScope(f"{_ORDER} and state <> 'failed'", WEEK_SECONDS, "domain"),
        "failed_validations": _LimitScope("kind = 'failed_validation'", HOUR_SECONDS, "domain"),
    }
)

LIMIT_DESCRIPTIONS: Mapping[str, str] = MappingProxyType(
    {
        "orders_per_account": "orders of the account in 3 hours",
        "orders_per_application": "orders of one application in 3 hours",
        "certificates_per_registered_domain": "certificates of the registered domain in 7 days",
        "certificates_per_exact_set": "certificates of the same names in 7 days",
        "failed_validations": "failed validations of the name in an hour",
    }
)
"""The description of each limit, for people."""


async def reserve(
    connection: Connection, order: Order, issuer: str, limits: Limits, urgency: Urgency, *, is_exempt: bool
) -> int | LimitReached:
    """Count an order that is about to be sent, and return the reservation, or the limit that leaves no room for it.

    Raises: `FenceLost`.
    """
    await _lock(connection, issuer)  # a statement of its own: what it waited for, the next one sees
    counted = ("failed_validations",) if is_exempt else tuple(_SCOPES)
    limited, arguments = _limit_queries(issuer, order.domain, limits, urgency, counted)
    if not is_exempt:
        limited += _application_query(arguments, order.application_id, limits, urgency)
    row = await connection.fetchrow(
        f"""
        with limited as materialized ({limited}),
        held as (
            select exists (select from orders where domain = $2 and fence = ${len(arguments) + 1}) as is_ours
        ), taken as (
            insert into ca_ledger (issuer, kind, domain, registered_domain, is_exempt, application_id)
            select $1, 'order', $2, $3, ${len(arguments) + 2}, ${len(arguments) + 3} from held
            where is_ours and not exists (select from limited where free_at is not null)
            returning id
        )
        select is_ours, (select id from taken) as reservation, limited.*
        from held, limited order by free_at desc nulls last limit 1
        """,
        *arguments,
        order.fence,
        is_exempt,
        order.application_id,
    )
    assert row is not None, "every order is counted by one limit at least"
    if not row["is_ours"]:
        raise FenceLost(f"the order of {order.domain} was claimed by another monitor")
    reservation: int | None = row["reservation"]
    return LimitReached(row["name"], row["most"], row["free_at"]) if reservation is None else reservation


async def record_placed(connection: Connection, reservation: int, order_url: str) -> None:
    """Record that the authority accepted the reserved order, and its URL there."""
    await connection.execute(
        "update ca_ledger set state = 'placed', order_url = $2 where id = $1", reservation, order_url
    )


async def cancel_reservation(connection: Connection, reservation: int) -> None:
    """Remove the reservation of an order that was never made, so that it counts no longer."""
    await connection.execute("delete from ca_ledger where id = $1 and state = 'reserved'", reservation)


async def record_failed_validation(connection: Connection, issuer: str, domain: str, order_url: str) -> None:
    """Count a failed validation once for each order, also for an order that was placed before the ledger knew it."""
    failed = await connection.execute(
        "update ca_ledger set state = 'failed' where order_url = $1 and issuer = $2 and state <> 'failed'",
        order_url,
        issuer,
    )
    if failed == "UPDATE 0" and await connection.fetchval(
        "select exists (select from ca_ledger where order_url = $1)", order_url
    ):
        return
    await connection.execute(
        "insert into ca_ledger (issuer, kind, domain, registered_domain, state, order_url)"
        " values ($1, 'failed_validation', $2, $3, 'failed', $4)",
        issuer,
        domain,
        parse_enrollable(domain).registrable,
        order_url,
    )


async def next_slot(
    connection: Connection, issuer: str, domain: str, application_id: str, limits: Limits, urgency: Urgency = "new"
) -> LimitReached | None:
    """Return the limit that keeps the application's order for the domain waiting longest; None if none does."""
    limited, arguments = _limit_queries(issuer, domain, limits, urgency, tuple(_SCOPES))
    limited += _application_query(arguments, application_id, limits, urgency)
    row = await connection.fetchrow(
        f"select * from ({limited}) limited where free_at is not null order by free_at desc limit 1", *arguments
    )
    return None if row is None else LimitReached(row["name"], row["most"], row["free_at"])


def _limit_queries(
    issuer: str, domain: str, limits: Limits, urgency: Urgency, counted: Sequence[str]
) -> tuple[str, list[object]]:
    """Return a query of how full each limit is, and its arguments.

    Its columns: the limit's name, how many it allows, and, when so many are taken, when the first of them leaves the
    window. The first three arguments are issuer, domain and registered domain.
    """
    columns = {"domain": "and domain = $2", "registered_domain": "and registered_domain = $3", None: ""}
    arguments: list[object] = [issuer, domain, parse_enrollable(domain).registrable]
    selects = []
    for name in counted:
        scope, most = _SCOPES[name], len(arguments) + 1
        arguments.append(share_of(name, limits, urgency))
        selects.append(
            f"select '{name}' as name, ${most}::bigint as most, (select taken_at + interval '{scope.seconds} seconds'"
            f" from ca_ledger where issuer = $1 and {scope.condition} {columns[scope.column]}"
            f" and taken_at > clock_timestamp() - interval '{scope.seconds} seconds'"
            f" order by taken_at desc offset ${most}::bigint - 1 limit 1) as free_at"
        )
    known = "select $1::text, $2::text, $3::text"  # so that each argument has its type, used or not
    return f"with known as ({known}) " + " union all ".join(selects), arguments


def _application_query(arguments: list[object], application_id: str, limits: Limits, urgency: Urgency) -> str:
    """Return one more such query, for the application's share of the account's orders, and add its arguments.

    The application has no order free before so many have left the window as it needs if all of them are its own.
    """
    scope, first = _SCOPES["orders_per_account"], len(arguments) + 1
    multiple = _COMPROMISED_APPLICATION_SHARE if urgency == "compromised" else _APPLICATION_SHARE
    arguments += [application_id, share_of("orders_per_account", limits, urgency)]
    window = (
        f"from ca_ledger where issuer = $1 and {scope.condition}"
        f" and taken_at > clock_timestamp() - interval '{scope.seconds} seconds'"
    )
    return f"""
        union all
        select 'orders_per_application', own, case when excess > 0 then (
            select taken_at + interval '{scope.seconds} seconds' {window}
            order by taken_at offset least((excess - 1) / {multiple + 1}, used - 1) limit 1) end
        from (
            select own, used, own + 1 - {multiple} * (${first + 1}::bigint - used) as excess
            from (select count(*) as used, count(*) filter (where application_id = ${first}) as own {window}) counted
        ) share"""


def share_of(limit: str, limits: Limits, urgency: Urgency) -> int:
    """Return how many of a limit an urgency may use up; at least one."""
    most: int = getattr(limits, limit)
    if limit == "failed_validations" or urgency == "compromised":
        return most
    return max(1, min(int(most * SHARES[urgency]), most - int(most * _RESERVE)))


@dataclass(frozen=True, slots=True)
class LedgerCount:
    """The used part of a limit at one issuer; `subject` is a name, or empty for the account."""

    issuer: str
    limit: str
    subject: str
    used: int
    frees_at: datetime
    """When the oldest one counted leaves the window."""


async def list_usage(connection: Connection, *, most: int = 10) -> list[LedgerCount]:
    """Return what counts at each issuer now: of each limit the `most` subjects that are fullest."""
    found = []
    for limit, scope in _SCOPES.items():
        subject = scope.column or "''"
        rows = await connection.fetch(
            f"select issuer, {subject} as subject, count(*) as used,"
            " min(taken_at) + make_interval(secs => $1) as frees_at from ca_ledger"
            f" where taken_at > clock_timestamp() - make_interval(secs => $1) and {scope.condition}"
            " group by issuer, subject order by used desc, issuer, subject limit $2",
            scope.seconds,
            most,
        )
        found += [LedgerCount(limit=limit, **row) for row in rows]
    return found


async def _lock(connection: Connection, issuer: str) -> None:
    """Lock the issuer's ledger until the transaction ends."""
    await locks.hold(connection, "ca_ledger", issuer)
