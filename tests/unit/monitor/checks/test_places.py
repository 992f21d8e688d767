"""Which of what is due may begin, among applications that take turns."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack

from hypothesis import given
from hypothesis import strategies as st

from common.db.checks import Due
from monitor.checks.places import Places

ALL = 10_000


def line(application_id: str, count: int, *, is_routine: bool = False) -> list[Due]:
    return [Due(f"{application_id}{is_routine}{number}", application_id, is_routine) for number in range(count)]


def shares(chosen: list[Due]) -> dict[str, int]:
    return dict(Counter(each.application_id for each in chosen))


def test_one_application_leaves_a_third_free() -> None:
    assert shares(Places().choose(line("a", 900), free=600, most_routine=ALL)) == {"a": 400}


def test_who_holds_its_share_already_gets_no_more_and_others_do() -> None:
    places = Places()
    with ExitStack() as held:
        for _ in range(400):
            held.enter_context(places.hold("a"))
        chosen = places.choose(line("a", 900) + line("b", 3), free=200, most_routine=ALL)
        assert shares(chosen) == {"b": 3}
        assert places.full(free=200) == ["a"]
    assert shares(places.choose(line("a", 1), free=600, most_routine=ALL)) == {"a": 1}, "given back"
    assert places.full(free=600) == []


def test_applications_take_turns_whoever_has_waited_longer() -> None:
    chosen = Places().choose(line("a", 900) + line("b", 900) + line("c", 2), free=600, most_routine=ALL)
    assert shares(chosen) == {"a": 239, "b": 239, "c": 2}


def test_what_was_asked_for_goes_before_what_is_merely_due() -> None:
    due = line("a", 5, is_routine=True) + line("a", 5)
    assert [each.is_routine for each in Places().choose(due, free=600, most_routine=ALL)] == [False] * 5 + [True] * 5


def test_only_what_is_merely_due_is_paced() -> None:
    due = line("a", 5, is_routine=True) + line("b", 5, is_routine=True) + line("b", 5)
    chosen = Places().choose(due, free=600, most_routine=4)
    assert Counter((each.application_id, each.is_routine) for each in chosen) == {
        ("b", False): 5,
        ("a", True): 4,
    }


applications = st.sampled_from("abcd")


@given(
    st.lists(st.tuples(applications, st.booleans()), max_size=80),
    st.lists(applications, max_size=20),
    st.integers(1, 40),
    st.integers(0, 40),
)
def test_nobody_holds_more_than_a_share_and_somebody_else_always_finds_room(
    wanted: list[tuple[str, bool]], holding: list[str], free: int, most_routine: int
) -> None:
    due = [Due(str(number), *each) for number, each in enumerate(wanted)]
    places = Places()
    with ExitStack() as held:
        for application_id in holding:
            held.enter_context(places.hold(application_id))
        chosen = places.choose(due, free=free, most_routine=most_routine)
    assert len(set(chosen)) == len(chosen) <= free - (1 if chosen else 0)
    assert set(chosen) <= set(due)
    assert sum(each.is_routine for each in chosen) <= most_routine
    taken = Counter(each.application_id for each in chosen)
    for application_id, count in taken.items():
        assert count + holding.count(application_id) <= 2 * (free - 1)
