"""What a webhook receives: for the reference, and for the tests that compare deliveries with it."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, Literal, NotRequired

from typing_extensions import TypedDict

from api.schemas.dns_record import DnsRecord
from common.db.renewal_risks import Actor, RiskCode


class RecordsSeen(TypedDict):
    """Records by what the DNS has of them."""

    records_propagated: list[DnsRecord]
    records_non_propagated: list[DnsRecord]


class AnyEvent(TypedDict):
    """What every event has."""

    id: str
    """Also in the header `webhook-id`: the same for every attempt."""
    application_id: str
    occurred_at: str
    """An ISO 8601 time in UTC; deliveries and replays may be later."""
    test: NotRequired[Literal[True]]
    """There for an application for tests, and for no other."""


class DomainEvent(AnyEvent):
    """What every event of a domain has."""

    metadata: NotRequired[dict[str, str] | None]
    """The application's notes of the domain, where it keeps any."""


class RecordEvent(DomainEvent):
    """Monitored records are missing, or all of them are back."""

    type: Literal["domain.record_missing", "domain.record_restored"]
    user_id: str | None
    job_id: str | None
    domain: str
    subdomain: str | None
    sequence: int
    """Counted per domain and subdomain: which of two is the later."""
    data: RecordsSeen
    connect_link: str


class FlowEvent(DomainEvent):
    """A flow moved on.

    The person's part is done, its records are live, they were not within 72 hours, or are taken back.
    """

    type: Literal["domain.flow.completed", "domain.added", "domain.propagation.timeout", "domain.flow.undone"]
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


class PowerEvent(DomainEvent):
    """A powered domain's certificate went live, or its state changed."""

    type: Literal["domain.power"]
    domain: str
    subdomain: str | None
    sequence: int
    power_status: str
    certificate_expires_at: NotRequired[str | None]
    """Of the certificate that went live."""
    reason: NotRequired[str | None]


class SecureEvent(DomainEvent):
    """A secured domain's certificate went live, or its state changed."""

    type: Literal["domain.secure"]
    domain: str
    subdomain: str | None
    sequence: int
    secure_status: str
    certificate_expires_at: NotRequired[str | None]
    """Of the certificate that went live."""
    reason: NotRequired[str | None]


class PreparedEvent(DomainEvent):
    """Every edge serves a prepared domain with its certificate: its DNS can be pointed here."""

    type: Literal["domain.prepared"]
    domain: str
    subdomain: str | None
    sequence: int
    product: str
    prepared_until: str
    """When the preparation ends, in UTC, unless the DNS leads here before."""


class OriginEvent(AnyEvent):
    """An origin of the application's domains began to fail, or answers again."""

    type: Literal["domain.origin_failing", "domain.origin_recovered"]
    origin: str
    """As URLs begin: scheme, host, and a port that is not the scheme's own."""
    fault: str
    since: str
    domains: int
    """That lead there."""
    example: str | None
    """One of them."""


class CertificateExpiringEvent(DomainEvent):
    """A certificate that the application brought for a domain nears its end."""

    type: Literal["domain.certificate_expiring"]
    domain: str
    subdomain: str | None
    sequence: int
    serial: str
    """In hexadecimal."""
    certificate_expires_at: str
    days_left: Literal[30, 14, 7, 1]
    replaced: bool
    """A certificate of ours serves the domain from now on, and renews itself."""


class RecordToChange(TypedDict):
    """A DNS record that is to be added or removed."""

    type: str
    host: str
    value: str


class RenewalAtRiskEvent(DomainEvent):
    """A CA could not validate the domain now, as it has to for the next renewal."""

    type: Literal["domain.renewal_at_risk"]
    domain: str
    subdomain: str | None
    sequence: int
    code: RiskCode
    action: str
    """What to do, in a sentence."""
    who: Actor
    """Who has to do it."""
    record: RecordToChange | None
    """The record to add, or with `aaaa_elsewhere` to remove."""
    certificate_expires_at: str
    days_left: int


WEBHOOKS: Final[Mapping[str, type]] = MappingProxyType(
    {
        "domain.record_missing": RecordEvent,
        "domain.power": PowerEvent,
        "domain.secure": SecureEvent,
        "domain.added": FlowEvent,
        "domain.prepared": PreparedEvent,
        "domain.origin_failing": OriginEvent,
        "domain.certificate_expiring": CertificateExpiringEvent,
        "domain.renewal_at_risk": RenewalAtRiskEvent,
    }
)
"""The bodies of deliveries."""
