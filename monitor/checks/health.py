"""Measures how well the checks work, and records it where `GET /monitor/status` reads it.

Unhealthy is: alarms held back, checks that come late, or answers that mostly do not come.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Collection

from common.db import checks, monitor_health
from common.db.checks import Backlog
from common.db.outages import level_of
from common.db.pool import Database
from common.errors import DatabaseUnavailable
from common.logs import get_logger
from common.record_checks.verdicts import RecordVerdict

_log = get_logger("monitor.checks.health")

PERIOD_SECONDS = 10.0
HELD = "too many alarms at once, so they are held back"
_PERIODS = 6
_FEWEST_VERDICTS = 20
_MOST_UNKNOWN = 0.5
_HELD_ROUNDS = 2  # the next one confirms or not; who waits longer is a domain that cannot be asked, not a mass
_LATE_FRACTION = 0.25  # of the interval
_LATE_AT_LEAST_SECONDS = 60.0


def diagnose(backlog: Backlog, verdicts: int, unknown: int, interval_seconds: float) -> str | None:
    """Return what is wrong, in words for the operator; None when all is well."""
    if backlog.held:
        return f"{HELD}: {backlog.held} domains"
    if backlog.overdue_seconds > max(_LATE_AT_LEAST_SECONDS, _LATE_FRACTION * interval_seconds):
        return f"checks are {backlog.overdue_seconds:.0f} seconds late"
    if verdicts >= _FEWEST_VERDICTS and unknown > _MOST_UNKNOWN * verdicts:
        return "most questions to the name servers stay without an answer"
    return None


class CheckHealth:
    """Measures this process' checks. Created by `Checking`.

    Mutable state: the verdicts of the last minute, as a pair of counts (all, unknown) for each period.
    """

    def __init__(self, database: Database, interval_seconds: float, *, period_seconds: float = PERIOD_SECONDS) -> None:
        self._database = database
        self._interval_seconds = interval_seconds
        self._period_seconds = period_seconds
        self._verdicts: deque[list[int]] = deque([[0, 0]], maxlen=_PERIODS)

    def count(self, verdicts: Collection[RecordVerdict]) -> None:
        """Count the verdicts of one check."""
        counts = self._verdicts[-1]
        counts[0] += len(verdicts)
        counts[1] += sum(verdict is RecordVerdict.UNKNOWN for verdict in verdicts)

    async def report_periodically(self) -> None:
        """Report once a period until cancelled. Readers take a report that is missing for unhealthy, by its age."""
        while True:
            try:
                await self.report()
            except DatabaseUnavailable as error:
                _log.log(level_of(error), "health is not reported", error=str(error))
            await asyncio.sleep(self._period_seconds)

    async def report(self) -> None:
        """Record whether the checks are healthy, and begin a new period."""
        verdicts, unknown = (sum(counts[which] for counts in self._verdicts) for which in (0, 1))
        self._verdicts.append([0, 0])
        async with self._database.transaction() as connection:
            held_within = _HELD_ROUNDS * self._interval_seconds
            backlog = await checks.measure_backlog(connection, held_within_seconds=held_within)
            reason = diagnose(backlog, verdicts, unknown, self._interval_seconds)
            await monitor_health.record(connection, is_healthy=reason is None, reason=reason)
