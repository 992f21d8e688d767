from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from edge.proxy.upload_store import UploadBudget

MOVES = st.lists(st.tuples(st.sampled_from("abcdef"), st.integers(1, 60)), max_size=60)


def test_one_application_has_a_quarter_and_leaves_the_rest_to_others() -> None:
    budget = UploadBudget(100)
    assert budget.take("greedy", 25)
    assert not budget.take("greedy", 1)
    assert budget.take("modest", 25)
    budget.give_back("greedy", 10)
    assert budget.take("greedy", 10)
    assert not budget.take("greedy", 1)


def test_all_applications_together_keep_the_total() -> None:
    budget = UploadBudget(100)
    assert all(budget.take(name, 25) for name in "abcd")
    assert not budget.take("e", 1)
    budget.give_back("b", 25)
    assert budget.take("e", 25)


@given(MOVES)
def test_what_was_taken_is_what_is_counted_and_nothing_stays_when_all_is_given_back(
    moves: list[tuple[str, int]],
) -> None:
    budget = UploadBudget(200)
    taken = [(name, size) for name, size in moves if budget.take(name, size)]
    assert budget.used_bytes == sum(size for _, size in taken) <= 200
    for name in "abcdef":
        assert sum(size for each, size in taken if each == name) <= 50
    for name, size in taken:
        budget.give_back(name, size)
    assert budget.used_bytes == 0
    assert all(budget.take(name, 50) for name in "abcd")
