"""The user's own account: password, sessions, API keys, and proving once more to be its user."""

from __future__ import annotations

import asyncio

from aiohttp import web

from api.dashboard.browser import ROOT, local_path
from api.dashboard.context import DashboardContext
from api.dashboard.middlewares import text_of
from api.dashboard.rendering import Flash
from api.dashboard.visitors import visitor_of
from api.errors import Refused
from api.rules.application_settings import InvalidSetting, read_name
from api.rules.passwords import PasswordRefused, hash_password, verify_password
from api.services import credentials
from common.accounts import Permission
from common.db import passkeys, sessions, user_keys, users

CONFIRM = f"{ROOT}/account/confirm"
KEY_DAYS = (7, 30, 90, user_keys.LONGEST_DAYS)
_TOO_MANY = "Too many attempts. Try again in a minute."
_WRONG = "The current password is another one."
BY_KEY = (
    "Not done: you signed in by a link that was made with an API key, and this would outlast that key. Sign in with"
    " your password or passkey, or by a link from the dashboard or the operator."
)


class AccountPages:
    """Pages of the user's own account: password, sessions and API keys."""

    def __init__(self, context: DashboardContext) -> None:
        self._context = context

    async def get(self, request: web.Request) -> web.StreamResponse:
        """Show the account."""
        return await account_page(self._context, request)

    async def set_password(self, request: web.Request) -> web.StreamResponse:
        """Needs the password so far, or else a passkey, where there is one; ends the user's other sessions."""
        visitor = visitor_of(request)
        if visitor.by_key is not None:
            return await account_page(self._context, request, status=403, error=BY_KEY)
        async with self._context.database.connection() as connection:
            stored = await users.get_password_hash(connection, visitor.user.id)
        if stored is not None:
            if self._wait_seconds(request):
                return await account_page(self._context, request, status=429, error=_TOO_MANY)
            if not await asyncio.to_thread(verify_password, text_of(request, "current"), stored):
                return await account_page(self._context, request, status=422, error=_WRONG)
        else:
            async with self._context.database.connection() as connection:
                has_passkey = bool(await passkeys.list_passkeys(connection, visitor.user.id))
                if has_passkey and not await sessions.is_confirmed(connection, visitor.session_hash):
                    return self._context.renderer.redirect(CONFIRM)
        if text_of(request, "password") != text_of(request, "again"):
            return await account_page(self._context, request, status=422, error="The two new passwords differ.")
        try:
            hashed = await asyncio.to_thread(hash_password, text_of(request, "password"))
        except PasswordRefused as error:
            return await account_page(self._context, request, status=422, error=f"Not stored: {error}.")
        async with self._context.database.transaction() as connection:
            if not await sessions.hold(connection, visitor.session_hash):
                return self._context.renderer.redirect(f"{ROOT}/account")
            await credentials.set_password(connection, visitor.user, hashed, but=visitor.session_hash)
        flash = Flash("Your password is set. Other sessions of yours have ended.")
        return self._context.renderer.redirect(f"{ROOT}/account", flash)

    def _wait_seconds(self, request: web.Request) -> float:
        """As `Throttle.charge`: this browser has signed in to the account, and strangers cannot keep its user out."""
        user, device = visitor_of(request).user, self._context.cookies.read(request, "device")
        return self._context.throttle.charge(user.id, user.email, device)

    async def end_session(self, request: web.Request) -> web.StreamResponse:
        """End another session of the user."""
        visitor = visitor_of(request)
        async with self._context.database.transaction() as connection:
            ended = await sessions.end_one(connection, visitor.user.id, text_of(request, "session"))
        return self._context.renderer.redirect(f"{ROOT}/account", Flash("The session has ended.") if ended else None)

    async def make_key(self, request: web.Request) -> web.StreamResponse:
        """Needs a confirmed session: a key outlives it. The answer alone shows the key."""
        visitor, context = visitor_of(request), self._context
        if visitor.by_key is not None:
            return await account_page(context, request, status=403, key_error=BY_KEY)
        try:
            name = read_name(text_of(request, "name"))
        except InvalidSetting as error:
            return await account_page(context, request, status=422, key_error=f"Not made: {error}.")
        permission = next((each for each in Permission if each.value == text_of(request, "permission")), None)
        days = next((each for each in KEY_DAYS if str(each) == text_of(request, "days")), None)
        if permission is None or days is None:
            raise web.HTTPBadRequest
        only = text_of(request, "application").strip() or None
        try:
            async with context.database.transaction() as connection:
                if not await sessions.hold_confirmed(connection, visitor.session_hash):
                    return context.renderer.redirect(CONFIRM)
                made = await credentials.make_key(connection, visitor.user, name, permission, days, only)
        except Refused as error:
            return await account_page(context, request, status=422, key_error=f"Not made: {error.hint}.")
        if made is None:
            words = f"Not made: you have {user_keys.MOST_OF_USER} keys, which is most. Revoke one that is not used."
            return await account_page(context, request, status=422, key_error=words)
        return context.renderer.page(
            request,
            "secret.html",
            title=f"{name} is made",
            words="Copy the key now. It is shown here and never again; revoke it under Account when it is not needed.",
            secrets=[("API key", made.token)],
            back=f"{ROOT}/account",
        )

    async def revoke_key(self, request: web.Request) -> web.StreamResponse:
        """Revoke an API key of the user."""
        async with self._context.database.transaction() as connection:
            name = await credentials.revoke_key(connection, visitor_of(request).user, text_of(request, "key"))
        flash = Flash(f"{name} is revoked: it opens nothing from now on.") if name is not None else None
        return self._context.renderer.redirect(f"{ROOT}/account", flash)

    async def get_confirm(self, request: web.Request) -> web.StreamResponse:
        """Show the page that asks for the password or a passkey again."""
        return await confirm_page(self._context, request)

    async def post_confirm(self, request: web.Request) -> web.StreamResponse:
        """Confirm the session by password; `api.dashboard.handlers.passkeys` does it by passkey."""
        visitor = visitor_of(request)
        async with self._context.database.connection() as connection:
            stored = await users.get_password_hash(connection, visitor.user.id)
        if self._wait_seconds(request):
            return await confirm_page(self._context, request, status=429, error=_TOO_MANY)
        if stored is None or not await asyncio.to_thread(verify_password, text_of(request, "current"), stored):
            return await confirm_page(self._context, request, status=422, error=_WRONG)
        async with self._context.database.transaction() as connection:
            await sessions.confirm(connection, visitor.session_hash)
        return self._context.renderer.redirect(local_path(text_of(request, "next") or f"{ROOT}/account"))


