"""Handlers of ``/power``: they parse, call the service and respond."""

from __future__ import annotations

from aiohttp import web

from api.answers.power import power_eligibility, powered_domain
from api.handlers.products import ProductDomains
from api.requests import application_of, read_body
from api.responses import respond, respond_message
from api.schemas.bodies import ProductBody
from api.schemas.power import PowerBody, PowerChange
from api.schemas.queries import parse_eligibility_query
from api.services.power import PowerService

POWERED = "Domain successfully powered."
UPDATED = "Domain successfully updated."
REMOVED = "Domain successfully deleted."


class PowerHandlers:
    """Handlers of powered domains."""

    def __init__(self, service: PowerService) -> None:
        self._service = service
        self._domains = ProductDomains("power", service.enrolment, powered_domain)

    async def get(self, request: web.Request) -> web.Response:
        """List powered domains, or answer whether one is eligible."""
        if "domain" not in request.query:
            return await self._domains.respond_list(request)
        name = parse_eligibility_query(request.query)
        return respond(power_eligibility(await self._service.check_eligibility(application_of(request), name)))

    async def post(self, request: web.Request) -> web.Response:
        """Power a domain."""
        body = await read_body(request, PowerBody)
        noted = await self._service.power(application_of(request), body)
        return await self._domains.respond_changed(request, body.domain, POWERED, noted)

    async def put(self, request: web.Request) -> web.Response:
        """Change a powered domain."""
        body = await read_body(request, PowerChange)
        noted = await self._service.update(application_of(request), body)
        return await self._domains.respond_changed(request, body.domain, UPDATED, noted)

    async def delete(self, request: web.Request) -> web.Response:
        """Power a domain no longer."""
        body = await read_body(request, ProductBody)
        noted = await self._service.remove(application_of(request), body.domain)
        return respond_message(REMOVED, notices=noted)
