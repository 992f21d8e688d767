"""Monitor's query parameters. A name that is not one is simply not monitored."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from typing import Literal, cast, get_args

from multidict import MultiMapping

from api.errors import Refused, invalid_parameter
from api.schemas import queries
from api.schemas.monitor_bodies import parse_apex
from api.schemas.queries import PartQuery
from common.db import domain_list_query
from common.errors import InvalidName
from common.names import parse_subdomain

DEFAULT_LIMIT = 10
LARGEST_LIMIT = 200
MonitorSort = Literal["domain", "-domain", "date_added", "-date_added"]
_LARGEST_OFFSET = 10**15
_SORTS: dict[MonitorSort, domain_list_query.Sort] = {
    "domain": "name",
    "-domain": "-name",
    "date_added": "added",
    "-date_added": "-added",
}


@dataclass(frozen=True, slots=True)
class MonitorQuery:
    """One page of the list; `dates` are its first day and its last."""

    offset: int
    limit: int
    dates: tuple[date, date] | None


def parse_monitor_query(query: MultiMapping[str]) -> MonitorQuery | PartQuery:
    """Read the query of a list: a page by its offset, or a part where it sorts or searches.

    A page is in the order the domains were added. Raises: `Refused` that names the parameter.
    """
    queries.refuse_without_domain(query, "subdomain")
    limit = queries.parse_integer(query, "limit", default=DEFAULT_LIMIT, least=1, most=LARGEST_LIMIT)
    if queries.is_of_part(query):
        queries.refuse_beside_part(query, "offset", "from_date", "to_date")
        sort = _SORTS.get(cast("MonitorSort", queries.parse_optional_text(query, "sort") or "date_added"))
        if sort is None:
            raise Refused(invalid_parameter("sort"), hint=f"one of {', '.join(get_args(MonitorSort))}")
        return PartQuery(sort, queries.parse_search(query), queries.parse_after(query, sort), limit)
    return MonitorQuery(
        offset=queries.parse_integer(query, "offset", default=0, least=0, most=_LARGEST_OFFSET),
        limit=limit,
        dates=_parse_dates(query),
    )


def _parse_dates(query: MultiMapping[str]) -> tuple[date, date] | None:
    first, last = (queries.parse_optional_date(query, name) for name in ("from_date", "to_date"))
    if first is None and last is None:
        return None
    if first is None or last is None:
        missing = "to_date" if last is None else "from_date"
        raise Refused(invalid_parameter(missing), hint="from_date and to_date are sent together")
    return first, last


def parse_name_query(domain: str, query: MultiMapping[str]) -> tuple[str, str | None] | None:
    """Return the name that a path or ``?domain=`` with a ``subdomain`` beside it means.

    It is None if nothing can have that name. Raises: `Refused` for a subdomain sent twice.
    """
    subdomain = queries.parse_optional_text(query, "subdomain")
    try:
        apex = parse_apex(domain)
        return apex, None if subdomain is None else parse_subdomain(subdomain, apex)
    except InvalidName:
        return None
