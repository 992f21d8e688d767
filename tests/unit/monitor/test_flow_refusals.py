"""A flow can say each reason for which the ownership of a name refuses it."""

from __future__ import annotations

import pytest

from common.enrolment.outcome import EnrolmentCode
from common.enrolment.ownership import OwnershipVerdict
from monitor.connect import enrolment

REFUSING = set(OwnershipVerdict) - {OwnershipVerdict.ENROL, OwnershipVerdict.MOVE}


@pytest.mark.parametrize("verdict", sorted(REFUSING))
def test_each_verdict_that_refuses_a_name_has_words(verdict: OwnershipVerdict) -> None:
    assert enrolment.HINTS[EnrolmentCode(verdict.value)]
