"""Pauses between retries: they double with each failure in a row, from the first up to the longest."""

from __future__ import annotations

_MOST_DOUBLINGS = 32


def retry_pause_seconds(failures: int, *, first: float, longest: float) -> float:
    """Return the pause after that many failures in a row, in seconds; 0 after none."""
    return min(first * 2.0 ** min(failures - 1, _MOST_DOUBLINGS), longest) if failures else 0.0


class RetryPauses:
    """The pauses of one retried task. Mutable state: the failures in a row."""

    def __init__(self, *, first: float, longest: float) -> None:
        self._first = first
        self._longest = longest
        self._failures = 0

    def __repr__(self) -> str:
        return f"<RetryPauses after {self._failures} failures>"

    def next_seconds(self) -> float:
        """Count a failure and return the pause that follows it."""
        self._failures += 1
        return retry_pause_seconds(self._failures, first=self._first, longest=self._longest)

    def reset(self) -> None:
        """Start again with the first pause, after a success."""
        self._failures = 0
