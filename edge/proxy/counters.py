"""What a worker counts about its connections and exchanges, in plain numbers; read when the worker beats.

This module adds nothing up over workers: that is the supervisor's (`common.metrics`).
"""

from __future__ import annotations

from bisect import bisect_left

from common.metrics import Family, Labels
from edge.http.error_responses import CLIENT_DISCONNECTED
from edge.proxy.busiest_domains import BusiestDomains
from edge.proxy.exchange import Exchange

# Seconds; wide enough for a page from memory and for a long poll.
LATENCY_BOUNDS = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)


class ExchangeCounters:
    """Since the worker's start. Owned by its `WorkerContext`, written by its client connections."""

    __slots__ = (
        "_by_status",
        "_bytes_down",
        "_bytes_up",
        "_client_disconnects",
        "_domains_counted",
        "_latency",
        "_latency_sum",
        "_origin_difference",
        "_origin_difference_sum",
        "_refusals",
        "accepted",
        "domains",
    )

    def __init__(self) -> None:
        self.accepted = 0
        self._by_status = [0] * 1000
        self._refusals: dict[str, int] = {}
        self._latency = [0] * (len(LATENCY_BOUNDS) + 1)
        self._latency_sum = 0.0
        # What the time until origins' heads differs by from the exchanges' latency.
        self._origin_difference = [0] * (len(LATENCY_BOUNDS) + 1)
        self._origin_difference_sum = 0.0
        self._bytes_down = 0
        self._bytes_up = 0
        self._client_disconnects = 0
        self.domains = BusiestDomains()
        self._domains_counted = self.domains.counted

    def exchange(self, exchange: Exchange, now: float) -> None:
        """One finished exchange."""
        seconds = now - exchange.started_at
        bucket = bisect_left(LATENCY_BOUNDS, seconds)
        self._by_status[exchange.status] += 1
        self._latency[bucket] += 1
        self._latency_sum += seconds
        self._bytes_down += exchange.client.bytes_down
        domain = exchange.route.domain
        self._domains_counted[domain] = self._domains_counted.get(domain, 0) + 1
        if exchange.bytes_up:
            self._bytes_up += exchange.bytes_up
        if exchange.answered_at or exchange.failure is not None:
            self._tell_apart(exchange, bucket, seconds)
            self._client_disconnects += exchange.failure is CLIENT_DISCONNECTED

    def _tell_apart(self, exchange: Exchange, bucket: int, seconds: float) -> None:
        """Most answers come with their heads, in as long as the exchange took. This one did not, or not at all."""
        self._origin_difference[bucket] -= 1
        self._origin_difference_sum -= seconds
        if exchange.answered_at:
            until_head = exchange.answered_at - exchange.started_at
            self._origin_difference[bisect_left(LATENCY_BOUNDS, until_head)] += 1
            self._origin_difference_sum += until_head

    def refusal(self, code: str) -> None:
        self._refusals[code] = self._refusals.get(code, 0) + 1

    def families(self, *, open_connections: int, upstream_connections: int, resting_origins: int) -> list[Family]:
        statuses: dict[Labels, list[float]] = {
            (str(status or "none"),): [float(n)] for status, n in enumerate(self._by_status) if n
        }
        refusals: dict[Labels, list[float]] = {(code,): [float(n)] for code, n in self._refusals.items()}
        latency: dict[Labels, list[float]] = {(): [*map(float, self._latency), self._latency_sum]}
        until_head: dict[Labels, list[float]] = {
            (): [
                *(
                    float(whole + difference)
                    for whole, difference in zip(self._latency, self._origin_difference, strict=True)
                ),
                self._latency_sum + self._origin_difference_sum,
            ]
        }
        domains: dict[Labels, list[float]] = {(domain,): [rate] for domain, rate in self.domains.top().items()}
        return [
            Family("frontage_edge_accepted", "Connections accepted.", "counter", samples={(): [float(self.accepted)]}),
            Family.of("frontage_edge_connections", "Connections open now.", "gauge", open_connections),
            Family.of("frontage_edge_upstream_connections", "Connections to origins.", "gauge", upstream_connections),
            Family.of("frontage_edge_resting_origins", "Unreachable, and left alone.", "gauge", resting_origins),
            Family("frontage_edge_exchanges", "Exchanges by status.", "counter", ("status",), samples=statuses),
            Family("frontage_edge_refusals", "Answers of our own, by code.", "counter", ("code",), samples=refusals),
            Family.of(
                "frontage_edge_client_disconnects",
                "Exchanges whose client left before the response's end.",
                "counter",
                self._client_disconnects,
            ),
            Family(
                "frontage_edge_exchange_seconds",
                "From a request's head to its response's end.",
                "histogram",
                bounds=LATENCY_BOUNDS,
                samples=latency,
            ),
            Family(
                "frontage_edge_origin_seconds",
                "From a request's head to its origin's answer's head.",
                "histogram",
                bounds=LATENCY_BOUNDS,
                samples=until_head,
            ),
            Family.of("frontage_edge_bytes_down", "Bytes of exchanges to clients.", "counter", self._bytes_down),
            Family.of("frontage_edge_bytes_up", "Bytes of bodies to origins.", "counter", self._bytes_up),
            Family(
                "frontage_edge_domain_requests_per_second",
                "Of the busiest domains, averaged over a minute.",
                "gauge",
                ("domain",),
                samples=domains,
            ),
        ]
