"""What the API answers, as models: for the reference, and for the tests that compare answers with it."""

from __future__ import annotations

from datetime import date, datetime
from typing import Any, Generic, Literal, TypeVar

from pydantic import BaseModel, ConfigDict

from api.schemas.dns_record import DnsRecord
from common.accounts import Permission, Role
from common.connect.states import State
from common.db.deliveries import Status as DeliveryStatus
from common.db.edge_nodes import EdgeState
from common.db.events import EventType
from common.records import RecordType

ProductStatus = Literal["active", "inactive"]


class Answer(BaseModel):
    model_config = ConfigDict(extra="forbid", use_attribute_docstrings=True)


class Problem(Answer):
    """Every error."""

    message: str
    code: str | None = None
    """For programs; the handbook lists all."""
    hint: str | None = None
    """What to do next, in a sentence."""
    request_id: str
    """Names the request in the logs."""
    flow: dict[str, Any] | None = None
    """With `zone_changed`: the flow with its new plan."""
    plan: dict[str, Any] | None = None
    """With `written_changed`: what undo would do now."""
    changed: list[dict[str, Any]] | None = None
    """With `written_changed`: what is no longer as the flow wrote it."""


class Message(Answer):
    """An accepted change. `code` and `hint` are there when visitors do not meet it yet."""

    message: str
    code: str | None = None
    hint: str | None = None


class Token(Answer):
    auth_token: str
    """A JWT, for the `Authorization` header, as `Bearer <JWT>`."""


Item = TypeVar("Item")


class Page(Answer, Generic[Item]):
    items: list[Item]
    total: int
    """Domains that match the filter."""
    page: int
    limit: int
    count: int
    """Items in this page."""
    pages: int
    nextPage: int | None
    prevPage: int | None


class Part(Answer, Generic[Item]):
    """Of a list that is sorted or searched."""

    items: list[Item]
    limit: int
    count: int
    """Items in this part. A search can find fewer than `limit`, even none, while the list goes on."""
    next: str | None
    """For `after`; null at the end of the list."""


class ListOf(Answer, Generic[Item]):
    items: list[Item]
    limit: int
    count: int
    """Items in this part."""
    next: str | None
    """For `after`; null at the end of the list."""


class CertificateInService(Answer):
    issuer: str
    expiresAt: datetime


class DomainDetails(Answer):
    id: str
    createdAt: datetime
    updatedAt: datetime
    """When its settings were last changed by a call."""
    certificate: CertificateInService | None
    """Null until there is one."""


class PoweredDomain(Answer):
    domain: str
    applicationUrl: str
    powerRootPathAccess: list[str]
    powerStatus: ProductStatus


class DetailedPoweredDomain(PoweredDomain, DomainDetails):
    """Of a list that is sorted or searched."""


class SecuredDomain(Answer):
    domain: str
    applicationUrl: str
    secureStatus: ProductStatus
    redirectTo: str | None = None
    """Where visitors are sent on to, if they are."""


class DetailedSecuredDomain(SecuredDomain, DomainDetails):
    """Of a list that is sorted or searched."""


class PowerEligibility(Answer):
    eligible: bool
    """The domain has a CNAME to the application's cname target and is not powered yet."""
    powerStatus: ProductStatus
    cnameTarget: str
    applicationUrl: str
    powerRootPathAccess: list[str]
    hint: str | None = None


class SslEligibility(Answer):
    eligible: bool
    """The domain has the CNAME and no certificate yet."""
    sslStatus: ProductStatus
    cnameTarget: str
    applicationUrl: str
    redirectTo: str | None = None
    hint: str | None = None


class MonitoredDomain(Answer):
    id: str
    domain: str
    subdomain: str | None
    date_added: date
    dns_records: list[DnsRecord]
    records_present: list[DnsRecord] | None
    records_missing: list[DnsRecord] | None
    missing_records_last_detected: datetime | None
    last_checked_at: datetime | None
    is_active: bool
    user_id: str | None
    job_id: str | None
    source: str
    application_id: str
    created_at: datetime | None = None
    """In a list that is sorted or searched, as `updated_at`."""
    updated_at: datetime | None = None
    """When its records or labels were last changed by a call."""


