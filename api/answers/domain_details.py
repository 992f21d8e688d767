"""What powered and secured domains have in common as answers: id, times, certificate and notes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime
from typing import Literal

from typing_extensions import TypedDict

from common.db.domain_pages import ListedDomain

ProductStatus = Literal["active", "inactive"]


class CertificateInService(TypedDict):
    """The certificate that edges present."""

    issuer: str
    expiresAt: datetime


class StatusLink(TypedDict):
    """A link to the page that shows a customer how one domain is."""

    domain: str
    link: str
    """It opens that page and nothing else. A new link of the domain ends it."""
    createdAt: datetime
    expiresAt: datetime


class DomainDetails(TypedDict):
    """The id, times and certificate of a powered or secured domain."""

    id: str
    createdAt: datetime
    updatedAt: datetime
    """When its settings were last changed by a call."""
    certificate: CertificateInService | None
    """Null until there is one."""
    metadata: Mapping[str, str]
    """The application's notes; empty where it keeps none."""


def details(domain: ListedDomain) -> DomainDetails:
    """Render the id, times and certificate of a domain."""
    certificate: CertificateInService | None = None
    if domain.issuer is not None and domain.not_after is not None:
        certificate = {"issuer": domain.issuer, "expiresAt": domain.not_after}
    return {
        "id": _id(domain),
        "createdAt": domain.created_at,
        "updatedAt": domain.updated_at,
        "certificate": certificate,
        "metadata": {**(domain.metadata or {})},
    }


def _id(domain: ListedDomain) -> str:
    """Return the id of an enrolment: a name that is removed and added again gets another."""
    identity = f"{domain.product} {domain.domain} {domain.created_at.timestamp():.6f}"
    return f"dom_{hashlib.sha256(identity.encode()).hexdigest()[:24]}"