async def account_page(
    context: DashboardContext,
    request: web.Request,
    *,
    status: int = 200,
    error: str | None = None,
    passkey_error: str | None = None,
    key_error: str | None = None,
) -> web.Response:
    """Render the account, with what is wrong with a form that was sent."""
    visitor = visitor_of(request)
    async with context.database.connection() as connection:
        found = await sessions.list_sessions(connection, visitor.user.id, visitor.session_hash)
        known = await passkeys.list_passkeys(connection, visitor.user.id)
        keys = await user_keys.list_keys(connection, visitor.user.id)
        is_confirmed = await sessions.is_confirmed(connection, visitor.session_hash)
    return context.renderer.page(
        request,
        "account.html",
        status=status,
        error=error,
        sessions=found,
        passkeys=known,
        passkey_error=passkey_error,
        most_passkeys=passkeys.MOST_OF_USER,
        is_confirmed=is_confirmed,
        is_possible=context.relying_party.is_possible,
        confirm=CONFIRM,
        keys=keys,
        key_error=key_error,
        key_application=(
            text_of(request, "application") if request.method == "POST" else request.query.get("application", "")
        ),
        key_days=KEY_DAYS,
        default_days=user_keys.DEFAULT_DAYS,
        most_keys=user_keys.MOST_OF_USER,
    )


async def confirm_page(
    context: DashboardContext, request: web.Request, *, status: int = 200, error: str | None = None
) -> web.Response:
    """Asks the user for the password or a passkey, before what needs a confirmed session."""
    async with context.database.connection() as connection:
        known = await passkeys.list_passkeys(connection, visitor_of(request).user.id)
    wanted = text_of(request, "next") if request.method == "POST" else request.query.get("next")
    return context.renderer.page(
        request,
        "confirm.html",
        status=status,
        error=error,
        next=local_path(wanted or f"{ROOT}/account"),
        has_passkey=bool(known) and context.relying_party.is_possible,
        minutes=sessions.CONFIRMED_MINUTES,
    )
