"""Counts of domains on their way to Postgres, by the interval in which they were reported. Plain bookkeeping.

While Postgres is out of reach, those of the last hour are kept.
"""

from __future__ import annotations

from datetime import UTC, datetime

from common.traffic import TrafficReport

_INTERVAL_SECONDS = 300
_MOST_INTERVALS = 12


class PendingTraffic:
    """Keeps counts for the `TrafficReporter`, which owns it."""

    def __init__(self) -> None:
        self._reports: dict[datetime, TrafficReport] = {}

    def add(self, report: TrafficReport, now: datetime) -> None:
        """Add what was reported now."""
        seconds = now.timestamp()
        self.put_back(datetime.fromtimestamp(seconds - seconds % _INTERVAL_SECONDS, UTC), report)

    def take(self) -> tuple[datetime, TrafficReport] | None:
        """Take out the oldest report and the start of its interval. The caller puts back what it cannot write."""
        if not self._reports:
            return None
        at = min(self._reports)
        return at, self._reports.pop(at)

    def put_back(self, at: datetime, report: TrafficReport) -> None:
        """Add to the counts of an interval."""
        self._reports.setdefault(at, TrafficReport()).merge(report)
        while len(self._reports) > _MOST_INTERVALS:
            del self._reports[min(self._reports)]
