"""Why names are refused: the order of the rules, and that each caller has words for every code."""

from __future__ import annotations

import pytest

from api.services import enrolment_refusals
from common.dns import Outcome
from common.enrolment import rules
from common.enrolment.domain_claims import Assessment
from common.enrolment.eligibility import EligibilityFindings
from common.enrolment.outcome import EnrolmentCode, EnrolmentRefused
from common.enrolment.ownership import OwnershipClaim, OwnershipEvidence, OwnershipVerdict
from common.enrolment.refusal_words import WORDS


def test_each_code_has_words_and_an_error_of_the_api() -> None:
    assert set(enrolment_refusals.ROWS) == set(WORDS) == set(EnrolmentCode)
    for code, row in enrolment_refusals.ROWS.items():
        assert row.hint is None or WORDS[code].partner is None, f"{code}: one of the two is never shown"


def test_an_import_has_words_for_each_verdict_that_asks_nothing() -> None:
    asking = {EnrolmentCode.LEADS_TO_HOLDER, EnrolmentCode.HELD_UNKNOWN, EnrolmentCode.UNPROVEN}
    of_verdicts = {EnrolmentCode(each.value) for each in OwnershipVerdict if each.value not in ("enrol", "move")}
    assert all(WORDS[code].operator for code in of_verdicts - asking)


def assessed(
    verdict: OwnershipVerdict, claim: OwnershipClaim | None, unresolved: Outcome | None, step_one: Outcome
) -> Assessment:
    return Assessment(verdict, OwnershipEvidence(claim), EligibilityFindings(claim, unresolved, step_one))


@pytest.mark.parametrize(
    ("verdict", "claim", "unresolved", "step_one", "refused"),
    [
        (OwnershipVerdict.RESERVED, None, Outcome.TIMEOUT, Outcome.TIMEOUT, EnrolmentCode.RESERVED),
        (OwnershipVerdict.UNPROVEN, None, None, Outcome.NO_DATA, EnrolmentCode.STEP_ONE),
        (OwnershipVerdict.UNPROVEN, None, None, Outcome.RECORDS, EnrolmentCode.NOT_ELIGIBLE),
        (OwnershipVerdict.UNPROVEN, None, Outcome.NO_NAME, Outcome.RECORDS, EnrolmentCode.NOT_ELIGIBLE),
        (OwnershipVerdict.UNPROVEN, None, Outcome.TIMEOUT, Outcome.RECORDS, EnrolmentCode.NOT_ASKED),
        (OwnershipVerdict.UNPROVEN, OwnershipClaim.ADDRESS, None, Outcome.RECORDS, EnrolmentCode.UNPROVEN),
        (OwnershipVerdict.ENROL, OwnershipClaim.CNAME, None, Outcome.RECORDS, None),
        (OwnershipVerdict.MOVE, OwnershipClaim.TXT, None, Outcome.RECORDS, None),
    ],
)
def test_a_name_that_leads_elsewhere_is_refused_for_that_before_its_proof_is_asked_for(
    verdict: OwnershipVerdict,
    claim: OwnershipClaim | None,
    unresolved: Outcome | None,
    step_one: Outcome,
    refused: EnrolmentCode | None,
) -> None:
    found = rules.judge(assessed(verdict, claim, unresolved, step_one))
    assert (found and found.code) == refused


def test_an_open_question_is_named() -> None:
    found = rules.judge(assessed(OwnershipVerdict.UNPROVEN, None, Outcome.TIMEOUT, Outcome.RECORDS))
    assert found == EnrolmentRefused(EnrolmentCode.NOT_ASKED, outcome=Outcome.TIMEOUT)
