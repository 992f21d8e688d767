"""What the monitor's admin port measures: its own work, and the state of the whole installation as Postgres has it.

Every monitor shows the same figures of the installation, so rules take their `max`, never their sum. While Postgres
cannot be asked they are left out, instead of shown as they were.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping
from datetime import datetime
from typing import Any

from common.builds import Build
from common.db.ca_ledger import Limits
from common.db.edge_nodes import LOST_SECONDS
from common.db.pool import Database
from common.db.status import Edge, InstallationStatus, Unrenewed, read_status
from common.errors import DatabaseUnavailable
from common.machine_metrics import measure_machine
from common.metrics import Family, Samples
from common.settings import Settings
from monitor.claims import Runner
from monitor.lease import Lease
from monitor.retention import Retention

_EDGE_STATES = ("serving", "held", "stuck", "unusable", "gone")
_LONGEST_REASON = 120
_PARTICULAR = re.compile(r"(?<![\w*-])[\w*-]++(?:\.[\w*-]++)+|https?://\S+|\d+")
"""Names, addresses and numbers: what differs from domain to domain in the words of one failure."""


class Measurements:
    """Measures one monitor and the installation. One instance per monitor, created by its ``__main__``."""

    def __init__(
        self,
        settings: Settings,
        database: Database,
        runners: Mapping[str, Runner[Any]],
        retention: Retention,
        lease: Lease,
        stopped: Collection[str],
        build: Build,
    ) -> None:
        """Keep what is measured; `stopped` names, at any time, the work that has failed and does not run."""
        self._settings = settings
        self._database = database
        self._runners = runners
        self._retention = retention
        self._lease = lease
        self._stopped = stopped
        self._build = build

    async def measure(self) -> list[Family]:
        """Return all metric families of the admin port."""
        held: Samples = {(name,): [runner.held] for name, runner in self._runners.items()}
        return [
            self._build.family(),
            Family("frontage_monitor_claims_held", "Work in progress.", "gauge", ("work",), samples=held),
            Family.of("frontage_monitor_work_stopped", "Kinds of work that do not run.", "gauge", len(self._stopped)),
            Family.of(
                "frontage_monitor_lease_age_seconds",
                "Since this monitor's lease was renewed.",
                "gauge",
                self._lease.age_seconds,
            ),
            *self._retention.families(),
            *self._database.families(),
            *measure_machine(self._settings.state_dir),
            *await self._measure_installation(),
        ]

    async def _measure_installation(self) -> list[Family]:
        """Return the metric families of the whole installation; only one while Postgres cannot be asked."""
        try:
            async with self._database.connection() as connection:
                status = await read_status(connection, Limits.of(self._settings))
        except DatabaseUnavailable:
            return [_reachable(is_reachable=False)]
        return [_reachable(is_reachable=True), *_of_status(status), _unrenewed(status.unrenewed)]


def _reachable(*, is_reachable: bool) -> Family:
    return Family.of("frontage_database_reachable", "Whether Postgres answers a monitor.", "gauge", is_reachable)


def _unrenewed(counts: Iterable[Unrenewed]) -> Family:
    """Return the family of certificates that end soon and are not renewed."""
    samples: Samples = {(str(each.within_days),): [each.count] for each in counts}
    return Family(
        "frontage_certificates_unrenewed",
        "Certificates of domains led here that end within so many days, and within a sixth of their lifetime.",
        "gauge",
        ("within_days",),
        samples=samples,
    )


def _of_status(status: InstallationStatus) -> list[Family]:
    """Return the families of the installation's status."""
    endpoints = {"failing": status.endpoints_failing, "disabled": status.endpoints_disabled}
    return [
        *_of_processes(status),
        Family.of("frontage_feed_version", "Version of the change feed.", "gauge", status.feed_version),
        Family.of("frontage_checks_healthy", "Whether DNS checks work.", "gauge", status.checks.is_healthy),
        Family.of(
            "frontage_revocation_oldest_seconds",
            "How long the first certificate has waited to be revoked.",
            "gauge",
            status.revocations.oldest_seconds,
        ),
        Family.of(
            "frontage_orders_waiting",
            "Certificate orders that wait for a limit of the CA.",
            "gauge",
            status.progress.waiting,
        ),
        Family(
            "frontage_edge_old_certificates",
            "Certificates of which an edge serves an old one, a minute after the change; at least so many.",
            "gauge",
            ("edge",),
            samples={(each.edge.label,): [each.count] for each in status.old_certificates},
        ),
        Family.of("frontage_alarms_held", "Domains whose alarms are held back.", "gauge", status.alarms_held),
        *_of_queues(status),
        *_of_certificates(status),
        Family(
            "frontage_webhook_endpoints",
            "Webhook endpoints that do not take deliveries.",
            "gauge",
            ("state",),
            samples=_by_state(endpoints, endpoints),
        ),
    ]


