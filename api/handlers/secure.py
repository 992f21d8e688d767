"""Handlers of ``/ssl``: they parse, call the service and respond."""

from __future__ import annotations

from aiohttp import web

from api.answers.lists import page_of, part_of
from api.answers.secure import detailed_secured_domain, secured_domain, ssl_eligibility
from api.requests import application_of, read_body
from api.responses import respond, respond_message
from api.schemas import list_cursor, queries
from api.schemas.secure import SecureBody, SecureChange, SecureRemoval
from api.services.secure import SecureService
from common.db.applications import Application

SECURED = "Domain successfully secured. Its certificate is on its way."
RENEWING = "Renewal of the certificate has begun."
UPDATED = "Domain successfully updated."
REMOVED = "Domain successfully deleted."


class SecureHandlers:
    """Handlers of secured domains."""

    def __init__(self, service: SecureService) -> None:
        self._service = service

    async def get(self, request: web.Request) -> web.Response:
        """List secured domains, or answer whether one is eligible."""
        application = application_of(request)
        if "domain" in request.query:
            return await self._get_eligibility(request, application)
        return await self._get_list(request, application)

    async def post(self, request: web.Request) -> web.Response:
        """Secure a domain."""
        body = await read_body(request, SecureBody)
        noted = await self._service.secure(application_of(request), body)
        return respond_message(SECURED, notices=noted)

    async def put(self, request: web.Request) -> web.Response:
        """Change a secured domain, or renew its certificate."""
        body = await read_body(request, SecureChange)
        has_changed, noted = await self._service.change(application_of(request), body)
        return respond_message(UPDATED if has_changed else RENEWING, notices=noted)

    async def delete(self, request: web.Request) -> web.Response:
        """Secure a domain no longer."""
        body = await read_body(request, SecureRemoval)
        noted = await self._service.remove(application_of(request), body)
        return respond_message(REMOVED, notices=noted)

    async def _get_list(self, request: web.Request, application: Application) -> web.Response:
        query = queries.parse_list_query(request.query)
        if isinstance(query, queries.PartQuery):
            part = await self._service.list_part(application, query)
            following = list_cursor.to_text(part.next, query.sort)
            return respond(part_of(list(map(detailed_secured_domain, part.items)), following, query))
        page = await self._service.list_page(application, query)
        return respond(page_of(list(map(secured_domain, page.items)), page.total, query))

    async def _get_eligibility(self, request: web.Request, application: Application) -> web.Response:
        name = queries.parse_eligibility_query(request.query)
        return respond(ssl_eligibility(await self._service.check_eligibility(application, name)))
