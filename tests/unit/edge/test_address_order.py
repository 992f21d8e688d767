"""In which order an origin's addresses are tried."""

from __future__ import annotations

from collections import Counter
from random import Random

from edge.routing.route import Origin
from edge.upstream.address_order import MAX_TRIED, AddressOrder
from edge.upstream.remembered import FAILED_SECONDS

ORIGIN = Origin("https", "a.example", 443, "a.example")
OTHER = Origin("https", "b.example", 443, "b.example")
ADDRESSES = ("192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4")


def new() -> AddressOrder:
    return AddressOrder(Random(7).random)


def test_connections_spread_over_all_addresses() -> None:
    tested = new()
    first = Counter(tested.order(ORIGIN, ADDRESSES, 0)[0] for _ in range(400))
    assert set(first) == set(ADDRESSES)
    assert min(first.values()) > 70


def test_families_take_turns_beginning_with_ipv6() -> None:
    order = new().order(ORIGIN, ("192.0.2.1", "2001:db8::1", "192.0.2.2", "2001:db8::2"), 0)
    assert [":" in address for address in order] == [True, False, True, False]


def test_one_that_failed_comes_last_for_a_while_and_at_that_origin_only() -> None:
    tested = new()
    tested.note_failed(ORIGIN, ["192.0.2.2"], 0)
    assert all(tested.order(ORIGIN, ADDRESSES, 1)[-1] == "192.0.2.2" for _ in range(50))
    assert any(tested.order(OTHER, ADDRESSES, 1)[-1] != "192.0.2.2" for _ in range(50))
    assert any(tested.order(ORIGIN, ADDRESSES, FAILED_SECONDS)[-1] != "192.0.2.2" for _ in range(50))


def test_where_all_failed_the_one_that_failed_first_is_tried_first() -> None:
    tested = new()
    for now, address in enumerate(["192.0.2.3", "192.0.2.1", "192.0.2.2", "192.0.2.4"]):
        tested.note_failed(ORIGIN, [address], now)
    assert tested.order(ORIGIN, ADDRESSES, 5) == ["192.0.2.3", "192.0.2.1", "192.0.2.2", "192.0.2.4"]


def test_those_that_a_later_one_overtook_have_failed() -> None:
    tested = new()
    tested.note_chosen(ORIGIN, ["192.0.2.4", "192.0.2.2", "192.0.2.3", "192.0.2.1"], "192.0.2.3", 0)
    assert tested.failure_count == 2
    for _ in range(20):
        assert tested.order(ORIGIN, ADDRESSES, 1)[2:] in (["192.0.2.2", "192.0.2.4"], ["192.0.2.4", "192.0.2.2"])


def test_one_attempt_tries_a_bounded_number() -> None:
    many = [f"192.0.2.{number}" for number in range(100)]
    assert len(new().order(ORIGIN, many, 0)) == MAX_TRIED
