"""The schedule of retries, over every number of failures and everything a partner may put into Retry-After."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from monitor.webhooks.schedule import MOST_ATTEMPTS, RETRY_DELAYS_SECONDS, next_delay_seconds, parse_retry_after

NOW = datetime(2026, 3, 1, 12, tzinfo=UTC)
DAY_SECONDS = 86_400


def test_schedule_is_the_one_standard_webhooks_recommends() -> None:
    hours = [delay / 3600 for delay in RETRY_DELAYS_SECONDS]
    assert hours == [5 / 3600, 5 / 60, 0.5, 2, 5, 10, 14, 20, 24]


@given(st.integers(1, 40), st.none() | st.floats(-1e12, 1e12), st.integers())
def test_every_delay_keeps_its_bounds_and_the_last_attempt_is_the_last(
    failures: int, retry_after: float | None, seed: int
) -> None:
    delay = next_delay_seconds(failures, retry_after, Random(seed))
    if failures >= MOST_ATTEMPTS:
        assert delay is None
    elif retry_after is None:
        assert delay is not None
        assert RETRY_DELAYS_SECONDS[failures - 1] <= delay <= 1.1 * RETRY_DELAYS_SECONDS[failures - 1]
    else:
        assert delay == min(max(retry_after, 1), DAY_SECONDS)


@given(st.integers())
def test_all_attempts_fit_into_four_days(seed: int) -> None:
    delays = [next_delay_seconds(failures, None, Random(seed)) for failures in range(1, MOST_ATTEMPTS + 1)]
    assert delays.count(None) == 1
    assert sum(delay for delay in delays if delay) < 4 * DAY_SECONDS


@given(st.text(max_size=60) | st.from_regex(r"[0-9]{1,40}", fullmatch=True))
def test_any_retry_after_is_seconds_or_nothing(text: str) -> None:
    seconds = parse_retry_after(text, NOW)
    assert seconds is None or next_delay_seconds(1, seconds, Random(0)) is not None


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("120", 120),
        ("0", 0),
        ("9" * 30, DAY_SECONDS),
        (format_datetime(NOW + timedelta(minutes=7), usegmt=True), 420),
        ("Sunday, 01-Mar-26 12:00:30 GMT", 30),
        ("soon", None),
        ("-5", None),
        ("1.5", None),
        ("", None),
        (None, None),
    ],
)
def test_retry_after_is_a_number_of_seconds_or_a_date(text: str | None, seconds: float | None) -> None:
    assert parse_retry_after(text, NOW) == seconds
