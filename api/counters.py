"""What the API counts: requests by route, method and status, and how long they took."""

from __future__ import annotations

from bisect import bisect_left

from common.metrics import Family

_BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)


class Counters:
    """Counts requests. One instance per process.

    `route` is a route's path, never the one that was asked: there is no end of those.
    """

    def __init__(self) -> None:
        self._requests = Family("frontage_api_requests", "Requests answered.", "counter", ("route", "method", "status"))
        self._failures = Family(
            "frontage_api_failures",
            "Requests that failed by a fault of the API, or without its database, whatever the status.",
            "counter",
            ("route",),
        )
        self._durations = Family(
            "frontage_api_request_seconds", "Time to answer.", "histogram", ("route", "method"), _BOUNDS
        )

    def record(self, route: str, method: str, status: int, seconds: float) -> None:
        """Count a response."""
        self._requests.samples.setdefault((route, method, str(status)), [0.0])[0] += 1
        numbers = self._durations.samples.setdefault((route, method), [0.0] * (len(_BOUNDS) + 2))
        numbers[bisect_left(_BOUNDS, seconds)] += 1
        numbers[-1] += seconds

    def record_failure(self, route: str) -> None:
        """Count a failure of ours."""
        self._failures.samples.setdefault((route,), [0.0])[0] += 1

    def families(self) -> list[Family]:
        """Return the metrics as they stand."""
        return [self._requests, self._failures, self._durations]
