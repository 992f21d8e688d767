"""Certificates that partners bring, and the requests for them that hold a key of ours, as rows.

Owns the SQL of ``own_certificates`` and ``certificate_requests``. Keys arrive and stay sealed, under the
identity of the domain's own (`common.db.certificates.key_identity`).

Rules
    A domain's rows change only under `certificates.lock_domain`, and leave with the domain (`certificates.release`).
    While the row is there edges present its certificate. The domain's order goes on: its certificate stands by.
    Warnings of its end go out `WARNED_DAYS` before it. With the last one, the certificate that stands by takes over as
    soon as it can, which means that it is valid for longer; until then the partner's stays.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from common.db.session import Connection

WARNED_DAYS = (30, 14, 7, 1)
REQUEST_KEPT_DAYS = 90
_ASKED_AGAIN_SECONDS = 300.0


@dataclass(frozen=True, slots=True)
class OwnCertificate:
    """A certificate that a partner brought, for people to look at. `serial` is hexadecimal."""

    domain: str
    application_id: str
    issuer: str
    serial: str
    names: tuple[str, ...]
    not_before: datetime
    not_after: datetime
    stored_at: datetime


@dataclass(frozen=True, slots=True)
class CertificateRequest:
    """A request to sign (PEM, PKCS #10) whose key is kept here."""

    request: str
    requested_at: datetime


@dataclass(frozen=True, slots=True)
class EndingCertificate:
    """A partner's certificate of which a warning is due, or whose last day has come.

    `warns`: whether a warning is due. `has_replacement`: a certificate of ours stands by that is valid for longer.
    """

    domain: str
    application_id: str
    serial: str
    not_after: datetime
    days_left: int
    warns: bool
    has_replacement: bool

    @property
    def is_last_day(self) -> bool:
        """Return whether ours takes over now, where there is one."""
        return self.days_left <= WARNED_DAYS[-1]


_COLUMNS = "domain, application_id, issuer, serial, names, not_before, not_after, stored_at"


async def find(connection: Connection, domain: str) -> OwnCertificate | None:
    """Return the certificate that the domain's partner brought and edges present, or None."""
    row = await connection.fetchrow(
        f"select {_COLUMNS} from own_certificates where domain = $1",  # noqa: S608 - a constant
        domain,
    )
    return None if row is None else OwnCertificate(**{**row, "names": tuple(row["names"])})


async def find_request(connection: Connection, domain: str, application_id: str) -> CertificateRequest | None:
    """Return the application's open request for the domain, or None."""
    row = await connection.fetchrow(
        "select request, requested_at from certificate_requests where domain = $1 and application_id = $2",
        domain,
        application_id,
    )
    return None if row is None else CertificateRequest(**row)


async def add_request(
    connection: Connection, domain: str, application_id: str, *, request: str, private_key: bytes
) -> None:
    """Keep a request and its sealed key until the certificate is brought; the domain has none yet."""
    await connection.execute(
        "insert into certificate_requests (domain, application_id, request, private_key) values ($1, $2, $3, $4)",
        domain,
        application_id,
        request,
        private_key,
    )


async def store(connection: Connection, certificate: OwnCertificate, *, chain: str, private_key: bytes | None) -> None:
    """Have edges present the certificate in place of the one so far; None takes the key of the open request.

    It is valid for longer than the last of `WARNED_DAYS`. A request that was signed ends.
    """
    warnings = (certificate.not_after - timedelta(days=days) for days in WARNED_DAYS)
    # No update: it would need the right to read the key, which the API does not have.
    await connection.execute("delete from own_certificates where domain = $1", certificate.domain)
    await connection.execute(
        """
        insert into own_certificates
            (domain, application_id, issuer, serial, names, chain, private_key, not_before, not_after, stored_at,
            due_at)
        values ($1, $2, $3, $4, $5, $6,
            coalesce($7, (select r.private_key from certificate_requests r where r.domain = $1)), $8, $9, $10, $11)
        """,
        certificate.domain,
        certificate.application_id,
        certificate.issuer,
        certificate.serial,
        list(certificate.names),
        chain,
        private_key,
        certificate.not_before,
        certificate.not_after,
        certificate.stored_at,
        min(at for at in warnings if at > certificate.stored_at),
    )
    if private_key is None:
        await connection.execute("delete from certificate_requests where domain = $1", certificate.domain)


async def remove(connection: Connection, domain: str) -> bool:
    """Have edges present our certificate again, and forget an open request. Return whether there was either."""
    removed = [
        await connection.execute("delete from own_certificates where domain = $1", domain),
        await connection.execute("delete from certificate_requests where domain = $1", domain),
    ]
    return removed != ["DELETE 0", "DELETE 0"]


async def find_ending(connection: Connection, *, most: int) -> list[str]:
    """Return domains whose certificate is to be warned of, or has its last day."""
    rows = await connection.fetch(
        "select domain from own_certificates where due_at <= now() order by due_at limit $1", most
    )
    return [row["domain"] for row in rows]


async def take_ending(connection: Connection, domain: str) -> EndingCertificate | None:
    """Return what is due of the domain's certificate and mark it as done; None if another worker has done it.

    Runs in the transaction that holds the domain's lock.
    """
    row = await connection.fetchrow(
        """
        with due as (
            select *, (select min(each) from unnest($2::int[]) each
                where not_after - make_interval(days => each) <= now()) as passed
            from own_certificates where domain = $1 and due_at <= now()
        )
        update own_certificates o set warned_days = due.passed, due_at = coalesce(
            (select min(at) from (select o.not_after - make_interval(days => each) as at from unnest($2::int[]) each)
                warnings where at > now()),
            now() + make_interval(secs => $3))
        from due where o.domain = due.domain
        returning o.domain, o.application_id, o.serial, o.not_after, due.passed as days_left,
            due.passed is distinct from due.warned_days as warns,
            exists (select from certificates c where c.domain = o.domain and c.application_id = o.application_id
                and c.released_at is null and c.not_after > o.not_after and c.not_after > now()) as has_replacement
        """,
        domain,
        list(WARNED_DAYS),
        _ASKED_AGAIN_SECONDS,
    )
    return None if row is None or row["days_left"] is None else EndingCertificate(**row)
