"""Who is closed when there are as many connections as may be: never one that the API works on."""

from __future__ import annotations

from dataclasses import dataclass

from api.open_connections import OpenConnections


@dataclass(eq=False)
class Held:
    waits_for_client: bool = True


def fill(connections: OpenConnections[Held], *held: tuple[Held, str | None]) -> None:
    for at, (each, address) in enumerate(held):
        assert connections.admit(each, address, at).is_admitted


def test_the_address_with_the_most_connections_loses_the_one_that_waits_longest() -> None:
    connections: OpenConnections[Held] = OpenConnections(6)
    early, first, second, third = (Held() for _ in range(4))
    fill(connections, (early, "a"), (first, "b"), (second, "b"), (third, "b"), (Held(), "c"), (Held(), "d"))
    connections.request_ended(first, 100)
    admission = connections.admit(Held(), "e", 101)
    assert (admission.is_admitted, admission.evicted) == (True, second)
    assert len(connections) == 6


def test_an_address_at_its_bound_loses_its_own() -> None:
    connections: OpenConnections[Held] = OpenConnections(4)
    first = Held()
    fill(connections, (first, "a"), (Held(), "a"), (Held(), "a"))
    assert connections.admit(Held(), "a", 3).evicted is first
    assert connections.admit(Held(), "b", 4).evicted is None


def test_what_is_worked_on_stays_and_the_new_connection_is_refused() -> None:
    connections: OpenConnections[Held] = OpenConnections(2)
    fill(connections, (Held(waits_for_client=False), "a"), (Held(waits_for_client=False), "b"))
    refused = Held()
    assert not connections.admit(refused, "c", 3).is_admitted
    connections.remove(refused)
    assert len(connections) == 2


def test_a_trusted_proxy_has_no_bound_of_its_own() -> None:
    connections: OpenConnections[Held] = OpenConnections(4)
    fill(connections, *((Held(waits_for_client=False), None) for _ in range(4)))


def test_nothing_is_kept_of_what_has_left() -> None:
    connections: OpenConnections[Held] = OpenConnections(4)
    each = Held()
    fill(connections, (each, "a"))
    connections.remove(each)
    connections.remove(each)
    connections.request_ended(each, 5)
    assert (len(connections), connections._by_address) == (0, {})