class MonitoredDomains(Answer):
    domains: list[MonitoredDomain]
    page: int
    """Echoes `offset`."""
    totalItems: int
    """Domains in this answer."""
    next: str | None = None
    """For `after`, where the list is sorted or searched; null at its end."""


class Statement(Answer):
    """One answer of a name server."""

    at: str | None = None
    role: str
    server: str
    name: str | None = None
    type: str | None = None
    outcome: str
    values: list[str] | None = None


class LastCheck(Answer):
    """What the last check of a monitored domain went by."""

    domain: str
    subdomain: str | None
    state: str
    last_checked_at: datetime | None
    evidence: list[Statement] | None


class Submitted(Answer):
    request_id: str
    status: Literal["IN_PROGRESS"]


class FailedItem(Answer):
    domain: str | None
    subdomain: str | None
    reason: str


class FailedItems(Answer):
    count: int
    domains: list[FailedItem]


class BatchStatus(Answer):
    batchId: str
    applicationId: str
    status: Literal["IN_PROGRESS", "SUCCESS", "FAILED"]
    successfulDomains: int
    failedDomains: FailedItems | None = None


class ServiceStatus(Answer):
    status: Literal["healthy", "unhealthy"]
    executedAt: datetime | None


class WebhookEvent(Answer):
    id: str
    type: EventType
    created_at: datetime
    delivery: DeliveryStatus | None
    payload: dict[str, Any]


class WebhookEvents(Answer):
    events: list[WebhookEvent]
    next: str | None
    """Send it as `before` for the page after."""


class Delivery(Answer):
    event_id: str
    type: EventType
    domain: str | None
    subdomain: str | None
    status: DeliveryStatus
    superseded_by: str | None
    created_at: datetime
    next_attempt_at: datetime | None
    settled_at: datetime | None
    last_error: str | None
    attempts: list[dict[str, Any]]


class Deliveries(Answer):
    deliveries: list[Delivery]
    next: str | None


class AuditEntry(Answer):
    id: str
    at: datetime
    way: Literal["api", "dashboard", "command", "monitor"]
    actor: str
    request_id: str | None
    action: str
    subject: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None


class AuditEntries(Answer):
    entries: list[AuditEntry]
    next: str | None


class Deleting(Answer):
    """What is left of an application. Counts stop at a million."""

    since: datetime
    domains: int
    monitored: int


class Application(Answer):
    """Secrets are in no answer but the one that made them."""

    applicationId: str
    name: str
    cnameTarget: str
    secureCnameTarget: str | None
    applicationUrl: str | None
    webhookUrl: str | None
    rootPathAccess: list[str]
    sendHost: Literal["origin", "customer"]
    originServerName: str | None
    originVerify: bool
    maintenance: bool
    bufferUploadsBytes: int | None
    errorPage: str | None
    tier: str
    connect: bool
    serviceAuth: Literal["off", "on", "rotating"]
    signature: Literal["off", "on"]
    organisationId: str | None
    deleting: Deleting | None
    """Null unless it is being deleted."""
    createdAt: datetime


class ListedApplication(Answer):
    applicationId: str
    name: str
    cnameTarget: str
    organisationId: str | None
    deletingSince: datetime | None
    createdAt: datetime


class Applications(ListOf[ListedApplication]):
    pass


class ClientSecret(Answer):
    message: str
    clientSecret: str
    previousUntil: datetime
    """The secret so far works until then."""


class WebhookSecret(Answer):
    message: str
    webhookSecret: str
    previousUntil: datetime
    """The secret so far signs beside the new one until then."""


class SignatureState(Answer):
    message: str
    signature: Literal["off", "on"]
    key: str | None
    """Where one was made."""


class ServiceAuthState(Answer):
    message: str
    serviceAuth: Literal["off", "on", "rotating"]
    """While `rotating`, edges send the value so far."""
    value: str | None
    """Where one was made."""


class Endpoint(Answer):
    url: str | None
    enabled: bool
    failing_since: datetime | None
    disables_at: datetime | None
    disabled_at: datetime | None
    last_error: str | None


class Replay(Answer):
    """`more`: there may be more in the range; the same call goes on with the next."""

    message: str
    replayed: int
    more: bool


class TestEvent(Answer):
    message: str
    id: str


