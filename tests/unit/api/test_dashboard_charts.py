"""The curve of latency over time."""

from __future__ import annotations

import re

from api.dashboard.charts import Slot, latency_over_time


def slots(*within: tuple[float, float] | None) -> list[Slot]:
    return [Slot("", f"slot {at}", 1, 0, *each) if each else Slot("", "", 0, 0) for at, each in enumerate(within)]


def test_a_curve_has_gaps_where_there_were_no_requests() -> None:
    svg = latency_over_time(slots((10, 100), (20, 50), None, (5, 25)), "Latency", width=400, height=144)
    half, most = re.findall(r' d="([^"]*)"', svg)
    assert most == "M50.0 22.0h0L150.0 72.0h0M350.0 97.0h0"
    assert half.count("M") == 2
    assert "slot 1: half within 20 ms, 95 % within 50 ms" in svg
    assert ">100 ms<" in svg


def test_a_time_without_requests_has_no_curve() -> None:
    svg = latency_over_time(slots(None, None), "Latency")
    assert re.findall(r' d="([^"]*)"', svg) == ["", ""]
