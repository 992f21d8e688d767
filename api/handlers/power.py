"""Handlers of ``/power``: they parse, call the service and respond."""

from __future__ import annotations

from aiohttp import web

from api.answers.lists import page_of, part_of
from api.answers.power import detailed_powered_domain, power_eligibility, powered_domain
from api.requests import application_of, read_body
from api.responses import respond, respond_message
from api.schemas import list_cursor, queries
from api.schemas.bodies import ProductBody
from api.schemas.power import PowerBody, PowerChange
from api.services.power import PowerService
from common.db.applications import Application

POWERED = "Domain successfully powered."
UPDATED = "Domain successfully updated."
REMOVED = "Domain successfully deleted."


class PowerHandlers:
    """Handlers of powered domains."""

    def __init__(self, service: PowerService) -> None:
        self._service = service

    async def get(self, request: web.Request) -> web.Response:
        """List powered domains, or answer whether one is eligible."""
        application = application_of(request)
        if "domain" in request.query:
            return await self._get_eligibility(request, application)
        return await self._get_list(request, application)

    async def post(self, request: web.Request) -> web.Response:
        """Power a domain."""
        body = await read_body(request, PowerBody)
        noted = await self._service.power(application_of(request), body)
        return respond_message(POWERED, notices=noted)

    async def put(self, request: web.Request) -> web.Response:
        """Change a powered domain."""
        body = await read_body(request, PowerChange)
        noted = await self._service.update(application_of(request), body)
        return respond_message(UPDATED, notices=noted)

    async def delete(self, request: web.Request) -> web.Response:
        """Power a domain no longer."""
        body = await read_body(request, ProductBody)
        noted = await self._service.remove(application_of(request), body.domain)
        return respond_message(REMOVED, notices=noted)

    async def _get_list(self, request: web.Request, application: Application) -> web.Response:
        query = queries.parse_list_query(request.query)
        if isinstance(query, queries.PartQuery):
            part = await self._service.list_part(application, query)
            following = list_cursor.to_text(part.next, query.sort)
            return respond(part_of(list(map(detailed_powered_domain, part.items)), following, query))
        page = await self._service.list_page(application, query)
        return respond(page_of(list(map(powered_domain, page.items)), page.total, query))

    async def _get_eligibility(self, request: web.Request, application: Application) -> web.Response:
        name = queries.parse_eligibility_query(request.query)
        return respond(power_eligibility(await self._service.check_eligibility(application, name)))
