"""Handlers of ``/ssl``: they parse, call the service and respond."""

from __future__ import annotations

from aiohttp import web

from api.answers.secure import secured_domain, ssl_eligibility
from api.handlers.products import ProductDomains
from api.requests import application_of, read_body
from api.responses import respond, respond_message
from api.schemas.queries import parse_eligibility_query
from api.schemas.secure import SecureBody, SecureChange, SecureRemoval
from api.services.secure import SecureService

SECURED = "Domain successfully secured. Its certificate is on its way."
RENEWING = "Renewal of the certificate has begun."
UPDATED = "Domain successfully updated."
REMOVED = "Domain successfully deleted."


class SecureHandlers:
    """Handlers of secured domains."""

    def __init__(self, service: SecureService) -> None:
        self._service = service
        self._domains = ProductDomains("secure", service.enrolment, secured_domain)

    async def get(self, request: web.Request) -> web.Response:
        """List secured domains, or answer whether one is eligible."""
        if "domain" not in request.query:
            return await self._domains.respond_list(request)
        name = parse_eligibility_query(request.query)
        return respond(ssl_eligibility(await self._service.check_eligibility(application_of(request), name)))

    async def post(self, request: web.Request) -> web.Response:
        """Secure a domain."""
        body = await read_body(request, SecureBody)
        noted = await self._service.secure(application_of(request), body)
        return await self._domains.respond_changed(request, body.domain, SECURED, noted)

    async def put(self, request: web.Request) -> web.Response:
        """Change a secured domain, or renew its certificate."""
        body = await read_body(request, SecureChange)
        has_changed, noted = await self._service.change(application_of(request), body)
        return await self._domains.respond_changed(request, body.domain, UPDATED if has_changed else RENEWING, noted)

    async def delete(self, request: web.Request) -> web.Response:
        """Secure a domain no longer."""
        body = await read_body(request, SecureRemoval)
        noted = await self._service.remove(application_of(request), body)
        return respond_message(REMOVED, notices=noted)
