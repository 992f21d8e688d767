"""The overview: what needs attention, and what happened last."""

from __future__ import annotations

from aiohttp import web

from api.dashboard.context import DashboardContext
from api.dashboard.visitors import visitor_of
from common.db import applications, audit, domain_list
from common.db.domain_list import Wanted

_ATTENTION = 8
_LATEST = 8


class HomePage:
    def __init__(self, context: DashboardContext) -> None:
        self._context = context

    async def get(self, request: web.Request) -> web.StreamResponse:
        visitor = visitor_of(request)
        organisations = visitor.visible_organisation_ids
        async with self._context.database.connection() as connection:
            ids = None if organisations is None else await applications.list_visible_ids(connection, organisations)
            some = await applications.list_visible(connection, organisations, most=6)
            totals = await domain_list.count_domains(connection, ids)
            part = await domain_list.list_part(connection, Wanted(ids, status="problem", limit=_ATTENTION))
            latest = await audit.list_entries(connection, before=None, limit=_LATEST, organisation_ids=organisations)
        return self._context.renderer.page(
            request, "home.html", applications=some, totals=totals, attention=part.rows, latest=latest
        )
