"""The operators' page: what runs, what is due, certificates by days left, the CA's limits, and what fails."""

from __future__ import annotations

from aiohttp import web

from api.dashboard.context import DashboardContext
from api.dashboard.live import Part, into, stream
from api.dashboard.visitors import visitor_of
from api.services.installation import FRESH_SECONDS


class OperationsPages:
    """One a process."""

    def __init__(self, context: DashboardContext) -> None:
        self._context = context

    async def get(self, request: web.Request) -> web.StreamResponse:
        return self._context.renderer.page(request, "operations.html", content=await self._html(request))

    async def get_live(self, request: web.Request) -> web.StreamResponse:
        visitor_of(request).require_operator()

        async def render() -> str:
            return into("operations", await self._html(request))

        return await stream(self._context, request, Part(render, every=FRESH_SECONDS))

    async def _html(self, request: web.Request) -> str:
        visitor_of(request).require_operator()
        status = await self._context.installation.read()
        return self._context.renderer.fragment(request, "_operations.html", status=status)
