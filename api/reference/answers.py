"""What the API answers, as models: for the reference, and for the tests that compare answers with it.

A model's name is the name of its schema in ``/openapi.json``, which generated clients know; it shows the object of the
same name in `common.db`. What webhooks receive: `api.reference.webhook_payloads`; domain check, links and flows:
`api.reference.connect_answers`.
"""

from __future__ import annotations

from datetime import date, datetime
from typing import Any, Generic, Literal, TypeVar

from pydantic import ConfigDict

from api.schemas.described import Described
from api.schemas.dns_record import DnsRecord
from common.db.deliveries import Status as DeliveryStatus
from common.db.events import EventType

ProductStatus = Literal["active", "inactive"]


class AnswerModel(Described):
    model_config = ConfigDict(extra="forbid", defer_build=True)  # most are never needed


class Problem(AnswerModel):
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


class Message(AnswerModel):
    """An accepted change. `code` and `hint` are there when visitors do not meet it yet."""

    message: str
    code: str | None = None
    hint: str | None = None


class Token(AnswerModel):
    auth_token: str
    """A JWT, for the `Authorization` header, as `Bearer <JWT>`."""


Item = TypeVar("Item")


class Page(AnswerModel, Generic[Item]):
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


class Part(AnswerModel, Generic[Item]):
    """Of a list that is sorted or searched."""

    items: list[Item]
    limit: int
    count: int
    """Items in this part. A search can find fewer than `limit`, even none, while the list goes on."""
    next: str | None
    """For `after`; null at the end of the list."""


class ListOf(AnswerModel, Generic[Item]):
    items: list[Item]
    limit: int
    count: int
    """Items in this part."""
    next: str | None
    """For `after`; null at the end of the list."""


class CertificateInService(AnswerModel):
    issuer: str
    expiresAt: datetime


class DomainDetails(AnswerModel):
    id: str
    createdAt: datetime
    updatedAt: datetime
    """When its settings were last changed by a call."""
    certificate: CertificateInService | None
    """Null until there is one."""


class PoweredDomain(AnswerModel):
    domain: str
    applicationUrl: str
    powerRootPathAccess: list[str]
    powerStatus: ProductStatus


class DetailedPoweredDomain(PoweredDomain, DomainDetails):
    """Of a list that is sorted or searched."""


class SecuredDomain(AnswerModel):
    domain: str
    applicationUrl: str
    secureStatus: ProductStatus
    redirectTo: str | None = None
    """Where visitors are sent on to, if they are."""


class DetailedSecuredDomain(SecuredDomain, DomainDetails):
    """Of a list that is sorted or searched."""


class PowerEligibility(AnswerModel):
    eligible: bool
    """The domain has a CNAME to the application's cname target and is not powered yet."""
    powerStatus: ProductStatus
    cnameTarget: str
    applicationUrl: str
    powerRootPathAccess: list[str]
    hint: str | None = None


class SslEligibility(AnswerModel):
    eligible: bool
    """The domain has the CNAME and no certificate yet."""
    sslStatus: ProductStatus
    cnameTarget: str
    applicationUrl: str
    redirectTo: str | None = None
    hint: str | None = None


class MonitoredDomain(AnswerModel):
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


class MonitoredDomains(AnswerModel):
    domains: list[MonitoredDomain]
    page: int
    """Echoes `offset`."""
    totalItems: int
    """Domains in this answer."""
    next: str | None = None
    """For `after`, where the list is sorted or searched; null at its end."""


class Statement(AnswerModel):
    """One answer of a name server."""

    at: str | None = None
    role: str
    server: str
    name: str | None = None
    type: str | None = None
    outcome: str
    values: list[str] | None = None


class LastCheck(AnswerModel):
    """What the last check of a monitored domain went by."""

    domain: str
    subdomain: str | None
    state: str
    last_checked_at: datetime | None
    evidence: list[Statement] | None


class Submitted(AnswerModel):
    request_id: str
    status: Literal["IN_PROGRESS"]


class FailedItem(AnswerModel):
    domain: str | None
    subdomain: str | None
    reason: str


class FailedItems(AnswerModel):
    count: int
    domains: list[FailedItem]


