"""The state of the installation."""

from __future__ import annotations

from datetime import datetime

from typing_extensions import TypedDict

from common.db.edge_nodes import EdgeState


class EdgeCondition(TypedDict):
    state: EdgeState
    reason: str | None


class FailedUpgrade(TypedDict):
    at: datetime
    reason: str


class EdgeDescription(TypedDict):
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
    node: EdgeNode
    isAlive: bool
    behind: int
    """Changes of the feed that it has not applied yet."""


class Monitor(TypedDict):
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
    isHealthy: bool
    reason: str | None
    executedAt: datetime | None


class DueWork(TypedDict):
    name: str
    count: int
    oldestSeconds: float | None


class Expiry(TypedDict):
    fromDays: int | None
    """Null with the expired ones."""
    toDays: int | None
    count: int
    example: str | None
    """The domain of one of them."""


class Unrenewed(TypedDict):
    withinDays: int
    count: int
    example: str | None


class Standing(TypedDict):
    issuer: str
    limit: str
    subject: str
    used: int
    most: int
    freesAt: datetime


class FailingOrders(TypedDict):
    reason: str
    count: int
    example: str


class IssuanceProgress(TypedDict):
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