class Diagnosis(Answer):
    """What is wrong with a domain. A part that could not be observed has the status `unknown`."""

    domain: str
    status: Literal["ok", "waiting", "action needed", "unknown"]
    next_step: str
    """The one thing to do, in a sentence."""
    products: list[dict[str, Any]] | None
    ownership: dict[str, Any]
    dns: dict[str, Any]
    caa: dict[str, Any]
    challenge_path: dict[str, Any]
    certificate: dict[str, Any]
    order: dict[str, Any] | None
    origin: dict[str, Any] | None
    monitor: dict[str, Any]
    edges: dict[str, Any]


class TrafficFigures(Answer):
    """What the edges counted."""

    requests: int
    bytes: int
    """Sent to clients."""
    client_errors: int
    """Statuses from 400 to 499."""
    server_errors: int
    """Statuses from 500 on, those of the edges included."""
    origin_errors: int
    """The origin did not respond, or not in full."""
    latency_p50_ms: float | None
    """Half of the requests had the head of their response within this time, which is the bound of a class of the
    edges' histogram; null without requests, and beyond a minute."""
    latency_p95_ms: float | None


class TrafficPoint(TrafficFigures):
    at: datetime
    """The start of the interval."""


class Traffic(Answer):
    """Intervals without a request are left out."""

    domain: str
    period: Literal["day", "month"]
    interval_minutes: Literal[5, 60]
    total: TrafficFigures
    items: list[TrafficPoint]


class Share(Answer):
    """What is behind a sharing link: records to set, or a configuration of the connect modal."""

    id: str
    applicationId: str
    domain: str | None
    subdomain: str | None
    dnsRecords: list[dict[str, Any]]
    config: dict[str, Any] | None
    job_id: str | None
    expires_at: datetime
    token: str
    """Opens flows, for an hour: of the link's domain and user, where it has them."""


# Domain check and connect ---------------------------------------------------------------------------------


class ProviderAnswer(Answer):
    """A DNS provider, and what can be done there."""

    provider: str
    setupType: Literal["automatic", "manual"]
    """`automatic`: this installation can set records there."""
    wwwRedirect: bool
    cnameFlattening: bool
    wildcardSupport: bool
    subdomainCnameNsOverride: bool
    spfOverrideSupport: bool
    caaSupport: bool
    supportsSocialLogin: Literal["yes", "no", "n/a"]


class NsSupport(Answer):
    root: bool
    subdomains: bool


class RecordConflict(Answer):
    """An existing record that stands in the way."""

    host: str
    type: RecordType
    value: str
    priority: str | None = None
    code: str
    reason: str
    suggestedValue: str | None = None
    """What to publish instead, where records can be merged."""


class DomainCheckAnswer(ProviderAnswer):
    NSSupport: NsSupport
    expired: bool
    registered: bool
    authoritativeDnsProvider: ProviderAnswer | None = None
    """Only where the request has NS records."""
    recordConflicts: list[RecordConflict] | None = None
    """Only where `checkConflicts` is true; null: there are none."""


class ServerAnswer(Answer):
    role: str
    server: str
    outcome: str
    values: list[str]
    ttl: int | None
    at: datetime


class CheckedRecord(Answer):
    type: RecordType
    host: str
    value: str
    ttl: int
    priority: str | None = None
    status: Literal["propagated", "missing", "unknown"]
    answers: list[ServerAnswer]
    cachedUntil: datetime | None
    """When the last old answer leaves the caches."""


class RecordCheckAnswer(Answer):
    domain: str
    records: list[CheckedRecord]


class Flow(Answer):
    """A domain being connected; the handbook explains its states."""

    model_config = ConfigDict(extra="allow", use_attribute_docstrings=True)

    id: str
    job_id: str
    state: State
    version: int
    domain: str | None
    subdomain: str | None
    records: list[dict[str, Any]]
    """Each with its `status`."""
    plan: dict[str, Any] | None
    """What will be added, replaced, merged and kept."""
    error: dict[str, Any] | None


class SharedLink(Answer):
    id: str
    link: str
    job_id: str | None
    domain: str | None
    subdomain: str | None
    created_at: datetime
    expires_at: datetime


class SharedLinks(Answer):
    links: list[SharedLink]


class Health(Answer):
    status: str
    code: str | None = None
    hint: str | None = None


# What a webhook receives ----------------------------------------------------------------------------------


class RecordsSeen(Answer):
    records_propagated: list[DnsRecord]
    records_non_propagated: list[DnsRecord]


