"""What answers of the DNS mean, without any DNS."""

import pytest

from common.dns import Outcome
from common.enrolment.eligibility import EligibilityFindings
from common.enrolment.ownership import OwnershipClaim

FOUND = Outcome.RECORDS


@pytest.mark.parametrize("outcome", [Outcome.NO_DATA, Outcome.NO_NAME])
def test_step_one_is_lacking_when_the_target_is_known_to_lead_nowhere(outcome: Outcome) -> None:
    findings = EligibilityFindings(OwnershipClaim.CNAME, None, outcome)

    assert findings.lacks_step_one
    assert not findings.is_eligible
    assert findings.unknown is None


@pytest.mark.parametrize("outcome", [Outcome.SERVER_FAILURE, Outcome.TIMEOUT])
def test_a_target_that_could_not_be_asked_leaves_eligibility_unknown(outcome: Outcome) -> None:
    findings = EligibilityFindings(OwnershipClaim.CNAME, None, outcome)

    assert not findings.lacks_step_one
    assert not findings.is_eligible
    assert findings.unknown is outcome


def test_a_domain_that_leads_elsewhere_is_not_eligible_whatever_the_target_does() -> None:
    assert EligibilityFindings(None, None, Outcome.TIMEOUT).unknown is None
    assert not EligibilityFindings(None, None, FOUND).is_eligible


def test_a_domain_that_is_not_there_comes_first() -> None:
    assert EligibilityFindings(None, Outcome.NO_NAME, FOUND).unknown is Outcome.NO_NAME
