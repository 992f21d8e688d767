"""What a worker counts about its connections and exchanges, in plain numbers; read when the worker beats.

This module adds nothing up over workers: that is the supervisor's (`common.metrics`).
"""

from __future__ import annotations

from bisect import bisect_left

from common.metrics import Family, Labels

# Seconds; wide enough for a page from memory and for a long poll.
LATENCY_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class Counters:
    """Since the worker's start. Written by downstream connections, one owner a worker: `edge.downstream.Serving`."""

    __slots__ = ("_by_status", "_latency", "_latency_sum", "_refusals", "accepted")

    def __init__(self) -> None:
        self.accepted = 0
        self._by_status = [0] * 1000
        self._refusals: dict[str, int] = {}
        self._latency = [0] * (len(LATENCY_BOUNDS) + 1)
        self._latency_sum = 0.0

    def exchange(self, status: int, seconds: float) -> None:
        """One finished exchange; `status` 0: it ended before an answer."""
        self._by_status[status] += 1
        self._latency_sum += seconds
        self._latency[bisect_left(LATENCY_BOUNDS, seconds)] += 1

    def refusal(self, code: str) -> None:
        self._refusals[code] = self._refusals.get(code, 0) + 1

    def families(self, *, open_connections: int, upstream_connections: int, resting_origins: int) -> list[Family]:
        statuses: dict[Labels, list[float]] = {
            (str(status or "none"),): [float(n)] for status, n in enumerate(self._by_status) if n
        }
        refusals: dict[Labels, list[float]] = {(code,): [float(n)] for code, n in self._refusals.items()}
        latency: dict[Labels, list[float]] = {(): [*map(float, self._latency), self._latency_sum]}
        return [
            Family("frontage_edge_accepted", "Connections accepted.", "counter", samples={(): [float(self.accepted)]}),
            Family.of("frontage_edge_connections", "Connections open now.", "gauge", open_connections),
            Family.of("frontage_edge_upstream_connections", "Connections to origins.", "gauge", upstream_connections),
            Family.of("frontage_edge_resting_origins", "Unreachable, and left alone.", "gauge", resting_origins),
            Family("frontage_edge_exchanges", "Exchanges by status.", "counter", ("status",), samples=statuses),
            Family("frontage_edge_refusals", "Answers of our own, by code.", "counter", ("code",), samples=refusals),
            Family(
                "frontage_edge_exchange_seconds",
                "From a request's head to its response's end.",
                "histogram",
                bounds=LATENCY_BOUNDS,
                samples=latency,
            ),
        ]
