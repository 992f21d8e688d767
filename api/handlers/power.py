"""Handlers of ``/power``: they parse, call the service and respond."""

from __future__ import annotations

from aiohttp import web

from api.answers.lists import page_of, part_of
from api.answers.power import power_eligibility, powered_domain
from api.notices import Notice
from api.requests import application_of, prefers_representation, read_body
from api.responses import respond, respond_change, respond_message
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
        return await self._respond(request, body.domain, POWERED, noted)

    async def put(self, request: web.Request) -> web.Response:
        """Change a powered domain."""
        body = await read_body(request, PowerChange)
        noted = await self._service.update(application_of(request), body)
        return await self._respond(request, body.domain, UPDATED, noted)

    async def delete(self, request: web.Request) -> web.Response:
        """Power a domain no longer."""
        body = await read_body(request, ProductBody)
        noted = await self._service.remove(application_of(request), body.domain)
        return respond_message(REMOVED, notices=noted)

    async def _respond(self, request: web.Request, domain: str, text: str, noted: list[Notice]) -> web.Response:
        """Answer a change with its message, or with the domain where the client prefers that (RFC 7240 §4.2)."""
        if prefers_representation(request):
            changed = await self._service.enrolment.find_listed(application_of(request), "power", domain)
            if changed is not None:
                return respond_change(powered_domain(changed), noted)
        return respond_message(text, notices=noted)

    async def _get_list(self, request: web.Request, application: Application) -> web.Response:
        query = queries.parse_list_query(request.query)
        if isinstance(query, queries.PartQuery):
            part = await self._service.list_part(application, query)
            following = list_cursor.to_text(part.next, query.sort)
            return respond(part_of(list(map(powered_domain, part.items)), following, query))
        page = await self._service.list_page(application, query)
        return respond(page_of(list(map(powered_domain, page.items)), page.total, query))

    async def _get_eligibility(self, request: web.Request, application: Application) -> web.Response:
        name = queries.parse_eligibility_query(request.query)
        return respond(power_eligibility(await self._service.check_eligibility(application, name)))