def _of_processes(status: InstallationStatus) -> list[Family]:
    """Return the families of edges and monitors."""
    edges: Counter[str] = Counter(each.node.condition.state for each in status.edges if each.is_alive)
    edges["gone"] = sum(_is_lost(each, status.at) for each in status.edges)
    sharing = sum(each.is_alive and each.node.shares_id_of is not None for each in status.edges)
    monitors = Counter("running" if each.is_alive else "ended" for each in status.monitors)
    behind = max((each.behind for each in status.edges if each.is_alive), default=0)
    return [
        Family(
            "frontage_edges",
            "Edges, and those lost in the last hour.",
            "gauge",
            ("state",),
            samples=_by_state(edges, _EDGE_STATES),
        ),
        Family.of("frontage_edges_sharing_id", "Edges whose node id another edge has, too.", "gauge", sharing),
        Family.of("frontage_edges_behind_changes", "Changes the slowest edge has to apply.", "gauge", behind),
        Family(
            "frontage_monitors",
            "Monitors of the last day.",
            "gauge",
            ("state",),
            samples=_by_state(monitors, ("running", "ended")),
        ),
    ]


def _is_lost(edge: Edge, at: datetime) -> bool:
    """Return whether the edge disappeared so short a time ago that it still counts."""
    return not edge.is_alive and (at - edge.node.lease_until).total_seconds() < LOST_SECONDS


def _of_queues(status: InstallationStatus) -> list[Family]:
    """Return the families of due work."""
    counts: Samples = {(queue.name,): [queue.count] for queue in status.queues}
    oldest: Samples = {(queue.name,): [max(0.0, queue.oldest_seconds or 0.0)] for queue in status.queues}
    return [
        Family("frontage_due", "Work that is due.", "gauge", ("work",), samples=counts),
        Family(
            "frontage_due_oldest_seconds",
            "How long the first of it has been due.",
            "gauge",
            ("work",),
            samples=oldest,
        ),
    ]


def _of_certificates(status: InstallationStatus) -> list[Family]:
    """Return the families of certificates, CA limits and failing orders."""
    by_days_left: Samples = {(each.label.replace("–", "-"),): [each.count] for each in status.certificates}
    return [
        Family(
            "frontage_certificates",
            "Certificates in service, by days left.",
            "gauge",
            ("days_left",),
            samples=by_days_left,
        ),
        Family(
            "frontage_ca_limit_used_ratio",
            "Part of a CA's limit that is used, by the name that uses most.",
            "gauge",
            ("issuer", "limit"),
            samples=_used(status),
        ),
        Family(
            "frontage_orders_failing",
            "Certificate orders whose last attempt failed, by reason.",
            "gauge",
            ("reason",),
            samples=_reasons(status),
        ),
    ]


def _by_state(counts: Mapping[str, int], states: Collection[str]) -> Samples:
    """Report a count for every state, also zero, so that alert rules see it."""
    return {(state,): [counts.get(state, 0)] for state in states}


def _used(status: InstallationStatus) -> Samples:
    """Return the largest used part of each CA's limits, by issuer and limit."""
    used: Samples = {}
    for each in status.ledger:
        ratio = each.used / each.most
        used[each.issuer, each.limit] = [max(ratio, *used.get((each.issuer, each.limit), [0.0]))]
    return used


def _reasons(status: InstallationStatus) -> Samples:
    """Count failing orders by reason.

    Names, addresses and numbers are left out of a reason, so that the number of label values stays small.
    """
    reasons: Counter[str] = Counter()
    for each in status.failing_orders:
        reasons[_PARTICULAR.sub("…", each.reason)[:_LONGEST_REASON]] += each.count
    return {(reason,): [count] for reason, count in reasons.items()}
