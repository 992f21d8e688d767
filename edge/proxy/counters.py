"""What a worker counts about its connections and exchanges, in plain numbers; read when the worker beats.

This module adds nothing up over workers: that is the supervisor's (`common.metrics`).
"""

from __future__ import annotations

from bisect import bisect_left

from common.metrics import Family, Labels
from common.traffic import (
    BUCKETS,
    BYTES_DOWN,
    CLIENT_ERRORS,
    HTTP2,
    LATENCY_BOUNDS,
    ORIGIN_ERRORS,
    SERVER_ERRORS,
)
from edge.http.error_responses import (
    CLIENT_DISCONNECTED,
    CUT_OFF,
    ORIGIN_DOWN,
    ORIGIN_INVALID,
    ORIGIN_SLOW,
    ORIGIN_UNREACHABLE,
)
from edge.http2.budgets import NAMES as HTTP2_BUDGETS
from edge.proxy.domain_traffic import DomainTraffic
from edge.proxy.exchange import Exchange

_ORIGIN_ERRORS = frozenset({CUT_OFF, ORIGIN_DOWN, ORIGIN_INVALID, ORIGIN_UNREACHABLE, ORIGIN_SLOW})


class Http2Counters:
    """Counts about HTTP/2, since the worker's start.

    `ends` counts connections that their clients' faults ended, by the exceeded budget or the code of the error.
    `resets` counts streams that such faults reset, by the code.
    """

    __slots__ = ("accepted", "ends", "resets")

    def __init__(self) -> None:
        self.accepted = 0
        self.ends: dict[str, int] = dict.fromkeys(HTTP2_BUDGETS, 0)
        self.resets = {"protocol_error": 0}

    def ended(self, reason: str) -> None:
        """Count a connection that GOAWAY ended with an error."""
        self.ends[reason] = self.ends.get(reason, 0) + 1

    def reset(self, code: str) -> None:
        """Count a stream that was reset for what the client did."""
        self.resets[code] = self.resets.get(code, 0) + 1

    def families(self, exchanges: int) -> list[Family]:
        """Return the counts, with that of exchanges, which is the domains' sum."""
        return [
            Family.of(
                "frontage_edge_http2_accepted", "Accepted connections that speak HTTP/2.", "counter", self.accepted
            ),
            Family.of("frontage_edge_http2_exchanges", "Exchanges over HTTP/2.", "counter", exchanges),
            Family(
                "frontage_edge_http2_ends",
                "HTTP/2 connections ended for an error of the client, by exceeded budget or error code.",
                "counter",
                ("reason",),
                samples=_by_label(self.ends),
            ),
            Family(
                "frontage_edge_http2_resets",
                "HTTP/2 streams reset for an error of the client, as a malformed request, by error code.",
                "counter",
                ("code",),
                samples=_by_label(self.resets),
            ),
        ]


def _by_label(counts: dict[str, int]) -> dict[Labels, list[float]]:
    return {(label,): [float(count)] for label, count in counts.items()}


