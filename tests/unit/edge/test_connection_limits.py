"""Who gets a place among a worker's connections."""

from __future__ import annotations

from ipaddress import ip_network

import pytest

from edge.transport.connection_limits import ConnectionLimits, client_key

OFFICE, HOME, PROXY = ("192.0.2.1", 1), ("2001:db8::1", 1, 0, 0), ("10.0.0.1", 1)


def test_a_client_has_its_share_and_gets_it_back() -> None:
    connection_limits = ConnectionLimits(in_all=10, per_client=2)
    first = connection_limits.admit(OFFICE)
    assert first is not None
    assert connection_limits.admit(OFFICE) is not None
    assert connection_limits.admit(OFFICE) is None
    assert connection_limits.admit(HOME) is not None
    connection_limits.leave(None)
    connection_limits.leave(first)
    assert connection_limits.admit(OFFICE) is not None
    assert connection_limits.open_count == 3
    assert connection_limits.families()[0].samples == {("in_all",): [0.0], ("per_client",): [1.0]}


def test_when_all_places_are_taken_nobody_gets_one() -> None:
    connection_limits = ConnectionLimits(in_all=1, trusted_proxies=(ip_network("10.0.0.0/8"),))
    place = connection_limits.admit(OFFICE)
    assert connection_limits.admit(HOME) is None
    assert connection_limits.admit(PROXY) is None
    connection_limits.leave(place)
    assert connection_limits.admit(PROXY) is not None


def test_trusted_proxies_stand_for_many() -> None:
    connection_limits = ConnectionLimits(per_client=1, trusted_proxies=(ip_network("10.0.0.0/8"),))
    places = [connection_limits.admit(PROXY) for _ in range(5)]
    assert None not in places
    for place in places:
        connection_limits.leave(place)
    assert repr(connection_limits) == "<0 open of 0 clients, 0 turned away now>"


def test_of_a_flood_only_some_are_told() -> None:
    connection_limits = ConnectionLimits(in_all=0)
    told = 0
    for _ in range(1000):
        connection_limits.admit(OFFICE)
        told += connection_limits.may_answer
    assert told == 256
    for _ in range(1000):
        connection_limits.leave(None)
    assert connection_limits.may_answer


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        (("192.0.2.1", 1), ("192.0.2.1", 2), True),
        (("192.0.2.1", 1), ("192.0.2.2", 1), False),
        (("2001:db8::1", 1, 0, 0), ("2001:db8::ffff", 1, 0, 0), True),
        (("2001:db8::1", 1, 0, 0), ("2001:db8:0:1::1", 1, 0, 0), False),
        (("::ffff:192.0.2.1", 1, 0, 0), ("192.0.2.1", 9), True),
        (("fe80::1%eth0", 1, 0, 2), ("fe80::2%eth0", 1, 0, 2), True),
        ("", None, True),
    ],
)
def test_clients_count_by_address_or_by_64(one: object, other: object, same: bool) -> None:
    assert (client_key(one) == client_key(other)) is same
