"""What the fault run takes for a lost write: answers that no state the name may be in can explain."""

from __future__ import annotations

from bench.monitor_faults.partners import Name, PartnerChange, State

ONE, TWO = frozenset({"one"}), frozenset({"two"})
POST, DELETE = PartnerChange("POST", False, ONE), PartnerChange("DELETE", False, frozenset())
ADD = PartnerChange("POST", True, TWO)


def name(*may_be: State) -> Name:
    return Name("shop.example", set(may_be))


def test_what_was_answered_with_success_holds() -> None:
    shop = name(None, TWO)
    assert shop.learn(POST, 201)
    assert shop.may_be == {ONE}
    assert not shop.see(None)


def test_what_was_not_answered_holds_or_not() -> None:
    shop = name(ONE)
    assert shop.learn(ADD, None)
    assert shop.learn(DELETE, 503)
    assert shop.may_be == {ONE, ONE | TWO, None}
    assert shop.see(ONE | TWO)
    assert shop.may_be == {ONE | TWO}


def test_a_refusal_tells_that_there_was_nothing_and_needs_that_to_be_possible() -> None:
    unknown, watched = name(ONE, None), name(ONE)
    assert unknown.learn(DELETE, 400)
    assert unknown.may_be == {None}
    assert not watched.learn(DELETE, 400)


def test_success_needs_something_to_succeed_with() -> None:
    assert not name(None).learn(ADD, 200)
