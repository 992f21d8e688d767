"""Handlers of ``/domains/:domain/prepare``."""

from __future__ import annotations

from aiohttp import web

from api.answers.preparation import preparation_answer
from api.requests import application_of, read_body
from api.responses import respond, respond_message
from api.schemas import queries
from api.schemas.preparation import PrepareBody
from api.services.preparations import PreparationService

ENDED = "Domain is prepared no longer."


class PreparationHandlers:
    """Handlers of prepared domains."""

    def __init__(self, service: PreparationService) -> None:
        self._service = service

    async def get(self, request: web.Request) -> web.Response:
        """Show how far a prepared domain is."""
        name = queries.parse_name(request.match_info["domain"])
        return respond(preparation_answer(await self._service.find(application_of(request), name)))

    async def post(self, request: web.Request) -> web.Response:
        """Prepare a domain."""
        name = queries.parse_name(request.match_info["domain"])
        body = await read_body(request, PrepareBody)
        application, wanted = application_of(request), body.as_request(name)
        prepared, notices = await self._service.prepare(application, wanted, awaits_dns=body.await_dns)
        return respond(preparation_answer(prepared, notices))

    async def delete(self, request: web.Request) -> web.Response:
        """Prepare a domain no longer."""
        name = queries.parse_name(request.match_info["domain"])
        await self._service.end(application_of(request), name)
        return respond_message(ENDED)
