"""The certificate of a domain, as its application sees it."""

from __future__ import annotations

from datetime import datetime
from typing import Literal

from typing_extensions import TypedDict

from api.services.own_certificates import ShownCertificate
from common.db.own_certificates import CertificateRequest


class SigningRequest(TypedDict):
    """A request for a certificate, whose key stays here."""

    domain: str
    request: str
    """PEM (PKCS #10): what an authority signs."""
    requested_at: datetime


class DomainCertificate(TypedDict):
    """The certificate that visitors get. What is null is not there yet."""

    domain: str
    source: Literal["own", "ours"] | None
    """`own`: brought by the application. `ours`: ordered and renewed by this service."""
    issuer: str | None
    """The authority's own name."""
    names: list[str]
    serial: str | None
    """In hexadecimal."""
    not_before: datetime | None
    not_after: datetime | None
    is_live: bool
    """Edges serve it."""
    stands_by: bool
    """Beside an own certificate: one of ours is ready to take over."""
    request: SigningRequest | None


def certificate_answer(shown: ShownCertificate) -> DomainCertificate:
    """Render the certificate of a domain."""
    served = shown.served
    return {
        "domain": shown.domain,
        "source": shown.source,
        "issuer": None if served is None else served.issuer,
        "names": list(served.names) if served else [],
        "serial": None if served is None else served.serial,
        "not_before": None if served is None else served.not_before,
        "not_after": None if served is None else served.not_after,
        "is_live": shown.is_live,
        "stands_by": shown.stands_by,
        "request": None if shown.request is None else signing_request(shown.domain, shown.request),
    }


def signing_request(domain: str, request: CertificateRequest) -> SigningRequest:
    """Render an open request."""
    return {"domain": domain, "request": request.request, "requested_at": request.requested_at}
