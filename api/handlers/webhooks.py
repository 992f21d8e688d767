"""Handlers of ``/webhooks``: they parse, call the service and respond."""

from __future__ import annotations

from aiohttp import web

from api.answers import webhooks as answers
from api.auth import may_change
from api.requests import application_of, read_body
from api.responses import respond, respond_message
from api.schemas import webhooks as schemas
from api.services.webhooks import WebhookService

REPLAYED = "Event will be sent again."
REPLAYING = "Deliveries will be sent again."
TESTED = "Test event will be sent."
ENABLED = "Webhook enabled."


class WebhookHandlers:
    """Handlers of events, deliveries and the endpoint."""

    def __init__(self, service: WebhookService) -> None:
        self._service = service

    async def get_events(self, request: web.Request) -> web.Response:
        """List events, newest first."""
        query = schemas.parse_events_query(request.query)
        application = application_of(request)
        found = await self._service.list_events(application, query)
        return respond(answers.events_page(found, query.limit, shows_links=may_change(request, application)))

    async def get_deliveries(self, request: web.Request) -> web.Response:
        """List deliveries, newest first."""
        query = schemas.parse_deliveries_query(request.query)
        found = await self._service.list_deliveries(application_of(request), query)
        return respond(answers.deliveries_page(found, query.limit))

    async def replay(self, request: web.Request) -> web.Response:
        """Send an event again."""
        await self._service.replay(application_of(request), request.match_info["id"])
        return respond_message(REPLAYED, 202)

    async def replay_range(self, request: web.Request) -> web.Response:
        """Send again what failed in a range of time."""
        body = await read_body(request, schemas.ReplayBody)
        count, has_more = await self._service.replay_range(application_of(request), body)
        answer: answers.Replay = {"message": REPLAYING, "replayed": count, "more": has_more}
        return respond(answer, 202)

    async def test(self, request: web.Request) -> web.Response:
        """Send a test event."""
        event_id = await self._service.send_test(application_of(request))
        answer: answers.TestEvent = {"message": TESTED, "id": event_id}
        return respond(answer, 202)

    async def get_endpoint(self, request: web.Request) -> web.Response:
        """Show how the endpoint fares."""
        application = application_of(request)
        state = await self._service.get_endpoint(application)
        shows_query = may_change(request, application)
        return respond(answers.endpoint(application.webhook_url, state, shows_query=shows_query))

    async def enable(self, request: web.Request) -> web.Response:
        """Enable the endpoint."""
        await self._service.enable(application_of(request))
        return respond_message(ENABLED)
