"""Domains that an application gave up, and whose DNS still leads here."""

from __future__ import annotations

from aiohttp import web

from api.dashboard.access import find_application
from api.dashboard.application_view import ApplicationView
from api.dashboard.context import DashboardContext
from api.services.ended_domains import MOST_LISTED
from common.errors import InvalidName
from common.names import parse_enrollable


class EndedDomainsPage:
    """The page of ended domains. One instance per process."""

    def __init__(self, context: DashboardContext) -> None:
        self._context = context
        self._view = ApplicationView(context)

    async def get(self, request: web.Request) -> web.StreamResponse:
        """List the domains that ended, by name, each asked about now."""
        application = await find_application(self._context, request)
        after = request.query.get("after", "")
        try:
            begin = parse_enrollable(after).text if after else ""
        except InvalidName as error:
            raise web.HTTPNotFound from error
        found = await self._context.ended_domains.list_part(application, after=begin, limit=MOST_LISTED)
        return self._view.page(
            request,
            "ended_domains.html",
            application,
            ended=found,
            next_url=f"{request.path}?after={found[-1].domain}" if len(found) == MOST_LISTED else "",
            first_url=request.path if begin else "",
        )
