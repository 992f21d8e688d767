from __future__ import annotations

from dataclasses import dataclass

from edge.tls.holding import Held, HoldCaps


@dataclass(frozen=True)
class Waiting:
    domain: str
    client: str
    number: int = 0


def test_caps_hold_and_removal_gives_the_place_back() -> None:
    held: Held[Waiting] = Held(HoldCaps(per_domain=2, per_client=3, in_all=4))
    first = Waiting("a", "1", 0)
    assert held.add(first, "a")
    assert held.add(Waiting("a", "1", 1), "a")
    assert not held.add(Waiting("a", "2"), "a")  # the domain is full
    assert held.add(Waiting("b", "1"), "b")
    assert not held.add(Waiting("c", "1"), "c")  # the client is
    assert held.add(Waiting("b", "2"), "b")
    assert not held.add(Waiting("d", "3"), "d")  # we are
    assert held.of("a") == [first, Waiting("a", "1", 1)]
    held.remove(first)
    assert held.add(Waiting("c", "1"), "c")
    for domain in held.domains():
        for waiting in held.of(domain):
            held.remove(waiting)
            held.remove(waiting)  # nothing happens
    assert (len(held), held.domains()) == (0, [])
