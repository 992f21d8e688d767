"""Revocations: certificates to be revoked at their issuer, one row each, until that is done.

Owns the SQL of ``revocations``. The row is claimed work (`monitor.claims`). It carries the chain itself: the domain's
certificate is replaced or erased meanwhile.
"""

# ruff: noqa: S608 - what is formatted into SQL here are constants of this module

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime
from types import MappingProxyType
from typing import TYPE_CHECKING

from common.db.claim_table import IS_FREE, ClaimTable
from common.db.session import Connection

if TYPE_CHECKING:
    from common.db.certificates import RevokedCertificate

REASONS: Mapping[str, int] = MappingProxyType(
    {"unspecified": 0, "keyCompromise": 1, "affiliationChanged": 3, "superseded": 4, "cessationOfOperation": 5}
)
"""Those a subscriber may give (RFC 5280 §5.3.1; CA/Browser Forum Baseline Requirements §7.2.2)."""

KEPT_DAYS = 90
_MOST_COUNTED = 100_000
REPLACED_WITHIN_SECONDS = 24 * 3600.0
"""How long a certificate that is served waits for the one in its place, at most: as long as a CA has to revoke one
whose key is compromised (CA/Browser Forum Baseline Requirements §4.9.1.1). Revoked before, it would be served on."""

_TABLE = ClaimTable("revocations", key="id", key_type="bigint")

extend = _TABLE.extend
next_due_seconds = _TABLE.next_due_seconds


@dataclass(frozen=True, slots=True)
class Revocation:
    """A claimed revocation."""

    id: int
    domain: str
    issuer: str
    chain: str
    reason: int
    fence: int
    attempts: int

    @property
    def key(self) -> str:
        """Return what identifies the claim in its table: the id, as text."""
        return str(self.id)


@dataclass(frozen=True, slots=True)
class RevocationState:
    """A revocation for people to look at. `revoked_at` None: not yet."""

    reason: int
    requested_at: datetime
    revoked_at: datetime | None
    last_error: str | None


@dataclass(frozen=True, slots=True)
class RevocationBacklog:
    """The revocations that are requested and not done. `domain` is that of the oldest."""

    count: int
    oldest_seconds: float
    domain: str | None


async def measure_backlog(connection: Connection) -> RevocationBacklog:
    """Count the revocations that wait for a replacement, or for the CA."""
    row = await connection.fetchrow(
        "select count(*) as count, (array_agg(domain order by requested_at))[1] as domain,"
        " coalesce(extract(epoch from clock_timestamp() - min(requested_at)), 0)::float8 as oldest_seconds"
        " from (select domain, requested_at from revocations where due_at is not null limit $1) waiting",
        _MOST_COUNTED,
    )
    assert row is not None, "an aggregate has one row"
    return RevocationBacklog(**row)


async def describe(connection: Connection, domain: str) -> list[RevocationState]:
    """Return the domain's revocations, the latest first."""
    rows = await connection.fetch(
        "select reason, requested_at, revoked_at, last_error from revocations where domain = $1 order by id desc",
        domain,
    )
    return [RevocationState(**row) for row in rows]


async def request(
    connection: Connection,
    domain: str,
    application_id: str,
    revoked: RevokedCertificate,
    reason: int,
    *,
    at_once: bool = False,
) -> None:
    """Have the certificate revoked: once another is live in its place, or now where it is not served, or `at_once`."""
    await connection.execute(
        "insert into revocations (domain, application_id, issuer, chain, reason, due_at)"
        " values ($1, $2, $3, $4, $5, now() + make_interval(secs => $6))",
        domain,
        application_id,
        revoked.issuer,
        revoked.chain,
        reason,
        REPLACED_WITHIN_SECONDS if revoked.is_in_service and not at_once else 0.0,
    )


async def make_due(connection: Connection, domain: str) -> bool:
    """Make the domain's revocations due, and return whether any was waiting.

    Called when another certificate of the domain is live, or none is served any more.
    """
    changed: str = await connection.execute(
        "update revocations set due_at = now() where domain = $1 and due_at > now() and attempts = 0", domain
    )
    return changed != "UPDATE 0"


async def claim(connection: Connection, /, *, most: int, lease_seconds: float) -> list[Revocation]:
    """Claim at most `most` revocations that are due, for `lease_seconds`."""
    rows = await connection.fetch(
        f"""
        with due as materialized (
            select id from revocations where due_at <= now() and {IS_FREE} order by due_at limit $1
            for update skip locked
        )
        update revocations set {ClaimTable.taken("$2")}
        from due where revocations.id = due.id
        returning revocations.id, domain, issuer, chain, reason, fence, attempts
        """,
        most,
        lease_seconds,
    )
    return [Revocation(**row) for row in rows]


async def postpone(connection: Connection, claim: Revocation, /, *, delay_seconds: float, last_error: str) -> None:
    """Record a failed attempt, and make the revocation due again in `delay_seconds`."""
    await _TABLE.try_write(
        connection,
        claim,
        "lease_until = null, last_error = $3, due_at = clock_timestamp() + make_interval(secs => $4)",
        last_error,
        delay_seconds,
    )


async def record_revoked(connection: Connection, claim: Revocation) -> None:
    """Record that the issuer has revoked the certificate.

    Raises: `FenceLost`.
    """
    await _TABLE.write(connection, claim, "due_at = null, lease_until = null, last_error = null, revoked_at = now()")
