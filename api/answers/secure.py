"""Secured domains, and whether one is eligible."""

from __future__ import annotations

from typing import NotRequired

from typing_extensions import TypedDict

from api.answers.domain_details import DomainDetails, ProductStatus, details
from api.answers.messages import Noted
from api.services import secure as service
from common.db.domain_pages import ListedDomain


class Redirect(TypedDict):
    """Where visitors are sent on to, if they are."""

    redirectTo: NotRequired[str | None]


class SecuredDomain(DomainDetails, Redirect):
    """A secured domain."""

    domain: str
    applicationUrl: str
    secureStatus: ProductStatus


class ChangedSecuredDomain(SecuredDomain, Noted):
    """A secured domain after a change, for `Prefer: return=representation`."""


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
    """Render a secured domain, as lists and preferred answers show it; `redirectTo` only while it redirects."""
    redirect: Redirect = {"redirectTo": domain.redirect_to} if domain.redirect_to else {}
    return {
        "domain": domain.domain,
        "applicationUrl": domain.application_url,
        "secureStatus": domain.status,
        **details(domain),
        **redirect,
    }


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
