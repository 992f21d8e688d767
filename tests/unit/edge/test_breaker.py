"""When an origin is left alone, and when it is tried again."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from common.origin_faults import FailingOrigin, OriginIdentity
from edge.routing.route import Origin
from edge.upstream.breaker import MOST_REPORTED, Breaker

A, B = Origin("http", "a.example", 80, "a.example"), Origin("http", "b.example", 80, "b.example")


def breaker(*, failures: int = 3, chance: float = 0.0) -> Breaker:
    """Without jitter, unless `chance` is another."""
    return Breaker(failures=failures, max_pause_seconds=30, random=lambda: chance)


@pytest.fixture
def tested() -> Breaker:
    return breaker()


def fail(tested: Breaker, *times: float) -> None:
    for now in times:
        tested.failed(A, "refused", started_at=now, now=now)


def time_out(tested: Breaker, *times: float) -> None:
    for now in times:
        tested.failed(A, "timeout", started_at=now, now=now + 5)


def pauses(tested: Breaker, since: float, fail_again: Callable[[Breaker, float], None], took: float) -> list[float]:
    """Return how long each of the next eight probes is waited for; all of them fail."""
    found = []
    for _ in range(8):
        now = since
        while not tested.admits(A, now):
            now += 0.25
        assert not tested.admits(A, now)  # the probe is under way
        found.append(now - since)
        fail_again(tested, now)
        since = now + took
    return found


def test_it_opens_at_the_third_failure_in_a_row_for_that_origin_alone(tested: Breaker) -> None:
    fail(tested, 0, 1)
    assert tested.admits(A, 1)
    fail(tested, 2)
    assert not tested.admits(A, 2.9)
    assert tested.admits(B, 2.9)
    assert tested.open_count == 1


def test_success_begins_the_count_anew(tested: Breaker) -> None:
    fail(tested, 0, 1)
    tested.succeeded(A)
    fail(tested, 2, 3)
    assert tested.admits(A, 3)


def test_failures_far_apart_are_no_outage(tested: Breaker) -> None:
    fail(tested, 0, 50, 61, 100)
    assert tested.admits(A, 100)
    fail(tested, 120)
    assert not tested.admits(A, 120)


def test_an_origin_that_refuses_is_probed_every_second(tested: Breaker) -> None:
    fail(tested, 0, 0, 0)
    assert pauses(tested, 0, fail, took=0) == [1] * 8


def test_pauses_after_time_outs_grow_up_to_the_longest(tested: Breaker) -> None:
    time_out(tested, 0, 0, 0)
    assert pauses(tested, 5, time_out, took=5) == [1, 2, 4, 8, 16, 30, 30, 30]


def test_an_origin_that_refuses_after_time_outs_is_probed_every_second_again(tested: Breaker) -> None:
    time_out(tested, 0, 0, 0)
    pauses(tested, 5, time_out, took=5)
    fail(tested, 1000)
    assert pauses(tested, 1000, fail, took=0) == [1] * 8


def test_an_origin_that_another_worker_reached_is_connected_to_at_once() -> None:
    mine, others = breaker(), breaker()
    for tested in (mine, others):
        time_out(tested, 0, 0, 0)
    assert mine.admits(A, 6)
    mine.succeeded(A)
    (recovered,) = mine.take_recovered()
    assert mine.take_recovered() == []
    others.note_recovered(recovered)
    assert others.admits(A, 6)
    assert others.open_count == 0
    assert others.take_recovered() == []  # it is not passed round in circles


def test_an_origin_whose_breaker_never_opened_is_not_passed_on(tested: Breaker) -> None:
    fail(tested, 0)
    tested.succeeded(A)
    assert tested.take_recovered() == []


def test_a_probe_that_connects_closes_it(tested: Breaker) -> None:
    fail(tested, 0, 0, 0)
    assert tested.admits(A, 1)
    tested.succeeded(A)
    assert all(tested.admits(A, 1) for _ in range(10))
    assert tested.open_count == 0


def test_a_probe_nobody_hears_of_again_does_not_keep_it_open(tested: Breaker) -> None:
    fail(tested, 0, 0, 0)
    assert tested.admits(A, 1)
    assert not tested.admits(A, 1.5)
    assert tested.admits(A, 2)


def test_attempts_begun_before_it_opened_do_not_lengthen_the_pause(tested: Breaker) -> None:
    for _ in range(100):
        tested.failed(A, "timeout", started_at=0, now=5)
    assert not tested.admits(A, 5.9)
    assert tested.admits(A, 6)


def test_pauses_are_jittered() -> None:
    early, late = breaker(chance=0.0), breaker(chance=1.0)
    for tested in (early, late):
        fail(tested, 0, 0, 0)
    assert late.admits(A, 0.75)
    assert not early.admits(A, 0.9)


def test_what_is_remembered_is_bounded() -> None:
    tested = breaker(failures=1)
    for number in range(10_050):
        tested.failed(A._replace(port=number), "refused", started_at=0, now=0)
    assert tested.open_count == 10_000


def test_an_origin_is_reported_until_it_is_reached_or_for_a_minute(tested: Breaker) -> None:
    tested.failed(A, "timeout", started_at=0, now=5)
    tested.failed(B, "refused", started_at=10, now=10)
    tested.failed(A, "certificate", started_at=20, now=20)
    a, b = OriginIdentity(*A[:-1]), OriginIdentity(*B[:-1])
    assert tested.failing(20) == [FailingOrigin(a, "certificate"), FailingOrigin(b, "refused")]
    assert tested.failing(75) == [FailingOrigin(a, "certificate")]
    tested.succeeded(A)
    assert tested.failing(75) == []


def test_of_many_failing_origins_the_latest_are_reported(tested: Breaker) -> None:
    for number in range(1000):
        tested.failed(A._replace(port=number), "refused", started_at=0, now=number / 100)
    reported = [each.origin.port for each in tested.failing(10)]
    assert reported == list(range(999, 999 - MOST_REPORTED, -1))


def test_origins_verified_in_different_ways_are_reported_apart(tested: Breaker) -> None:
    """An application that expects another certificate of a shared server does not accuse the others' origin."""
    mine = Origin("https", "a.example", 443, "a.example")
    tested.failed(mine._replace(server_name="wrong.example"), "certificate", started_at=0, now=0)
    assert OriginIdentity(*mine[:-1]) not in {each.origin for each in tested.failing(0)}
