"""Monitor's answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from common.db.batches import BatchProgress, FailedItem
from common.db.monitor_health import MonitorHealth
from common.db.monitored_domains import MonitoredDomain

_RECORD_IN_ORDER = {"type": None, "host": None, "value": None, "ttl": None}  # and then priority, where there is one


def monitored_domain(domain: MonitoredDomain) -> dict[str, Any]:
    """A monitored domain as JSON."""
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


def monitored_domain_with_times(domain: MonitoredDomain) -> dict[str, Any]:
    """As sorted and searched lists show it."""
    return monitored_domain(domain) | {"created_at": domain.date_added, "updated_at": domain.updated_at}


def dns_records(stored: Sequence[Mapping[str, Any]]) -> list[dict[str, Any]]:
    """A DNS record as JSON, its fields in the documented order, which Postgres does not keep."""
    return [{**_RECORD_IN_ORDER, **record} for record in stored]


def batch_status(batch_id: str, progress: BatchProgress) -> dict[str, Any]:
    """The status of a batch as JSON."""
    status = ("FAILED" if progress.failed else "SUCCESS") if progress.is_over else "IN_PROGRESS"
    content: dict[str, Any] = {
        "batchId": batch_id,
        "applicationId": progress.application_id,
        "status": status,
        "successfulDomains": progress.succeeded,
    }
    if progress.failed:
        failed = [_failed(each) for each in progress.failed]
        content["failedDomains"] = {"count": len(failed), "domains": failed}
    return content


def _failed(failure: FailedItem) -> dict[str, Any]:
    return {"domain": failure.domain, "subdomain": failure.subdomain, "reason": failure.reason}


def service_status(health: MonitorHealth) -> dict[str, Any]:
    """The health of the checks as JSON."""
    return {"status": "healthy" if health.is_healthy else "unhealthy", "executedAt": health.executed_at}