class RecordEvent(Answer):
    """Monitored records are missing, or all of them are back."""

    id: str
    type: Literal["domain.record_missing", "domain.record_restored"]
    user_id: str | None
    job_id: str | None
    domain: str
    subdomain: str | None
    sequence: int
    """Counted per domain and subdomain: which of two is the later."""
    data: RecordsSeen
    connect_link: str


class FlowEvent(Answer):
    """Of a flow: the person's part is done, its records are live, or they were not within 72 hours."""

    id: str
    type: Literal["domain.flow.completed", "domain.added", "domain.propagation.timeout"]
    user_id: str | None
    job_id: str
    domain: str
    subdomain: str | None
    sequence: int
    data: RecordsSeen
    connect_link: str | None
    """With what is missing, after a time-out."""
    provider: str | None
    setup_type: Literal["automatic", "manual"] | None
    propagation_status: Literal["pending", "success", "timeout"] | None
    power_status: Literal["pending", "success", "failed", "exempt"]
    secure_status: Literal["pending", "success", "failed", "exempt"]
    monitor_status: Literal["pending", "success", "failed", "exempt"]


class PowerEvent(Answer):
    """A powered domain's certificate went live, or its state changed."""

    id: str
    type: Literal["domain.power"]
    domain: str
    subdomain: str | None
    sequence: int
    power_status: str
    reason: str | None = None


class SecureEvent(Answer):
    """A secured domain's certificate went live, or its state changed."""

    id: str
    type: Literal["domain.secure"]
    domain: str
    subdomain: str | None
    sequence: int
    secure_status: str
    reason: str | None = None


class Organisation(Answer):
    id: str
    name: str
    role: Role | None
    """Of the user; null for an operator that is no member."""
    createdAt: datetime


class Organisations(ListOf[Organisation]):
    pass


class Member(Answer):
    id: str
    email: str
    role: Role
    lastSignInAt: datetime | None


class Members(ListOf[Member]):
    pass


class MemberLink(Answer):
    message: str
    signInOnce: str | None
    """For a user that is new: signs in once, within a day; shown here alone."""


class SignInLink(Answer):
    message: str
    signInOnce: str
    """Signs in once, within a day; shown here alone."""


class Key(Answer):
    """An API key of a user, without what opens anything."""

    id: str
    name: str
    permission: Permission
    """What it permits at most: to look, to change, or all that its user may do."""
    isExpired: bool
    createdAt: datetime
    expiresAt: datetime
    usedAt: datetime | None
    """Right to the minute."""


class Keys(Answer):
    items: list[Key]


class Account(Answer):
    id: str
    email: str
    operator: bool
    organisations: list[Organisation]
    key: Key
    """The one that opened this request."""


class EdgeCondition(Answer):
    state: EdgeState
    reason: str | None


class FailedUpgrade(Answer):
    at: datetime
    reason: str


class EdgeDescription(Answer):
    softwareVersion: str
    heldCopyAt: datetime | None
    failedUpgrade: FailedUpgrade | None


class EdgeNode(Answer):
    nodeId: str
    host: str
    version: int
    """Of the change feed: the last one that it has applied."""
    condition: EdgeCondition
    leaseUntil: datetime
    description: EdgeDescription


class Edge(Answer):
    node: EdgeNode
    isAlive: bool
    behind: int
    """Changes of the feed that it has not applied yet."""


class Monitor(Answer):
    nodeId: str
    host: str
    issuer: str
    stopped: list[str]
    """Work that has failed and is not running."""
    startedAt: datetime
    leaseUntil: datetime
    isAlive: bool


class ChecksHealth(Answer):
    isHealthy: bool
    reason: str | None
    executedAt: datetime | None


class DueWork(Answer):
    name: str
    count: int
    oldestSeconds: float | None


class Expiry(Answer):
    fromDays: int | None
    """Null with the expired ones."""
    toDays: int | None
    count: int


class Unrenewed(Answer):
    withinDays: int
    count: int


class Standing(Answer):
    issuer: str
    limit: str
    subject: str
    used: int
    most: int
    freesAt: datetime


class FailingOrders(Answer):
    reason: str
    count: int
    example: str


class Operations(Answer):
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
    endpointsFailing: int
    endpointsDisabled: int
