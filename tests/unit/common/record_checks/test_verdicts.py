"""What answers say of a record, and when "missing" is believed."""

import pytest

from common.dns import Answer, Outcome
from common.record_checks.verdicts import RecordVerdict, confirm, judge_answer, judge_flattened
from common.records import Record

PRESENT, MISSING, UNKNOWN = RecordVerdict.PRESENT, RecordVerdict.MISSING, RecordVerdict.UNKNOWN
RECORD = Record("A", "@", "192.0.2.1", 300)


def addresses(*values: str) -> Answer:
    return Answer(Outcome.RECORDS if values else Outcome.NO_DATA, values)


@pytest.mark.parametrize(
    ("answer", "verdict"),
    [
        (addresses("192.0.2.9", "192.0.2.1"), PRESENT),
        (addresses("192.0.2.9"), MISSING),
        (Answer(Outcome.NO_DATA), MISSING),
        (Answer(Outcome.NO_NAME), MISSING),
        (Answer(Outcome.SERVER_FAILURE), UNKNOWN),
        (Answer(Outcome.TIMEOUT), UNKNOWN),
    ],
)
def test_could_not_ask_is_never_missing(answer: Answer, verdict: RecordVerdict) -> None:
    assert judge_answer(RECORD, answer) is verdict


@pytest.mark.parametrize(
    ("authorities", "others", "believed"),
    [
        # the zone's own servers confirm it
        ([MISSING], [], MISSING),
        ([MISSING, MISSING], [MISSING], MISSING),
        ([MISSING, UNKNOWN], [UNKNOWN], MISSING),
        # they know better than the resolver
        ([PRESENT], [], PRESENT),
        ([PRESENT, UNKNOWN], [MISSING], PRESENT),
        # somebody disagrees
        ([MISSING, PRESENT], [], UNKNOWN),
        ([MISSING], [PRESENT], UNKNOWN),
        ([MISSING], [MISSING, PRESENT], UNKNOWN),
        # they cannot be reached: two resolvers must agree
        ([], [MISSING], MISSING),
        ([UNKNOWN, UNKNOWN], [MISSING], MISSING),
        ([UNKNOWN], [MISSING, UNKNOWN], MISSING),
        ([UNKNOWN], [MISSING, PRESENT], UNKNOWN),
        ([UNKNOWN], [UNKNOWN], UNKNOWN),
        ([UNKNOWN], [PRESENT], UNKNOWN),
        ([], [], UNKNOWN),
    ],
)
def test_missing_is_believed_only_with_confirmation(
    authorities: list[RecordVerdict], others: list[RecordVerdict], believed: RecordVerdict
) -> None:
    assert confirm(authorities, others) is believed


NOTHING, SILENCE = addresses(), Answer(Outcome.TIMEOUT)


@pytest.mark.parametrize(
    ("owner", "target", "verdict"),
    [
        ([addresses("192.0.2.1"), NOTHING], [addresses("192.0.2.2", "192.0.2.1"), NOTHING], PRESENT),
        ([NOTHING, addresses("2001:db8::1")], [addresses("192.0.2.1"), addresses("2001:db8::1")], PRESENT),
        ([addresses("192.0.2.1"), SILENCE], [addresses("192.0.2.1"), SILENCE], PRESENT),
        ([addresses("192.0.2.9"), NOTHING], [addresses("192.0.2.1"), NOTHING], MISSING),
        ([NOTHING, NOTHING], [addresses("192.0.2.1"), NOTHING], MISSING),
        ([NOTHING, NOTHING], [SILENCE, SILENCE], MISSING),
        ([addresses("192.0.2.9"), NOTHING], [SILENCE, NOTHING], UNKNOWN),
        ([SILENCE, NOTHING], [addresses("192.0.2.1"), NOTHING], UNKNOWN),
    ],
)
def test_a_flattened_apex_shares_an_address_with_its_target(
    owner: list[Answer], target: list[Answer], verdict: RecordVerdict
) -> None:
    assert judge_flattened(owner, target) is verdict
