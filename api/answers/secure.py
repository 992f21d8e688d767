"""Secured domains, and whether one is eligible."""

from __future__ import annotations

from typing import NotRequired

from typing_extensions import TypedDict

from api.answers.domain_details import DomainDetails, ProductStatus, details
from api.services import secure as service
from common.db.domain_pages import ListedDomain


class SecuredDomain(TypedDict):
    """A secured domain."""

    domain: str
    applicationUrl: str
    secureStatus: ProductStatus
    redirectTo: NotRequired[str | None]
    """Where visitors are sent on to, if they are."""


class DetailedSecuredDomain(SecuredDomain, DomainDetails):
    """A secured domain as a sorted or searched list shows it."""


class SslEligibility(TypedDict):
    """Whether a domain can be secured."""

    eligible: bool
    """The domain has the CNAME and no certificate yet."""
    sslStatus: ProductStatus
    cnameTarget: str
    applicationUrl: str
    redirectTo: NotRequired[str | None]
    hint: NotRequired[str | None]


def secured_domain(domain: ListedDomain) -> SecuredDomain:
    """Render an item of the list of secured domains; `redirectTo` only while visitors are redirected."""
    answer: SecuredDomain = {
        "domain": domain.domain,
        "applicationUrl": domain.application_url,
        "secureStatus": domain.status,
    }
    if domain.redirect_to:
        answer["redirectTo"] = domain.redirect_to
    return answer


def detailed_secured_domain(domain: ListedDomain) -> DetailedSecuredDomain:
    """Render an item of a sorted or searched list of secured domains."""
    return {**secured_domain(domain), **details(domain)}


def ssl_eligibility(found: service.SslEligibility) -> SslEligibility:
    """Render whether a domain can be secured; a redirect and a hint only where there are such."""
    answer: SslEligibility = {
        "eligible": found.is_eligible,
        "sslStatus": found.status,
        "cnameTarget": found.cname_target,
        "applicationUrl": found.application_url,
    }
    if found.redirect_to:
        answer["redirectTo"] = found.redirect_to
    if found.hint:
        answer["hint"] = found.hint
    return answer
