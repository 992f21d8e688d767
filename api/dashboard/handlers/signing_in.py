"""Signing in with a password or a link, and signing out; `start_session` is what every way of signing in ends with."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import timedelta

from aiohttp import web

from api.dashboard.browser import ROOT, csrf_token, local_path
from api.dashboard.context import DashboardContext
from api.dashboard.middlewares import text_of
from api.dashboard.password_checks import PasswordChecks, TooManyPasswords
from api.dashboard.rendering import Flash
from api.dashboard.visitors import VISITOR, visitor_of
from api.requests import CLIENT_ADDRESS, REQUEST_ID
from api.services import credentials
from common.accounts import InvalidEmail, hash_token, mint_random_token, parse_email
from common.actors import Actor, acting
from common.db import sessions, users
from common.db.users import User
from common.logs import get_logger

_BUSY_SECONDS = 10
_BUSY = "Too many passwords are being tried at the moment. Try again soon; a passkey or a link signs you in at once."
_WRONG = "This e-mail address and password do not belong together."
_ENDED_MEANWHILE = "What you signed in with has ended this moment: you were given more rights, or its API key ended."
_LINK_GONE = "This link was used already, or has expired. An operator makes another with `frontage user link`."

_log = get_logger("api.dashboard")


class SigningInPages:
    """Pages of signing in and out. One instance per process."""

    def __init__(self, context: DashboardContext) -> None:
        self._context = context
        self._passwords = PasswordChecks()

    async def get(self, request: web.Request) -> web.StreamResponse:
        """Show the page of signing in."""
        if VISITOR in request:
            return self._context.renderer.redirect(local_path(request.query.get("next")))
        return sign_in_page(self._context, request)

    async def post(self, request: web.Request) -> web.StreamResponse:
        """Sign a user in by a password."""
        address = request[CLIENT_ADDRESS]
        try:
            email = parse_email(text_of(request, "email"))
        except InvalidEmail:
            return sign_in_page(self._context, request, status=422, error=_WRONG)
        device = self._context.cookies.read(request, "device")
        if wait := self._context.throttle.charge(address, email, device):
            words = f"Too many attempts. Try again in {math.ceil(wait)} seconds."
            return self._slowed(request, math.ceil(wait), words)
        try:
            user = await self._verified(request, email)
        except TooManyPasswords:
            return self._slowed(request, _BUSY_SECONDS, _BUSY)
        if user is None:
            _log.info("sign-in refused", address=address)
            return sign_in_page(self._context, request, status=422, error=_WRONG)
        location = local_path(text_of(request, "next"))
        return await start_session(self._context, request, user, location, {"by": "password"})

    async def get_link(self, request: web.Request) -> web.StreamResponse:
        """Show a page with a button, so that previews of links do not use them up."""
        async with self._context.database.connection() as connection:
            email = await sessions.find_link(connection, hash_token(request.match_info["token"]))
        return self._link_page(request, email)

    async def post_link(self, request: web.Request) -> web.StreamResponse:
        """Sign a user in by a link that works once."""
        async with self._context.database.transaction() as connection:
            link = await sessions.use_link(connection, hash_token(request.match_info["token"]))
            user = await users.get_user(connection, link.user_id) if link else None
        if link is None or user is None:
            return self._link_page(request, None)
        return await start_session(self._context, request, user, ROOT, {"by": "link"}, by_key=link.by_key)

    async def sign_out(self, request: web.Request) -> web.StreamResponse:
        """End the visitor's session."""
        async with self._context.database.transaction() as connection:
            await sessions.end(connection, visitor_of(request).session_hash)
        response = self._context.renderer.redirect(f"{ROOT}/sign-in", Flash("You are signed out."))
        self._context.cookies.remove(response, "session")
        response.headers["Clear-Site-Data"] = '"cache"'
        return response

    def _slowed(self, request: web.Request, seconds: int, words: str) -> web.Response:
        _log.warning("sign-in slowed", address=request[CLIENT_ADDRESS])
        response = sign_in_page(self._context, request, status=429, error=words)
        response.headers["Retry-After"] = str(seconds)
        return response

    async def _verified(self, request: web.Request, email: str) -> User | None:
        """Return the user whose password it is; take as long without an account.

        Raises: `TooManyPasswords`.
        """
        async with self._context.database.connection() as connection:
            user = await users.find_user(connection, email)
            stored = await users.get_password_hash(connection, user.id) if user else None
        matches = await self._passwords.verify(
            text_of(request, "password"),
            stored,
            address=request[CLIENT_ADDRESS],
            email=email,
            is_known_device=self._context.throttle.is_known(self._context.cookies.read(request, "device"), email),
        )
        return user if matches else None

    def _link_page(self, request: web.Request, email: str | None) -> web.Response:
        status = 200 if email else 410
        return _guest_page(self._context, request, "link.html", status, email=email, gone=_LINK_GONE)


async def start_session(
    context: DashboardContext,
    request: web.Request,
    user: User,
    location: str,
    by: Mapping[str, str],
    *,
    lifetime: timedelta = sessions.LIFETIME,
    by_key: str | None = None,
) -> web.StreamResponse:
    """Sign the user in, for `lifetime` at most, and lead to `location`.

    `by`: the way, for the audit log. `by_key`: the API key that the link was made with.
    """
    token, visitor = mint_random_token(), request.get(VISITOR)
    with acting(Actor("dashboard", user.email, request[REQUEST_ID])):
        async with context.database.transaction() as connection:
            if visitor is not None:  # another user's session in this browser
                await sessions.end(connection, visitor.session_hash)
            agent = request.headers.get("User-Agent", "")
            address = request[CLIENT_ADDRESS]
            is_started = await credentials.start_session(
                connection, hash_token(token), user, address, agent, by, lifetime=lifetime, by_key=by_key
            )
    if not is_started:
        return sign_in_page(context, request, status=422, error=_ENDED_MEANWHILE)
    response = context.renderer.redirect(location)
    context.cookies.write_session(response, token, int(lifetime.total_seconds()))
    device = context.cookies.read(request, "device")
    context.cookies.write_device(response, context.throttle.device_cookie(device, user.email))
    context.cookies.remove(response, "guest")
    return response


def sign_in_page(
    context: DashboardContext, request: web.Request, *, status: int = 200, error: str | None = None
) -> web.Response:
    """Render the page of signing in."""
    wanted = local_path(request.query.get("next") or text_of_maybe(request, "next"))
    return _guest_page(
        context,
        request,
        "sign_in.html",
        status,
        error=error,
        email=text_of_maybe(request, "email"),
        next=wanted,
        relying_party=context.relying_party,
        has_oidc=context.oidc is not None,
    )


def _guest_page(
    context: DashboardContext, request: web.Request, template: str, status: int, **values: object
) -> web.Response:
    guest = context.cookies.guest(request)
    response = context.renderer.page(request, template, status=status, csrf=csrf_token(guest), **values)
    context.cookies.write(response, "guest", guest)
    return response


def text_of_maybe(request: web.Request, name: str) -> str:
    """Return a field of the form, where a form was sent."""
    return text_of(request, name) if request.method == "POST" else ""
