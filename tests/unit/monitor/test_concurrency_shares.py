"""Which due work may start, among tenants that take turns."""

from __future__ import annotations

from collections import Counter
from contextlib import ExitStack
from dataclasses import dataclass

from hypothesis import given
from hypothesis import strategies as st

from monitor.concurrency_shares import ConcurrencyShares


@dataclass(frozen=True)
class Job:
    name: str
    tenant: str
    is_routine: bool = False


def jobs(tenant: str, count: int, *, is_routine: bool = False) -> list[Job]:
    return [Job(f"{tenant}{is_routine}{number}", tenant, is_routine) for number in range(count)]


def by_tenant(chosen: list[Job]) -> dict[str, int]:
    return dict(Counter(each.tenant for each in chosen))


def test_one_tenant_leaves_a_third_free() -> None:
    assert by_tenant(ConcurrencyShares().choose(jobs("a", 900), free=600)) == {"a": 400}


def test_tenant_that_holds_its_share_gets_no_more_and_others_do() -> None:
    shares = ConcurrencyShares()
    with ExitStack() as held:
        for _ in range(400):
            held.enter_context(shares.hold("a"))
        chosen = shares.choose(jobs("a", 900) + jobs("b", 3), free=200)
        assert by_tenant(chosen) == {"b": 3}
        assert shares.full(free=200) == ["a"]
    assert by_tenant(shares.choose(jobs("a", 1), free=600)) == {"a": 1}, "given back"
    assert shares.full(free=600) == []


def test_tenants_take_turns_whatever_their_order() -> None:
    chosen = ConcurrencyShares().choose(jobs("a", 900) + jobs("b", 900) + jobs("c", 2), free=600)
    assert by_tenant(chosen) == {"a": 239, "b": 239, "c": 2}


def test_requested_work_goes_before_routine_work() -> None:
    due = jobs("a", 5, is_routine=True) + jobs("a", 5)
    assert [each.is_routine for each in ConcurrencyShares().choose(due, free=600)] == [False] * 5 + [True] * 5


def test_only_routine_work_is_paced() -> None:
    due = jobs("a", 5, is_routine=True) + jobs("b", 5, is_routine=True) + jobs("b", 5)
    chosen = ConcurrencyShares().choose(due, free=600, most_routine=4)
    assert Counter((each.tenant, each.is_routine) for each in chosen) == {("b", False): 5, ("a", True): 4}


tenants = st.sampled_from("abcd")


@given(
    st.lists(st.tuples(tenants, st.booleans()), max_size=80),
    st.lists(tenants, max_size=20),
    st.integers(1, 40),
    st.integers(0, 40),
)
def test_no_tenant_exceeds_its_share_and_a_slot_stays_free(
    wanted: list[tuple[str, bool]], holding: list[str], free: int, most_routine: int
) -> None:
    due = [Job(str(number), *each) for number, each in enumerate(wanted)]
    shares = ConcurrencyShares()
    with ExitStack() as held:
        for tenant in holding:
            held.enter_context(shares.hold(tenant))
        chosen = shares.choose(due, free=free, most_routine=most_routine)
    assert len(set(chosen)) == len(chosen) <= free - (1 if chosen else 0)
    assert set(chosen) <= set(due)
    assert sum(each.is_routine for each in chosen) <= most_routine
    for tenant, count in by_tenant(chosen).items():
        assert count + holding.count(tenant) <= 2 * (free - 1)
