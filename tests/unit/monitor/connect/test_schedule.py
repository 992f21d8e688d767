"""When a flow's records are looked for."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

from monitor.connect.schedule import is_over, next_search

NOW = datetime(2026, 1, 5, tzinfo=UTC)


def test_looks_come_ever_later_up_to_ten_minutes() -> None:
    pauses = [(next_search(NOW, looks) - NOW).total_seconds() for looks in range(1, 10)]
    assert pauses == [10, 20, 40, 80, 160, 320, 600, 600, 600]
    assert next_search(NOW, 100_000) - NOW == timedelta(minutes=10)


def test_looking_ends_after_72_hours() -> None:
    assert not is_over(NOW, NOW + timedelta(hours=71, minutes=59))
    assert is_over(NOW, NOW + timedelta(hours=72))
