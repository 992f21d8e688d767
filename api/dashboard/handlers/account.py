"""The user's own account: password and sessions."""

from __future__ import annotations

import asyncio

from aiohttp import web

from api.dashboard.browser import ROOT
from api.dashboard.context import DashboardContext
from api.dashboard.middlewares import text_of
from api.dashboard.rendering import Flash
from api.dashboard.visitors import visitor_of
from common.db import audit, sessions, users
from common.passwords import PasswordRefused, hash_password, verify_password


class AccountHandlers:
    def __init__(self, context: DashboardContext) -> None:
        self._context = context

    async def get(self, request: web.Request) -> web.StreamResponse:
        return await self._page(request)

    async def set_password(self, request: web.Request) -> web.StreamResponse:
        """Needs the password so far, where there is one; ends the user's other sessions."""
        visitor = visitor_of(request)
        async with self._context.database.connection() as connection:
            stored = await users.get_password_hash(connection, visitor.user.id)
        if stored is not None:
            if self._context.throttle.charge(visitor.user.id, visitor.user.email, None):
                return await self._page(request, status=429, error="Too many attempts. Try again in a minute.")
            if not await asyncio.to_thread(verify_password, text_of(request, "current"), stored):
                return await self._page(request, status=422, error="The current password is another one.")
        if text_of(request, "password") != text_of(request, "again"):
            return await self._page(request, status=422, error="The two new passwords differ.")
        try:
            hashed = await asyncio.to_thread(hash_password, text_of(request, "password"))
        except PasswordRefused as error:
            return await self._page(request, status=422, error=f"Not stored: {error}.")
        async with self._context.database.transaction() as connection:
            await users.set_password_hash(connection, visitor.user.id, hashed)
            await sessions.end_all(connection, visitor.user.id, but=visitor.session_hash)
            await audit.record(connection, "user.set_password", visitor.user.email)
        flash = Flash("Your password is set. Other sessions of yours have ended.")
        return self._context.renderer.redirect(f"{ROOT}/account", flash)

    async def end_session(self, request: web.Request) -> web.StreamResponse:
        visitor = visitor_of(request)
        async with self._context.database.transaction() as connection:
            ended = await sessions.end_one(connection, visitor.user.id, text_of(request, "session"))
        return self._context.renderer.redirect(f"{ROOT}/account", Flash("The session has ended.") if ended else None)

    async def _page(self, request: web.Request, *, status: int = 200, error: str | None = None) -> web.Response:
        visitor = visitor_of(request)
        async with self._context.database.connection() as connection:
            found = await sessions.list_sessions(connection, visitor.user.id, visitor.session_hash)
        return self._context.renderer.page(request, "account.html", status=status, error=error, sessions=found)
