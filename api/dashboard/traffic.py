"""Traffic of a domain or an application as the pages show it: figures in words, and two charts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from markupsafe import Markup

from api.answers.traffic import TrafficFigures, figures
from api.dashboard import charts
from api.dashboard.charts import Bar, Slot
from api.dashboard.words import milliseconds, share
from api.schemas.traffic import DEFAULT_PERIOD, PERIODS, Period
from common.db import traffic
from common.db.session import Connection
from common.db.traffic import Point
from common.traffic import BUCKETS, HTTP2, LATENCY_BOUNDS, SERVER_ERRORS, add_up, percentile_seconds, requests_of

_SLOTS = {"day": timedelta(minutes=15), "month": timedelta(hours=8)}


@dataclass(frozen=True, slots=True)
class Shown:
    """Traffic as a page shows it."""

    period: Period
    words: str
    figures: TrafficFigures
    over_time: Markup
    latency_over_time: Markup
    http2_over_time: Markup
    latency: Markup


async def show(connection: Connection, application_id: str, domain: str, period: str | None, now: datetime) -> Shown:
    """`domain` is empty for all domains of the application. An unknown `period` is as good as none."""
    chosen = PERIODS.get(period or "", DEFAULT_PERIOD)
    points = await traffic.list_points(connection, application_id, domain, chosen.minutes, chosen.length)
    total = add_up(point.counts for point in points)
    span = "24 hours" if chosen.name == "day" else "30 days"
    slots, shown = _slots(points, chosen, now), figures(total)
    return Shown(
        chosen,
        f"As the edges counted it in the last {span}, UTC.",
        shown,
        charts.over_time(slots, f"{requests_of(total):,} requests, {total[SERVER_ERRORS]:,} failed"),
        charts.latency_over_time(
            slots,
            f"Latency: half within {milliseconds(shown['latency_p50_ms'])},"
            f" 95 % within {milliseconds(shown['latency_p95_ms'])}",
        ),
        charts.http2_over_time(slots, f"{share(total[HTTP2], requests_of(total))} of the requests over HTTP/2"),
        _latency(total),
    )


def _slots(points: Sequence[Point], period: Period, now: datetime) -> list[Slot]:
    """Of equal length, up to now; those without traffic are empty."""
    length = _SLOTS[period.name]
    count = period.length // length
    first = now.timestamp() // length.total_seconds() - count + 1
    by_slot: dict[int, list[list[int]]] = {}
    for point in points:
        by_slot.setdefault(int(point.at.timestamp() // length.total_seconds() - first), []).append(point.counts)
    found = []
    for place in range(count):
        counts = add_up(by_slot.get(place, ()))
        at = datetime.fromtimestamp((first + place) * length.total_seconds(), now.tzinfo)
        label = ""
        if period.name == "day" and at.minute == 0 and at.hour % 3 == 0:
            label = at.strftime("%H:%M")
        elif period.name == "month" and at.hour == 0 and at.toordinal() % 3 == 1:
            label = at.strftime("%-d %b")
        words = at.strftime("%-d %b, %H:%M")
        requests, failed = requests_of(counts), counts[SERVER_ERRORS]
        found.append(Slot(label, words, requests, failed, _within(counts, 0.5), _within(counts, 0.95), counts[HTTP2]))
    return found


def _within(counts: Sequence[int], share: float) -> float | None:
    """Milliseconds, at most the longest that is told apart."""
    seconds = percentile_seconds(counts[:BUCKETS], share)
    return None if seconds is None else min(seconds, LATENCY_BOUNDS[-1]) * 1000


def _latency(counts: Sequence[int]) -> Markup:
    labels = [_bound(seconds) for seconds in LATENCY_BOUNDS] + ["more"]
    bars = [Bar(label, count) for label, count in zip(labels, counts[:BUCKETS], strict=True)]
    title = "Requests by latency: " + ", ".join(f"{bar.label} {bar.value:,.0f}" for bar in bars if bar.value)
    return charts.columns(bars, title, width=880, height=140)


def _bound(seconds: float) -> str:
    return f"{seconds * 1000:g} ms" if seconds < 1 else f"{seconds:g} s"
