"""The state of the installation."""

from __future__ import annotations

from datetime import datetime

from typing_extensions import TypedDict

from common.db.edge_nodes import EdgeState


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
