"""``/webhooks/…``: parse, serve, render."""

from __future__ import annotations

from aiohttp import web

from api.requests import application_of, read_body
from api.schemas import answers
from api.schemas import webhooks as schemas
from api.services.webhooks import MOST_REPLAYED, WebhookService

REPLAYED = "Event will be sent again."
REPLAYING = "Deliveries will be sent again."
TESTED = "Test event will be sent."
ENABLED = "Webhook enabled."


class WebhookHandlers:
    def __init__(self, service: WebhookService) -> None:
        self._service = service

    async def get_events(self, request: web.Request) -> web.Response:
        query = schemas.parse_events_query(request.query)
        found = await self._service.list_events(application_of(request), query)
        return answers.respond(schemas.events_page(found, query))

    async def get_deliveries(self, request: web.Request) -> web.Response:
        query = schemas.parse_deliveries_query(request.query)
        found = await self._service.list_deliveries(application_of(request), query)
        return answers.respond(schemas.deliveries_page(found, query))

    async def replay(self, request: web.Request) -> web.Response:
        await self._service.replay(application_of(request), request.match_info["id"])
        return answers.message(REPLAYED, 202)

    async def replay_range(self, request: web.Request) -> web.Response:
        body = await read_body(request, schemas.ReplayBody)
        count = await self._service.replay_range(application_of(request), body)
        return answers.respond({"message": REPLAYING, "replayed": count, "more": count == MOST_REPLAYED}, 202)

    async def test(self, request: web.Request) -> web.Response:
        event_id = await self._service.send_test(application_of(request))
        return answers.respond({"message": TESTED, "id": event_id}, 202)

    async def get_endpoint(self, request: web.Request) -> web.Response:
        application = application_of(request)
        state = await self._service.get_endpoint(application)
        return answers.respond(schemas.endpoint(application.webhook_url, state))

    async def enable(self, request: web.Request) -> web.Response:
        await self._service.enable(application_of(request))
        return answers.message(ENABLED)
