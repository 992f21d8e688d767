"""What is done with one domain by hand (``POST /domains/:domain/renew`` and its like)."""

from __future__ import annotations

from aiohttp import web

from api.auth import rights_of
from api.requests import application_of, read_body
from api.responses import respond_message
from api.schemas import queries
from api.schemas.block import BlockBody
from api.schemas.transfer import TransferBody
from api.services.domain_actions import DomainActions

RENEWING = "Certificate will be renewed."
CHECKING = "DNS will be checked."
TRANSFERRED = "Domain successfully transferred."
FREED = "Domain successfully freed."
BLOCKED = "Domain successfully blocked."
UNBLOCKED = "Domain successfully unblocked."


class DomainActionHandlers:
    """Handlers of manual domain operations."""

    def __init__(self, service: DomainActions) -> None:
        self._service = service

    async def renew(self, request: web.Request) -> web.Response:
        """Renew the certificate of a domain."""
        name = queries.parse_name(request.match_info["domain"])
        return respond_message(RENEWING, 202, await self._service.renew(application_of(request), name))

    async def recheck(self, request: web.Request) -> web.Response:
        """Check the DNS of a domain."""
        name = queries.parse_name(request.match_info["domain"])
        return respond_message(CHECKING, 202, await self._service.recheck(application_of(request), name))

    async def transfer(self, request: web.Request) -> web.Response:
        """Give a domain to another application."""
        name = queries.parse_name(request.match_info["domain"])
        body = await read_body(request, TransferBody)
        is_operator = rights_of(request).is_operator
        target = await self._service.transfer(
            application_of(request), name, body.to, body.application_url, to_any=is_operator
        )
        return respond_message(TRANSFERRED, notices=await self._service.find_stray_dns(target, name))

    async def free(self, request: web.Request) -> web.Response:
        """Stop serving a name and forget its holder."""
        name = queries.parse_name(request.match_info["domain"])
        await self._service.free(rights_of(request), application_of(request), name)
        return respond_message(FREED)

    async def block(self, request: web.Request) -> web.Response:
        """Answer every request of a name with a reason."""
        name = queries.parse_name(request.match_info["domain"])
        body = await read_body(request, BlockBody)
        await self._service.block(rights_of(request), application_of(request), name, body.reason, is_legal=body.legal)
        return respond_message(BLOCKED)

    async def unblock(self, request: web.Request) -> web.Response:
        """Serve a blocked name again."""
        name = queries.parse_name(request.match_info["domain"])
        await self._service.unblock(rights_of(request), application_of(request), name)
        return respond_message(UNBLOCKED)
