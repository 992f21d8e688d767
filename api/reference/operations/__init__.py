"""One row for each method and path of the API, by area. A new area is a module here and a name in `OPERATIONS`."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

from api.reference import webhook_payloads
from api.reference.operations import (
    application,
    audit,
    authentication,
    connect,
    domain_check,
    domains,
    health,
    monitor,
    power,
    secure,
    sharing,
    users,
    webhooks,
)
from api.reference.operations.operation import Operation, Query

__all__ = ["BY_ROUTE", "OPERATIONS", "QUERIES", "UNDOCUMENTED", "WEBHOOKS", "Operation", "Query"]

OPERATIONS: Final[tuple[Operation, ...]] = (
    *authentication.OPERATIONS,
    *power.OPERATIONS,
    *secure.OPERATIONS,
    *domains.OPERATIONS,
    *domain_check.OPERATIONS,
    *connect.OPERATIONS,
    *sharing.OPERATIONS,
    *monitor.OPERATIONS,
    *application.OPERATIONS,
    *audit.OPERATIONS,
    *webhooks.OPERATIONS,
    *users.OPERATIONS,
    *health.OPERATIONS,
)

UNDOCUMENTED: Final = ("/dashboard", "/docs", "/openapi.json", "/sdk/")
"""How the paths begin of what browsers alone use."""

WEBHOOKS: Final[Mapping[str, type]] = MappingProxyType(
    {
        "domain.record_missing": webhook_payloads.RecordEvent,
        "domain.power": webhook_payloads.PowerEvent,
        "domain.secure": webhook_payloads.SecureEvent,
        "domain.added": webhook_payloads.FlowEvent,
        "domain.origin_failing": webhook_payloads.OriginEvent,
    }
)
"""The bodies of deliveries."""

QUERIES: Final[Mapping[tuple[str, str], frozenset[str]]] = MappingProxyType(
    {
        (each.method, each.path): frozenset(query.name for query in each.queries)
        for each in OPERATIONS
        # links get parameters on their way, and probes bring theirs; most writes take all from the body
        if (each.method == "GET" or each.queries) and not each.has_page and each.tag != "Health"
    }
)
"""The query parameters of each call that reads, and of each other that takes some."""

BY_ROUTE: Final[Mapping[tuple[str, str], Operation]] = MappingProxyType(
    {(each.method, each.path): each for each in OPERATIONS}
)
