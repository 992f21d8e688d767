"""``POST /token``: a client secret becomes a token good for an hour. The one endpoint without authentication."""

from __future__ import annotations

from aiohttp import web

from api.auth import Authenticator
from api.requests import read_body
from api.schemas.answers import respond
from api.schemas.token import TokenBody
from common.applications import mint_token
from common.clock import Clock


class TokenHandler:
    def __init__(self, authenticator: Authenticator, clock: Clock) -> None:
        self._authenticator = authenticator
        self._clock = clock

    async def post(self, request: web.Request) -> web.Response:
        """Signed with the secret that was sent: when a rotation ends that secret, it ends the token."""
        body = await read_body(request, TokenBody)
        application = await self._authenticator.identify(body.application_id, body.secret)
        return respond({"auth_token": mint_token(application.id, body.secret, self._clock.now())})
