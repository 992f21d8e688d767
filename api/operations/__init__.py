"""The operations of the API, by area: one row for each method and path, with its handler and what the reference states.

Routes are made of the rows (`api.routes`), and so is ``/openapi.json`` (`api.reference.document`). A new area is a
module here, a name in `OPERATIONS` and its handlers in `api.routes`.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final

from api.operations import (
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
from api.operations.operation import Operation, Query

__all__ = ["BY_ROUTE", "OPERATIONS", "QUERIES", "UNDOCUMENTED", "Operation", "Query"]

OPERATIONS: Final[tuple[Operation[Any], ...]] = (
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

UNDOCUMENTED: Final = ("/dashboard", "/docs", "/llms.txt", "/openapi.json", "/sdk/", "/status/")
"""How the paths begin of what browsers alone use."""

QUERIES: Final[Mapping[tuple[str, str], frozenset[str]]] = MappingProxyType(
    {
        (each.method, each.path): frozenset(query.name for query in each.queries)
        for each in OPERATIONS
        # links get parameters on their way, and probes bring theirs; most writes take all from the body
        if (each.method == "GET" or each.queries) and not each.has_page and each.tag != "Health"
    }
)
"""The query parameters of each call that reads, and of each other that takes some."""

BY_ROUTE: Final[Mapping[tuple[str, str], Operation[Any]]] = MappingProxyType(
    {(each.method, each.path): each for each in OPERATIONS}
)
