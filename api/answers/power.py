"""Powered domains, and whether one is eligible."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NotRequired

from typing_extensions import TypedDict

from api.answers.domain_details import DomainDetails, ProductStatus, details
from api.answers.messages import Noted
from api.services.power import Eligibility
from common.db.domain_pages import ListedDomain


class PoweredDomain(DomainDetails):
    """A powered domain."""

    domain: str
    applicationUrl: str
    powerRootPathAccess: Sequence[str]
    powerStatus: ProductStatus


class ChangedPoweredDomain(PoweredDomain, Noted):
    """A powered domain after a change, for `Prefer: return=representation`."""


class PowerEligibility(TypedDict):
    """Whether a domain can be powered."""

    eligible: bool
    """The domain has a CNAME to the application's cname target and is not powered yet."""
    powerStatus: ProductStatus
    cnameTarget: str
    applicationUrl: str
    powerRootPathAccess: Sequence[str]
    hint: NotRequired[str | None]


def powered_domain(domain: ListedDomain) -> PoweredDomain:
    """Render a powered domain, as lists show it and as changes answer it where that is preferred."""
    return {
        "domain": domain.domain,
        "applicationUrl": domain.application_url,
        "powerRootPathAccess": domain.root_path_access,
        "powerStatus": domain.status,
        **details(domain),
    }


def power_eligibility(found: Eligibility) -> PowerEligibility:
    """Render whether a domain can be powered; a hint only where there is one."""
    answer: PowerEligibility = {
        "eligible": found.is_eligible,
        "powerStatus": found.status,
        "cnameTarget": found.cname_target,
        "applicationUrl": found.application_url,
        "powerRootPathAccess": found.root_path_access,
    }
    if found.hint:
        answer["hint"] = found.hint
    return answer
