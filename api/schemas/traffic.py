"""Traffic of a domain: the periods that can be asked for, and the answer as JSON."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from datetime import timedelta
from types import MappingProxyType
from typing import Any, Final, NamedTuple

from multidict import MultiMapping

from api.errors import Refused, invalid_parameter
from api.schemas.queries import parse_optional_text
from common.db.traffic import Minutes, Point
from common.traffic import (
    BUCKETS,
    BYTES_DOWN,
    CLIENT_ERRORS,
    ORIGIN_ERRORS,
    SERVER_ERRORS,
    add_up,
    percentile_seconds,
    requests_of,
)


class Period(NamedTuple):
    name: str
    minutes: Minutes
    length: timedelta


PERIODS: Final[Mapping[str, Period]] = MappingProxyType(
    {"day": Period("day", 5, timedelta(days=1)), "month": Period("month", 60, timedelta(days=30))}
)
DEFAULT_PERIOD: Final = PERIODS["day"]


def parse_period(query: MultiMapping[str]) -> Period:
    """Raises: `Refused`."""
    text = parse_optional_text(query, "period")
    if text is None:
        return DEFAULT_PERIOD
    if text not in PERIODS:
        raise Refused(invalid_parameter("period"), hint=f"expected one of {', '.join(PERIODS)}")
    return PERIODS[text]


def rendered(domain: str, period: Period, points: Sequence[Point]) -> dict[str, Any]:
    return {
        "domain": domain,
        "period": period.name,
        "interval_minutes": period.minutes,
        "total": figures(add_up(point.counts for point in points)),
        "items": [{"at": point.at, **figures(point.counts)} for point in points],
    }


def figures(counts: Sequence[int]) -> dict[str, Any]:
    return {
        "requests": requests_of(counts),
        "bytes": counts[BYTES_DOWN],
        "client_errors": counts[CLIENT_ERRORS],
        "server_errors": counts[SERVER_ERRORS],
        "origin_errors": counts[ORIGIN_ERRORS],
        "latency_p50_ms": _milliseconds(percentile_seconds(counts[:BUCKETS], 0.5)),
        "latency_p95_ms": _milliseconds(percentile_seconds(counts[:BUCKETS], 0.95)),
    }


def _milliseconds(seconds: float | None) -> float | None:
    return None if seconds is None or math.isinf(seconds) else seconds * 1000
