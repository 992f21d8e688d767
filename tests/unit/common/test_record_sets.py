"""Sets of monitored records: what edits make of them, and what is still known after one."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from common.record_sets import LastResult, Records, carry_over, distinct, without
from common.records import Record, identity


def record(number: int, ttl: int = 300) -> Record:
    return Record("A", f"h{number}", "192.0.2.1", ttl)


sets = st.lists(st.builds(record, st.integers(0, 6), st.integers(1, 3)), max_size=10).map(distinct)


def identities(records: Records) -> set[tuple[object, ...]]:
    return set(map(identity, records))


def test_of_records_the_dns_cannot_tell_apart_the_first_stays() -> None:
    first, again = Record("CNAME", "www", "a.test", 1), Record("CNAME", "WWW", "A.test.", 2)
    assert distinct([first, record(1), again]) == (first, record(1))


def test_records_are_taken_out_whatever_their_ttl() -> None:
    assert without((record(1), record(2)), (record(2, ttl=9), record(3))) == (record(1),)


def test_before_the_first_check_nothing_is_known() -> None:
    assert carry_over(LastResult(), (record(1),)) == LastResult()


@given(before=sets, after=sets, found=st.sets(st.integers(0, 6)))
def test_an_edit_neither_invents_nor_forgets(before: Records, after: Records, found: set[int]) -> None:
    present = tuple(each for each in before if int(each.host[1:]) in found)
    missing = without(before, present)
    seen = carry_over(LastResult("missing" if missing else "present", present, missing), after)

    assert seen.present is not None
    assert seen.missing is not None
    assert identities(seen.present) == identities(after) & identities(present)
    assert identities(seen.missing) == identities(after) & identities(missing)
    assert set(seen.present) | set(seen.missing) <= set(after)
    if identities(seen.missing):
        assert seen.state == "missing"
    else:
        assert seen.state == ("present" if identities(after) <= identities(present) else "unchecked")


def test_an_alarm_not_yet_raised_is_not_raised_by_an_edit() -> None:
    """A check that found something missing but is not believed yet leaves the state as it was."""
    seen = carry_over(LastResult("present", (record(1),), (record(2),)), (record(1), record(2)))
    assert seen.state == "unchecked"
