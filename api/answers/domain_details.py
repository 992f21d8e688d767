"""What powered and secured domains have in common as answers: id, times, certificate and notes."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

from typing_extensions import TypedDict

from api.answers.application import Hsts
from api.rules.response_policy import Compression, ReferrerPolicy
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


class RateLimit(TypedDict):
    """How many requests each client may send."""

    requests: int
    """That many at once."""
    seconds: int
    """In so many, that many again."""


class VisitorRules(TypedDict):
    """Which visitors edges refuse."""

    allow: list[str]
    """Addresses and networks that alone may visit; empty: all."""
    deny: list[str]
    """Addresses and networks that may not, whatever is allowed."""
    rateLimit: RateLimit | None
    minimumTls: Literal["1.2", "1.3"] | None
    """The oldest version of TLS that is spoken; null: its application's."""


class DomainResponsePolicy(TypedDict):
    """What a domain states of what its responses carry; null: its application's applies."""

    hsts: Hsts | Literal["off"] | None
    nosniff: bool | None
    referrerPolicy: ReferrerPolicy | Literal["off"] | None
    compression: Compression | None
    fields: Mapping[str, str]
    """Others, by name, beside the application's; an empty text: not sent."""


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
    visitors: VisitorRules | None
    """Who may visit, how often, and over which TLS; null without such rules."""
    test: bool
    """Its application is for tests: the certificate is the internal authority's."""
    responsePolicy: DomainResponsePolicy | None
    """What responses carry before what the application states; null where all of it is the application's."""


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
        "visitors": _visitors(domain.visitors),
        "test": domain.is_test,
        "responsePolicy": _response_policy(domain.response_policy),
    }


def _visitors(kept: Mapping[str, Any] | None) -> VisitorRules | None:
    if kept is None:
        return None
    rate: RateLimit | None = None
    if (limit := kept.get("rateLimit")) is not None:
        rate = {"requests": limit["requests"], "seconds": limit.get("seconds", 1)}
    allow, deny = list(kept.get("allow", ())), list(kept.get("deny", ()))
    return {"allow": allow, "deny": deny, "rateLimit": rate, "minimumTls": kept.get("minimumTls")}


def _response_policy(kept: Mapping[str, Any] | None) -> DomainResponsePolicy | None:
    if kept is None:
        return None
    given = kept.get("hsts")
    hsts: Hsts | Literal["off"] | None = None if isinstance(given, Mapping) else given
    if isinstance(given, Mapping):
        subdomains, preload = (given.get(name, False) for name in ("includeSubDomains", "preload"))
        hsts = {"maxAge": given["maxAge"], "includeSubDomains": subdomains, "preload": preload}
    return {
        "hsts": hsts,
        "nosniff": kept.get("nosniff"),
        "referrerPolicy": kept.get("referrerPolicy"),
        "compression": kept.get("compression"),
        "fields": kept.get("fields", {}),
    }


def _id(domain: ListedDomain) -> str:
    """Return the id of an enrolment: a name that is removed and added again gets another."""
    identity = f"{domain.product} {domain.domain} {domain.created_at.timestamp():.6f}"
    return f"dom_{hashlib.sha256(identity.encode()).hexdigest()[:24]}"
