"""Traffic of domains: what edges count for each one, how counts are merged, and what a histogram shows.

Counts of a domain are a list of integers: one for each bucket of latency, and then `BYTES_DOWN` and the errors. So the
edge's worker counts a request in place, and without a lookup of names.

A worker counts and hands its counts to the supervisor, which merges them and writes them to Postgres
(`common.db.traffic`). Each step keeps the `MOST_REPORTED` domains and applications with the most requests. The counts
of a whole application stand under the domain ``""``; they include the domains that were left out.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from heapq import nlargest
from typing import Any, Final, NamedTuple

LATENCY_BOUNDS: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
"""Upper bounds in seconds, wide enough for a page from memory and for a long poll; one more bucket has no bound."""

MOST_REPORTED: Final = 1000

BUCKETS: Final = len(LATENCY_BOUNDS) + 1
"""Each request is in one, by the time until the head of its response."""

BYTES_DOWN: Final = BUCKETS
CLIENT_ERRORS: Final = BUCKETS + 1  # statuses from 400 to 499
SERVER_ERRORS: Final = BUCKETS + 2  # statuses from 500 on; the edge's own responses count, too
ORIGIN_ERRORS: Final = BUCKETS + 3  # the origin did not respond, or not in full
HTTP2: Final = BUCKETS + 4  # requests over HTTP/2; all others came over HTTP/1
FIGURES: Final = BUCKETS + 5


class TrafficKey(NamedTuple):
    """A domain of an application; `domain` is empty for all domains of the application."""

    application_id: str
    domain: str


def requests_of(counts: Sequence[int]) -> int:
    """Return the number of requests in a domain's counts."""
    return sum(counts[:BUCKETS])


def add_up(counts: Iterable[Sequence[int]]) -> list[int]:
    """Add up the counts of several sources, place by place."""
    return [sum(figures) for figures in zip([0] * FIGURES, *counts, strict=True)]


class TrafficReport:
    """Holds counts by domain, of one or more sources. It grows with `add` until `shrink` is called."""

    def __init__(self) -> None:
        self._counts: dict[TrafficKey, list[int]] = {}

    def add(self, key: TrafficKey, counts: Sequence[int]) -> None:
        """Add the counts of a domain to those it has."""
        former = self._counts.get(key)
        self._counts[key] = list(counts) if former is None else add_up((former, counts))

    def merge(self, other: TrafficReport) -> None:
        """Add the counts of another report, and keep only the busiest domains."""
        for key, counts in other._counts.items():
            self.add(key, counts)
        self.shrink()

    def shrink(self) -> None:
        """Keep only the `MOST_REPORTED` busiest keys.

        An application has as many requests as all its domains together.
        """
        if len(self._counts) > MOST_REPORTED:
            busiest = nlargest(MOST_REPORTED, self._counts.items(), key=lambda item: requests_of(item[1]))
            self._counts = dict(busiest)

    def total(self) -> list[int]:
        """Return the counts of all applications together."""
        return add_up(counts for key, counts in self._counts.items() if not key.domain)

    def to_plain(self) -> list[list[Any]]:
        """Convert the report to JSON's types: application, domain and counts of each key, applications first.

        `from_plain` converts it back.
        """
        ordered = sorted(self._counts.items(), key=lambda item: (item[0].domain != "", item[0]))
        return [[*key, counts] for key, counts in ordered]

    @classmethod
    def from_plain(cls, entries: Iterable[Sequence[Any]]) -> TrafficReport:
        """Read a report that `to_plain` wrote."""
        report = cls()
        for application_id, domain, counts in entries:
            report.add(TrafficKey(application_id, domain), counts)
        return report

    def __len__(self) -> int:
        return len(self._counts)


def percentile_seconds(latency: Sequence[int], part: float) -> float | None:
    """Return the bound below which `part` of the requests were answered.

    None for no request, infinity beyond every bound.
    """
    total, passed = sum(latency), 0
    if not total:
        return None
    for bound, count in zip((*LATENCY_BOUNDS, float("inf")), latency, strict=True):
        passed += count
        if passed >= part * total:
            return bound
    raise AssertionError("the last bucket holds the rest")
