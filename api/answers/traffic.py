"""The traffic of a domain over time."""

from __future__ import annotations

import math
from collections.abc import Sequence
from datetime import datetime
from typing import Literal

from typing_extensions import TypedDict

from api.schemas.traffic import Period
from common.db.traffic import Point
from common.traffic import (
    BUCKETS,
    BYTES_DOWN,
    CLIENT_ERRORS,
    HTTP2,
    ORIGIN_ERRORS,
    SERVER_ERRORS,
    add_up,
    percentile_seconds,
    requests_of,
)


class TrafficFigures(TypedDict):
    """What the edges counted."""

    requests: int
    bytes: int
    """Sent to clients."""
    client_errors: int
    """Statuses from 400 to 499."""
    server_errors: int
    """Statuses from 500 on, those of the edges included."""
    origin_errors: int
    """The origin did not respond, or not in full."""
    http2_requests: int
    """Those of the requests that came over HTTP/2; the others came over HTTP/1."""
    latency_p50_ms: float | None
    """Half of the requests had the head of their response within this time, which is the bound of a class of the
    edges' histogram; null without requests, and beyond a minute."""
    latency_p95_ms: float | None


class TrafficPoint(TrafficFigures):
    """What the edges counted in one interval."""

    at: datetime
    """The start of the interval."""


class Traffic(TypedDict):
    """Intervals without a request are left out."""

    domain: str
    period: Literal["day", "month"]
    interval_minutes: Literal[5, 60]
    total: TrafficFigures
    items: list[TrafficPoint]


def traffic(domain: str, period: Period, points: Sequence[Point]) -> Traffic:
    """Render what was counted of a domain, in all and by interval."""
    return {
        "domain": domain,
        "period": period.name,
        "interval_minutes": period.minutes,
        "total": figures(add_up(point.counts for point in points)),
        "items": [{"at": point.at, **figures(point.counts)} for point in points],
    }


def figures(counts: Sequence[int]) -> TrafficFigures:
    """Render the counts of one interval, or the sum of several."""
    return {
        "requests": requests_of(counts),
        "bytes": counts[BYTES_DOWN],
        "client_errors": counts[CLIENT_ERRORS],
        "server_errors": counts[SERVER_ERRORS],
        "origin_errors": counts[ORIGIN_ERRORS],
        "http2_requests": counts[HTTP2],
        "latency_p50_ms": _milliseconds(percentile_seconds(counts[:BUCKETS], 0.5)),
        "latency_p95_ms": _milliseconds(percentile_seconds(counts[:BUCKETS], 0.95)),
    }


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None or math.isinf(seconds) else seconds * 1000
