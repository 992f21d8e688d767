"""A monitored name: its records, the answers of the last check, and its history."""

from __future__ import annotations

from typing import Any

from aiohttp import web

from api.answers.monitor import dns_records, last_check
from api.dashboard.access import find_application, load_application, name_of
from api.dashboard.application_view import ApplicationView, parse_body
from api.dashboard.browser import ROOT
from api.dashboard.context import DashboardContext
from api.dashboard.live import into, stream
from api.dashboard.middlewares import text_of
from api.dashboard.rendering import Flash
from api.dashboard.renderings import LivePart
from api.errors import Refused
from api.schemas.monitor_bodies import UnwatchBody
from common.accounts import Permission
from common.db import events
from common.db.applications import Application
from common.db.monitored_domains import MonitoredKey
from common.names import DomainName

_EVENTS = 20
_PARTS = ("state", "when", "records", "history")


class MonitoredPages:
    """Pages of monitored domains. One instance per process."""

    def __init__(self, context: DashboardContext) -> None:
        self._context = context
        self._view = ApplicationView(context)

    async def get(self, request: web.Request) -> web.StreamResponse:
        """Show a monitored domain."""
        application = await find_application(self._context, request)
        return self._view.page(
            request, "monitored.html", application, **await self._read(application, name_of(request))
        )

    async def get_live(self, request: web.Request) -> web.StreamResponse:
        """All that a check changes."""
        name = name_of(request)

        async def parts() -> tuple[LivePart, ...]:
            application = await find_application(self._context, request)
            given, tenant = (application.id, name), application.organisation_id or ""
            return (LivePart(self._checked, given, tenant, self._context.live.monitored),)

        return await stream(self._context, request, parts)

    async def _checked(self, application_id: str, name: DomainName) -> str:
        application = await load_application(self._context, application_id)
        values = await self._read(application, name) | {"application": application}
        fragment = self._context.renderer.fragment
        return "".join(into(f"monitored-{part}", fragment(f"_monitored_{part}.html", **values)) for part in _PARTS)

    async def post(self, request: web.Request) -> web.StreamResponse:
        """Monitor a domain no longer."""
        application = await find_application(self._context, request, Permission.CHANGE)
        name = name_of(request)
        if text_of(request, "action") != "remove":
            raise web.HTTPBadRequest
        self._view.require_typed(request, name)
        body = parse_body(UnwatchBody, {"domain": name.registrable, "subdomain": name.subdomain or None})
        await self._context.monitor.unwatch(application, body)
        flash = Flash(f"{name} is checked no more.")
        return self._context.renderer.redirect(f"{ROOT}/domains?application={application.id}", flash)

    async def _read(self, application: Application, name: DomainName) -> dict[str, Any]:
        """Return what the templates show. Raises: HTTPNotFound."""
        key = MonitoredKey(application.id, name.registrable, name.subdomain or None)
        try:
            monitored = await self._context.monitor.find(key)
            check = last_check(key, await self._context.monitor.find_last_check(key))
        except Refused as error:
            raise web.HTTPNotFound from error
        async with self._context.database.connection() as connection:
            found = await events.list_events(connection, application.id, before=None, limit=50, domain=key.domain)
        own = [each for each in found if (each.subdomain or None) == key.subdomain]
        missing = dns_records(monitored.records_missing or [])
        return {
            "name": name,
            "monitored": monitored,
            "records": [(record, record not in missing) for record in dns_records(monitored.dns_records)],
            "check": check,
            "events": own[:_EVENTS],
        }
