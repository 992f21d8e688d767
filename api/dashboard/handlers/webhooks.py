"""Webhooks of an application: deliveries with what was sent and answered, sending again, and tests."""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Any, get_args

from aiohttp import web

from api.answers.webhooks import shown_payload
from api.dashboard import words
from api.dashboard.access import find_application
from api.dashboard.application_view import ApplicationView
from api.dashboard.browser import ROOT
from api.dashboard.context import DashboardContext
from api.dashboard.live import into, stream
from api.dashboard.middlewares import text_of
from api.dashboard.rendering import Flash
from api.dashboard.renderings import LivePart
from api.dashboard.visitors import visitor_of
from api.errors import WEBHOOK_DISABLED, Refused
from api.schemas.webhooks import ReplayBody, is_event_id
from api.services.webhooks import Replayed
from common.accounts import Permission
from common.db import deliveries, events, monitor_nodes, webhook_endpoints
from common.db.applications import Application
from common.db.deliveries import Status
from common.db.session import Connection
from common.endpoint_health import disables_at

_LISTED = 50
_STATUSES: tuple[Status, ...] = get_args(Status)
_REFUSED = {WEBHOOK_DISABLED: "Nothing was sent: the endpoint is disabled. Enable it first."}
_REPLAY_HOURS = {"1": 1, "24": 24, "168": 168, "720": 720}


class WebhookPages:
    """Pages of events and deliveries. One instance per process."""

    def __init__(self, context: DashboardContext) -> None:
        self._context = context
        self._view = ApplicationView(context)

    async def list_all(self, request: web.Request) -> web.StreamResponse:
        """List the deliveries of an application."""
        application = await find_application(self._context, request)
        async with self._context.database.connection() as connection:
            endpoint = await webhook_endpoints.get_endpoint(connection, application.id)
            values = await self._read(connection, application.id, *_wanted(request))
        return self._view.page(
            request,
            "webhooks.html",
            application,
            endpoint=endpoint,
            disables_at=disables_at(endpoint),
            live_url=f"{request.path}/live?{request.query_string}",
            statuses=_STATUSES,
            **values,
        )

    async def get_live(self, request: web.Request) -> web.StreamResponse:
        """How the endpoint fares, and the same part of the deliveries."""
        wanted = _wanted(request)

        async def parts() -> tuple[LivePart, ...]:
            application = await find_application(self._context, request)
            tenant = application.organisation_id or ""
            return (
                LivePart(self._endpoint, (application.id,), tenant, self._context.live.deliveries),
                LivePart(self._deliveries, (application.id, *wanted), tenant, self._context.live.deliveries),
            )

        return await stream(self._context, request, parts)

    async def _endpoint(self, application_id: str) -> str:
        async with self._context.database.connection() as connection:
            endpoint = await webhook_endpoints.get_endpoint(connection, application_id)
        values = {"endpoint": endpoint, "disables_at": disables_at(endpoint)}
        fragment = self._context.renderer.fragment
        status, note = fragment("_endpoint_status.html", **values), fragment("_endpoint_note.html", **values)
        return into("endpoint-status", status) + into("endpoint-note", note)

    async def _deliveries(self, application_id: str, status: Status | None, before: str | None) -> str:
        async with self._context.database.connection() as connection:
            values = await self._read(connection, application_id, status, before)
        return into("deliveries-list", self._context.renderer.fragment("_deliveries.html", **values))

    async def _read(
        self, connection: Connection, application_id: str, status: Status | None, before: str | None
    ) -> dict[str, Any]:
        """Return what the list shows."""
        found = await deliveries.list_deliveries(
            connection, application_id, before=before, limit=_LISTED, status=status
        )
        return {
            "deliveries": found,
            "wanted_status": status,
            "last": found[-1].event_id if len(found) == _LISTED else None,
            "is_first": before is None,
            "url": f"{ROOT}/applications/{application_id}/webhooks",
        }

    async def get(self, request: web.Request) -> web.StreamResponse:
        """Show an event and its delivery."""
        application = await find_application(self._context, request)
        event_id = _event_id(request)
        async with self._context.database.connection() as connection:
            event = await events.get_event(connection, application.id, event_id)
            values = await _read_one(connection, application.id, event_id)
        if event is None:
            raise web.HTTPNotFound
        payload = shown_payload(event, shows_links=visitor_of(request).may_change(application))
        return self._view.page(request, "delivery.html", application, event=event, payload=payload, **values)

    async def get_one_live(self, request: web.Request) -> web.StreamResponse:
        """Send the status and the attempts of one delivery as they change."""
        event_id = _event_id(request)

        async def parts() -> tuple[LivePart, ...]:
            application = await find_application(self._context, request)
            given = (application.id, event_id)
            return (LivePart(self._delivery, given, application.organisation_id or "", self._context.live.delivery),)

        return await stream(self._context, request, parts)

    async def _delivery(self, application_id: str, event_id: str) -> str:
        async with self._context.database.connection() as connection:
            values = await _read_one(connection, application_id, event_id)
        status = self._context.renderer.fragment("_delivery_status.html", **values)
        attempts = self._context.renderer.fragment("_attempts.html", **values)
        return into("delivery-status", status) + into("attempts-body", attempts)

    async def post(self, request: web.Request) -> web.StreamResponse:
        """Do what a form of the page asks for."""
        application = await find_application(self._context, request, Permission.CHANGE)
        base = f"{ROOT}/applications/{application.id}/webhooks"
        try:
            location, flash = await self._act(request, application, base)
        except Refused as error:
            location, flash = base, Flash(_REFUSED.get(error.refusal, error.refusal.message), "bad")
        return self._context.renderer.redirect(location, flash)

    async def _act(self, request: web.Request, application: Application, base: str) -> tuple[str, Flash]:
        """Do what the form asks for; return where to go, and what to tell the visitor. Raises: `Refused`."""
        webhooks = self._context.webhooks
        match text_of(request, "action"):
            case "test":
                event_id = await webhooks.send_test(application)
                return f"{base}/{event_id}", Flash("A test event is on its way: its answer will stand below.")
            case "enable":
                return base, Flash(_hurried(await webhooks.enable(application)))
            case "replay":
                event_id = text_of(request, "event")
                await webhooks.replay(application, event_id)
                return f"{base}/{event_id}", Flash("It is sent again now.")
            case "replay_failed" if (hours := _REPLAY_HOURS.get(text_of(request, "hours"))) is not None:
                since = self._context.clock.now() - timedelta(hours=hours)
                body = ReplayBody.model_validate({"from": since.isoformat()})
                return base, _replayed(await webhooks.replay_range(application, body))
            case _:
                raise web.HTTPBadRequest


