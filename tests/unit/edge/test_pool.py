"""Who gets which upstream connection."""

from __future__ import annotations

from dataclasses import dataclass

from edge.routing.route import Origin
from edge.upstream.pool import KEPT_OLD, Decision, Pool

ORIGIN = Origin("http", "origin.example", 80, "origin.example")
OTHER = Origin("http", "origin.example", 81, "origin.example")


@dataclass(eq=False)
class Connection:
    idle_since: float = 0.0
    is_closed: bool = False

    def is_closing(self) -> bool:
        return self.is_closed


def test_idle_connections_serve_again_last_in_first_out() -> None:
    pool: Pool[Connection, str] = Pool(max_open=9, max_waiters=9)
    first, second = Connection(), Connection()
    for waiter, connection in (("a", first), ("b", second)):
        assert pool.request(ORIGIN, waiter) is Decision.OPEN
        assert pool.give_back(ORIGIN, connection, 1.0) is None
    assert pool.take(OTHER) is None
    assert pool.take(ORIGIN) is second
    assert pool.take(ORIGIN) is first
    assert pool.take(ORIGIN) is None


def test_closed_connections_are_passed_over() -> None:
    pool: Pool[Connection, str] = Pool(max_open=9, max_waiters=9)
    connection = Connection()
    pool.request(ORIGIN, "a")
    pool.give_back(ORIGIN, connection, 1.0)
    connection.is_closed = True
    assert pool.take(ORIGIN) is None


def test_waiters_are_served_in_order_and_bounded() -> None:
    pool: Pool[Connection, str] = Pool(max_open=1, max_waiters=2)
    assert pool.request(ORIGIN, "a") is Decision.OPEN
    assert [pool.request(ORIGIN, waiter) for waiter in "bcd"] == [Decision.WAIT, Decision.WAIT, Decision.BUSY]
    connection = Connection()
    assert pool.give_back(ORIGIN, connection, 1.0) == "b"
    assert pool.forget(ORIGIN) == "c"  # b's connection broke: c may open one
    assert pool.open_count == 1


def test_a_waiter_that_withdraws_is_passed_over() -> None:
    pool: Pool[Connection, str] = Pool(max_open=1, max_waiters=9)
    for waiter in "abc":
        pool.request(ORIGIN, waiter)
    pool.withdraw(ORIGIN, "b")
    assert pool.give_back(ORIGIN, Connection(), 1.0) == "c"


def test_old_idle_connections_are_taken_out() -> None:
    pool: Pool[Connection, str] = Pool(max_open=9, max_waiters=9)
    old, young = Connection(), Connection()
    for connection, now in ((old, 1.0), (young, 5.0)):
        pool.request(ORIGIN, "x")
        pool.give_back(ORIGIN, connection, now)
    assert pool.expired(3.0) == [old]
    assert pool.take(ORIGIN) is young
    assert (pool.forget(ORIGIN), pool.forget(ORIGIN), pool.open_count) == (None, None, 0)


def idle_at(pool: Pool[Connection, str], *times: float) -> list[Connection]:
    """Connections given back at these times."""
    connections = [Connection() for _ in times]
    for connection, now in zip(connections, times, strict=True):
        pool.request(ORIGIN, "x")
        pool.give_back(ORIGIN, connection, now)
    return connections


def test_a_young_connection_is_the_newest_and_older_ones_stay() -> None:
    pool: Pool[Connection, str] = Pool(max_open=9, max_waiters=9)
    old, young, closed = idle_at(pool, 1.0, 5.0, 6.0)
    closed.is_closed = True
    assert pool.take_young(ORIGIN, 4.0) is young
    assert pool.take_young(ORIGIN, 4.0) is None
    assert pool.take_young(OTHER, 0.0) is None
    assert pool.take(ORIGIN) is old


def test_room_is_made_by_an_old_connection_though_a_few_stay_to_grow_older() -> None:
    pool: Pool[Connection, str] = Pool(max_open=99, max_waiters=9)
    connections = idle_at(pool, *map(float, range(KEPT_OLD)))
    assert pool.make_room(ORIGIN) is None
    connections += idle_at(pool, 8.0, 9.0)
    assert pool.make_room(ORIGIN) is connections[KEPT_OLD]
    assert pool.make_room(ORIGIN) is connections[KEPT_OLD + 1]
    assert pool.make_room(ORIGIN) is None
    assert pool.make_room(OTHER) is None


def test_room_is_made_where_no_more_may_be_open() -> None:
    pool: Pool[Connection, str] = Pool(max_open=2, max_waiters=9)
    oldest, _ = idle_at(pool, 1.0, 2.0)
    assert pool.make_room(ORIGIN) is oldest
    assert pool.request(ORIGIN, "a") is Decision.WAIT
    assert pool.forget(ORIGIN) == "a"
