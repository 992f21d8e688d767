"""What checks make of a domain, told as stories and tried against a plain model."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from common.db.checks import Check
from common.record_checks.verdicts import RecordVerdict
from common.record_sets import LastResult, Records
from common.records import Record
from monitor.checks.transitions import Transition, decide, decide_report

PRESENT, MISSING, UNKNOWN = RecordVerdict.PRESENT, RecordVerdict.MISSING, RecordVerdict.UNKNOWN
HOUR = 3600.0
A, B, C = (Record("A", host, "192.0.2.1", 300) for host in "abc")
BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)


def first_check(*records: Record) -> Check:
    whose = ("mon_1", "app", "customer.example", None, None, None)
    return Check(*whose, records, LastResult(), None, None, 1, 1, BEGINNING)


@dataclass
class Story:
    """A domain checked round after round, each outcome carried into the next."""

    check: Check
    told: list[tuple[str, Records]] = field(default_factory=list)

    def round(self, *verdicts: RecordVerdict, is_mass: bool = False, is_released: bool = False) -> Transition:
        transition = decide(self.check, verdicts, round_seconds=HOUR)
        report = decide_report(self.check, transition, is_mass=is_mass, is_released=is_released)
        if report.event:
            self.told.append((report.event.removeprefix("domain.record_"), transition.missing or ()))
        self.check = replace(
            self.check,
            seen=LastResult(transition.state, transition.present, transition.missing),
            reported=report.reported,
            held_at=report.held_at,
            claimed_at=self.check.claimed_at + timedelta(seconds=HOUR),
        )
        return transition


def test_a_record_missing_at_the_first_check_is_told() -> None:
    story = Story(first_check(A, B))
    transition = story.round(PRESENT, MISSING)
    assert (transition.state, transition.present, transition.missing) == ("missing", (A,), (B,))
    assert story.told == [("missing", (B,))]
    assert not transition.has_turned


def test_lost_and_found_are_each_told_once() -> None:
    story = Story(first_check(A, B))
    for verdicts in [
        (PRESENT, PRESENT),
        (PRESENT, MISSING),
        (PRESENT, MISSING),
        (PRESENT, PRESENT),
        (PRESENT, PRESENT),
    ]:
        story.round(*verdicts)
    assert story.told == [("missing", (B,)), ("restored", ())]


def test_a_further_one_is_told_with_all_that_is_missing() -> None:
    story = Story(first_check(A, B))
    story.round(MISSING, PRESENT)
    story.round(MISSING, MISSING)
    assert story.told == [("missing", (A,)), ("missing", (A, B))]


def test_one_that_comes_back_and_goes_again_is_told_again() -> None:
    story = Story(first_check(A, B))
    story.round(MISSING, MISSING)
    story.round(PRESENT, MISSING)
    story.round(MISSING, MISSING)
    assert [event for event, _ in story.told] == ["missing", "missing"]


def test_unknown_leaves_everything_as_it_was() -> None:
    story = Story(first_check(A, B))
    assert (story.round(UNKNOWN, UNKNOWN).state, story.check.seen) == ("unchecked", LastResult())
    story.round(PRESENT, MISSING)
    before = story.check.seen
    story.round(UNKNOWN, UNKNOWN)
    assert story.check.seen == before
    assert len(story.told) == 1


def test_restored_waits_for_one_complete_check() -> None:
    story = Story(first_check(A, B))
    story.round(MISSING, PRESENT)
    story.round(PRESENT, UNKNOWN)
    assert len(story.told) == 1
    story.round(UNKNOWN, PRESENT)
    assert len(story.told) == 1
    story.round(PRESENT, PRESENT)
    assert story.told[1:] == [("restored", ())]


def test_a_record_never_known_is_in_neither_list() -> None:
    story = Story(first_check(A, B))
    transition = story.round(PRESENT, UNKNOWN)
    assert (transition.state, transition.present, transition.missing) == ("unchecked", (A,), ())
    assert story.round(PRESENT, MISSING).has_turned is False
    assert story.told == [("missing", (B,))]


def test_no_records_are_all_there() -> None:
    story = Story(first_check())
    transition = story.round()
    assert (transition.state, transition.present, transition.missing) == ("present", (), ())
    assert story.told == []


def test_held_alarms_go_out_when_the_next_round_confirms() -> None:
    story = Story(first_check(A))
    story.round(PRESENT)
    assert story.round(MISSING, is_mass=True).has_turned
    assert story.check.held_at is not None
    assert story.told == []
    assert not story.round(MISSING, is_mass=True).has_turned
    assert story.told == [("missing", (A,))]
    assert story.check.held_at is None


def test_a_held_alarm_that_was_false_is_never_told() -> None:
    story = Story(first_check(A))
    story.round(PRESENT)
    story.round(MISSING, is_mass=True)
    story.round(PRESENT)
    assert story.check.held_at is None
    story.round(PRESENT)
    assert story.told == []


def test_a_held_alarm_is_not_confirmed_by_silence_nor_within_its_round() -> None:
    story = Story(first_check(A))
    story.round(PRESENT)
    story.round(MISSING, is_mass=True)
    story.check = replace(story.check, claimed_at=story.check.claimed_at - timedelta(seconds=HOUR - 1))
    story.round(MISSING, is_mass=False)
    story.round(UNKNOWN)
    assert story.told == []
    story.round(MISSING)
    assert story.told == [("missing", (A,))]


def test_an_operator_lets_held_alarms_out() -> None:
    story = Story(first_check(A))
    story.round(PRESENT)
    story.round(MISSING, is_mass=True)
    story.check = replace(story.check, claimed_at=story.check.claimed_at - timedelta(seconds=HOUR - 1))
    story.round(MISSING, is_mass=True, is_released=True)
    assert story.told == [("missing", (A,))]


rounds = st.lists(st.tuples(*[st.sampled_from(list(RecordVerdict))] * 3), max_size=12)


@given(rounds)
def test_any_story_tells_what_a_partner_needs_and_no_more(
    story: list[tuple[RecordVerdict, RecordVerdict, RecordVerdict]],
) -> None:
    """The model: last known state of each record; an alarm per round in which one newly goes missing; restored when
    all are found at once after an alarm."""
    records, known = (A, B, C), dict.fromkeys((A, B, C), UNKNOWN)
    told = Story(first_check(*records))
    expected: list[tuple[str, Records]] = []
    is_alarmed = False
    for verdicts in story:
        told.round(*verdicts)
        new = [
            record
            for record, verdict in zip(records, verdicts, strict=True)
            if verdict is MISSING and known[record] is not MISSING
        ]
        known |= {r: verdict for r, verdict in zip(records, verdicts, strict=True) if verdict is not UNKNOWN}
        if new:
            expected.append(("missing", tuple(record for record in records if known[record] is MISSING)))
            is_alarmed = True
        elif set(verdicts) == {PRESENT} and is_alarmed:
            expected.append(("restored", ()))
            is_alarmed = False
        assert told.told == expected
        seen = told.check.seen
        assert set(seen.missing or ()) == {record for record in records if known[record] is MISSING}
        assert set(seen.present or ()) == {record for record in records if known[record] is PRESENT}
