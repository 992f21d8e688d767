"""The definition of a Grafana dashboard: rows of charts over our metrics."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any, Final

_WIDTH, _HEIGHT = 8, 7
_ROW_WIDTH = 24
_SCHEMA_VERSION = 39


@dataclass(frozen=True, slots=True)
class Chart:
    """Lines over time. `unit` is Grafana's name of it; `lines` are an expression and its legend each."""

    title: str
    unit: str
    lines: tuple[tuple[str, str], ...]


_EXCHANGE = "sum by (le) (rate(frontage_edge_exchange_seconds_bucket[5m]))"
_ORIGIN = "sum by (le) (rate(frontage_edge_origin_seconds_bucket[5m]))"
_API = "sum by (le) (rate(frontage_api_request_seconds_bucket[5m]))"

CHARTS: Final = (
    Chart(
        "Requests by status", "reqps", (("sum by (status) (rate(frontage_edge_exchanges_total[5m]))", "{{status}}"),)
    ),
    Chart(
        "Time to serve",
        "s",
        (
            (f"histogram_quantile(0.5, {_EXCHANGE})", "median"),
            (f"histogram_quantile(0.99, {_EXCHANGE})", "99 %"),
            (f"histogram_quantile(0.99, {_ORIGIN})", "99 % of origins"),
        ),
    ),
    Chart("Answers of our own", "reqps", (("sum by (code) (rate(frontage_edge_refusals_total[5m]))", "{{code}}"),)),
    Chart(
        "Connections",
        "short",
        (
            ("sum by (instance) (frontage_edge_connections)", "clients, {{instance}}"),
            ("sum by (instance) (frontage_edge_upstream_connections)", "origins, {{instance}}"),
        ),
    ),
    Chart(
        "Traffic",
        "Bps",
        (
            ("sum(rate(frontage_edge_bytes_down_total[5m]))", "to clients"),
            ("sum(rate(frontage_edge_bytes_up_total[5m]))", "to origins"),
        ),
    ),
    Chart(
        "TLS handshakes",
        "ops",
        (
            ("sum(rate(frontage_edge_tls_handshakes_total[5m]))", "all"),
            ("sum(rate(frontage_edge_tls_resumed_total[5m]))", "resumed"),
            ("sum by (reason) (rate(frontage_edge_tls_failures_total[5m]))", "failed: {{reason}}"),
        ),
    ),
    Chart(
        "Busiest domains",
        "reqps",
        (("topk(10, sum by (domain) (frontage_edge_domain_requests_per_second))", "{{domain}}"),),
    ),
    Chart("Edges", "short", (("max by (state) (frontage_edges)", "{{state}}"),)),
    Chart(
        "Age of the edges' copies",
        "s",
        (("max by (instance) (frontage_edge_replica_age_seconds)", "{{instance}}"),),
    ),
    Chart("Changes to apply", "short", (("max(frontage_edges_behind_changes)", "slowest edge"),)),
    Chart("Due work", "short", (("max by (work) (frontage_due)", "{{work}}"),)),
    Chart("Oldest due work", "s", (("max by (work) (frontage_due_oldest_seconds)", "{{work}}"),)),
    Chart("Work in progress", "short", (("sum by (work) (frontage_monitor_claims_held)", "{{work}}"),)),
    Chart("Certificates by days left", "short", (("max by (days_left) (frontage_certificates)", "{{days_left}}"),)),
    Chart(
        "Certificates that edges present, by days left",
        "short",
        (("sum by (days_left) (frontage_edge_certificates)", "{{days_left}}"),),
    ),
    Chart(
        "Time until an edge's first certificate ends",
        "s",
        (("min by (instance) (frontage_edge_certificate_end_timestamp_seconds) - time()", "{{instance}}"),),
    ),
    Chart(
        "Look-ups of origins",
        "ops",
        (("sum by (outcome) (rate(frontage_edge_origin_lookups_total[5m]))", "{{outcome}}"),),
    ),
    Chart("Orders that fail", "short", (("max by (reason) (frontage_orders_failing)", "{{reason}}"),)),
    Chart(
        "Limits of the CA",
        "percentunit",
        (("max by (issuer, limit) (frontage_ca_limit_used_ratio)", "{{issuer}} {{limit}}"),),
    ),
    Chart("Webhook endpoints", "short", (("max by (state) (frontage_webhook_endpoints)", "{{state}}"),)),
    Chart(
        "API requests by status", "reqps", (("sum by (status) (rate(frontage_api_requests_total[5m]))", "{{status}}"),)
    ),
    Chart(
        "API time to answer",
        "s",
        ((f"histogram_quantile(0.5, {_API})", "median"), (f"histogram_quantile(0.99, {_API})", "99 %")),
    ),
    Chart(
        "Connections to Postgres",
        "short",
        (
            ("sum by (instance) (frontage_pool_in_use)", "in use, {{instance}}"),
            ("sum by (instance) (frontage_pool_waiting)", "waited for, {{instance}}"),
        ),
    ),
    Chart("Delay of the event loop", "s", (("max by (instance) (frontage_loop_lag_seconds)", "{{instance}}"),)),
    Chart(
        "Free disk",
        "percentunit",
        (("frontage_disk_free_bytes / frontage_disk_size_bytes", "{{instance}}"),),
    ),
    Chart(
        "Clock beside Prometheus'",
        "s",
        (("frontage_clock_timestamp_seconds - timestamp(frontage_clock_timestamp_seconds)", "{{instance}}"),),
    ),
    Chart(
        "Rows erased",
        "short",
        (("sum by (step) (rate(frontage_retention_rows_erased_total[5m]))", "{{step}}"),),
    ),
)


def dashboard() -> str:
    """Return the JSON that Grafana imports; it asks for the Prometheus to read from."""
    definition = {
        "title": "Frontage",
        "uid": "frontage",
        "schemaVersion": _SCHEMA_VERSION,
        "time": {"from": "now-6h", "to": "now"},
        "refresh": "30s",
        "templating": {"list": [{"name": "source", "type": "datasource", "query": "prometheus"}]},
        "panels": [_panel(number, chart) for number, chart in enumerate(CHARTS)],
    }
    return json.dumps(definition, indent=2) + "\n"


def _panel(number: int, chart: Chart) -> dict[str, Any]:
    across = _ROW_WIDTH // _WIDTH
    source = {"type": "prometheus", "uid": "${source}"}
    return {
        "id": number + 1,
        "type": "timeseries",
        "title": chart.title,
        "datasource": source,
        "gridPos": {
            "x": number % across * _WIDTH,
            "y": number // across * _HEIGHT,
            "w": _WIDTH,
            "h": _HEIGHT,
        },
        "fieldConfig": {"defaults": {"unit": chart.unit, "min": 0} if chart.unit != "s" else {"unit": chart.unit}},
        "targets": [
            {"refId": chr(ord("A") + index), "datasource": source, "expr": expression, "legendFormat": legend}
            for index, (expression, legend) in enumerate(chart.lines)
        ],
    }
