"""Monitored domains, their records and checks, and batches of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, datetime
from typing import Any, Literal, NotRequired, cast

from typing_extensions import TypedDict

from api.schemas.dns_record import DnsRecord
from api.schemas.evidence import ServerNames, hide_private
from common.db import batches
from common.db import monitored_domains as stored
from common.db.batches import BatchProgress
from common.db.monitor_health import MonitorHealth
from common.db.monitored_domains import MonitoredKey

_RECORD_IN_ORDER = {"type": None, "host": None, "value": None, "ttl": None}  # and then priority, where there is one
_STATEMENT_FIELDS = ("at", "role", "server", "name", "type", "outcome", "values")


class MonitoredDomain(TypedDict):
    """A monitored domain, its records and its last check."""

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
    created_at: NotRequired[datetime | None]
    """In a list that is sorted or searched, as `updated_at`."""
    updated_at: NotRequired[datetime | None]
    """When its records or labels were last changed by a call."""


class MonitoredDomains(TypedDict):
    """A page or a part of the list of monitored domains."""

    domains: list[MonitoredDomain]
    page: int
    """Echoes `offset`."""
    totalItems: int
    """Domains in this answer."""
    next: NotRequired[str | None]
    """For `after`, where the list is sorted or searched; null at its end."""


class Statement(TypedDict):
    """One answer of a name server."""

    at: NotRequired[str | None]
    role: str
    server: str
    name: NotRequired[str | None]
    type: NotRequired[str | None]
    outcome: str
    values: NotRequired[list[str] | None]


class LastCheck(TypedDict):
    """What the last check of a monitored domain went by."""

    domain: str
    subdomain: str | None
    state: str
    last_checked_at: datetime | None
    evidence: list[Statement] | None


class Submitted(TypedDict):
    """A batch that was taken."""

    request_id: str
    status: Literal["IN_PROGRESS"]


class FailedItem(TypedDict):
    """An entry of a batch that failed, and why."""

    domain: str | None
    subdomain: str | None
    reason: str


class FailedItems(TypedDict):
    """The entries of a batch that failed."""

    count: int
    domains: list[FailedItem]


class BatchStatus(TypedDict):
    """How far a batch is."""

    batchId: str
    applicationId: str
    status: Literal["IN_PROGRESS", "SUCCESS", "FAILED"]
    successfulDomains: int
    failedDomains: NotRequired[FailedItems | None]


class ServiceStatus(TypedDict):
    """Whether the checks themselves are well."""

    status: Literal["healthy", "unhealthy"]
    executedAt: datetime | None


def monitored_domain(domain: stored.MonitoredDomain) -> MonitoredDomain:
    """Render a monitored domain."""
    return {
        "id": domain.id,
        "domain": domain.key.domain,
        "subdomain": domain.key.subdomain,
        "date_added": domain.date_added.date(),
        "dns_records": dns_records(domain.dns_records),
        "records_present": None if domain.records_present is None else dns_records(domain.records_present),
        "records_missing": None if domain.records_missing is None else dns_records(domain.records_missing),
        "missing_records_last_detected": domain.missing_records_last_detected,
        "last_checked_at": domain.last_checked_at,
        "is_active": True,
        "user_id": domain.labels.user_id,
        "job_id": domain.labels.job_id,
        "source": domain.source,
        "application_id": domain.key.application_id,
    }


def monitored_domain_with_times(domain: stored.MonitoredDomain) -> MonitoredDomain:
    """Render a monitored domain as sorted and searched lists show it."""
    answer = monitored_domain(domain)
    answer["created_at"], answer["updated_at"] = domain.date_added, domain.updated_at
    return answer


def dns_records(records: Sequence[Mapping[str, Any]]) -> list[DnsRecord]:
    """Render stored records, their fields in the documented order, which Postgres does not keep."""
    return cast("list[DnsRecord]", [{**_RECORD_IN_ORDER, **record} for record in records])


def last_check(key: MonitoredKey, check: stored.LastCheck) -> LastCheck:
    """Render what the last check went by: each answer that it got, oldest first."""
    return {
        "domain": key.domain,
        "subdomain": key.subdomain,
        "state": check.state,
        "last_checked_at": check.checked_at,
        "evidence": None if check.evidence is None else _statements(check.evidence),
    }


def _statements(statements: Sequence[Mapping[str, Any]]) -> list[Statement]:
    """Render stored statements without the private addresses of the operator's own network.

    A tenant may have any name monitored, those of that network too.
    """
    names, shown = ServerNames(), []
    for statement in statements:
        server = names.shown(statement["role"], statement["server"])
        fields = {**statement, "server": server}
        if server != statement["server"] and "values" in statement:
            fields["values"] = hide_private(statement["values"])
        shown.append({field: fields[field] for field in _STATEMENT_FIELDS if field in fields})
    return cast("list[Statement]", shown)


def submitted(batch_id: str) -> Submitted:
    """Render the answer to a batch that was stored."""
    return {"request_id": batch_id, "status": "IN_PROGRESS"}


def batch_status(batch_id: str, progress: BatchProgress) -> BatchStatus:
    """Render how far a batch is; the items that failed only where some did."""
    answer: BatchStatus = {
        "batchId": batch_id,
        "applicationId": progress.application_id,
        "status": ("FAILED" if progress.failed else "SUCCESS") if progress.is_over else "IN_PROGRESS",
        "successfulDomains": progress.succeeded,
    }
    if progress.failed:
        failed = [_failed(each) for each in progress.failed]
        answer["failedDomains"] = {"count": len(failed), "domains": failed}
    return answer


def _failed(failure: batches.FailedItem) -> FailedItem:
    return {"domain": failure.domain, "subdomain": failure.subdomain, "reason": failure.reason}


def service_status(health: MonitorHealth) -> ServiceStatus:
    """Render the health of the checks."""
    return {"status": "healthy" if health.is_healthy else "unhealthy", "executedAt": health.executed_at}
