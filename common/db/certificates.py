"""Certificates as rows: one in service for each domain, released ones kept for the application that had them.

Owns the SQL of ``certificates``. Keys arrive and stay sealed; nothing here opens an envelope or speaks to an
issuer.

Rules
    A domain's certificate and order change only under `lock_domain`.
    At most one certificate of a domain is in service (``released_at is null``).
    A certificate is live once ``live_at`` is not older than ``issued_at``: during a renewal the old time
    stays, so that a domain that was live never seems to have lost its certificate.
    One that is being revoked is never adopted.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from cryptography import x509
from cryptography.x509.oid import NameOID

from common.db import delegations, locks, own_certificates, revocations
from common.db.session import Connection

KEPT_DAYS = 7
"""How long a released certificate can be adopted, before it is erased."""


@dataclass(frozen=True, slots=True)
class Certificate:
    """A certificate as issued. `chain` is PEM, leaf first; `private_key` is an envelope.

    `serial` and `authority`, as `describe_leaf` returns them, are those that it is found by.
    """

    issuer: str
    chain: str
    private_key: bytes
    not_before: datetime
    not_after: datetime
    serial: str | None = None
    authority: str | None = None


@dataclass(frozen=True, slots=True)
class InService:
    """The certificate that edges present for a domain, for people to look at. `live_at` may be of the one before."""

    issuer: str
    not_before: datetime
    not_after: datetime
    issued_at: datetime
    live_at: datetime | None
    serial: str | None = None


@dataclass(frozen=True, slots=True)
class RevokedCertificate:
    """A certificate that is to be revoked."""

    issuer: str
    chain: str
    is_in_service: bool


def key_identity(domain: str) -> str:
    """Return the identity under which a certificate's private key is sealed.

    It is made from the domain alone, so that the same application can adopt what it released.
    """
    return f"certificate/{domain}/private-key"


def describe_leaf(leaf: x509.Certificate) -> tuple[str, str]:
    """Return the serial number, in hexadecimal, and the name of the authority that signed it."""
    return f"{leaf.serial_number:x}", name_of(leaf.issuer)


def name_of(name: x509.Name) -> str:
    """Return how people call an authority or a holder."""
    parts = (NameOID.COMMON_NAME, NameOID.ORGANIZATION_NAME)
    words = ", ".join(str(each.value) for part in parts for each in name.get_attributes_for_oid(part))
    text = "".join(each for each in words or name.rfc4514_string() if each.isprintable())
    return text[:300] or "without a name"


async def lock_domain(connection: Connection, domain: str) -> None:
    """Keep other transactions from changing this domain's certificate and order until this one ends."""
    await locks.hold(connection, "domain", domain)


async def find_in_service(connection: Connection, domain: str, application_id: str) -> Literal["live", "new"] | None:
    """Return whether the application's valid certificate in service is `live` at all edges or `new`; None if none."""
    state: Literal["live", "new"] | None = await connection.fetchval(
        "select case when live_at is null then 'new' else 'live' end from certificates"
        " where domain = $1 and application_id = $2 and released_at is null and not_after > now()",
        domain,
        application_id,
    )
    return state


async def find_known(connection: Connection, domains: Collection[str]) -> set[str]:
    """Return the names that have an order, or a certificate of any application, in service or not."""
    rows = await connection.fetch(
        "select wanted.domain as name from unnest($1::text[]) as wanted (domain)"
        " where exists (select from orders o where o.domain = wanted.domain)"
        " or exists (select from certificates c where c.domain = wanted.domain)",
        list(domains),
    )
    return {row["name"] for row in rows}


async def adopt(connection: Connection, domain: str, application_id: str) -> bool:
    """Put the certificate that this application released back into service, if it is valid for another hour.

    Returns whether there was one.
    """
    status = await connection.execute(
        "update certificates set released_at = null, live_at = null"
        " where domain = $1 and application_id = $2 and released_at is not null"
        " and revoke_reason is null and not_after > now() + interval '1 hour'",
        domain,
        application_id,
    )
    return status == "UPDATE 1"


async def release(connection: Connection, domain: str) -> None:
    """Stop serving and ordering for a domain that no product has any more.

    Call it after the row in ``domains`` is deleted, in the same transaction, under `lock_domain`: while the other
    product still has the domain, its certificate stays.
    """
    if await connection.fetchval("select exists (select from domains where domain = $1)", domain):
        return
    await connection.execute("delete from orders where domain = $1", domain)
    await own_certificates.remove(connection, domain)
    await connection.execute("delete from preparations where domain = $1 and state <> 'waiting'", domain)
    await delegations.end_values(connection, domain)
    await connection.execute(
        "update certificates set released_at = now() where domain = $1 and released_at is null", domain
    )
    await revocations.make_due(connection, domain)


async def store(connection: Connection, domain: str, application_id: str, certificate: Certificate) -> None:
    """Put a fresh certificate into service in place of the application's last one."""
    await connection.execute(
        """
        insert into certificates
            (domain, application_id, issuer, chain, private_key, not_before, not_after, serial, authority, issued_at)
        values ($1, $2, $3, $4, $5, $6, $7, $8, $9, clock_timestamp())
        on conflict (domain, application_id) do update
        set issuer = excluded.issuer, chain = excluded.chain, private_key = excluded.private_key,
            not_before = excluded.not_before, not_after = excluded.not_after, issued_at = excluded.issued_at,
            live_at = case when certificates.released_at is null then certificates.live_at end,
            released_at = null, revoke_reason = null, replace_requested_at = null,
            serial = excluded.serial, authority = excluded.authority
        """,
        domain,
        application_id,
        certificate.issuer,
        certificate.chain,
        certificate.private_key,
        certificate.not_before,
        certificate.not_after,
        certificate.serial,
        certificate.authority,
    )


async def set_live(connection: Connection, domain: str) -> None:
    """Record that all edges serve the domain's certificate from now on."""
    await connection.execute(
        "update certificates set live_at = clock_timestamp() where domain = $1 and released_at is null",
        domain,
    )


async def chain_in_service(connection: Connection, domain: str) -> str | None:
    """Return the chain that edges present for the domain (PEM, leaf first), or None without a certificate."""
    chain: str | None = await connection.fetchval(
        "select chain from certificates where domain = $1 and released_at is null", domain
    )
    return chain


async def describe(connection: Connection, domain: str) -> InService | None:
    """Return the certificate that edges present for the domain, or None."""
    row = await connection.fetchrow(
        "select issuer, not_before, not_after, issued_at, live_at, serial from certificates"
        " where domain = $1 and released_at is null",
        domain,
    )
    return None if row is None else InService(**row)


async def mark_revoked(
    connection: Connection, domain: str, application_id: str, reason: int
) -> RevokedCertificate | None:
    """Mark the application's certificate for the domain as to be revoked, so that it is never adopted; return it.

    None if there is no valid one, served or kept, or if it is being revoked already.
    """
    row = await connection.fetchrow(
        "update certificates set revoke_reason = $3 where domain = $1 and application_id = $2"
        " and revoke_reason is null and not_after > now()"
        " returning issuer, chain, released_at is null as is_in_service",
        domain,
        application_id,
        reason,
    )
    return None if row is None else RevokedCertificate(**row)


async def last_released(connection: Connection, domain: str) -> str | None:
    """Return the id of the application whose certificate for the domain was released last and is kept, or None."""
    application_id: str | None = await connection.fetchval(
        "select application_id from certificates where domain = $1 and released_at is not null"
        " order by released_at desc limit 1",
        domain,
    )
    return application_id
