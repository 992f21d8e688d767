"""The list of domains of all products: searched, filtered, sorted, a part at a time."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any
from urllib.parse import urlencode

from aiohttp import web
from multidict import MultiMapping

from api.dashboard.browser import ROOT
from api.dashboard.context import DashboardContext
from api.dashboard.live import Part, into, stream
from api.dashboard.visitors import visitor_of
from api.schemas.list_cursor import from_text, to_text
from common.accounts import Permission
from common.db import applications, domain_list
from common.db.applications import Application
from common.db.domain_list import PRODUCTS, SORTS, STATUSES, ListKey, Sort, Wanted
from common.db.session import Connection

_LISTED = 50
_LISTED_APPLICATIONS = 200
_LIVE_SECONDS = 5.0
_LIVE_SEARCH_SECONDS = 15.0
"""A search reads more than a part of the list."""


@dataclass(frozen=True, slots=True)
class _Scope:
    """The applications that the visitor may choose from, the one that is chosen, and the ids of those listed: None is
    every application."""

    choices: list[Application]
    chosen: str | None
    ids: list[str] | None


class DomainListPage:
    """One a process."""

    def __init__(self, context: DashboardContext) -> None:
        self._context = context

    async def get(self, request: web.Request) -> web.StreamResponse:
        return self._context.renderer.page(
            request, "domains.html", live_url=f"{ROOT}/domains/live?{request.query_string}", **await self._read(request)
        )

    async def get_live(self, request: web.Request) -> web.StreamResponse:
        """The same part of the list."""

        async def render() -> str:
            values = await self._read(request)
            return into("domains", self._context.renderer.fragment(request, "_domain_list.html", **values))

        every = _LIVE_SEARCH_SECONDS if request.query.get("text") else _LIVE_SECONDS
        return await stream(self._context, request, Part(render, every))

    async def _read(self, request: web.Request) -> dict[str, Any]:
        """What the templates show. Raises: HTTPNotFound."""
        visitor, query = visitor_of(request), request.query
        async with self._context.database.connection() as connection:
            scope = await self._scope(connection, request)
            wanted = _wanted(query, scope.ids)
            await domain_list.settle_lapsed(connection)
            part = await domain_list.list_part(connection, wanted)
        following = to_text(part.next, wanted.sort)
        filters = {name: query.get(name, "") for name in ("text", "product", "status", "application")}
        return {
            "rows": part.rows,
            "wanted": wanted,
            "filters": filters,
            "applications": scope.choices,
            "chosen": scope.chosen,
            "with_dates": True,
            "is_filtered": any(filters.values()),
            "next_url": _page_url(filters, wanted, {"after": following}) if following else "",
            "first_url": _page_url(filters, wanted, {}) if wanted.after else "",
            "sort_url": lambda sort: _page_url(filters, wanted, {"sort": sort}),
            "addable": next((each for each in scope.choices if visitor.may_change(each)), None),
        }

    async def _scope(self, connection: Connection, request: web.Request) -> _Scope:
        visitor = visitor_of(request)
        organisations = visitor.visible_organisation_ids
        choices = await applications.list_visible(connection, organisations, most=_LISTED_APPLICATIONS)
        chosen = request.query.get("application") or None
        if chosen is None:
            ids = None if organisations is None else await applications.list_visible_ids(connection, organisations)
            return _Scope(choices, None, ids)
        application = await applications.get_application(connection, chosen)
        if application is None:
            raise web.HTTPNotFound
        visitor.require(Permission.VIEW, application.organisation_id)
        if application.id not in {each.id for each in choices}:
            choices = [application, *choices]
        return _Scope(choices, chosen, [application.id])


def _wanted(query: MultiMapping[str], ids: list[str] | None) -> Wanted:
    """Unknown values are as good as none: the addresses of lists are kept and passed on."""
    product, status = query.get("product"), query.get("status")
    sort: Sort = next((each for each in SORTS if each == query.get("sort")), "name")
    return Wanted(
        ids,
        text=query.get("text", "").strip().lower().rstrip(".")[:253],
        product=next((each for each in PRODUCTS if each == product), None),
        status=next((each for each in STATUSES if each == status), None),
        sort=sort,
        after=_key(query, sort),
        limit=_LISTED,
    )


def _key(query: MultiMapping[str], sort: Sort) -> ListKey | None:
    try:
        return from_text(query["after"], sort) if "after" in query else None
    except ValueError:
        return None


def _page_url(filters: Mapping[str, str], wanted: Wanted, more: Mapping[str, str]) -> str:
    query = {"sort": wanted.sort, **filters, **more}
    return f"{ROOT}/domains?{urlencode({name: value for name, value in query.items() if value})}"
