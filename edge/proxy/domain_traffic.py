"""What a worker counts for each domain: requests, bytes, errors and latency, until the supervisor takes the report.

This module must not know statuses or exchanges: `edge.proxy.counters` does.
"""

from __future__ import annotations

from collections.abc import Callable

from common.traffic import FIGURES, MOST_REPORTED, TrafficKey, TrafficReport, add_up, requests_of
from edge.proxy.busiest_domains import BusiestDomains


class DomainTraffic:
    """Counts a worker's requests by domain.

    `counted` is added to once a request (`common.traffic`); `settle` is called by the worker's clock, so that what is
    kept for each domain that was asked for does not grow.
    """

    __slots__ = ("_busiest", "_settled", "_unreported", "counted")

    def __init__(self) -> None:
        self.counted: dict[str, list[int]] = {}  # since `settle`
        self._settled = [0] * FIGURES  # all domains, until `settle`
        self._busiest = BusiestDomains()
        self._unreported = TrafficReport()

    def open(self, domain: str) -> list[int]:
        """Return new counts for a domain that has none since `settle`."""
        counts = self.counted[domain] = [0] * FIGURES
        return counts

    def settle(self, seconds: float, application_of: Callable[[str], str | None]) -> None:
        """Add the counts of the `seconds` since this was last called to what is reported.

        A domain that no application has any more is in the totals only.
        """
        self._busiest.settle(seconds, {domain: requests_of(counts) for domain, counts in self.counted.items()})
        self._settled = self.total
        of_application: dict[str, list[list[int]]] = {}
        for domain, counts in self.counted.items():
            if (application_id := application_of(domain)) is not None:
                self._unreported.add(TrafficKey(application_id, domain), counts)
                of_application.setdefault(application_id, []).append(counts)
        for application_id, each in of_application.items():
            self._unreported.add(TrafficKey(application_id, ""), add_up(each))
        self.counted.clear()
        if len(self._unreported) > 4 * MOST_REPORTED:
            self._unreported.shrink()

    @property
    def total(self) -> list[int]:
        """Return the counts of all domains since the worker's start."""
        return add_up((self._settled, *self.counted.values()))

    def take_report(self) -> TrafficReport:
        """Return what was settled since this was last called."""
        taken, self._unreported = self._unreported, TrafficReport()
        taken.shrink()
        return taken

    def requests_per_second(self) -> dict[str, float]:
        """Return the requests a second of the busiest domains."""
        return self._busiest.top()
