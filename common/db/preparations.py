"""Preparations: domains that are to be served before their DNS leads here, one row for each application and domain.

Owns the SQL of ``preparations``. The row is claimed work (`monitor.claims`): a monitor looks at the domain's DNS.

States
    waiting    the domain's challenge is not delegated yet, or the application may not have the domain: ``reason``. A
               pending domain (``awaits_dns``) waits for its DNS to lead here, and is then enrolled as any other
    issuing    the domain is enrolled, inactive, and its certificate is ordered
    prepared   every edge serves the domain with its certificate
    active     the DNS leads here, or the application enrolled the domain by other means while it waited: an enrolment
               as any other. The row is kept for people to look at

A preparation that has expired ends with all that it has enrolled. One that is active ends nothing.
"""

# ruff: noqa: S608 - what is formatted into SQL here are constants of this module

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import astuple, dataclass
from datetime import datetime
from typing import Literal, TypeAlias, TypeVar

from asyncpg import Record

from common.db import certificates, events, outcomes
from common.db.claim_table import IS_FREE, ClaimTable
from common.db.monitored_domains import CHANNEL
from common.db.session import UNAWAITED, Connection
from common.domain_settings import SETTINGS, DomainSettings
from common.errors import FrontageError
from common.names import parse_enrollable

State: TypeAlias = Literal["waiting", "issuing", "prepared", "active"]

KEPT_DAYS = 30
"""How long a domain stays prepared, after it was last asked for."""

MOST_WAITING = 20_000
"""How many preparations of an application may wait for their records; a monitor looks at each now and then."""

_R = TypeVar("_R", "Preparation", "ClaimedPreparation")

_TABLE = ClaimTable("preparations", key="id", key_type="bigint")
_SETTINGS = ", ".join(SETTINGS)

extend = _TABLE.extend
next_due_seconds = _TABLE.next_due_seconds


@dataclass(frozen=True, slots=True)
class Wanted:
    """A domain as it is to be served."""

    domain: str
    product: Literal["power", "secure"]
    settings: DomainSettings


@dataclass(frozen=True, slots=True)
class Preparation:
    """A preparation for people to look at.

    `reason`: why it waits, a code of `common.enrolment.outcome`; None while only the records are waited for.
    `awaits_dns`: it is pending, and nothing of it is served before its DNS leads here.
    """

    domain: str
    application_id: str
    product: Literal["power", "secure"]
    settings: DomainSettings
    state: State
    reason: str | None
    awaits_dns: bool
    created_at: datetime
    expires_at: datetime
    delegated_at: datetime | None
    prepared_at: datetime | None
    active_at: datetime | None


_TIMES = "created_at, expires_at, delegated_at, prepared_at, active_at"
_SHOWN = f"domain, application_id, product, {_SETTINGS}, state, reason, awaits_dns, {_TIMES}"


@dataclass(frozen=True, slots=True)
class ClaimedPreparation:
    """A claimed preparation. `asked_seconds`: how long ago a person or a program asked for it."""

    id: int
    application_id: str
    domain: str
    product: Literal["power", "secure"]
    settings: DomainSettings
    state: State
    awaits_dns: bool
    has_expired: bool
    asked_seconds: float
    fence: int
    attempts: int

    @property
    def key(self) -> str:
        """Return what identifies the claim in its table: the id, as text."""
        return str(self.id)


class TooManyWaiting(FrontageError):
    """The application has as many preparations that wait as it may."""


