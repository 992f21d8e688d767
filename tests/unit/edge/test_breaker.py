"""When an origin is left alone, and when it is tried again."""

from __future__ import annotations

from edge.routing.route import Origin
from edge.upstream.breaker import Breaker

A, B = Origin("http", "a.example", 80, "a.example"), Origin("http", "b.example", 80, "b.example")


def breaker(*, failures: int = 3, chance: float = 0.5) -> Breaker:
    """Without jitter, unless `chance` is another."""
    return Breaker(failures=failures, max_pause_seconds=30, random=lambda: chance)


def fail(tested: Breaker, *times: float) -> None:
    for now in times:
        tested.failed(A, started_at=now, now=now)


def test_it_opens_at_the_third_failure_in_a_row_for_that_origin_alone() -> None:
    tested = breaker()
    fail(tested, 0, 1)
    assert tested.admits(A, 1)
    fail(tested, 2)
    assert not tested.admits(A, 2.9)
    assert tested.admits(B, 2.9)
    assert tested.open_count == 1


def test_success_begins_the_count_anew() -> None:
    tested = breaker()
    fail(tested, 0, 1)
    tested.succeeded(A)
    fail(tested, 2, 3)
    assert tested.admits(A, 3)


def test_failures_far_apart_are_no_outage() -> None:
    tested = breaker()
    fail(tested, 0, 50, 61, 100)
    assert tested.admits(A, 100)
    fail(tested, 120)
    assert not tested.admits(A, 120)


def test_one_probe_a_pause_and_pauses_grow_up_to_the_longest() -> None:
    tested = breaker()
    fail(tested, 0, 0, 0)
    now, pauses = 0.0, []
    for _ in range(8):
        begun = now
        while not tested.admits(A, now):
            now += 0.25
        assert not tested.admits(A, now)  # the probe is under way
        pauses.append(now - begun)
        fail(tested, now)
    assert pauses == [1, 2, 4, 8, 16, 30, 30, 30]


def test_a_probe_that_connects_closes_it() -> None:
    tested = breaker()
    fail(tested, 0, 0, 0)
    assert tested.admits(A, 1)
    tested.succeeded(A)
    assert all(tested.admits(A, 1) for _ in range(10))
    assert tested.open_count == 0


def test_a_probe_nobody_hears_of_again_does_not_keep_it_open() -> None:
    tested = breaker()
    fail(tested, 0, 0, 0)
    assert tested.admits(A, 1)
    assert not tested.admits(A, 1.5)
    assert tested.admits(A, 2)


def test_attempts_begun_before_it_opened_do_not_lengthen_the_pause() -> None:
    tested = breaker()
    for _ in range(100):
        tested.failed(A, started_at=0, now=5)
    assert not tested.admits(A, 5.9)
    assert tested.admits(A, 6)


def test_pauses_are_jittered() -> None:
    early, late = breaker(chance=0.0), breaker(chance=1.0)
    for tested in (early, late):
        fail(tested, 0, 0, 0)
    assert early.admits(A, 0.75)
    assert not late.admits(A, 1.2)


def test_what_is_remembered_is_bounded() -> None:
    tested = breaker(failures=1)
    for number in range(10_050):
        tested.failed(A._replace(port=number), started_at=0, now=0)
    assert tested.open_count == 10_000
