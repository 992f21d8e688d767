"""How long an origin is remembered that sent bytes no request asked for."""

from __future__ import annotations

from unittest.mock import patch

from edge.routing.route import Origin
from edge.upstream import distrust
from edge.upstream.distrust import DISTRUST_SECONDS, DistrustedOrigins

A, B = Origin("http", "a.example", 80, "a.example"), Origin("http", "b.example", 80, "b.example")


def test_an_origin_is_trusted_again_some_time_after_it_was_last_seen() -> None:
    tested = DistrustedOrigins()
    tested.add(A, 0)
    tested.add(B, 1)
    tested.add(A, 2)
    tested.expire(1 + DISTRUST_SECONDS)
    assert (A in tested, B in tested, bool(tested)) == (True, False, True)
    tested.expire(2 + DISTRUST_SECONDS)
    assert not tested


def test_the_one_added_first_makes_room() -> None:
    with patch.object(distrust, "_MAX_REMEMBERED", 1):
        tested = DistrustedOrigins()
        tested.add(A, 0)
        tested.add(B, 0)
        assert (A in tested, B in tested) == (False, True)
