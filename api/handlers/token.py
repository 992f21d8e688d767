"""``POST /token``: a client secret becomes a token, of everything or for a browser. It needs no authentication."""

from __future__ import annotations

from aiohttp import web

from api.admission import FULL_QUEUE_SECONDS, Admission, TooManyWaiting
from api.answers.token import Token
from api.auth import Authenticator
from api.errors import Refused, too_many_requests
from api.rate_limits import RateLimits
from api.requests import CLIENT_ADDRESS, RATE_LIMIT, read_body
from api.responses import respond
from api.rules.application_tokens import mint_api_token
from api.schemas.token import TokenBody
from common.clock import Clock
from common.db.applications import Application


class TokenHandler:
    """Handler of tokens."""

    def __init__(self, authenticator: Authenticator, clock: Clock, limits: RateLimits, admission: Admission) -> None:
        self._authenticator = authenticator
        self._admission = admission
        self._clock = clock
        self._limits = limits

    async def post(self, request: web.Request) -> web.Response:
        """Make a token, signed with the secret that was sent.

        When a rotation ends that secret, it ends the token.
        """
        body = await read_body(request, TokenBody)
        application = await self._identify(request, body)
        now = self._clock.now()
        token = mint_api_token(application.id, body.secret, now, lifetime=body.lifetime, claims=body.claims)
        answer: Token = {"auth_token": token}
        response = respond(answer)
        response.headers["Cache-Control"] = "no-store"  # RFC 6749 §5.1
        return response

    async def _identify(self, request: web.Request, body: TokenBody) -> Application:
        """Return the application whose secret it is. Raises: `Refused`.

        Further attempts of an address that has sent many wrong secrets are refused, too.
        """
        address = request[CLIENT_ADDRESS]
        if wait := self._limits.wait_after_wrong_secrets(address, body.application_id):
            request[RATE_LIMIT] = self._limits.wrong_secret_fields(address, body.application_id)
            raise too_many_requests(wait, "too many wrong secrets from this address")
        try:
            async with self._admission.verification_slot(address, body.application_id):
                return await self._authenticator.identify(body.application_id, body.secret)
        except TooManyWaiting as error:
            raise too_many_requests(FULL_QUEUE_SECONDS, "too many requests from this address at once") from error
        except Refused:
            self._limits.charge_wrong_secret(address, body.application_id)
            raise