def _hurried(count: int) -> str:
    if not count:
        return "The endpoint is in use. Nothing had waited for it."
    return f"{words.count(count, 'delivery', 'deliveries')} that had waited {'is' if count == 1 else 'are'} sent now."


def _replayed(replayed: Replayed) -> Flash:
    count, is_part = replayed
    if not count:
        return Flash("Nothing of that time has failed for good: what is pending is still tried by itself.", "warn")
    sent = f"{words.count(count, 'failed delivery', 'failed deliveries')} {'is' if count == 1 else 'are'} sent again."
    return Flash(f"{sent} There may be more: send them again too." if is_part else sent, "warn" if is_part else "good")


def _event_id(request: web.Request) -> str:
    """Return the id of the event in the path. Raises: HTTPNotFound."""
    event_id = request.match_info["event"]
    if not is_event_id(event_id):
        raise web.HTTPNotFound
    return event_id


async def _read_one(connection: Connection, application_id: str, event_id: str) -> dict[str, Any]:
    """Return the delivery of an event, its attempts, and whether a monitor runs that sends it.

    The delivery is None where the event had none.
    """
    found = await deliveries.list_deliveries(connection, application_id, before=None, limit=1, event_id=event_id)
    delivery = found[0] if found else None
    attempts = [{**each, "at": datetime.fromisoformat(each["at"])} for each in delivery.log] if delivery else []
    is_sent = await monitor_nodes.is_delivering(connection)
    return {"delivery": delivery, "attempts": attempts, "is_sent": is_sent}


def _wanted(request: web.Request) -> tuple[Status | None, str | None]:
    """Return the status of the deliveries to list, and the one that they come before.

    Raises: HTTPNotFound.
    """
    status = next((each for each in _STATUSES if each == request.query.get("status")), None)
    before = request.query.get("before") or None
    if before is not None and not is_event_id(before):
        raise web.HTTPNotFound
    return status, before
