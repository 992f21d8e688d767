"""Signing in by the operator's OpenID Connect provider: there and back again."""

from __future__ import annotations

import math
from datetime import timedelta

from aiohttp import web

from api.dashboard.browser import LONGEST_COOKIE, ROOT, local_path
from api.dashboard.context import DashboardContext
from api.dashboard.handlers.signing_in import sign_in_page, start_session
from api.dashboard.oidc import Attempt, OidcFailed
from api.requests import CLIENT_ADDRESS, REQUEST_ID
from api.services.oidc_users import NotAdmitted, OidcUsers
from common.accounts import mint_random_token
from common.actors import Actor, acting
from common.logs import get_logger

_COOKIE = "oidc"
_ATTEMPT_SECONDS = 600
_LIFETIME = timedelta(hours=12)
"""What the provider takes away, ends here with the session."""

_STALE = "This attempt to sign in has ended, or began in another browser. Try again."
_CANCELLED = "Your provider did not sign you in. Try again, or sign in another way."
_FAILED = "Your provider could not be asked who you are. Try again in a moment; the operator's log has the reason."

_log = get_logger("api.dashboard.handlers.oidc")


class OidcPages:
    """Signing in by the provider that the settings name. One instance per process."""

    def __init__(self, context: DashboardContext) -> None:
        self._context = context
        self._users = OidcUsers(context.database, context.settings.oidc_roles)

    async def get(self, request: web.Request) -> web.StreamResponse:
        """Send the browser to the provider. Raises: HTTPNotFound where there is none."""
        context, provider = self._context, self._context.oidc
        if provider is None:
            raise web.HTTPNotFound
        if wait := context.throttle.charge_address(request[CLIENT_ADDRESS]):
            return self._slowed(request, wait)
        attempt = Attempt(mint_random_token())
        try:
            url = await provider.authorization_url(attempt)
        except OidcFailed as error:
            return self._failed(request, error)
        response = web.Response(status=303, headers={"Location": url, "Cache-Control": "no-store"})
        value = f"{attempt.token}.{local_path(request.query.get('next'))}"
        if len(value) > LONGEST_COOKIE:
            value = f"{attempt.token}.{ROOT}"
        context.cookies.write(response, _COOKIE, value, seconds=_ATTEMPT_SECONDS)
        return response

    async def get_return(self, request: web.Request) -> web.StreamResponse:
        """Sign in the user with whom the browser comes back. Raises: HTTPNotFound where there is no provider."""
        response = await self._return(request)
        self._context.cookies.remove(response, _COOKIE)
        return response

    async def _return(self, request: web.Request) -> web.StreamResponse:
        context, provider = self._context, self._context.oidc
        if provider is None:
            raise web.HTTPNotFound
        if wait := context.throttle.charge_address(request[CLIENT_ADDRESS]):
            return self._slowed(request, wait)
        token, _, wanted = (context.cookies.read(request, _COOKIE) or "").partition(".")
        if not token:
            return sign_in_page(context, request, status=422, error=_STALE)
        try:
            identity = await provider.identify(Attempt(token), request.query)
        except OidcFailed as error:
            return self._failed(request, error)
        by = f"{identity.issuer} {identity.subject}"
        try:
            with acting(Actor("dashboard", identity.email or by, request[REQUEST_ID])):
                user = await self._users.admit(identity.issuer, identity.subject, identity.email, identity.values)
        except NotAdmitted as error:
            _log.info("sign-in refused", address=request[CLIENT_ADDRESS], reason=str(error), account=by)
            return sign_in_page(context, request, status=403, error=str(error))
        how = {"by": "openid connect", "issuer": identity.issuer}
        return await start_session(context, request, user, local_path(wanted), how, lifetime=_LIFETIME)

    def _failed(self, request: web.Request, error: OidcFailed) -> web.Response:
        is_cancelled = "error" in request.query
        _log.warning("sign-in by OpenID Connect failed", address=request[CLIENT_ADDRESS], reason=str(error))
        words = _CANCELLED if is_cancelled else _FAILED
        return sign_in_page(self._context, request, status=422 if is_cancelled else 502, error=words)

    def _slowed(self, request: web.Request, wait: float) -> web.Response:
        _log.warning("sign-in slowed", address=request[CLIENT_ADDRESS])
        words = f"Too many attempts. Try again in {math.ceil(wait)} seconds."
        response = sign_in_page(self._context, request, status=429, error=words)
        response.headers["Retry-After"] = str(math.ceil(wait))
        return response