async def request(
    connection: Connection,
    application_id: str,
    wanted: Wanted,
    *,
    awaits_dns: bool = False,
    if_new: bool = False,
    most_waiting: int = MOST_WAITING,
) -> bool:
    """Prepare the domain, anew for `KEPT_DAYS` where it is prepared already, and have a monitor look at its DNS now.

    With `awaits_dns`, a domain that is not prepared is enrolled once its DNS leads here, and not before. With `if_new`,
    one that is prepared already stays as it is. Return whether anything was stored.

    Raises: `TooManyWaiting`, for a domain that is not prepared already.
    """
    is_full = await connection.fetchval(
        "select count(*) >= $3 and not exists (select from preparations where domain = $2 and application_id = $1)"
        " from (select from preparations where application_id = $1 and state = 'waiting' limit $3) waiting",
        application_id,
        wanted.domain,
        most_waiting,
    )
    if is_full:
        raise TooManyWaiting(application_id)
    again = ", ".join(f"{name} = excluded.{name}" for name in SETTINGS)
    places = ", ".join(f"${place}" for place, _ in enumerate(SETTINGS, start=6))
    renewed = f"""update set product = excluded.product, {again},
            expires_at = excluded.expires_at, asked_at = now(),
            awaits_dns = excluded.awaits_dns and preparations.state in ('waiting', 'active'),
            state = case when preparations.state = 'active' then 'waiting' else preparations.state end,
            due_at = case when preparations.lease_until is null then now() else preparations.due_at end"""
    status = await connection.execute(
        f"""
        insert into preparations (domain, application_id, product, expires_at, awaits_dns, {_SETTINGS})
        values ($1, $2, $3, now() + make_interval(days => $4), $5, {places})
        on conflict (domain, application_id) do {"nothing" if if_new else renewed}
        """,
        wanted.domain,
        application_id,
        wanted.product,
        KEPT_DAYS,
        awaits_dns,
        *astuple(wanted.settings),
    )
    await connection.execute("select wake_listeners($1)", CHANNEL)
    return status == "INSERT 0 1"


async def find(connection: Connection, domain: str, application_id: str) -> Preparation | None:
    """Return the application's preparation of the domain, or None."""
    row = await connection.fetchrow(
        f"select {_SHOWN} from preparations where domain = $1 and application_id = $2", domain, application_id
    )
    return None if row is None else _read(Preparation, row)


async def list_page(connection: Connection, application_id: str, *, after: str, most: int) -> list[Preparation]:
    """Return the application's next `most` preparations after the domain `after`, in the order of their names."""
    rows = await connection.fetch(
        f"select {_SHOWN} from preparations where application_id = $1 and domain > $2 order by domain limit $3",
        application_id,
        after,
        most,
    )
    return [_read(Preparation, row) for row in rows]


async def note_question(connection: Connection, domain: str, application_id: str, *, pause_seconds: float) -> None:
    """Have a monitor look at the DNS soon, because a person or a program asks; no sooner than `pause_seconds` again."""
    changed = await connection.execute(
        f"update preparations set asked_at = now(), due_at = now() where domain = $1 and application_id = $2"
        f" and due_at is not null and {IS_FREE} and asked_at < now() - make_interval(secs => $3) returning {UNAWAITED}",
        domain,
        application_id,
        pause_seconds,
    )
    if changed != "UPDATE 0":
        await connection.execute(f"select wake_listeners($1), {UNAWAITED}", CHANNEL)


async def lock(connection: Connection, domain: str, application_id: str) -> State | None:
    """Lock the domain and its preparation until the transaction ends; return its state, None where there is none."""
    await certificates.lock_domain(connection, domain)
    state: State | None = await connection.fetchval(
        "select state from preparations where domain = $1 and application_id = $2 for update", domain, application_id
    )
    return state


async def delete(connection: Connection, domain: str, application_id: str) -> None:
    """Delete the preparation; what it enrolled is the caller's."""
    await connection.execute(
        "delete from preparations where domain = $1 and application_id = $2", domain, application_id
    )


# A monitor's work ------------------------------------------------------------------------------------------------


async def claim(connection: Connection, /, *, most: int, lease_seconds: float) -> list[ClaimedPreparation]:
    """Claim at most `most` preparations that are due, for `lease_seconds`."""
    rows = await connection.fetch(
        f"""
        with due as materialized (
            select id from preparations where due_at <= now() and {IS_FREE} order by due_at limit $1
            for update skip locked
        )
        update preparations set {ClaimTable.taken("$2")}
        from due where preparations.id = due.id
        returning preparations.id, application_id, domain, product, {_SETTINGS}, state,
            awaits_dns, expires_at <= now() as has_expired,
            extract(epoch from now() - asked_at)::float8 as asked_seconds, fence, attempts
        """,
        most,
        lease_seconds,
    )
    return [_read(ClaimedPreparation, row) for row in rows]


async def postpone(
    connection: Connection, claim: ClaimedPreparation, /, *, delay_seconds: float, last_error: str
) -> None:
    """Record a failed attempt, and make the preparation due again in `delay_seconds`."""
    await _TABLE.try_write(
        connection,
        claim,
        "lease_until = null, last_error = $3, due_at = clock_timestamp() + make_interval(secs => $4)",
        last_error,
        delay_seconds,
    )


