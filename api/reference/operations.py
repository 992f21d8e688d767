"""One row for each method and path of the API: what it takes, what it answers, and which errors."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any, Final, Literal, get_args

from pydantic import BaseModel

from api.reference import answers
from api.schemas import bodies, connect, domain_check, monitor_bodies, power, secure, token, webhooks
from api.schemas.dns_record import DnsRecord
from api.schemas.monitor_queries import DEFAULT_LIMIT, LARGEST_LIMIT
from api.schemas.queries import DEFAULT_SIZE, LARGEST_SIZE
from api.schemas.traffic import PERIODS
from api.services.batches import MOST_CREATED, MOST_DELETED
from api.services.webhooks import MOST_REPLAYED
from common.db.deliveries import Status as DeliveryStatus
from common.db.events import EventType

Method = Literal["GET", "POST", "PUT", "DELETE"]


@dataclass(frozen=True, slots=True)
class Query:
    name: str
    schema: Mapping[str, Any]
    words: str
    is_required: bool = False


@dataclass(frozen=True, slots=True)
class Operation:
    """`errors`: the statuses beside those of every operation. `is_open`: without authentication. `example` is a body
    that a test sends."""

    method: Method
    path: str
    id: str
    tag: str
    summary: str
    answer: Any
    status: int = 200
    body: type[BaseModel] | None = None
    example: Mapping[str, Any] | None = None
    queries: tuple[Query, ...] = ()
    errors: tuple[int, ...] = ()
    is_open: bool = False
    has_page: bool = False
    """Browsers get HTML."""
    media_type: str = "application/json"
    paths: Mapping[str, str] = field(default_factory=dict)
    """What stands for each name in the path."""


_SIZE: Final = {"type": "integer", "minimum": 1, "maximum": LARGEST_SIZE, "default": DEFAULT_SIZE}
_TEXT: Final = {"type": "string"}
_STATUS = Query("status", {"type": "string", "enum": ["active", "inactive"]}, "Only these.")
_DOMAIN = Query("domain", _TEXT, "Asks about one domain; the list's parameters do not count then.")
_ROOT = Query("rootDomain", {"type": "boolean", "default": False}, "Asks about the domain's root instead.")
_PAGE = (
    Query("page", {"type": "integer", "minimum": 0, "maximum": 10**9, "default": 0}, "From zero."),
    Query("size", _SIZE, "Of a page."),
    _STATUS,
)
_SUBDOMAIN = Query("subdomain", _TEXT, "What stands before the apex; without it the apex is meant.")
_EVENT_ID: Final = {"type": "string", "pattern": "^evt_[0-9a-f]{34}$"}
_BEFORE = Query("before", _EVENT_ID, "`next` of the page before.")
_LIMIT = Query("limit", _SIZE, "Of a page.")
_MONITORED = {"domain_name": "The apex domain."}
_RECORD = {"type": "CNAME", "host": "shop", "value": "apps.acme.example", "ttl": 300}
_WATCHED = {"domain": "customer.example", "dnsRecords": [_RECORD]}

_FLOW = {"id": "The flow's id."}


def _flow_action(action: str, name: str, summary: str, body: type[BaseModel], example: Mapping[str, Any]) -> Operation:
    return Operation(
        "POST",
        f"/connect/flows/{{id}}/{action}",
        name,
        "Connect",
        summary,
        answers.Flow,
        body=body,
        example=example,
        errors=(400, 404, 409, 502),
        paths=_FLOW,
    )


OPERATIONS: Final[tuple[Operation, ...]] = (
    Operation(
        "POST",
        "/token",
        "createToken",
        "Authentication",
        "Exchange a client secret for a token of 60 minutes",
        answers.Token,
        body=token.TokenBody,
        example={"applicationId": "app_…", "secret": "…"},
        errors=(400, 503),
        is_open=True,
    ),
    # Power
    Operation(
        "GET",
        "/power",
        "getPower",
        "Power",
        "List powered domains, or ask whether one is eligible",
        answers.Page[answers.PoweredDomain] | answers.PowerEligibility,
        queries=(_DOMAIN, _ROOT, *_PAGE),
        errors=(400,),
    ),
    Operation(
        "POST",
        "/power",
        "powerDomain",
        "Power",
        "Show an application on a domain",
        answers.Message,
        body=power.PowerBody,
        example={"domain": "shop.customer.example", "applicationUrl": "https://app.acme.example/shop"},
        errors=(502,),
    ),
    Operation(
        "PUT",
        "/power",
        "changePoweredDomain",
        "Power",
        "Change a powered domain; what is left out stays",
        answers.Message,
        body=power.PowerChange,
        example={"domain": "shop.customer.example", "applicationUrl": "https://app.acme.example/new"},
        errors=(502,),
    ),
    Operation(
        "DELETE",
        "/power",
        "removePoweredDomain",
        "Power",
        "Stop showing an application on a domain",
        answers.Message,
        body=bodies.ProductBody,
        example={"domain": "shop.customer.example"},
        errors=(502,),
    ),
    # Secure
    Operation(
        "GET",
        "/ssl",
        "getSsl",
        "Secure",
        "List secured domains, or ask whether one is eligible",
        answers.Page[answers.SecuredDomain] | answers.SslEligibility,
        queries=(_DOMAIN, _ROOT, *_PAGE),
        errors=(400,),
    ),
    Operation(
        "POST",
        "/ssl",
        "secureDomain",
        "Secure",
        "Provision a certificate for a domain, a subdomain or a root",
        answers.Message,
        body=secure.SecureBody,
        example={"domain": "www.customer.example", "applicationUrl": "https://app.acme.example"},
        errors=(502,),
    ),
    Operation(
        "PUT",
        "/ssl",
        "changeSecuredDomain",
        "Secure",
        "Renew a certificate now, or change where a domain leads",
        answers.Message,
        body=secure.SecureChange,
        example={"domain": "www.customer.example"},
        errors=(502,),
    ),
    Operation(
        "DELETE",
        "/ssl",
        "removeSecuredDomain",
        "Secure",
        "Deprovision a domain's certificate",
        answers.Message,
        body=secure.SecureRemoval,
        example={"domain": "www.customer.example"},
        errors=(502,),
    ),
    Operation(
        "GET",
        "/domains/{domain}/diagnosis",
        "diagnoseDomain",
        "Domains",
        "Say what is wrong with a domain, and the one thing to do",
        answers.Diagnosis,
        errors=(400,),
        paths={"domain": "A domain, enrolled or not."},
    ),
    Operation(
        "GET",
        "/domains/{domain}/traffic",
        "getTraffic",
        "Domains",
        "Requests, bytes, errors and latency of a domain over time",
        answers.Traffic,
        queries=(
            Query(
                "period",
                {"type": "string", "enum": list(PERIODS), "default": "day"},
                "The last 24 hours by 5 minutes, or the last 30 days by the hour.",
            ),
        ),
        errors=(400,),
        paths={"domain": "A domain of the application."},
    ),
    # Domain check and connect
    Operation(
        "POST",
        "/checkdomain",
        "checkDomain",
        "Connect",
        "Say who hosts a domain's DNS, what can be done there, and what stands in the way",
        answers.DomainCheckAnswer,
        body=domain_check.DomainCheckBody,
        example={"domain": "customer.example", "dnsRecords": [_RECORD], "checkConflicts": True},
        errors=(400,),
    ),
    Operation(
        "POST",
        "/checkrecords",
        "checkRecords",
        "Connect",
        "Say which records are propagated",
        answers.RecordCheckAnswer,
        body=domain_check.RecordCheckBody,
        example={"domain": "customer.example", "dnsRecords": [_RECORD]},
        errors=(400,),
    ),
    Operation(
        "POST",
        "/connect/flows",
        "createFlow",
        "Connect",
        "Begin to connect a domain",
        answers.Flow,
        status=201,
        body=connect.ConnectBody,
        example={"domain": "customer.example", "dnsRecords": [_RECORD]},
        errors=(400, 404),
    ),
    Operation(
        "GET",
        "/connect/flows/{id}",
        "getFlow",
        "Connect",
        "Get a flow",
        answers.Flow,
        errors=(404,),
        paths=_FLOW,
    ),
    Operation(
        "GET",
        "/connect/flows/{id}/events",
        "watchFlow",
        "Connect",
        "Follow a flow by server-sent events, each the whole flow",
        None,
        errors=(404,),
        paths=_FLOW,
        media_type="text/event-stream",
    ),
    _flow_action("domain", "chooseDomain", "Choose the domain", connect.DomainBody, {"domain": "customer.example"}),
    _flow_action("plan", "planFlow", "Look at the zone once more and make a plan", connect.NoBody, {}),
    _flow_action(
        "apply",
        "applyFlow",
        "Do exactly what the plan shows, by one of the ways open",
        connect.ApplyBody,
        {"way": "manual", "digest": "…"},
    ),
    _flow_action("check", "checkFlow", "Look for the records now", connect.NoBody, {}),
    _flow_action("undo", "undoFlow", "Put back what was replaced", connect.UndoBody, {}),
    _flow_action("close", "closeFlow", "Give the flow up before anything is written", connect.NoBody, {}),
    Operation(
        "POST",
        "/connect/flows/{id}/share",
        "shareFlow",
        "Sharing",
        "Make a link that opens this flow's configuration",
        answers.SharedLink,
        status=201,
        body=connect.FlowShareBody,
        example={"expiresInDays": 7},
        errors=(400, 404, 409),
        paths=_FLOW,
    ),
    Operation(
        "POST",
        "/sharing/connect",
        "shareConfiguration",
        "Sharing",
        "Make a link that opens a configuration of the connect modal",
        answers.SharedLink,
        status=201,
        body=connect.ShareBody,
        example={"config": {"prefilledDomain": "customer.example", "dnsRecords": [_RECORD]}},
        errors=(400,),
    ),
    Operation(
        "GET",
        "/sharing/connect",
        "getLinks",
        "Sharing",
        "List sharing links, the newest first",
        answers.SharedLinks,
        queries=(
            Query("before", {"type": "string", "format": "date-time"}, "`created_at` of the last link before."),
            _LIMIT,
        ),
        errors=(400,),
    ),
    Operation(
        "DELETE",
        "/sharing/connect/{id}",
        "revokeLink",
        "Sharing",
        "Revoke a sharing link",
        answers.Message,
        errors=(404,),
        paths={"id": "The link's id."},
    ),
    # Monitor
    Operation(
        "POST",
        "/monitor/domains",
        "addMonitoredDomain",
        "Monitor",
        "Monitor a domain's records; of a monitored one, replace them",
        answers.Message,
        status=201,
        body=monitor_bodies.WatchBody,
        example=_WATCHED | {"userId": "user-7"},
        errors=(400,),
    ),
    Operation(
        "PUT",
        "/monitor/domains",
        "changeMonitoredDomain",
        "Monitor",
        "Replace a monitored domain's records",
        answers.Message,
        body=monitor_bodies.UpdateBody,
        example=_WATCHED,
        errors=(400, 404),
    ),
    Operation(
        "DELETE",
        "/monitor/domains",
        "removeMonitoredDomain",
        "Monitor",
        "Stop monitoring a domain",
        answers.Message,
        body=monitor_bodies.UnwatchBody,
        example={"domain": "customer.example"},
        errors=(400,),
    ),
    Operation(
        "GET",
        "/monitor/domains",
        "getMonitoredDomains",
        "Monitor",
        "List monitored domains, or get one",
        answers.MonitoredDomains | answers.MonitoredDomain,
        queries=(
            Query("domain", _TEXT, "Returns this one instead of a list."),
            _SUBDOMAIN,
            Query("offset", {"type": "integer", "minimum": 0, "maximum": 10**15, "default": 0}, "Rows to leave out."),
            Query(
                "limit", {"type": "integer", "minimum": 1, "maximum": LARGEST_LIMIT, "default": DEFAULT_LIMIT}, "Rows."
            ),
            Query("from_date", {"type": "string", "format": "date"}, "First day of `date_added`; with `to_date`."),
            Query("to_date", {"type": "string", "format": "date"}, "Last day."),
        ),
        errors=(400, 404),
    ),
    Operation(
        "POST",
        "/monitor/domains/batch",
        "addMonitoredDomains",
        "Monitor",
        f"Monitor up to {MOST_CREATED} domains",
        answers.Submitted,
        status=201,
        body=monitor_bodies.BatchBody,
        example={"domains": [_WATCHED]},
        errors=(400,),
    ),
    Operation(
        "DELETE",
        "/monitor/domains/batch",
        "removeMonitoredDomains",
        "Monitor",
        f"Stop monitoring up to {MOST_DELETED} domains",
        answers.Submitted,
        status=201,
        body=monitor_bodies.BatchBody,
        example={"domains": [{"domain": "customer.example"}]},
        errors=(400,),
    ),
    Operation(
        "GET",
        "/monitor/domains/batch/status/{request_id}",
        "getBatchStatus",
        "Monitor",
        "Say how far a batch is",
        answers.BatchStatus,
        errors=(404,),
        paths={"request_id": "The `request_id` of the batch."},
    ),
    Operation(
        "GET",
        "/monitor/domains/{domain_name}",
        "getMonitoredDomain",
        "Monitor",
        "Get a monitored domain",
        answers.MonitoredDomain,
        queries=(_SUBDOMAIN,),
        errors=(400, 404),
        paths=_MONITORED,
    ),
    Operation(
        "GET",
        "/monitor/domains/{domain_name}/checks",
        "getLastCheck",
        "Monitor",
        "Get what the last check of a monitored domain went by",
        answers.LastCheck,
        queries=(_SUBDOMAIN,),
        errors=(400, 404),
        paths=_MONITORED,
    ),
    Operation(
        "GET",
        "/monitor/domains/{domain_name}/records",
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
        "addMonitoredRecords",
        "Monitor",
        "Add monitored records; those there are stay",
        answers.Message,
        body=monitor_bodies.RecordsBody,
        example={"dnsRecords": [_RECORD]},
        queries=(_SUBDOMAIN,),
        errors=(400, 404),
        paths=_MONITORED,
    ),
    Operation(
        "PUT",
        "/monitor/domains/{domain_name}/records",
        "replaceMonitoredRecords",
        "Monitor",
        "Replace all monitored records",
        answers.Message,
        status=201,
        body=monitor_bodies.RecordsBody,
        example={"dnsRecords": [_RECORD]},
        queries=(_SUBDOMAIN,),
        errors=(400, 404),
        paths=_MONITORED,
    ),
    Operation(
        "DELETE",
        "/monitor/domains/{domain_name}/records",
        "removeMonitoredRecords",
        "Monitor",
        "Stop monitoring some of a domain's records",
        answers.Message,
        body=monitor_bodies.RemovedRecordsBody,
        example={"dnsRecords": [_RECORD]},
        queries=(_SUBDOMAIN,),
        errors=(400, 404),
        paths=_MONITORED,
    ),
    Operation(
        "GET",
        "/monitor/status",
        "getMonitorStatus",
        "Monitor",
        "Say whether the checks themselves are well",
        answers.ServiceStatus,
    ),
    # Audit
    Operation(
        "GET",
        "/audit",
        "getAudit",
        "Audit",
        "List every change of the application, the newest first: who, by which way, from what to what",
        answers.AuditEntries,
        queries=(
            Query("before", {"type": "string", "pattern": "^aud_[0-9a-f]{34}$"}, "`next` of the page before."),
            _LIMIT,
            Query("subject", _TEXT, "Only of what was changed, in full: a domain, an id, a user's address."),
        ),
        errors=(400,),
    ),
    # Webhooks
    Operation(
        "GET",
        "/webhooks/events",
        "getEvents",
        "Webhooks",
        "List what happened in the last 30 days, the newest first",
        answers.WebhookEvents,
        queries=(
            _BEFORE,
            _LIMIT,
            Query("type", {"type": "string", "enum": list(get_args(EventType))}, "Only these."),
            Query("domain", _TEXT, "Only of this registrable domain."),
        ),
        errors=(400,),
    ),
    Operation(
        "GET",
        "/webhooks/deliveries",
        "getDeliveries",
        "Webhooks",
        "List deliveries with their attempts, the newest first",
        answers.Deliveries,
        queries=(
            _BEFORE,
            _LIMIT,
            Query("status", {"type": "string", "enum": list(get_args(DeliveryStatus))}, "Only these."),
            Query("event", _EVENT_ID, "Only of this event."),
        ),
        errors=(400,),
    ),
    Operation(
        "POST",
        "/webhooks/events/{id}/replay",
        "replayEvent",
        "Webhooks",
        "Send an event again",
        answers.Message,
        status=202,
        errors=(404, 409),
        paths={"id": "The event's id."},
    ),
    Operation(
        "POST",
        "/webhooks/deliveries/replay",
        "replayDeliveries",
        "Webhooks",
        f"Send again what failed in a range of time, the oldest {MOST_REPLAYED} first",
        answers.Replay,
        status=202,
        body=webhooks.ReplayBody,
        example={"from": "2026-03-01T00:00:00Z", "to": "2026-03-02T00:00:00Z", "status": "failed"},
        errors=(400, 409),
    ),
    Operation(
        "POST",
        "/webhooks/test",
        "sendTestEvent",
        "Webhooks",
        "Send a `webhook.test`",
        answers.TestEvent,
        status=202,
        errors=(409,),
    ),
    Operation(
        "GET", "/webhooks/endpoint", "getEndpoint", "Webhooks", "Say how the webhook's endpoint fares", answers.Endpoint
    ),
    Operation(
        "POST",
        "/webhooks/endpoint/enable",
        "enableEndpoint",
        "Webhooks",
        "Enable the endpoint, and send what is pending",
        answers.Message,
        errors=(409,),
    ),
    # Without authentication
    Operation(
        "GET",
        "/share/{id}",
        "getShare",
        "Sharing",
        "Get the records behind a sharing link; a page for browsers",
        answers.Share,
        errors=(404,),
        is_open=True,
        has_page=True,
        paths={"id": "What the link ends with."},
    ),
    Operation(
        "GET",
        "/connect/return/{id}",
        "returnToFlow",
        "Connect",
        "Take a browser back from a Domain Connect provider: a page that closes itself",
        None,
        queries=(
            Query("state", _TEXT, "That of the flow's URL; it counts once.", is_required=True),
            Query("error", _TEXT, "Why the provider did not apply the template (RFC 6749 §4.1.2.1)."),
            Query("error_description", _TEXT, "The provider's own text about it."),
        ),
        errors=(404, 409),
        is_open=True,
        has_page=True,
        media_type="text/html",
        paths=_FLOW,
    ),
    Operation("GET", "/healthz", "getHealth", "Health", "Say that the process runs", answers.Health, is_open=True),
    Operation(
        "GET",
        "/readyz",
        "getReadiness",
        "Health",
        "Say whether requests can be answered",
        answers.Health,
        errors=(503,),
        is_open=True,
    ),
)

UNDOCUMENTED: Final = ("/dashboard", "/docs", "/openapi.json", "/sdk/")
"""How the paths begin of what browsers alone use."""

WEBHOOKS: Final[Mapping[str, type[BaseModel]]] = MappingProxyType(
    {
        "domain.record_missing": answers.RecordEvent,
        "domain.power": answers.PowerEvent,
        "domain.secure": answers.SecureEvent,
        "domain.added": answers.FlowEvent,
    }
)
"""The bodies of deliveries."""

QUERIES: Final[Mapping[tuple[str, str], frozenset[str]]] = MappingProxyType(
    {
        (each.method, each.path): frozenset(query.name for query in each.queries)
        for each in OPERATIONS
        # links get parameters on their way, and probes bring theirs; writes take all from the body
        if each.method == "GET" and not each.has_page and each.tag != "Health"
    }
)
"""The query parameters that each path takes where it is read."""
