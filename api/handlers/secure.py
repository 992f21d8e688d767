"""``/ssl``: parse, serve, render."""

from __future__ import annotations

from aiohttp import web

from api.requests import application_of, read_body
from api.schemas import answers, list_cursor, queries
from api.schemas.domain_details import details
from api.schemas.secure import SecureBody, SecureChange, SecureRemoval, secured_domain
from api.services.secure import SecureService
from common.db.applications import Application

SECURED = "Domain successfully secured. Its certificate is on its way."
RENEWING = "Renewal of the certificate has begun."
UPDATED = "Domain successfully updated."
REMOVED = "Domain successfully deleted."


class SecureHandlers:
    def __init__(self, service: SecureService) -> None:
        self._service = service

    async def get(self, request: web.Request) -> web.Response:
        application = application_of(request)
        if "domain" in request.query:
            return await self._get_eligibility(request, application)
        return await self._get_list(request, application)

    async def post(self, request: web.Request) -> web.Response:
        body = await read_body(request, SecureBody)
        noted = await self._service.secure(application_of(request), body)
        return answers.message(SECURED, notices=noted)

    async def put(self, request: web.Request) -> web.Response:
        body = await read_body(request, SecureChange)
        has_changed, noted = await self._service.change(application_of(request), body)
        return answers.message(UPDATED if has_changed else RENEWING, notices=noted)

    async def delete(self, request: web.Request) -> web.Response:
        body = await read_body(request, SecureRemoval)
        noted = await self._service.remove(application_of(request), body)
        return answers.message(REMOVED, notices=noted)

    async def _get_list(self, request: web.Request, application: Application) -> web.Response:
        query = queries.parse_list_query(request.query)
        if isinstance(query, queries.PartQuery):
            part = await self._service.list_part(application, query)
            following = list_cursor.to_text(part.next, query.sort)
            items = [secured_domain(domain) | details(domain) for domain in part.items]
            return answers.respond(answers.part(items, following, query))
        page = await self._service.list_page(application, query)
        items = [secured_domain(domain) for domain in page.items]
        return answers.respond(answers.envelope(page, items, query))

    async def _get_eligibility(self, request: web.Request, application: Application) -> web.Response:
        name = queries.parse_eligibility_query(request.query)
        found = await self._service.check_eligibility(application, name)
        shown = {
            "eligible": found.is_eligible,
            "sslStatus": found.status,
            "cnameTarget": found.cname_target,
            "applicationUrl": found.application_url,
        }
        return answers.respond(shown | answers.given(redirectTo=found.redirect_to, hint=found.hint))
