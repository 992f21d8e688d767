"""The state of the installation."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

from typing_extensions import TypedDict

from common.db import edge_nodes
from common.db import status as stored
from common.db.edge_nodes import EdgeState
from common.db.monitor_nodes import MonitorNode
from common.db.status import InstallationStatus


class EdgeCondition(TypedDict):
    """Whether an edge serves what it should, and why not."""

    state: EdgeState
    reason: str | None


class FailedUpgrade(TypedDict):
    """An upgrade of an edge that was taken back."""

    at: datetime
    reason: str


class EdgeDescription(TypedDict):
    """What an edge reports of itself."""

    softwareVersion: str
    """Version and commit."""
    heldCopyAt: datetime | None
    failedUpgrade: FailedUpgrade | None


class EdgeTraffic(TypedDict):
    """Of the last minute."""

    requests: int
    failed: int
    """Of these, answered with a status from 500 on."""


class UnusableCertificates(TypedDict):
    """Of the certificates that clients asked the edge for."""

    count: int
    example: str | None
    """The domain of one of them."""


class EdgeNode(TypedDict):
    """An edge as it reports to the database."""

    nodeId: str
    host: str
    version: int
    """Of the change feed: the last one that it has applied."""
    condition: EdgeCondition
    leaseUntil: datetime
    description: EdgeDescription
    traffic: EdgeTraffic | None
    """None for an edge of an earlier version."""
    unusable: UnusableCertificates
    """Certificates that it cannot use, so that handshakes fail."""
    sharesIdOf: str | None
    """The node id in its state directory, where another edge reports under that one."""


class Edge(TypedDict):
    """An edge, and how far it is behind."""

    node: EdgeNode
    isAlive: bool
    behind: int
    """Changes of the feed that it has not applied yet."""


class Monitor(TypedDict):
    """A monitor as it reports to the database."""

    nodeId: str
    host: str
    issuer: str
    stopped: list[str]
    """Work that has failed and is not running."""
    startedAt: datetime
    leaseUntil: datetime
    isAlive: bool
    softwareVersion: str
    """Version and commit; empty for a monitor of an earlier version."""


class ChecksHealth(TypedDict):
    """Whether the checks of monitored domains are well."""

    isHealthy: bool
    reason: str | None
    executedAt: datetime | None


class DueWork(TypedDict):
    """A queue of work that is due."""

    name: str
    count: int
    oldestSeconds: float | None


class Expiry(TypedDict):
    """Certificates that end within a span of days."""

    fromDays: int | None
    """Null with the expired ones."""
    toDays: int | None
    count: int
    example: str | None
    """The domain of one of them."""


class Unrenewed(TypedDict):
    """Certificates that end soon and are not renewed."""

    withinDays: int
    count: int
    example: str | None


class Standing(TypedDict):
    """A limit of the CA, and how much of it is used."""

    issuer: str
    limit: str
    subject: str
    used: int
    most: int
    freesAt: datetime


class FailingOrders(TypedDict):
    """Orders that fail for the same reason."""

    reason: str
    count: int
    example: str


class IssuanceProgress(TypedDict):
    """How many certificates wait, and how fast they are ordered."""

    waiting: int
    """Orders that wait for a limit of the CA."""
    due: int
    orderedLastHour: int
    orderedLastDay: int
    anHour: int
    """Routine orders that the limits allow."""
    endsAt: datetime | None
    """When the last of those that wait is ordered, about; null where none waits."""


class RevocationBacklog(TypedDict):
    """Certificates that wait to be revoked."""

    count: int
    oldestSeconds: float
    domain: str | None


class Operations(TypedDict):
    """As `frontage status --json` prints it."""

    problems: list[str]
    """What to look at now."""
    notices: list[str]
    at: datetime
    feedVersion: int
    edges: list[Edge]
    monitors: list[Monitor]
    checks: ChecksHealth
    alarmsHeld: int
    queues: list[DueWork]
    certificates: list[Expiry]
    """In service, by the days that are left."""
    unrenewed: list[Unrenewed]
    """Certificates of domains that still lead here, which end within so many days."""
    ledger: list[Standing]
    """Of the CA's limits, what is used most."""
    failingOrders: list[FailingOrders]
    progress: IssuanceProgress
    revocations: RevocationBacklog
    """Certificates that wait to be revoked."""
    endpointsFailing: int
    endpointsDisabled: int