class ExchangeCounters:
    """Counts since the worker's start. Owned by its `WorkerContext`, written by its client connections."""

    __slots__ = (
        "_after_head",
        "_after_head_sum",
        "_by_status",
        "_bytes_up",
        "_client_disconnects",
        "_domains_counted",
        "_latency_sum",
        "_refusals",
        "_without_head",
        "_without_head_sum",
        "accepted",
        "domains",
        "http2",
    )

    def __init__(self) -> None:
        self.accepted = 0
        self._by_status = [0] * 1000
        self._refusals: dict[str, int] = {}
        self._latency_sum = 0.0
        # Of the few exchanges that went on after the head: in which bucket they ended, and without the one of the head.
        self._after_head = [0] * BUCKETS
        self._after_head_sum = 0.0
        self._without_head = [0] * BUCKETS
        self._without_head_sum = 0.0
        self._bytes_up = 0
        self._client_disconnects = 0
        self.http2 = Http2Counters()
        self.domains = DomainTraffic()
        self._domains_counted = self.domains.counted

    def exchange(self, exchange: Exchange) -> list[int]:
        """Count a finished exchange; return the counts of its domain."""
        seconds = exchange.ended_at - exchange.started_at
        bucket = bisect_left(LATENCY_BOUNDS, seconds)
        status = exchange.status
        self._by_status[status] += 1
        self._latency_sum += seconds
        if exchange.bytes_up:
            self._bytes_up += exchange.bytes_up
        counts = self._domains_counted.get(exchange.route.domain)
        if counts is None:
            counts = self.domains.open(exchange.route.domain)
        if exchange.answered_at or exchange.failure is not None:
            bucket = self._count_late_response(exchange, bucket, seconds)
            self._client_disconnects += exchange.failure is CLIENT_DISCONNECTED
            counts[ORIGIN_ERRORS] += exchange.failure in _ORIGIN_ERRORS
        counts[bucket] += 1
        counts[BYTES_DOWN] += exchange.client.bytes_down
        if status >= 400:
            counts[CLIENT_ERRORS if status < 500 else SERVER_ERRORS] += 1
        return counts

    def _count_late_response(self, exchange: Exchange, bucket: int, seconds: float) -> int:
        """Count an exchange whose response did not come with its head, or not at all.

        Most come with their heads, in as long as the exchange took. Return the bucket of the time until the head;
        without a head, of the exchange.
        """
        if not exchange.answered_at:
            self._without_head[bucket] += 1
            self._without_head_sum += seconds
            return bucket
        until_head = exchange.answered_at - exchange.started_at
        bucket_until_head = bisect_left(LATENCY_BOUNDS, until_head)
        self._after_head[bucket] += 1
        self._after_head[bucket_until_head] -= 1
        self._after_head_sum += seconds - until_head
        return bucket_until_head

    def refusal(self, code: str) -> None:
        """Count a refusal."""
        self._refusals[code] = self._refusals.get(code, 0) + 1

    def families(self, *, open_connections: int, upstream_connections: int, open_breakers: int) -> list[Family]:
        """Return the metrics."""
        statuses: dict[Labels, list[float]] = {
            (str(status or "none"),): [float(n)] for status, n in enumerate(self._by_status) if n
        }
        refusals: dict[Labels, list[float]] = {(code,): [float(n)] for code, n in self._refusals.items()}
        domains: dict[Labels, list[float]] = {
            (domain,): [rate] for domain, rate in self.domains.requests_per_second().items()
        }
        totals = self.domains.total
        return [
            Family("frontage_edge_accepted", "Connections accepted.", "counter", samples={(): [float(self.accepted)]}),
            Family.of("frontage_edge_connections", "Connections open now.", "gauge", open_connections),
            Family.of("frontage_edge_upstream_connections", "Connections to origins.", "gauge", upstream_connections),
            Family.of("frontage_edge_resting_origins", "Unreachable, and left alone.", "gauge", open_breakers),
            Family("frontage_edge_exchanges", "Exchanges by status.", "counter", ("status",), samples=statuses),
            Family("frontage_edge_refusals", "Answers of our own, by code.", "counter", ("code",), samples=refusals),
            Family.of(
                "frontage_edge_client_disconnects",
                "Exchanges whose client left before the response's end.",
                "counter",
                self._client_disconnects,
            ),
            *self.http2.families(totals[HTTP2]),
            *self._latency_families(totals),
            Family.of("frontage_edge_bytes_down", "Bytes of exchanges to clients.", "counter", totals[BYTES_DOWN]),
            Family.of("frontage_edge_bytes_up", "Bytes of bodies to origins.", "counter", self._bytes_up),
            Family(
                "frontage_edge_domain_requests_per_second",
                "Of the busiest domains, averaged over a minute.",
                "gauge",
                ("domain",),
                samples=domains,
            ),
        ]

    def _latency_families(self, totals: list[int]) -> list[Family]:
        ended = [head + later for head, later in zip(totals[:BUCKETS], self._after_head, strict=True)]
        with_head = [head - none for head, none in zip(totals[:BUCKETS], self._without_head, strict=True)]
        until_head_sum = self._latency_sum - self._after_head_sum - self._without_head_sum
        return [
            Family(
                "frontage_edge_exchange_seconds",
                "From a request's head to its response's end.",
                "histogram",
                bounds=LATENCY_BOUNDS,
                samples={(): [*map(float, ended), self._latency_sum]},
            ),
            Family(
                "frontage_edge_origin_seconds",
                "From a request's head to its origin's answer's head.",
                "histogram",
                bounds=LATENCY_BOUNDS,
                samples={(): [*map(float, with_head), until_head_sum]},
            ),
        ]
