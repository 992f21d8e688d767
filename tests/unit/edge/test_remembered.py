"""How long an origin is remembered."""

from __future__ import annotations

from unittest.mock import patch

from edge.routing.route import Origin
from edge.upstream import remembered
from edge.upstream.remembered import Remembered

A, B = Origin("http", "a.example", 80, "a.example"), Origin("http", "b.example", 80, "b.example")

SECONDS = 600.0


def test_an_origin_is_forgotten_some_time_after_it_was_last_seen() -> None:
    tested = Remembered[Origin](SECONDS)
    tested.add(A, 0)
    tested.add(B, 1)
    tested.add(A, 2)
    tested.expire(1 + SECONDS)
    assert (A in tested, B in tested, bool(tested)) == (True, False, True)
    tested.expire(2 + SECONDS)
    assert not tested


def test_the_one_added_first_makes_room() -> None:
    with patch.object(remembered, "_MAX_REMEMBERED", 1):
        tested = Remembered[Origin](SECONDS)
        tested.add(A, 0)
        tested.add(B, 0)
        assert (A in tested, B in tested) == (False, True)
