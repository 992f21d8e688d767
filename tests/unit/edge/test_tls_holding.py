from __future__ import annotations

from dataclasses import dataclass

import pytest

from edge.tls.holding import Held, HoldCaps, client_key


@dataclass(frozen=True)
class Waiting:
    server_name: str
    client: str
    number: int = 0


def test_caps_hold_and_removal_gives_the_place_back() -> None:
    held: Held[Waiting] = Held(HoldCaps(per_domain=2, per_client=3, in_all=4))
    first = Waiting("a", "1", 0)
    assert held.add(first)
    assert held.add(Waiting("a", "1", 1))
    assert not held.add(Waiting("a", "2"))  # the domain is full
    assert held.add(Waiting("b", "1"))
    assert not held.add(Waiting("c", "1"))  # the client is
    assert held.add(Waiting("b", "2"))
    assert not held.add(Waiting("d", "3"))  # we are
    assert held.of("a") == [first, Waiting("a", "1", 1)]
    held.remove(first)
    assert held.add(Waiting("c", "1"))
    for domain in held.domains():
        for waiting in held.of(domain):
            held.remove(waiting)
            held.remove(waiting)  # nothing happens
    assert (len(held), held.domains()) == (0, [])


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
