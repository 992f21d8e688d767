"""Powered domains, and whether one is eligible."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NotRequired

from typing_extensions import TypedDict

from api.answers.domain_details import DomainDetails, ProductStatus, details
from api.services.power import Eligibility
from common.db.domain_pages import ListedDomain


class PoweredDomain(TypedDict):
    """A powered domain."""

    domain: str
    applicationUrl: str
    powerRootPathAccess: Sequence[str]
    powerStatus: ProductStatus


class DetailedPoweredDomain(PoweredDomain, DomainDetails):
    """A powered domain as a sorted or searched list shows it."""


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
    """Render an item of the list of powered domains."""
    return {
        "domain": domain.domain,
        "applicationUrl": domain.application_url,
        "powerRootPathAccess": domain.root_path_access,
        "powerStatus": domain.status,
    }


def detailed_powered_domain(domain: ListedDomain) -> DetailedPoweredDomain:
    """Render an item of a sorted or searched list of powered domains."""
    return {**powered_domain(domain), **details(domain)}


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
