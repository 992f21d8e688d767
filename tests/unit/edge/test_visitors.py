"""How often a client may come, and from where."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.visitors import NetworkSet, parse_network
from edge.routing.visitors import VisitorRules, VisitRates, refuse_visitor


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def test_a_client_may_send_its_allowance_at_once_and_again_as_it_comes_back() -> None:
    clock = Clock()
    rates = VisitRates(clock)
    assert [rates.take("a", "x", 3, 6) for _ in range(3)] == [0, 0, 0]
    assert rates.take("a", "x", 3, 6) == pytest.approx(2)
    assert rates.take("a", "y", 3, 6) == rates.take("b", "x", 3, 6) == 0
    clock.now += 2
    assert rates.take("a", "x", 3, 6) == 0
    assert rates.take("a", "x", 3, 6) == pytest.approx(2)
    clock.now += 600
    assert [bool(rates.take("a", "x", 3, 6)) for _ in range(4)] == [False, False, False, True]


@given(st.integers(1, 50), st.integers(1, 60), st.lists(st.floats(0, 5), max_size=200))
def test_no_client_gets_more_than_twice_its_allowance_in_its_time(
    requests: int, seconds: int, pauses: list[float]
) -> None:
    clock = Clock()
    rates = VisitRates(clock)
    taken: list[float] = []
    for pause in pauses:
        clock.now += pause
        if not rates.take("a", "x", requests, seconds):
            taken.append(clock.now)
    for start in taken:
        assert sum(start <= at < start + seconds for at in taken) <= 2 * requests


def test_what_is_remembered_of_clients_is_bounded() -> None:
    rates = VisitRates(Clock(), most=10)
    for number in range(100):
        rates.take("a", str(number), 1, 60)
    assert len(rates) == 10
    assert rates.take("a", "99", 1, 60)
    assert not rates.take("a", "0", 1, 60)


@pytest.mark.parametrize(
    ("allow", "deny", "address", "code"),
    [
        ([], ["192.0.2.0/24"], "192.0.2.7", "address_refused"),
        ([], ["192.0.2.0/24"], "::ffff:192.0.2.7", "address_refused"),
        ([], ["192.0.2.0/24"], "[::ffff:192.0.2.7]:443", "address_refused"),
        ([], ["192.0.2.0/24"], "198.51.100.7", None),
        ([], ["::/0"], "198.51.100.7", None),
        (["2001:db8::/32"], [], "2001:db8::7", None),
        (["2001:db8::/32"], [], "2001:db9::7", "address_refused"),
        (["2001:db8::/32"], ["2001:db8::7"], "2001:db8::7", "address_refused"),
        (["0.0.0.0/0"], [], "", "address_refused"),
    ],
)
def test_who_is_denied_or_not_allowed_is_refused(
    allow: list[str], deny: list[str], address: str, code: str | None
) -> None:
    networks = [NetworkSet(map(parse_network, texts)) for texts in (allow, deny)]
    refused = refuse_visitor(
        VisitorRules(networks[0] if allow else None, networks[1]), VisitRates(Clock()), "a", address
    )
    assert (refused and refused.code) == code


def test_a_site_of_ipv6_is_one_client() -> None:
    rules, rates = VisitorRules(None, NetworkSet(()), 1, 60), VisitRates(Clock())
    assert refuse_visitor(rules, rates, "a", "2001:db8::1") is None
    refused = refuse_visitor(rules, rates, "a", "2001:db8::2")
    assert refused is not None
    assert (refused.status, refused.code, refused.retry_after_seconds) == (429, "too_many_requests", 60)
