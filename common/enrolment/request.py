"""What an enrolment asks for, and the policy that it goes by."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

from common.db.applications import Application
from common.db.domains import Domain, Product
from common.domain_settings import NO_SETTINGS, DomainSettings
from common.names import DomainName

IfEnrolled: TypeAlias = Literal["refuse", "keep", "change"]
"""What becomes of a name that the application has already: refused, kept if it is as asked for, or changed."""


@dataclass(frozen=True, slots=True)
class EnrolmentRequest:
    """A name and the settings it gets."""

    product: Product
    name: DomainName
    settings: DomainSettings = NO_SETTINGS

    def is_met_by(self, domain: Domain) -> bool:
        """Return whether the enrolled domain has the product and every setting that is given."""
        given = self.settings.given().items()
        return domain.product == self.product and all(getattr(domain, name) == value for name, value in given)


@dataclass(frozen=True, slots=True)
class EnrolmentPolicy:
    """Which of the rules apply. `powers_roots`: Power takes a root domain."""

    if_enrolled: IfEnrolled
    powers_roots: bool = True


PARTNER: Final = EnrolmentPolicy("refuse", powers_roots=False)
"""The policy of the API."""
FLOW: Final = EnrolmentPolicy("change")
"""The policy of a flow that the application's server began."""
BROWSER_FLOW: Final = EnrolmentPolicy("keep")
"""The policy of a flow that a browser began: it changes no name that is enrolled already."""
OPERATOR: Final = EnrolmentPolicy("change")
"""The policy of an operator's import (`common.enrolment.batch`), which asks nothing and counts nothing."""

PREPARATION: Final = EnrolmentPolicy("change", powers_roots=False)
"""The policy of a domain that is prepared before its DNS leads here."""


def cname_target_of(application: Application, product: Product) -> str:
    """Return the cname target that a name of the product leads through: Secure's own, or the one for both."""
    return (product == "secure" and application.secure_cname_target) or application.cname_target