class BatchStatus(AnswerModel):
    batchId: str
    applicationId: str
    status: Literal["IN_PROGRESS", "SUCCESS", "FAILED"]
    successfulDomains: int
    failedDomains: FailedItems | None = None


class ServiceStatus(AnswerModel):
    status: Literal["healthy", "unhealthy"]
    executedAt: datetime | None


class WebhookEvent(AnswerModel):
    id: str
    type: EventType
    created_at: datetime
    delivery: DeliveryStatus | None
    payload: dict[str, Any]


class WebhookEvents(AnswerModel):
    events: list[WebhookEvent]
    next: str | None
    """Send it as `before` for the page after."""


class Delivery(AnswerModel):
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


class Deliveries(AnswerModel):
    deliveries: list[Delivery]
    next: str | None


class AuditEntry(AnswerModel):
    id: str
    at: datetime
    way: Literal["api", "dashboard", "command", "monitor"]
    actor: str
    request_id: str | None
    action: str
    subject: str
    before: dict[str, Any] | None
    after: dict[str, Any] | None


class RequestEffect(AnswerModel):
    """What a request caused, and how it stands: a change of the edges, an order of a certificate, an event, its
    delivery."""

    kind: Literal["change", "order", "event", "delivery"]
    subject: str
    state: str
    at: datetime | None
    error: str | None


class AuditEntries(AnswerModel):
    """`caused` is empty unless one `request_id` is asked for."""

    entries: list[AuditEntry]
    caused: list[RequestEffect]
    next: str | None


class Deleting(AnswerModel):
    """What is left of an application. Counts stop at a million."""

    since: datetime
    domains: int
    monitored: int


class Suspended(AnswerModel):
    """What the operator has edges answer to every request of every domain of the application."""

    status: Literal[403, 451]
    reason: str
    since: datetime


class Application(AnswerModel):
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
    suspended: Suspended | None
    """Null unless the operator has suspended it."""
    createdAt: datetime


class ListedApplication(AnswerModel):
    applicationId: str
    name: str
    cnameTarget: str
    organisationId: str | None
    deletingSince: datetime | None
    suspendedSince: datetime | None
    createdAt: datetime


class Applications(ListOf[ListedApplication]):
    pass


class ClientSecret(AnswerModel):
    message: str
    clientSecret: str
    previousUntil: datetime
    """The secret so far works until then."""


class WebhookSecret(AnswerModel):
    message: str
    webhookSecret: str
    previousUntil: datetime
    """The secret so far signs beside the new one until then."""


class SignatureState(AnswerModel):
    message: str
    signature: Literal["off", "on"]
    key: str | None
    """Where one was made."""


class ServiceAuthState(AnswerModel):
    message: str
    serviceAuth: Literal["off", "on", "rotating"]
    """While `rotating`, edges send the value so far."""
    value: str | None
    """Where one was made."""


class Endpoint(AnswerModel):
    url: str | None
    enabled: bool
    failing_since: datetime | None
    disables_at: datetime | None
    disabled_at: datetime | None
    last_error: str | None


class Replay(AnswerModel):
    """`more`: there may be more in the range; the same call goes on with the next."""

    message: str
    replayed: int
    more: bool


class TestEvent(AnswerModel):
    message: str
    id: str


class Diagnosis(AnswerModel):
    """What is wrong with a domain. A part that could not be observed has the status `unknown`."""

    domain: str
    status: Literal["ok", "waiting", "action needed", "unknown"]
    next_step: str
    """The one thing to do, in a sentence."""
    blocked: dict[str, Any] | None
    """What an operator has every request answered, instead of forwarding it: `scope` (`domain`, or `application` where
    the application is suspended), `status`, `reason`, `since`."""
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


class TrafficFigures(AnswerModel):
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


class Traffic(AnswerModel):
    """Intervals without a request are left out."""

    domain: str
    period: Literal["day", "month"]
    interval_minutes: Literal[5, 60]
    total: TrafficFigures
    items: list[TrafficPoint]


class Health(AnswerModel):
    status: str
    code: str | None = None
    hint: str | None = None
