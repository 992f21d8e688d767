"""Requests of the last minute, in steps of ten seconds."""

from __future__ import annotations

from common.db.edge_nodes import EdgeTraffic
from common.traffic import FIGURES, SERVER_ERRORS, TrafficKey, TrafficReport
from edge.process.recent_traffic import RecentTraffic


def report(requests: int, failed: int = 0) -> TrafficReport:
    found, counts = TrafficReport(), [0] * FIGURES
    counts[2], counts[SERVER_ERRORS] = requests, failed
    found.add(TrafficKey("a", ""), counts)
    found.add(TrafficKey("a", "shop.customer.test"), counts)  # the application's own count has it already
    return found


def test_a_minute_is_the_six_steps_before_the_present_one() -> None:
    recent = RecentTraffic()
    assert recent.read(100.0) == EdgeTraffic(0, 0)
    recent.add(report(3, 1), 101.0)
    recent.add(report(4), 109.0)
    assert recent.read(109.5) == EdgeTraffic(0, 0)
    assert recent.read(110.0) == EdgeTraffic(7, 1)
    recent.add(report(5), 151.0)
    assert recent.read(169.9) == EdgeTraffic(12, 1)
    assert recent.read(170.0) == EdgeTraffic(5, 0)
    assert recent.read(220.0) == EdgeTraffic(0, 0)


def test_ten_minutes_of_traffic_keep_one() -> None:
    recent = RecentTraffic()
    for second in range(600):
        recent.add(report(1), float(second))
    assert recent.read(600.0) == EdgeTraffic(60, 0)
