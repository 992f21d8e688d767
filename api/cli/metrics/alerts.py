"""The alerts an operator needs, and the file of rules that Prometheus loads.

A rule about the installation takes the `max` over monitors, which all show the same. A test compares every metric and
label named here with those that the roles show.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final, Literal

from common.db.status import UNRENEWED_DAYS
from common.installation_problems import (
    MOST_FAILING_ENDPOINTS,
    MOST_FAILING_ORDERS,
    OVERDUE_SECONDS,
    UNREVOKED_SECONDS,
    USED_RATIO,
)

Severity = Literal["critical", "warning"]


@dataclass(frozen=True, slots=True)
class Alert:
    """An alert rule for Prometheus.

    `lasting`: how long `expression` holds before the alert fires, as Prometheus writes it. `meaning` and `remedy` are
    for the operator, a sentence or two each; `section` is the handbook's section with more: a page and an anchor in it.
    """

    name: str
    severity: Severity
    expression: str
    lasting: str
    meaning: str
    remedy: str
    section: str


ALERTS: Final = (
    Alert(
        "FrontageNoEdgeServes",
        "critical",
        'max(frontage_edges{state="serving"}) < 1',
        "1m",
        "No edge holds a lease and follows the database: domains are served from old copies, or not at all.",
        "Run `frontage status`; start `frontage edge`, or see the edges' logs.",
        "running#when-something-is-wrong",
    ),
    Alert(
        "FrontageEdgeLost",
        "warning",
        'max(frontage_edges{state="gone"}) > 0',
        "1m",
        "An edge has stopped without ending its lease, or is cut off from the database.",
        "See its machine and its log; `frontage edge forget NODE` if it was removed. It clears after an hour.",
        "running#when-something-is-wrong",
    ),
    Alert(
        "FrontageEdgeUnusable",
        "critical",
        'max(frontage_edges{state="unusable"}) > 0',
        "1m",
        "An edge cannot use its certificates: TLS handshakes fail there, and its `/readyz` is 503.",
        "`frontage status` names it and gives the reason; mostly its master key file is not the right one.",
        "running#when-something-is-wrong",
    ),
    Alert(
        "FrontageEdgeServesOldCertificate",
        "critical",
        "max by (edge) (frontage_edge_old_certificates) > 0",
        "1m",
        "Edge {{ $labels.edge }} serves a certificate that has been replaced, to visitors who may be refused by it.",
        "See its log and its machine; take it out of the DNS or the load balancer until it follows again.",
        "certificates#what-visitors-get",
    ),
    Alert(
        "FrontageEdgeStuck",
        "critical",
        'max(frontage_edges{state="stuck"}) > 0',
        "1m",
        "An edge cannot write its copy, and serves what it last knew.",
        "`frontage status` names it and gives the reason; mostly its disk is full.",
        "running#when-something-is-wrong",
    ),
    Alert(
        "FrontageEdgeIdShared",
        "warning",
        "max(frontage_edges_sharing_id) > 0",
        "1m",
        "Two edges have one node id: a state directory was copied.",
        "`frontage status` names both. Stop one, remove the directory `replica` in its state directory, and start it.",
        "running#when-something-is-wrong",
    ),
    Alert(
        "FrontageCertificatesUnusable",
        "warning",
        'sum by (instance) (increase(frontage_edge_tls_failures_total{reason="unusable_certificate"}[10m])) > 0',
        "1m",
        "Handshakes fail since an edge cannot use a domain's certificate or its key.",
        "`certificates` in `/readyz` of its admin port names a domain; the edge's log has the reasons.",
        "observing#health-and-metrics",
    ),
    Alert(
        "FrontageConnectionsRefused",
        "warning",
        "sum by (instance, cap) (rate(frontage_edge_turned_away_total[10m])) > 1",
        "5m",
        "An edge refuses connections of clients for its limits, more than one a second.",
        "`cap` says which: `in_all` is EDGE_MAX_CONNECTIONS or the descriptors, so add edges; `per_client` is"
        " EDGE_MAX_CONNECTIONS_PER_ADDRESS, so a client misbehaves, or a balancer is missing in EDGE_TRUSTED_PROXIES.",
        "settings#limits-and-time-outs-of-the-edge",
    ),
    Alert(
        "FrontageTargetDown",
        "critical",
        'up{job=~".*frontage.*"} == 0',
        "2m",
        "Prometheus cannot scrape a role: its process does not run, or is not reached.",
        "See the machine and the role's log. Take a machine that was removed out of Prometheus' targets.",
        "observing#health-and-metrics",
    ),
    Alert(
        "FrontageReplicaLags",
        "critical",
        "frontage_edge_replica_age_seconds > 60",
        "2m",
        "An edge serves from a copy older than a minute: new domains and certificates do not reach it.",
        "See whether it reaches Postgres, and what `/readyz` of its admin port gives as the reason.",
        "observing#health-and-metrics",
    ),
    Alert(
        "FrontageHeldCopy",
        "critical",
        "frontage_edge_replica_held_copy == 1",
        "1m",
        "An edge holds back a copy that would remove many routes, and goes on serving the old ones.",
        "Restore the database, or accept the copy: `curl -X POST 127.0.0.1:9180/replica/accept` on that machine.",
        "running#while-postgres-is-away",
    ),
    Alert(
        "FrontageReplicaDamaged",
        "warning",
        "increase(frontage_edge_replica_damages_total[1h]) > 0",
        "0m",
        "What an edge's disk kept of its routes was not what had been written; the edge has copied all of them afresh.",
        "Look for faults of that disk (`dmesg`, SMART), and replace it if this comes back.",
        "running#when-something-is-wrong",
    ),
    Alert(
        "FrontageUpgradeFailed",
        "warning",
        "frontage_edge_failed_upgrade == 1",
        "0m",
        "An edge's new version did not start; the old one serves on.",
        "Read `failed_upgrade` in `/readyz` of its admin port, put that right, and upgrade again.",
        "upgrading#upgrading",
    ),
    Alert(
        "FrontageWorkersDie",
        "warning",
        "increase(frontage_edge_worker_failures_total[15m]) >= 3",
        "0m",
        "An edge's workers end unexpectedly and are started again; what they served was cut.",
        "See its log for the exit reports, and the machine's memory.",
        "running#when-something-is-wrong",
    ),
    Alert(
        "FrontageNoMonitor",
        "critical",
        'max(frontage_monitors{state="running"}) < 1 or absent(frontage_database_reachable)',
        "2m",
        "No monitor runs, or none is scraped: no certificate is issued, no record is checked, no webhook is sent.",
        "Start `frontage monitor`, or see its log.",
        "running#when-something-is-wrong",
    ),
    Alert(
        "FrontageMonitorLeaseLost",
        "critical",
        "frontage_monitor_lease_age_seconds > 10",
        "1m",
        "A monitor has not renewed its lease: it does not reach the database, or is frozen.",
        "See its log, and whether Postgres answers it.",
        "running#when-something-is-wrong",
    ),
    Alert(
        "FrontageWorkStopped",
        "critical",
        "frontage_monitor_work_stopped > 0",
        "1m",
        "A kind of a monitor's work has failed and does not run.",
        "`frontage doctor` names it; its log has the reason. A schema newer than the monitor needs an upgrade.",
        "upgrading#upgrading",
    ),
    Alert(
        "FrontageDatabaseAway",
        "critical",
        "frontage_database_reachable == 0",
        "1m",
        "A monitor does not reach Postgres. Edges serve from their copies; nothing can be changed.",
        "See Postgres, its connections and its disk; run `frontage doctor`.",
        "running#when-something-is-wrong",
    ),
    Alert(
        "FrontageWorkOverdue",
        "warning",
        f"max by (work) (frontage_due_oldest_seconds) > {OVERDUE_SECONDS}",
        "5m",
        "Work has been due for more than five minutes: the monitors do not keep up, or it is not done at all.",
        "Run `frontage status`; start more monitors, or see their logs.",
        "running#when-something-is-wrong",
    ),
    Alert(
        "FrontageCertificatesEnd",
        "critical",
        f'max(frontage_certificates_unrenewed{{within_days="{UNRENEWED_DAYS}"}}) > 0',
        "15m",
        "Certificates of domains whose DNS leads here end within three days, and are not renewed.",
        "`frontage status` groups orders that fail or wait; `frontage certificate show DOMAIN` prints the last error.",
        "troubleshooting#a-certificate-is-not-issued",
    ),
    Alert(
        "FrontageCaLimitShort",
        "warning",
        f"max by (issuer, limit) (frontage_ca_limit_used_ratio) > {USED_RATIO}",
        "10m",
        "A limit of the certificate authority is nearly used up: orders will wait.",
        "`frontage certificate limits` prints when there is room again; ask the authority for more, or add another.",
        "certificates#the-life-of-a-certificate",
    ),
    Alert(
        "FrontageRevocationWaits",
        "critical",
        f"max(frontage_revocation_oldest_seconds) > {UNREVOKED_SECONDS}",
        "1m",
        "A certificate that is to be revoked waits: for another in its place, or for the certificate authority.",
        "`frontage status` names it, and `frontage certificate show` has the reason; `frontage certificate revoke"
        " DOMAIN --at-once` does not wait for another in its place.",
        "certificates#a-key-is-compromised",
    ),
    Alert(
        "FrontageOrdersFail",
        "warning",
        f"max by (reason) (frontage_orders_failing) > {MOST_FAILING_ORDERS}",
        "30m",
        "Many certificate orders fail for one reason.",
        "Read the reason; `frontage certificate show DOMAIN` has the whole of it for one of them.",
        "troubleshooting#a-certificate-is-not-issued",
    ),
    Alert(
        "FrontageDeliveriesFail",
        "warning",
        f'max(frontage_webhook_endpoints{{state="failing"}}) > {MOST_FAILING_ENDPOINTS}',
        "30m",
        "Several webhook endpoints do not take deliveries.",
        "One endpoint is its application's fault, several may be ours: see whether monitors reach the internet.",
        "webhooks#answers-and-retries",
    ),
    Alert(
        "FrontageChecksUnhealthy",
        "warning",
        "max(frontage_checks_healthy) == 0",
        "5m",
        "DNS checks fail on our side, so no alarm is sent.",
        "See whether monitors reach name servers; `frontage alarms show` has the reason.",
        "monitor#how-records-are-checked",
    ),
    Alert(
        "FrontageAlarmsHeld",
        "warning",
        "max(frontage_alarms_held) > 0",
        "5m",
        "So many domains changed at once that their alarms are held back.",
        "See whether the change is real, then `frontage alarms release`.",
        "monitor#how-records-are-checked",
    ),
    Alert(
        "FrontageOriginErrors",
        "warning",
        'sum by (instance) (rate(frontage_edge_exchanges_total{status=~"5.."}[10m]))'
        " > 0.05 * sum by (instance) (rate(frontage_edge_exchanges_total[10m]))",
        "10m",
        "More than one response in twenty of an edge is a 5xx, of origins or of our own.",
        "`frontage_edge_refusals_total` by `code` has our own; the access log names the domains and the reasons.",
        "observing#the-access-log",
    ),
    Alert(
        "FrontageOriginsUnreachable",
        "warning",
        "sum by (code) (rate(frontage_edge_refusals_total"
        '{code=~"origin_down|origin_slow|origin_unreachable|origin_invalid"}[10m])) > 1',
        "10m",
        "Requests fail since origins do not answer, more than one a second.",
        "The access log names the domains; the diagnosis of a domain has the origin's state.",
        "observing#the-access-log",
    ),
    Alert(
        "FrontageEdgeCertificateEnds",
        "critical",
        'sum by (instance) (frontage_edge_certificates{days_left="0-1"}) > 0',
        "1h",
        "Visitors of an edge are presented a certificate that ends within a day, which browsers will refuse.",
        "`frontage certificate list` finds it; `GET /domains/:domain/diagnosis` gives the reason why it is not renewed."
        " Where the domain's DNS has left it is no fault.",
        "certificates#what-visitors-get",
    ),
    Alert(
        "FrontageEdgeResolverFails",
        "warning",
        'sum by (instance) (rate(frontage_edge_origin_lookups_total{outcome="failed"}[5m]))'
        " > 0.2 * sum by (instance) (rate(frontage_edge_origin_lookups_total[5m]))",
        "5m",
        "An edge cannot ask its resolver for origins' addresses: known ones serve on for five minutes.",
        "See the resolver, and `FRONTAGE_DNS_SERVERS`; one of a single tenant's name servers is no fault of yours.",
        "origins#moving-an-origin-several-addresses-outages",
    ),
    Alert(
        "FrontageApiErrors",
        "warning",
        "sum by (route) (rate(frontage_api_failures_total[10m])) > 0.1",
        "10m",
        "The API fails on its own account.",
        "Its log has a line with the request's id for each; see also whether Postgres is reached.",
        "observing#logs-and-metrics",
    ),
    Alert(
        "FrontagePoolExhausted",
        "warning",
        "frontage_pool_waiting > 0",
        "2m",
        "Work waits for connections to Postgres: all of a process are in use.",
        "Look for slow statements in Postgres (`pg_stat_activity`), or start one more of the role.",
        "running#when-something-is-wrong",
    ),
    Alert(
        "FrontageLoopLags",
        "warning",
        "frontage_loop_lag_seconds > 1",
        "5m",
        "A process is late with everything it does: its machine is overloaded, or swaps.",
        "See the machine's CPU and memory.",
        "observing#health-and-metrics",
    ),
    Alert(
        "FrontageDiskFull",
        "critical",
        "frontage_disk_free_bytes < 1024^3"
        " or (frontage_disk_free_bytes < 10 * 1024^3 and frontage_disk_free_bytes < 0.1 * frontage_disk_size_bytes)",
        "5m",
        "The disk of a state directory is nearly full: an edge would stop following the database.",
        "Free space, or enlarge it.",
        "running#when-something-is-wrong",
    ),
    Alert(
        "FrontageClockWrong",
        "critical",
        "abs(frontage_clock_timestamp_seconds - timestamp(frontage_clock_timestamp_seconds)) > 2",
        "5m",
        "A machine's clock differs from that of Prometheus: tokens, certificates and DNSSEC go wrong.",
        "`frontage doctor` shows which clock is wrong; keep it set by NTP (`timedatectl set-ntp true`).",
        "running#when-something-is-wrong",
    ),
)


def rules(handbook: str) -> dict[str, Any]:
    """Return the rules as Prometheus reads them. `handbook` is the address below which its pages lie."""
    found = [
        {
            "alert": alert.name,
            "expr": alert.expression,
            "for": alert.lasting,
            "labels": {"severity": alert.severity},
            "annotations": {
                "summary": alert.meaning,
                "description": f"{alert.meaning} {alert.remedy}",
                "runbook_url": f"{handbook}/{alert.section}",
            },
        }
        for alert in ALERTS
    ]
    return {"groups": [{"name": "frontage", "rules": found}]}


def in_yaml(rules: dict[str, Any]) -> str:
    """Return the file of these rules."""
    return "\n".join(_lines(rules)) + "\n"


def _lines(rules: dict[str, Any]) -> Iterator[str]:
    """Scalars are written as JSON strings, which YAML reads alike."""
    yield "# Printed by `frontage metrics alerts`."
    yield "groups:"
    for group in rules["groups"]:
        yield f"  - name: {group['name']}"
        yield "    rules:"
        for rule in group["rules"]:
            yield f"      - alert: {rule['alert']}"
            for key in ("expr", "for"):
                yield f"        {key}: {json.dumps(rule[key])}"
            for key in ("labels", "annotations"):
                yield f"        {key}:"
                yield from (f"          {name}: {json.dumps(value)}" for name, value in rule[key].items())
