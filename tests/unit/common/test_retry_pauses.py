from __future__ import annotations

from common.retry_pauses import RetryPauses, retry_pause_seconds


def test_pauses_double_from_the_first_up_to_the_longest() -> None:
    assert [retry_pause_seconds(n, first=0.1, longest=0.5) for n in range(5)] == [0.0, 0.1, 0.2, 0.4, 0.5]
    assert retry_pause_seconds(10_000, first=0.1, longest=60.0) == 60.0


def test_after_a_success_the_first_pause_comes_again() -> None:
    pauses = RetryPauses(first=1.0, longest=3.0)
    assert [pauses.next_seconds() for _ in range(4)] == [1.0, 2.0, 3.0, 3.0]
    pauses.reset()
    assert pauses.next_seconds() == 1.0
