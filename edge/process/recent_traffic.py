"""What this generation served in the last minute. The caller passes the time."""

from __future__ import annotations

from collections import deque

from common.db.edge_nodes import EdgeTraffic
from common.traffic import SERVER_ERRORS, TrafficReport, requests_of

_STEP_SECONDS = 10
_STEPS = 6


class RecentTraffic:
    """Adds up the last minute's traffic. Owned by the supervisor.

    Counts stand in steps of ten seconds, so that what is reported changes that seldom.
    """

    def __init__(self) -> None:
        self._steps: deque[tuple[int, int, int]] = deque(maxlen=_STEPS + 1)  # number, requests, failed; oldest first

    def add(self, report: TrafficReport, now: float) -> None:
        """Add a worker's report. `now`: monotonic seconds, never before those of an earlier call."""
        counts, number = report.total(), int(now // _STEP_SECONDS)
        requests, failed = requests_of(counts), counts[SERVER_ERRORS]
        if self._steps and self._steps[-1][0] == number:
            _, before, failed_before = self._steps.pop()
            requests, failed = requests + before, failed + failed_before
        self._steps.append((number, requests, failed))

    def read(self, now: float) -> EdgeTraffic:
        """Return the traffic of the six steps before the present one."""
        present = int(now // _STEP_SECONDS)
        whole = [step for step in self._steps if present - _STEPS <= step[0] < present]
        return EdgeTraffic(sum(step[1] for step in whole), sum(step[2] for step in whole))
