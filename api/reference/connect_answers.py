"""What the API answers about a domain before it is connected, and about flows of the connect modal, as models.

The rules of `api.reference.answers` apply.
"""

from __future__ import annotations

from datetime import datetime
from typing import Any, Literal

from pydantic import ConfigDict

from api.reference.answers import AnswerModel
from common.flow_states import State
from common.records import RecordType


class Share(AnswerModel):
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


class ProviderAnswer(AnswerModel):
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


class NsSupport(AnswerModel):
    root: bool
    subdomains: bool


class RecordConflict(AnswerModel):
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


class ServerAnswer(AnswerModel):
    role: str
    server: str
    outcome: str
    values: list[str]
    ttl: int | None
    at: datetime


class CheckedRecord(AnswerModel):
    type: RecordType
    host: str
    value: str
    ttl: int
    priority: str | None = None
    status: Literal["propagated", "missing", "unknown"]
    answers: list[ServerAnswer]
    cachedUntil: datetime | None
    """When the last old answer leaves the caches."""


class RecordCheckAnswer(AnswerModel):
    domain: str
    records: list[CheckedRecord]


class Flow(AnswerModel):
    """A domain being connected; the handbook explains its states."""

    model_config = ConfigDict(extra="allow")

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


class SharedLink(AnswerModel):
    id: str
    link: str
    job_id: str | None
    domain: str | None
    subdomain: str | None
    created_at: datetime
    expires_at: datetime


class SharedLinks(AnswerModel):
    links: list[SharedLink]


class RegisteredConfiguration(AnswerModel):
    id: str
    config: dict[str, Any]
    created_at: datetime
    expires_at: datetime | None
    """null: it stays until it is deleted."""


class RegisteredConfigurations(AnswerModel):
    configurations: list[RegisteredConfiguration]
