"""The list of domains of all products: searched, filtered, sorted, a part at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias
from urllib.parse import urlencode

import orjson
from aiohttp import web

from api.dashboard.browser import ROOT
from api.dashboard.context import DashboardContext
from api.dashboard.live import into, stream
from api.dashboard.renderings import LivePart
from api.dashboard.tables import respond_with_table
from api.dashboard.visitors import visitor_of
from api.rights import Roles
from api.schemas.list_cursor import from_text, to_text
from common.accounts import Permission
from common.db import applications, domain_list, domain_totals, origin_outages, policies, preparations, unwell_domains
from common.db.applications import Application
from common.db.domain_list import ListRow
from common.db.domain_list_query import PRODUCTS, SORTS, STATUSES, DomainListQuery, ListKey, SearchLimits, Sort
from common.db.domain_totals import Totals
from common.db.session import Connection
from common.metadata import read_note

_LISTED = 50
_LISTED_APPLICATIONS = 200
_PENDING_LISTED = 20
_FILTERS = ("text", "product", "status", "application")
_READ_AT_ONCE = 1000
_MOST_EXPORTED = 10_000
_HEADS = ("domain", "product", "application", "application id", "status", "certificate expires", "added", "metadata")
_PARAMETERS = (*_FILTERS, "sort", "after")

_Query: TypeAlias = tuple[tuple[str, str], ...]


@dataclass(frozen=True, slots=True)
class _ListScope:
    """The applications that the visitor may choose from, and those listed.

    `chosen` is the one that is chosen; the ids of those listed are None for every application.
    """

    choices: list[Application]
    chosen: str | None
    ids: list[str] | None


class DomainListPage:
    """The list of domains. One instance per process."""

    def __init__(self, context: DashboardContext) -> None:
        self._context = context

    async def get(self, request: web.Request) -> web.StreamResponse:
        """Show the list of domains."""
        return self._context.renderer.page(
            request,
            "domains.html",
            live_url=f"{ROOT}/domains/live?{request.query_string}",
            totals=await self._count(visitor_of(request).roles, request.query.get("application")),
            pending=await self._list_pending(visitor_of(request).roles, request.query.get("application")),
            **await self._read(visitor_of(request).roles, _query(request)),
        )

    async def export(self, request: web.Request) -> web.StreamResponse:
        """Send what the filters find, in the order of the list, as CSV: at most `_MOST_EXPORTED` rows."""
        query, found = dict(_query(request)), list[ListRow]()
        async with self._context.database.connection() as connection:
            scope = await self._scope(connection, visitor_of(request).roles, query.get("application"))
            wanted = replace(_wanted(query, scope.ids, self._context.search), after=None, limit=_READ_AT_ONCE)
            while len(found) < _MOST_EXPORTED:
                part = await domain_list.list_part(connection, wanted)
                found += await _with_failures(connection, wanted, part.rows)
                if part.next is None:
                    break
                wanted = replace(wanted, after=part.next)
        return respond_with_table("domains", _HEADS, map(_cells, found[:_MOST_EXPORTED]))

    async def get_live(self, request: web.Request) -> web.StreamResponse:
        """Send the same part of the list as it changes."""

        query = _query(request)
        live = self._context.live
        every = live.domain_search if request.query.get("text") else live.domain_list

        async def parts() -> tuple[LivePart, ...]:
            roles = visitor_of(request).roles
            return (LivePart(self._list, (roles, query), roles.tenant, every),)

        return await stream(self._context, request, parts)

    async def _list(self, roles: Roles, query: _Query) -> str:
        values = await self._read(roles, query)
        return into("domains", self._context.renderer.fragment("_domain_list.html", **values))

    async def _read(self, roles: Roles, given: _Query) -> dict[str, Any]:
        """Return what the templates show. Raises: HTTPNotFound."""
        query = dict(given)
        async with self._context.database.connection() as connection:
            scope = await self._scope(connection, roles, query.get("application"))
            wanted = _wanted(query, scope.ids, self._context.search)
            await domain_list.settle_lapsed(connection)
            part = await domain_list.list_part(connection, wanted)
            rows = await _with_failures(connection, wanted, part.rows)
        following = to_text(part.next, wanted.sort)
        filters = {name: query.get(name, "") for name in _FILTERS}
        return {
            "rows": rows,
            "wanted": wanted,
            "filters": filters,
            "applications": scope.choices,
            "chosen": scope.chosen,
            "with_dates": True,
            "is_filtered": any(filters.values()),
            "next_url": _page_url(filters, wanted, {"after": following}) if following else "",
            "first_url": _page_url(filters, wanted, {}) if wanted.after else "",
            "sort_url": lambda sort: _page_url(filters, wanted, {"sort": sort}),
            "addable": next(
                (each for each in scope.choices if roles.may(Permission.CHANGE, each.organisation_id)), None
            ),
            "owns_any": roles.owns_any,
        }

    async def _count(self, roles: Roles, chosen: str | None) -> Totals:
        async with self._context.database.connection() as connection:
            scope = await self._scope(connection, roles, chosen)
            return await domain_totals.count_domains(connection, scope.ids)

    async def _list_pending(self, roles: Roles, chosen: str | None) -> list[tuple[str, str]]:
        async with self._context.database.connection() as connection:
            scope = await self._scope(connection, roles, chosen)
            return await preparations.list_pending(connection, scope.ids, most=_PENDING_LISTED)

    async def _scope(self, connection: Connection, roles: Roles, chosen: str | None) -> _ListScope:
        organisations = roles.visible_organisation_ids
        choices = await applications.list_visible(connection, organisations, most=_LISTED_APPLICATIONS)
        if not chosen:
            ids = None if organisations is None else await applications.list_visible_ids(connection, organisations)
            return _ListScope(choices, None, ids)
        application = await applications.get_application(connection, chosen)
        if application is None or not roles.may(Permission.VIEW, application.organisation_id):
            raise web.HTTPNotFound
        if application.id not in {each.id for each in choices}:
            choices = [application, *choices]
        return _ListScope(choices, chosen, [application.id])


def _cells(row: ListRow) -> Sequence[str]:
    times = [each.isoformat() if each else "" for each in (row.not_after, row.added_at)]
    status = "moved away" if row.moved_away else "blocked" if row.is_blocked else row.status
    notes = orjson.dumps(row.metadata).decode() if row.metadata else ""
    return (row.name, row.product, row.application_name, row.application_id, status, *times, notes)


def _query(request: web.Request) -> _Query:
    """Return what the list depends on, so that an unknown parameter makes no rendering of its own."""
    return tuple((name, request.query[name]) for name in _PARAMETERS if name in request.query)


def _wanted(query: Mapping[str, str], ids: list[str] | None, limits: SearchLimits) -> DomainListQuery:
    """Unknown values are as good as none: the addresses of lists are kept and passed on."""
    product, status = query.get("product"), query.get("status")
    text = query.get("text", "").strip()
    note = read_note(text)
    sort: Sort = next((each for each in SORTS if each == query.get("sort")), "name") if note is None else "name"
    return DomainListQuery(
        ids,
        text=text.lower().rstrip(".")[:253] if note is None else "",
        note=note,
        product=next((each for each in PRODUCTS if each == product), None),
        status=next((each for each in STATUSES if each == status), None),
        sort=sort,
        after=_key(query, sort),
        limit=_LISTED,
        limits=limits,
    )


def _key(query: Mapping[str, str], sort: Sort) -> ListKey | None:
    try:
        return from_text(query["after"], sort) if "after" in query else None
    except ValueError:
        return None


def _page_url(filters: Mapping[str, str], wanted: DomainListQuery, more: Mapping[str, str]) -> str:
    query = {"sort": wanted.sort, **filters, **more}
    return f"{ROOT}/domains?{urlencode({name: value for name, value in query.items() if value})}"


async def _with_failures(connection: Connection, wanted: DomainListQuery, rows: Sequence[ListRow]) -> list[ListRow]:
    """Return the rows, each with whether its origin fails and whether it is blocked.

    Where those that need attention are wanted, the first part begins with the active domains that are blocked, have no
    answer of their origin, or no certificate.
    """
    names = [(row.application_id, row.name) for row in rows if row.status == "active"]
    failing = await origin_outages.find_failing(connection, names) if names else set()
    blocked = await policies.find_many(connection, "domain", {name for _, name in names})
    suspended = await policies.find_many(connection, "application", {application_id for application_id, _ in names})
    shown = [
        replace(
            row,
            origin_fails=(row.application_id, row.name) in failing,
            is_blocked=row.status == "active" and (row.name in blocked or row.application_id in suspended),
        )
        for row in rows
    ]
    if wanted.note or wanted.status != "problem" or wanted.after is not None or wanted.product == "monitor":
        return shown
    unwell = await unwell_domains.list_unwell(connection, wanted.applications, most=wanted.limit)
    return [*(row for row in unwell if wanted.text in row.name and wanted.product in (None, row.product)), *shown]