async def record_look(
    connection: Connection,
    claim: ClaimedPreparation,
    *,
    is_delegated: bool | None,
    reason: str | None,
    next_look_seconds: float,
) -> None:
    """Record a look at the domain's DNS; `is_delegated` None keeps what was seen before.

    Raises: `FenceLost`.
    """
    await _TABLE.write(
        connection,
        claim,
        "lease_until = null, last_error = null, reason = $3, due_at = clock_timestamp() + make_interval(secs => $4),"
        " delegated_at = case when $5::boolean then coalesce(delegated_at, now()) when not $5 then null"
        " else delegated_at end",
        reason,
        next_look_seconds,
        is_delegated,
    )


async def record_enrolled(connection: Connection, claim: ClaimedPreparation, *, next_look_seconds: float) -> None:
    """Record that the domain is enrolled for the application, in the transaction that does so.

    Raises: `FenceLost`.
    """
    await _TABLE.write(
        connection,
        claim,
        "lease_until = null, last_error = null, reason = null, state = 'issuing',"
        " delegated_at = coalesce(delegated_at, now()), due_at = clock_timestamp() + make_interval(secs => $3)",
        next_look_seconds,
    )


async def finish_pending(connection: Connection, claim: ClaimedPreparation) -> None:
    """Record that a pending domain is enrolled, in the transaction that does so.

    Raises: `FenceLost`.
    """
    await _TABLE.write(
        connection, claim, "state = 'active', active_at = now(), due_at = null, lease_until = null, reason = null"
    )


async def list_pending(
    connection: Connection, applications: Sequence[str] | None, *, most: int
) -> list[tuple[str, str]]:
    """Return application and name of domains that wait, by name: of these applications, or of all."""
    rows = await connection.fetch(
        "select application_id, domain from preparations where state <> 'active'"
        " and ($1::text[] is null or application_id = any($1)) order by domain limit $2",
        None if applications is None else list(applications),
        most,
    )
    return [(row["application_id"], row["domain"]) for row in rows]


async def record_served(connection: Connection, domain: str, application_id: str) -> None:
    """Record, where the domain is being prepared, that every edge serves it, with an event for the application."""
    row = await connection.fetchrow(
        "update preparations set state = 'prepared', prepared_at = now()"
        " where domain = $1 and application_id = $2 and state = 'issuing' returning product, expires_at",
        domain,
        application_id,
    )
    if row is not None:
        name = parse_enrollable(domain)
        fields = {"product": row["product"], "prepared_until": row["expires_at"].isoformat()}
        event = events.NewEvent(application_id, "domain.prepared", name.registrable, name.subdomain, fields)
        await events.record(connection, event)


async def settle_waiting(connection: Connection, application_id: str, names: Sequence[str]) -> None:
    """End what is waited for of names that the application enrols by other means: what is enrolled now is newer.

    A claim of such a row is lost (`FenceLost`).
    """
    await connection.execute(
        "update preparations set state = 'active', active_at = now(), due_at = null, lease_until = null, reason = null"
        " where application_id = $1 and domain = any($2) and state = 'waiting'",
        application_id,
        list(names),
    )


async def activate(connection: Connection, domain: str, application_id: str) -> bool:
    """Make the prepared domain active, since its DNS leads here; return False where it is not prepared.

    Its owner is notified, where its certificate is live.
    """
    await certificates.lock_domain(connection, domain)
    row = await connection.fetchrow(
        "update preparations set state = 'active', active_at = now(), due_at = null, lease_until = null"
        " where domain = $1 and application_id = $2 and state in ('issuing', 'prepared')"
        " returning prepared_at is not null as is_served",
        domain,
        application_id,
    )
    if row is None:
        return False
    await connection.execute(
        "update domains set departed_at = null where domain = $1 and application_id = $2 and departed_at is not null",
        domain,
        application_id,
    )
    if row["is_served"]:
        await outcomes.record_success(connection, domain, application_id)
    return True


def _read(kind: type[_R], row: Record) -> _R:
    rest = {name: value for name, value in row.items() if name not in SETTINGS}
    return kind(settings=DomainSettings.of(dict(row)), **rest)
