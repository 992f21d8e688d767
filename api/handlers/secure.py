"""Handlers of ``/ssl``: they parse, call the service and respond."""

from __future__ import annotations

from aiohttp import web

from api.answers.lists import page_of, part_of
from api.answers.secure import secured_domain, ssl_eligibility
from api.notices import Notice
from api.requests import application_of, prefers_representation, read_body
from api.responses import respond, respond_change, respond_message
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
        return await self._respond(request, body.domain, SECURED, noted)

    async def put(self, request: web.Request) -> web.Response:
        """Change a secured domain, or renew its certificate."""
        body = await read_body(request, SecureChange)
        has_changed, noted = await self._service.change(application_of(request), body)
        return await self._respond(request, body.domain, UPDATED if has_changed else RENEWING, noted)

    async def delete(self, request: web.Request) -> web.Response:
        """Secure a domain no longer."""
        body = await read_body(request, SecureRemoval)
        noted = await self._service.remove(application_of(request), body)
        return respond_message(REMOVED, notices=noted)

    async def _respond(self, request: web.Request, domain: str, text: str, noted: list[Notice]) -> web.Response:
        """Answer a change with its message, or with the domain where the client prefers that (RFC 7240 §4.2)."""
        if prefers_representation(request):
            changed = await self._service.enrolment.find_listed(application_of(request), "secure", domain)
            if changed is not None:
                return respond_change(secured_domain(changed), noted)
        return respond_message(text, notices=noted)

    async def _get_list(self, request: web.Request, application: Application) -> web.Response:
        query = queries.parse_list_query(request.query)
        if isinstance(query, queries.PartQuery):
            part = await self._service.list_part(application, query)
            following = list_cursor.to_text(part.next, query.sort)
            return respond(part_of(list(map(secured_domain, part.items)), following, query))
        page = await self._service.list_page(application, query)
        return respond(page_of(list(map(secured_domain, page.items)), page.total, query))

    async def _get_eligibility(self, request: web.Request, application: Application) -> web.Response:
        name = queries.parse_eligibility_query(request.query)
        return respond(ssl_eligibility(await self._service.check_eligibility(application, name)))
