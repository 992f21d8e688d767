"""When a domain is looked at next, and how fast missed checks are made up for."""

from datetime import UTC, datetime, timedelta

from hypothesis import given
from hypothesis import strategies as st

from monitor.checks.rate_limit import CheckRateLimit
from monitor.checks.schedule import next_due, next_try

HOUR = 3600.0
NOON = datetime(2026, 1, 1, 12, tzinfo=UTC)
moments = st.integers(1_767_225_600_000, 1_798_761_600_000).map(lambda ms: datetime.fromtimestamp(ms / 1000, UTC))
ids = st.text(min_size=1, max_size=30)


@given(ids, moments, st.floats(1, 86_400))
def test_nobody_waits_longer_than_the_interval(domain_id: str, checked_at: datetime, interval: float) -> None:
    due = next_due(domain_id, checked_at, interval)
    assert timedelta(0) < due - checked_at <= timedelta(seconds=interval + 0.001)


@given(ids, moments)
def test_a_domain_keeps_its_place(domain_id: str, checked_at: datetime) -> None:
    due = next_due(domain_id, checked_at, HOUR)
    again = next_due(domain_id, due + timedelta(milliseconds=5), HOUR)
    assert abs((again - due).total_seconds() - HOUR) < 0.01


def test_domains_added_at_once_spread_evenly() -> None:
    minutes = [0] * 60
    for number in range(6000):
        due = next_due(f"mon_{number:024x}", NOON, HOUR)
        minutes[int((due - NOON).total_seconds() // 60) % 60] += 1
    assert min(minutes) > 50
    assert max(minutes) < 170


def test_a_check_that_could_not_ask_is_tried_again_soon_then_ever_later() -> None:
    late = next(f"mon_{n}" for n in range(1000) if next_due(f"mon_{n}", NOON, HOUR) - NOON > timedelta(minutes=55))
    pauses = [(next_try(late, NOON, HOUR, attempts) - NOON).total_seconds() for attempts in range(1, 9)]
    assert pauses[:5] == [60, 120, 240, 480, 960]
    assert pauses[7] == (next_due(late, NOON, HOUR) - NOON).total_seconds()


class StoppedClock:
    def __init__(self) -> None:
        self.seconds = 0.0

    def now(self) -> datetime:
        return NOON

    def monotonic(self) -> float:
        return self.seconds


def test_missed_checks_are_made_up_for_at_a_steady_pace() -> None:
    clock = StoppedClock()
    rate_limit = CheckRateLimit(clock, checks_per_second=100)
    done = 0
    for _ in range(100):
        available = rate_limit.available()
        done += available
        rate_limit.take(available)
        clock.seconds += 0.1
    assert 1000 <= done <= 1100


def test_requested_checks_take_tokens_but_never_more_than_there_are() -> None:
    clock = StoppedClock()
    rate_limit = CheckRateLimit(clock, checks_per_second=100)
    rate_limit.take(5000)
    assert rate_limit.available() == 0
    clock.seconds += 1
    assert rate_limit.available() == 100
