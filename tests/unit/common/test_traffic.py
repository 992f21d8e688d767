"""Counts of domains: merged, bounded, sent as JSON, and read as percentiles."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta

from common.traffic import BUCKETS, FIGURES, MOST_REPORTED, TrafficKey, TrafficReport, percentile_seconds
from edge.proxy.domain_traffic import DomainTraffic
from edge.replica.pending_traffic import PendingTraffic

APP = TrafficKey("app", "")


def counts(requests: int) -> list[int]:
    return [requests, *[0] * (FIGURES - 1)]


def test_a_report_survives_json_and_adds_up() -> None:
    report = TrafficReport()
    report.add(TrafficKey("app", "a.example"), list(range(FIGURES)))
    report.add(APP, list(range(FIGURES)))
    again = TrafficReport.from_plain(json.loads(json.dumps(report.to_plain())))
    again.merge(report)
    assert again.to_plain() == [
        ["app", "", [2 * n for n in range(FIGURES)]],
        ["app", "a.example", [2 * n for n in range(FIGURES)]],
    ]


def test_what_was_added_is_not_changed_afterwards() -> None:
    report, given = TrafficReport(), counts(1)
    report.add(APP, given)
    report.add(APP, counts(2))
    assert given == counts(1)


def test_of_too_many_domains_the_busiest_are_reported_and_the_total_is_whole() -> None:
    traffic = DomainTraffic()
    for number in range(5 * MOST_REPORTED):
        traffic.open(f"{number}.example")[0] += 1 + (number >= 4500)
    traffic.settle(1.0, lambda _: "app")
    entries = traffic.take_report().to_plain()
    assert len(entries) == MOST_REPORTED
    assert entries[0] == ["app", "", counts(5500)]
    assert sum(figures[0] == 2 for _, domain, figures in entries if domain) == 500
    assert traffic.take_report().to_plain() == []
    assert traffic.total == counts(5500)


def test_a_domain_that_is_gone_is_in_no_report() -> None:
    traffic = DomainTraffic()
    traffic.open("gone.example")[0] += 1
    traffic.settle(1.0, lambda _: None)
    assert traffic.take_report().to_plain() == []


def test_what_cannot_be_written_waits_by_its_interval_and_for_an_hour_at_most() -> None:
    pending, report = PendingTraffic(), TrafficReport()
    report.add(APP, counts(1))
    start = datetime(2026, 1, 1, tzinfo=UTC)
    for minute in range(120):
        pending.add(report, start + timedelta(minutes=minute))
    found = []
    while (taken := pending.take()) is not None:
        found.append((taken[0], taken[1].to_plain()))
    assert [at for at, _ in found] == [start + timedelta(minutes=60 + 5 * n) for n in range(12)]
    assert {figures[0] for _, [[_, _, figures]] in found} == {5}


def test_percentiles_are_bounds_of_the_histogram() -> None:
    latency = [0] * BUCKETS
    assert percentile_seconds(latency, 0.5) is None
    latency[3], latency[6] = 90, 10
    assert percentile_seconds(latency, 0.5) == 0.01
    assert percentile_seconds(latency, 0.95) == 0.1
    latency[-1] = 1000
    assert percentile_seconds(latency, 0.5) == float("inf")
