"""The operators' page: what runs, what is due, certificates by days left, the CA's limits, and what fails."""

from __future__ import annotations

from aiohttp import web

from api.dashboard.context import DashboardContext
from api.dashboard.live import into, stream
from api.dashboard.renderings import LivePart
from api.dashboard.visitors import visitor_of
from api.services.installation import FRESH_SECONDS
from common.installation_problems import list_problems


class OperationsPages:
    """The page of the installation. One instance per process."""

    def __init__(self, context: DashboardContext) -> None:
        self._context = context

    async def get(self, request: web.Request) -> web.StreamResponse:
        """Show the state of the installation."""
        visitor_of(request).require_operator()
        return self._context.renderer.page(request, "operations.html", content=await self._html())

    async def get_live(self, request: web.Request) -> web.StreamResponse:
        """Send the state of the installation as it changes."""

        async def parts() -> tuple[LivePart, ...]:
            visitor_of(request).require_operator()
            return (LivePart(self._installation, (), visitor_of(request).roles.tenant, FRESH_SECONDS),)

        return await stream(self._context, request, parts)

    async def _installation(self) -> str:
        return into("operations", await self._html())

    async def _html(self) -> str:
        status = await self._context.installation.read()
        return self._context.renderer.fragment("_operations.html", status=status, problems=list_problems(status))