def operations(status: InstallationStatus, problems: Sequence[str], notices: Sequence[str]) -> Operations:
    """Render the state of the installation.

    `problems`: what an operator should look at now; `notices`: what is no fault. In sentences.
    """
    checks, progress, revocations = status.checks, status.progress, status.revocations
    return {
        "problems": list(problems),
        "notices": list(notices),
        "at": status.at,
        "feedVersion": status.feed_version,
        "edges": list(map(_edge, status.edges)),
        "monitors": list(map(_monitor, status.monitors)),
        "checks": {"isHealthy": checks.is_healthy, "reason": checks.reason, "executedAt": checks.executed_at},
        "alarmsHeld": status.alarms_held,
        "queues": list(map(_queue, status.queues)),
        "certificates": list(map(_expiry, status.certificates)),
        "unrenewed": list(map(_unrenewed, status.unrenewed)),
        "ledger": list(map(_standing, status.ledger)),
        "failingOrders": list(map(_failing_orders, status.failing_orders)),
        "progress": {
            "waiting": progress.waiting,
            "due": progress.due,
            "orderedLastHour": progress.ordered_last_hour,
            "orderedLastDay": progress.ordered_last_day,
            "anHour": progress.an_hour,
            "endsAt": progress.ends_at,
        },
        "revocations": {
            "count": revocations.count,
            "oldestSeconds": revocations.oldest_seconds,
            "domain": revocations.domain,
        },
        "endpointsFailing": status.endpoints_failing,
        "endpointsDisabled": status.endpoints_disabled,
    }


def _edge(edge: stored.Edge) -> Edge:
    return {"node": _edge_node(edge.node), "isAlive": edge.is_alive, "behind": edge.behind}


def _edge_node(node: edge_nodes.EdgeNode) -> EdgeNode:
    traffic = node.traffic
    return {
        "nodeId": node.node_id,
        "host": node.host,
        "version": node.version,
        "condition": {"state": node.condition.state, "reason": node.condition.reason},
        "leaseUntil": node.lease_until,
        "description": _description(node.description),
        "traffic": None if traffic is None else {"requests": traffic.requests, "failed": traffic.failed},
        "unusable": {"count": node.unusable.count, "example": node.unusable.example},
        "sharesIdOf": node.shares_id_of,
    }


def _description(description: edge_nodes.EdgeDescription) -> EdgeDescription:
    failed = description.failed_upgrade
    return {
        "softwareVersion": description.software_version,
        "heldCopyAt": description.held_copy_at,
        "failedUpgrade": None if failed is None else {"at": failed.at, "reason": failed.reason},
    }


def _monitor(node: MonitorNode) -> Monitor:
    return {
        "nodeId": node.node_id,
        "host": node.host,
        "issuer": node.issuer,
        "stopped": list(node.stopped),
        "startedAt": node.started_at,
        "leaseUntil": node.lease_until,
        "isAlive": node.is_alive,
        "softwareVersion": node.software_version,
    }


def _queue(queue: stored.QueueLength) -> DueWork:
    return {"name": queue.name, "count": queue.count, "oldestSeconds": queue.oldest_seconds}


def _expiry(expiry: stored.Expiry) -> Expiry:
    return {
        "fromDays": expiry.from_days,
        "toDays": expiry.to_days,
        "count": expiry.count,
        "example": expiry.example,
    }


def _unrenewed(unrenewed: stored.Unrenewed) -> Unrenewed:
    return {"withinDays": unrenewed.within_days, "count": unrenewed.count, "example": unrenewed.example}


def _standing(use: stored.LimitUse) -> Standing:
    return {
        "issuer": use.issuer,
        "limit": use.limit,
        "subject": use.subject,
        "used": use.used,
        "most": use.most,
        "freesAt": use.frees_at,
    }


def _failing_orders(orders: stored.FailingOrders) -> FailingOrders:
    return {"reason": orders.reason, "count": orders.count, "example": orders.example}
