"""Signing in with a password or a link, and signing out."""

from __future__ import annotations

import asyncio
import math

from aiohttp import web

from api.dashboard.browser import ROOT, csrf_token, local_path
from api.dashboard.context import DashboardContext
from api.dashboard.middlewares import text_of
from api.dashboard.rendering import Flash
from api.dashboard.visitors import VISITOR, visitor_of
from api.requests import CLIENT_ADDRESS, REQUEST_ID
from common.accounts import InvalidEmail, hash_token, mint_token, parse_email
from common.actors import Actor, acting
from common.db import audit, sessions, users
from common.db.users import User
from common.logs import get_logger
from common.passwords import verify_password

_HASHES_AT_ONCE = 2
_HASH_SECONDS = 10.0
_WRONG = "This e-mail address and password do not belong together."
_LINK_GONE = "This link was used already, or has expired. An operator makes another with `frontage user link`."

_log = get_logger("api.dashboard")


class SigningInHandlers:
    """One a process. Mutable state: how many passwords are being hashed."""

    def __init__(self, context: DashboardContext) -> None:
        self._context = context
        self._hashing = asyncio.Semaphore(_HASHES_AT_ONCE)

    async def get(self, request: web.Request) -> web.StreamResponse:
        if VISITOR in request:
            return self._context.renderer.redirect(local_path(request.query.get("next")))
        return self._page(request)

    async def post(self, request: web.Request) -> web.StreamResponse:
        address = request[CLIENT_ADDRESS]
        try:
            email = parse_email(text_of(request, "email"))
        except InvalidEmail:
            return self._page(request, status=422, error=_WRONG)
        device = self._context.cookies.read(request, "device")
        if wait := self._context.throttle.charge(address, email, device):
            _log.warning("sign-in slowed", address=address)
            response = self._page(
                request, status=429, error=f"Too many attempts. Try again in {math.ceil(wait)} seconds."
            )
            response.headers["Retry-After"] = str(math.ceil(wait))
            return response
        user = await self._verified(email, text_of(request, "password"))
        if user is None:
            _log.info("sign-in refused", address=address)
            return self._page(request, status=422, error=_WRONG)
        return await self._start(request, user, local_path(text_of(request, "next")), "password")

    async def get_link(self, request: web.Request) -> web.StreamResponse:
        """A page with a button: previews of links do not use them up."""
        async with self._context.database.connection() as connection:
            email = await sessions.find_link(connection, hash_token(request.match_info["token"]))
        return self._link_page(request, email)

    async def post_link(self, request: web.Request) -> web.StreamResponse:
        async with self._context.database.transaction() as connection:
            user_id = await sessions.use_link(connection, hash_token(request.match_info["token"]))
            user = await users.get_user(connection, user_id) if user_id else None
        if user is None:
            return self._link_page(request, None)
        return await self._start(request, user, ROOT, "link")

    async def sign_out(self, request: web.Request) -> web.StreamResponse:
        async with self._context.database.transaction() as connection:
            await sessions.end(connection, visitor_of(request).session_hash)
        response = self._context.renderer.redirect(f"{ROOT}/sign-in", Flash("You are signed out."))
        self._context.cookies.remove(response, "session")
        response.headers["Clear-Site-Data"] = '"cache"'
        return response

    async def _verified(self, email: str, password: str) -> User | None:
        """Takes as long for an address without an account."""
        async with self._context.database.connection() as connection:
            user = await users.find_user(connection, email)
            stored = await users.get_password_hash(connection, user.id) if user else None
        try:
            async with asyncio.timeout(_HASH_SECONDS), self._hashing:
                matches = await asyncio.to_thread(verify_password, password, stored)
        except TimeoutError as error:
            raise web.HTTPServiceUnavailable from error
        return user if matches else None

    async def _start(self, request: web.Request, user: User, location: str, by: str) -> web.StreamResponse:
        context, token = self._context, mint_token()
        visitor = request.get(VISITOR)
        with acting(Actor("dashboard", user.email, request[REQUEST_ID])):
            async with context.database.transaction() as connection:
                if visitor is not None:  # another user's session in this browser
                    await sessions.end(connection, visitor.session_hash)
                agent = request.headers.get("User-Agent", "")
                await sessions.start(connection, hash_token(token), user.id, request[CLIENT_ADDRESS], agent)
                await audit.record(connection, "user.sign_in", user.email, after={"by": by})
        response = context.renderer.redirect(location)
        context.cookies.write_session(response, token, sessions.LONGEST_DAYS * 86_400)
        context.cookies.write_device(response, context.throttle.device_cookie(mint_token()[:16], user.email))
        context.cookies.remove(response, "guest")
        return response

    def _page(self, request: web.Request, *, status: int = 200, error: str | None = None) -> web.Response:
        wanted = local_path(request.query.get("next") or text_of_maybe(request, "next"))
        values = {"error": error, "email": text_of_maybe(request, "email"), "next": wanted}
        return self._guest_page(request, "sign_in.html", status, **values)

    def _link_page(self, request: web.Request, email: str | None) -> web.Response:
        status = 200 if email else 410
        return self._guest_page(request, "link.html", status, email=email, gone=_LINK_GONE)

    def _guest_page(self, request: web.Request, template: str, status: int, **values: object) -> web.Response:
        context = self._context
        guest = context.cookies.guest(request)
        response = context.renderer.page(request, template, status=status, csrf=csrf_token(guest), **values)
        context.cookies.write(response, "guest", guest)
        return response


def text_of_maybe(request: web.Request, name: str) -> str:
    """A field of the form, where a form was sent."""
    return text_of(request, name) if request.method == "POST" else ""
