"""What the API answers to a user's API key, as models: accounts, organisations, the state of the installation.

The rules of `api.reference.answers` apply.
"""

from __future__ import annotations

from datetime import datetime

from api.reference.answers import AnswerModel, ListOf
from common.accounts import Permission, Role
from common.db.edge_nodes import EdgeState


class Organisation(AnswerModel):
    id: str
    name: str
    role: Role | None
    """Of the user; null for an operator that is no member."""
    createdAt: datetime


class Organisations(ListOf[Organisation]):
    pass


class Member(AnswerModel):
    id: str
    email: str
    role: Role
    lastSignInAt: datetime | None


class Members(ListOf[Member]):
    pass


class MemberLink(AnswerModel):
    message: str
    signInOnce: str | None
    """For a user that is new: signs in once, within a day; shown here alone."""


class SignInLink(AnswerModel):
    message: str
    signInOnce: str
    """Signs in once, within a day; shown here alone."""


class Key(AnswerModel):
    """An API key of a user, without its secret."""

    id: str
    name: str
    permission: Permission
    """What it permits at most: to look, to change, or all that its user may do."""
    isExpired: bool
    createdAt: datetime
    expiresAt: datetime
    usedAt: datetime | None
    """Right to the minute."""


class Keys(AnswerModel):
    items: list[Key]


class Account(AnswerModel):
    id: str
    email: str
    operator: bool
    organisations: list[Organisation]
    key: Key
    """The one that opened this request."""


class EdgeCondition(AnswerModel):
    state: EdgeState
    reason: str | None


class FailedUpgrade(AnswerModel):
    at: datetime
    reason: str


class EdgeDescription(AnswerModel):
    softwareVersion: str
    """Version and commit."""
    heldCopyAt: datetime | None
    failedUpgrade: FailedUpgrade | None


class EdgeTraffic(AnswerModel):
    """Of the last minute."""

    requests: int
    failed: int
    """Of these, answered with a status from 500 on."""


class UnusableCertificates(AnswerModel):
    """Of the certificates that clients asked the edge for."""

    count: int
    example: str | None
    """The domain of one of them."""


class EdgeNode(AnswerModel):
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


class Edge(AnswerModel):
    node: EdgeNode
    isAlive: bool
    behind: int
    """Changes of the feed that it has not applied yet."""


class Monitor(AnswerModel):
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


class ChecksHealth(AnswerModel):
    isHealthy: bool
    reason: str | None
    executedAt: datetime | None


class DueWork(AnswerModel):
    name: str
    count: int
    oldestSeconds: float | None


class Expiry(AnswerModel):
    fromDays: int | None
    """Null with the expired ones."""
    toDays: int | None
    count: int
    example: str | None
    """The domain of one of them."""


class Unrenewed(AnswerModel):
    withinDays: int
    count: int
    example: str | None


class Standing(AnswerModel):
    issuer: str
    limit: str
    subject: str
    used: int
    most: int
    freesAt: datetime


class FailingOrders(AnswerModel):
    reason: str
    count: int
    example: str


class IssuanceProgress(AnswerModel):
    waiting: int
    """Orders that wait for a limit of the CA."""
    due: int
    orderedLastHour: int
    orderedLastDay: int
    anHour: int
    """Routine orders that the limits allow."""
    endsAt: datetime | None
    """When the last of those that wait is ordered, about; null where none waits."""


class RevocationBacklog(AnswerModel):
    count: int
    oldestSeconds: float
    domain: str | None


class Operations(AnswerModel):
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
