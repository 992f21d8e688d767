"""Changes of what is enrolled, each with its entry in the audit log.

The one way in which the services of the API, of the monitor and of enrolment itself change an enrolment.

Each function runs in the transaction that its caller opens, so that neither the change nor its entry is there without
the other. Which application may have a name is decided before (`common.enrolment.rules`); the rows are
`common.db.domains`' and `common.db.ownership`'.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from common.db import audit, domains, own_certificates, ownership, preparations
from common.db.domains import NewDomain, Product
from common.db.own_certificates import OwnCertificate
from common.db.ownership import EndReason
from common.db.preparations import Wanted
from common.db.session import Connection
from common.domain_settings import DomainSettings
from common.enrolment.ownership import OwnershipClaim


async def enrol(
    connection: Connection,
    domain: str,
    product: Product,
    application_id: str,
    settings: DomainSettings,
    claim: OwnershipClaim | None = None,
) -> None:
    """Enrol the domain in the product. Raises: `AlreadyEnrolled` (in Power), `EnrolledTooOften`."""
    store = domains.power if product == "power" else domains.secure
    await store(connection, domain, application_id, settings, claim)
    await preparations.settle_waiting(connection, application_id, [domain])
    after = settings.given() | {"claim": claim}
    await audit.record(connection, f"{product}.enrol", domain, application_id=application_id, after=after)


async def enrol_prepared(
    connection: Connection, domain: str, product: Product, application_id: str, settings: DomainSettings
) -> None:
    """Change the settings of a domain that was prepared and is enrolled now, recorded as any enrolment."""
    await domains.update(connection, domain, product, application_id, settings)
    await audit.record(connection, f"{product}.enrol", domain, application_id=application_id, after=settings.given())


async def prepare(connection: Connection, application_id: str, wanted: Wanted) -> None:
    """Enrol the domain as inactive, before its DNS leads here."""
    await domains.prepare(connection, application_id, wanted)
    product, after = wanted.product, wanted.settings.given() | {"claim": OwnershipClaim.DELEGATION}
    await audit.record(connection, f"{product}.enrol", wanted.domain, application_id=application_id, after=after)


async def update(
    connection: Connection, domain: str, product: Product, application_id: str, settings: DomainSettings
) -> bool:
    """Change the settings that are given. Return whether the application has the domain in the product."""
    async with audit.recorded(
        connection,
        f"{product}.update",
        domain,
        lambda: domains.settings_of(connection, domain, product, application_id),
        application_id=application_id,
    ):
        return await domains.update(connection, domain, product, application_id, settings)


async def remove(connection: Connection, domain: str, product: Product, application_id: str) -> bool:
    """Take the product from the domain. Return whether the application had it."""
    before = await domains.remove(connection, domain, product, application_id)
    if before is None:
        return False
    await audit.record(connection, f"{product}.remove", domain, application_id=application_id, before=before)
    return True


async def enrol_by_hand(connection: Connection, application_id: str, new: Sequence[NewDomain]) -> None:
    """Enrol names that no other application holds, by an operator's word (`domains.enrol_by_hand`)."""
    await domains.enrol_by_hand(connection, application_id, new)
    await preparations.settle_waiting(connection, application_id, sorted({each.domain for each in new}))
    claim = {"claim": OwnershipClaim.OPERATOR}
    for product in ("power", "secure"):
        changes = {each.domain: each.settings.given() | claim for each in new if each.product == product}
        await audit.record_many(connection, f"{product}.enrol", changes, application_id=application_id)


async def keep_own_certificate(
    connection: Connection, certificate: OwnCertificate, *, chain: str, private_key: bytes | None
) -> None:
    """Have edges present a certificate that the domain's partner brought (`own_certificates.store`)."""
    before = await own_certificates.find(connection, certificate.domain)
    await own_certificates.store(connection, certificate, chain=chain, private_key=private_key)
    await audit.record(
        connection,
        "certificate.bring",
        certificate.domain,
        application_id=certificate.application_id,
        before=None if before is None else _described(before),
        after=_described(certificate),
    )


async def end_own_certificate(connection: Connection, domain: str, application_id: str) -> bool:
    """Have edges present our certificate again, and forget an open request. Return whether there was either."""
    before = await own_certificates.find(connection, domain)
    if not await own_certificates.remove(connection, domain):
        return False
    await audit.record(
        connection,
        "certificate.end_own",
        domain,
        application_id=application_id,
        before=None if before is None else _described(before),
    )
    return True


def _described(certificate: OwnCertificate) -> dict[str, Any]:
    return {
        "issuer": certificate.issuer,
        "serial": certificate.serial,
        "not_after": f"{certificate.not_after:%Y-%m-%d}",
    }


async def revoke_ownership(connection: Connection, domain: str, holder: str, reason: EndReason) -> bool:
    """End all that the holder has of the name. Return whether it held the name."""
    held = await ownership.revoke_ownership(connection, domain, holder, reason)
    if held:
        await record_loss(connection, domain, holder, reason)
    return held


async def record_loss(connection: Connection, domain: str, holder: str, reason: EndReason) -> None:
    """Record for its former holder that a name was taken away."""
    await audit.record(connection, f"domain.{reason}", domain, application_id=holder)
