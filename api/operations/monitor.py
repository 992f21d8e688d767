"""Monitored domains and their records."""

from __future__ import annotations

from typing import Any, Final, get_args

from api.answers.messages import Message
from api.answers.monitor import BatchStatus, LastCheck, MonitoredDomain, MonitoredDomains, ServiceStatus, Submitted
from api.handlers.monitor import BatchHandlers, MonitorHandlers
from api.operations.operation import Operation, Query
from api.operations.parameters import AFTER, RECORD, SEARCH, TEXT
from api.schemas import monitor_bodies
from api.schemas.dns_record import DnsRecord
from api.schemas.monitor_queries import DEFAULT_LIMIT, LARGEST_LIMIT, MonitorSort
from api.services.batches import MOST_CREATED, MOST_DELETED

_SUBDOMAIN: Final = Query("subdomain", TEXT, "What stands before the apex; without it the apex is meant.")
_MONITORED: Final = {"domain_name": "The apex domain."}
_WATCHED: Final = {"domain": "customer.example", "dnsRecords": [RECORD]}

DOMAINS: Final[tuple[Operation[MonitorHandlers], ...]] = (
    Operation(
        "POST",
        "/monitor/domains",
        MonitorHandlers.post,
        "addMonitoredDomain",
        "Monitor",
        "Monitor a domain's records; of a monitored one, replace them",
        Message,
        status=201,
        body=monitor_bodies.WatchBody,
        example=_WATCHED | {"userId": "user-7"},
        errors=(400,),
    ),
    Operation(
        "PUT",
        "/monitor/domains",
        MonitorHandlers.put,
        "changeMonitoredDomain",
        "Monitor",
        "Replace a monitored domain's records",
        Message,
        body=monitor_bodies.UpdateBody,
        example=_WATCHED,
        errors=(400, 404),
    ),
    Operation(
        "DELETE",
        "/monitor/domains",
        MonitorHandlers.delete,
        "removeMonitoredDomain",
        "Monitor",
        "Stop monitoring a domain",
        Message,
        body=monitor_bodies.UnwatchBody,
        example={"domain": "customer.example"},
        errors=(400,),
    ),
    Operation(
        "GET",
        "/monitor/domains",
        MonitorHandlers.get,
        "getMonitoredDomains",
        "Monitor",
        "List monitored domains, or get one",
        MonitoredDomains | MonitoredDomain,
        queries=(
            Query("domain", TEXT, "Returns this one instead of a list."),
            _SUBDOMAIN,
            Query(
                "offset",
                {"type": "integer", "minimum": 0, "maximum": 10**15, "default": 0},
                "Rows to leave out. `sort` and `after` read a long list faster.",
            ),
            Query(
                "limit", {"type": "integer", "minimum": 1, "maximum": LARGEST_LIMIT, "default": DEFAULT_LIMIT}, "Rows."
            ),
            Query("from_date", {"type": "string", "format": "date"}, "First day of `date_added`; with `to_date`."),
            Query("to_date", {"type": "string", "format": "date"}, "Last day."),
            Query(
                "sort",
                {"type": "string", "enum": list(get_args(MonitorSort))},
                "The order; `-` reverses it. With `sort`, `search` or `after`, `next` is the `after` of the next part,"
                " and `offset`, `from_date` and `to_date` are not taken.",
            ),
            SEARCH,
            AFTER,
        ),
        errors=(400, 404),
    ),
    Operation(
        "GET",
        "/monitor/domains/{domain_name}",
        MonitorHandlers.get_one,
        "getMonitoredDomain",
        "Monitor",
        "Get a monitored domain",
        MonitoredDomain,
        queries=(_SUBDOMAIN,),
        errors=(400, 404),
        paths=_MONITORED,
    ),
    Operation(
        "GET",
        "/monitor/domains/{domain_name}/checks",
        MonitorHandlers.get_checks,
        "getLastCheck",
        "Monitor",
        "Get what the last check of a monitored domain went by",
        LastCheck,
        queries=(_SUBDOMAIN,),
        errors=(400, 404),
        paths=_MONITORED,
    ),
    Operation(
        "GET",
        "/monitor/domains/{domain_name}/records",
        MonitorHandlers.get_records,
        "getMonitoredRecords",
        "Monitor",
        "List a domain's monitored records",
        list[DnsRecord],
        queries=(_SUBDOMAIN,),
        errors=(400, 404),
        paths=_MONITORED,
    ),
    Operation(
        "POST",
        "/monitor/domains/{domain_name}/records",
        MonitorHandlers.post_records,
        "addMonitoredRecords",
        "Monitor",
        "Add monitored records; those there are stay",
        Message,
        body=monitor_bodies.RecordsBody,
        example={"dnsRecords": [RECORD]},
        queries=(_SUBDOMAIN,),
        errors=(400, 404),
        paths=_MONITORED,
    ),
    Operation(
        "PUT",
        "/monitor/domains/{domain_name}/records",
        MonitorHandlers.put_records,
        "replaceMonitoredRecords",
        "Monitor",
        "Replace all monitored records",
        Message,
        status=201,
        body=monitor_bodies.RecordsBody,
        example={"dnsRecords": [RECORD]},
        queries=(_SUBDOMAIN,),
        errors=(400, 404),
        paths=_MONITORED,
    ),
    Operation(
        "DELETE",
        "/monitor/domains/{domain_name}/records",
        MonitorHandlers.delete_records,
        "removeMonitoredRecords",
        "Monitor",
        "Stop monitoring some of a domain's records",
        Message,
        body=monitor_bodies.RemovedRecordsBody,
        example={"dnsRecords": [RECORD]},
        queries=(_SUBDOMAIN,),
        errors=(400, 404),
        paths=_MONITORED,
    ),
    Operation(
        "GET",
        "/monitor/status",
        MonitorHandlers.get_status,
        "getMonitorStatus",
        "Monitor",
        "Say whether the checks themselves are well",
        ServiceStatus,
    ),
)

BATCHES: Final[tuple[Operation[BatchHandlers], ...]] = (
    Operation(
        "POST",
        "/monitor/domains/batch",
        BatchHandlers.post,
        "addMonitoredDomains",
        "Monitor",
        f"Monitor up to {MOST_CREATED} domains",
        Submitted,
        status=201,
        body=monitor_bodies.BatchBody,
        example={"domains": [_WATCHED]},
        errors=(400,),
    ),
    Operation(
        "DELETE",
        "/monitor/domains/batch",
        BatchHandlers.delete,
        "removeMonitoredDomains",
        "Monitor",
        f"Stop monitoring up to {MOST_DELETED} domains",
        Submitted,
        status=201,
        body=monitor_bodies.BatchBody,
        example={"domains": [{"domain": "customer.example"}]},
        errors=(400,),
    ),
    Operation(
        "GET",
        "/monitor/domains/batch/status/{request_id}",
        BatchHandlers.get_status,
        "getBatchStatus",
        "Monitor",
        "Say how far a batch is",
        BatchStatus,
        errors=(404,),
        paths={"request_id": "The `request_id` of the batch."},
    ),
)

OPERATIONS: Final[tuple[Operation[Any], ...]] = (*DOMAINS, *BATCHES)
