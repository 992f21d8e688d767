"""The certificate of a domain: shown, brought by its partner, requested, and given back."""

from __future__ import annotations

from aiohttp import web

from api.answers.certificates import certificate_answer, signing_request
from api.requests import application_of, read_body
from api.responses import respond, respond_message
from api.schemas import queries
from api.schemas.certificate import CertificateBody
from api.services.own_certificates import OwnCertificateService

BROUGHT = "Certificate successfully stored."
REMOVED = "Certificate successfully removed."


class CertificateHandlers:
    """Handlers of ``/domains/:domain/certificate``."""

    def __init__(self, service: OwnCertificateService) -> None:
        self._service = service

    async def get(self, request: web.Request) -> web.Response:
        """Show the certificate that visitors get."""
        name = queries.parse_name(request.match_info["domain"])
        return respond(certificate_answer(await self._service.show(application_of(request).id, name)))

    async def put(self, request: web.Request) -> web.Response:
        """Serve the domain with a certificate of its partner."""
        name = queries.parse_name(request.match_info["domain"])
        body = await read_body(request, CertificateBody)
        notices = await self._service.bring(application_of(request).id, name, body.certificate, body.private_key)
        return respond_message(BROUGHT, notices=notices)

    async def delete(self, request: web.Request) -> web.Response:
        """Serve the domain with our certificate again."""
        name = queries.parse_name(request.match_info["domain"])
        return respond_message(REMOVED, notices=await self._service.remove(application_of(request).id, name))

    async def request(self, request: web.Request) -> web.Response:
        """Make a request for a certificate, whose key stays here."""
        name = queries.parse_name(request.match_info["domain"])
        return respond(signing_request(name.text, await self._service.request(application_of(request).id, name)))
