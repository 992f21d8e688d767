"""The rules for Prometheus and the charts for Grafana: they name metrics that exist, and fire when they should."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from api.cli.metrics.alerts import ALERTS, in_yaml, rules
from api.cli.metrics.dashboard import CHARTS, dashboard
from api.pages.handbook import Handbook
from tests.reference import metric_families
from tests.waiting import SECONDS

HANDBOOK_URL = "https://api.frontage.example/docs"
EXPRESSIONS = [each.expression for each in ALERTS] + [line for chart in CHARTS for line, _ in chart.lines]
_SUFFIXES = {"counter": ("_total",), "gauge": ("",), "histogram": ("_bucket", "_count", "_sum")}
_OF_PROMETHEUS = {"instance", "job", "le"}

# The series of each rule: values at every minute while something is wrong, and while all is well; None: absent.
SERIES: dict[str, dict[str, tuple[str | None, str | None]]] = {
    "FrontageNoEdgeServes": {'frontage_edges{state="serving"}': ("0", "1")},
    "FrontageEdgeLost": {'frontage_edges{state="gone"}': ("1", "0")},
    "FrontageEdgeUnusable": {'frontage_edges{state="unusable"}': ("1", "0")},
    "FrontageEdgeServesOldCertificate": {'frontage_edge_old_certificates{edge="4f"}': ("1", "0")},
    "FrontageEdgeStuck": {'frontage_edges{state="stuck"}': ("1", "0")},
    "FrontageEdgeIdShared": {"frontage_edges_sharing_id": ("1", "0")},
    "FrontageCertificatesUnusable": {
        'frontage_edge_tls_failures_total{reason="unusable_certificate"}': ("0+1", "40"),
        'frontage_edge_tls_failures_total{reason="unknown_name"}': ("0+60", "0+60"),
    },
    "FrontageConnectionsRefused": {'frontage_edge_turned_away_total{cap="per_client"}': ("0+120", "0+1")},
    "FrontageTargetDown": {
        'up{job="frontage"}': ("0", "1"),
        'up{job="another"}': ("0", "0"),
    },
    "FrontageReplicaLags": {"frontage_edge_replica_age_seconds": ("61", "3")},
    "FrontageHeldCopy": {"frontage_edge_replica_held_copy": ("1", "0")},
    "FrontageReplicaDamaged": {"frontage_edge_replica_damages_total": ("0+1", "1")},
    "FrontageUpgradeFailed": {"frontage_edge_failed_upgrade": ("1", "0")},
    "FrontageWorkersDie": {"frontage_edge_worker_failures_total": ("0+1", "1")},
    "FrontageNoMonitor": {'frontage_monitors{state="running"}': ("0", "2")},
    "FrontageMonitorLeaseLost": {"frontage_monitor_lease_age_seconds": ("11", "0.9")},
    "FrontageWorkStopped": {"frontage_monitor_work_stopped": ("1", "0")},
    "FrontageDatabaseAway": {"frontage_database_reachable": ("0", "1")},
    "FrontageWorkOverdue": {'frontage_due_oldest_seconds{work="DNS checks"}': ("301", "2")},
    "FrontageCertificatesEnd": {
        'frontage_certificates_unrenewed{within_days="3"}': ("1", "0"),
        'frontage_certificates_unrenewed{within_days="7"}': (None, "1"),
    },
    "FrontageCaLimitShort": {'frontage_ca_limit_used_ratio{issuer="ca", limit="orders_per_account"}': ("0.95", "0.5")},
    "FrontageRevocationWaits": {"frontage_revocation_oldest_seconds": ("601", "30")},
    "FrontageOrdersFail": {'frontage_orders_failing{reason="refused"}': ("11", "10")},
    "FrontageDeliveriesFail": {'frontage_webhook_endpoints{state="failing"}': ("6", "5")},
    "FrontageChecksUnhealthy": {"frontage_checks_healthy": ("0", "1")},
    "FrontageAlarmsHeld": {"frontage_alarms_held": ("1", "0")},
    "FrontageOriginErrors": {
        'frontage_edge_exchanges_total{status="200"}': ("0+90", "0+990"),
        'frontage_edge_exchanges_total{status="502"}': ("0+10", "0+10"),
    },
    "FrontageOriginsUnreachable": {'frontage_edge_refusals_total{code="origin_down"}': ("0+120", "0+1")},
    "FrontageEdgeCertificateEnds": {
        'frontage_edge_certificates{days_left="0-1"}': ("1", "0"),
        'frontage_edge_certificates{days_left="30-"}': ("40", "40"),
    },
    "FrontageEdgeResolverFails": {
        'frontage_edge_origin_lookups_total{outcome="failed"}': ("0+3", "0+1"),
        'frontage_edge_origin_lookups_total{outcome="answered"}': ("0+9", "0+9"),
    },
    "FrontageApiErrors": {
        'frontage_api_failures_total{route="/power"}': ("0+12", "0+1"),
    },
    "FrontagePoolExhausted": {"frontage_pool_waiting": ("1", "0")},
    "FrontageLoopLags": {"frontage_loop_lag_seconds": ("1.5", "0.1")},
    "FrontageDiskFull": {
        "frontage_disk_free_bytes": ("2000000000", "2000000000"),
        "frontage_disk_size_bytes": ("30000000000", "10000000000"),
    },
    "FrontageClockWrong": {"frontage_clock_timestamp_seconds": ("10+60", "1+60")},
}
needs_promtool = pytest.mark.skipif(shutil.which("promtool") is None, reason="needs promtool")


@cache
def shown() -> dict[str, set[str]]:
    """The labels of each series that the roles show, by its name with its suffix."""
    return {
        name + suffix: {*labels, *_OF_PROMETHEUS}
        for name, (kind, labels, _) in metric_families().items()
        for suffix in _SUFFIXES[kind]
    }


def labels_of(expression: str) -> Iterator[str]:
    for names in re.findall(r"\b(?:by|without) \(([^)]*)\)", expression):
        yield from (name.strip() for name in names.split(","))
    for matchers in re.findall(r"\{([^}]*)\}", expression):
        yield from re.findall(r"(\w+)\s*(?:=~|!=|!~|=)", matchers)


@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_expressions_name_only_metrics_and_labels_that_the_roles_show(expression: str) -> None:
    known = shown()
    named = set(re.findall(r"frontage_\w+", expression))
    assert named <= set(known)
    assert set(labels_of(expression)) <= _OF_PROMETHEUS.union(*(known[name] for name in named))


def test_an_expression_with_an_unknown_label_would_be_found() -> None:
    assert set(labels_of('sum by (a, b) (x{c=~"1", d!="2"})')) == {"a", "b", "c", "d"}


@cache
def handbook_sections() -> set[str]:
    return {f"{section.page}#{section.anchor}" for section in Handbook.load().sections()}


@pytest.mark.parametrize("alert", ALERTS, ids=lambda alert: alert.name)
def test_each_alert_has_a_meaning_a_remedy_and_a_section(alert: Any) -> None:
    assert alert.meaning.endswith(".")
    assert alert.remedy.endswith(".")
    assert alert.section in handbook_sections()
    assert f'runbook_url: "{HANDBOOK_URL}/{alert.section}"' in in_yaml(rules(HANDBOOK_URL))


def test_the_dashboard_is_json_with_a_panel_for_each_chart() -> None:
    definition = json.loads(dashboard())
    assert [panel["title"] for panel in definition["panels"]] == [chart.title for chart in CHARTS]
    places = {(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in definition["panels"]}
    assert len(places) == len(CHARTS)


@needs_promtool
def test_prometheus_accepts_the_rules(tmp_path: Path) -> None:
    file = tmp_path / "frontage.rules.yml"
    file.write_text(in_yaml(rules(HANDBOOK_URL)))
    assert f"{len(ALERTS)} rules found" in promtool("check", "rules", str(file))


@needs_promtool
def test_every_alert_fires_when_all_is_wrong_and_none_while_all_is_well(tmp_path: Path) -> None:
    names = {each.name for each in ALERTS}
    assert set(SERIES) == names
    (tmp_path / "frontage.rules.yml").write_text(in_yaml(rules(HANDBOOK_URL)))
    cases = [
        case("all is wrong", series_while(is_well=False), firing=names),
        case("all is well", series_while(is_well=True), firing=set()),
        case("no monitor is scraped", {"up": "1"}, firing={"FrontageNoMonitor"}),
    ]
    text = json.dumps({"rule_files": ["frontage.rules.yml"], "evaluation_interval": "10m", "tests": cases})
    (tmp_path / "tests.yml").write_text(text)
    assert "SUCCESS" in promtool("test", "rules", str(tmp_path / "tests.yml"))


def series_while(*, is_well: bool) -> dict[str, str]:
    """Values by series, of all rules."""
    pairs = [(name, values[is_well]) for each in SERIES.values() for name, values in each.items()]
    return {name: value for name, value in pairs if value is not None}


def case(title: str, series: Mapping[str, str], *, firing: set[str]) -> dict[str, Any]:
    """Which alerts fire after seven hours, as promtool reads it; JSON is YAML."""
    present = [
        {"series": each if "{" in each else f'{each}{{instance="one"}}', "values": f"{value}{_times(value)}"}
        for each, value in series.items()
    ]
    return {
        "name": title,
        "interval": "1m",
        "input_series": present,
        "promql_expr_test": [
            {
                "expr": 'count by (alertname) (ALERTS{alertstate="firing"})',
                "eval_time": "7h",
                "exp_samples": [{"labels": f'{{alertname="{name}"}}', "value": 1} for name in sorted(firing)],
            }
        ],
    }


def _times(value: str) -> str:
    return "x450" if "+" in value else "+0x450"


def promtool(*arguments: str) -> str:
    done = subprocess.run(["promtool", *arguments], capture_output=True, text=True, timeout=2 * SECONDS, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout + done.stderr
