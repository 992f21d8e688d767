"""How long a connection may have been idle to get a request that must not be sent twice."""

from __future__ import annotations

from edge.routing.route import Origin
from edge.upstream.idle_times import IdleTimes

A, B = Origin("http", "a.example", 80, "a.example"), Origin("http", "b.example", 80, "b.example")


def test_of_an_unknown_origin_only_the_youngest_serve() -> None:
    assert IdleTimes().longest(A) == 0.1


def test_half_of_what_it_stands_or_a_quarter_of_a_second_less() -> None:
    tested = IdleTimes()
    for seconds, longest in ((5.0, 2.5), (1.0, 0.5), (0.375, 0.125), (0.25, 0.0), (0.125, 0.0)):
        tested.note_closed(A, seconds, now=0)
        assert tested.longest(A) == longest
    assert tested.longest(B) == 0.1


def test_what_connections_survived_is_known_and_never_falls_by_less() -> None:
    tested = IdleTimes()
    tested.note_survived(A, 1.0, now=0)
    tested.note_survived(A, 4.0, now=1)
    tested.note_survived(A, 2.0, now=2)
    assert tested.longest(A) == 2.0


def test_the_shortest_of_its_closes_counts_for_a_minute() -> None:
    tested = IdleTimes()
    tested.note_survived(A, 4.0, now=0)
    tested.note_closed(A, 1.0, now=10)
    tested.note_closed(A, 3.0, now=20)
    tested.note_survived(A, 4.0, now=79)
    tested.note_stated(A, 5, now=79)
    assert tested.longest(A) == 0.5
    tested.note_survived(A, 4.0, now=80)
    assert tested.longest(A) == 2.0


def test_what_it_states_counts() -> None:
    tested = IdleTimes()
    tested.note_stated(A, 5, now=0)
    assert tested.longest(A) == 2.5
    tested.note_stated(A, 2, now=1)
    assert tested.longest(A) == 1.0


def test_what_is_known_is_bounded() -> None:
    tested = IdleTimes(most=2)
    for port in (1, 2, 3):
        tested.note_stated(A._replace(port=port), 5, now=0)
        tested.note_stated(A._replace(port=1), 5, now=0)
    assert [tested.longest(A._replace(port=port)) for port in (1, 2, 3)] == [2.5, 0.1, 2.5]
