"""A domain that is being prepared: its steps, ticked off as they happen, and its end."""

from __future__ import annotations

from aiohttp import web

from api.dashboard.access import find_application, load_application, name_of
from api.dashboard.application_view import ApplicationView
from api.dashboard.browser import ROOT
from api.dashboard.context import DashboardContext
from api.dashboard.live import into, stream
from api.dashboard.rendering import Flash
from api.dashboard.renderings import LivePart
from api.services.preparations import PreparedDomain
from common.accounts import Permission
from common.db.applications import Application
from common.names import DomainName


class PreparedPages:
    """The page of a prepared domain. One instance per process."""

    def __init__(self, context: DashboardContext) -> None:
        self._context = context
        self._view = ApplicationView(context)

    async def get(self, request: web.Request) -> web.StreamResponse:
        """Show the steps of a prepared domain."""
        application, name = await find_application(self._context, request), name_of(request)
        prepared = await self._context.preparations.find(application, name)
        return self._view.page(
            request,
            "prepared.html",
            application,
            name=name,
            is_pending=prepared.preparation.awaits_dns,
            steps_html=self._steps_of(application, prepared),
        )

    async def get_live(self, request: web.Request) -> web.StreamResponse:
        """Send the steps whenever they change."""
        name = name_of(request)

        async def parts() -> tuple[LivePart, ...]:
            application = await find_application(self._context, request)
            given, tenant = (application.id, name), application.organisation_id or ""
            return (LivePart(self._steps, given, tenant, self._context.live.prepared),)

        return await stream(self._context, request, parts)

    async def end(self, request: web.Request) -> web.StreamResponse:
        """Prepare the domain no longer."""
        application = await find_application(self._context, request, Permission.CHANGE)
        name = name_of(request)
        await self._context.preparations.end(application, name)
        flash = Flash(f"{name} is awaited no longer.")
        return self._context.renderer.redirect(f"{ROOT}/domains?application={application.id}", flash)

    async def _steps(self, application_id: str, name: DomainName) -> str:
        return into("steps", await self._steps_html(application_id, name))

    async def _steps_html(self, application_id: str, name: DomainName) -> str:
        application = await load_application(self._context, application_id)
        return self._steps_of(application, await self._context.preparations.find(application, name))

    def _steps_of(self, application: Application, prepared: PreparedDomain) -> str:
        return self._context.renderer.fragment(
            "_pending.html" if prepared.preparation.awaits_dns else "_prepared.html",
            prepared=prepared,
            it=prepared.preparation,
            url=f"{ROOT}/applications/{application.id}/domains/{prepared.domain}",
            try_out=self._context.preparations.try_out(prepared.domain),
        )
