"""Passkeys: signing in with one, proving with one that the user is there, registering and removing them."""

from __future__ import annotations

import math
from dataclasses import dataclass

from aiohttp import web

from api.dashboard.browser import ROOT, local_path
from api.dashboard.context import DashboardContext
from api.dashboard.handlers.account import BY_KEY, CONFIRM, account_page, confirm_page
from api.dashboard.handlers.signing_in import sign_in_page, start_session
from api.dashboard.middlewares import text_of
from api.dashboard.passkeys import Assertion, NotProven, Passkeys, ProofPurpose, hash_challenge
from api.dashboard.rendering import Flash
from api.dashboard.visitors import SignedInVisitor, visitor_of
from api.requests import CLIENT_ADDRESS, REQUEST_ID
from api.rules.application_settings import InvalidSetting, read_name
from api.services import credentials
from common.actors import Actor, acting
from common.db import passkeys, sessions, users
from common.db.passkeys import StoredKey
from common.db.session import Connection
from common.logs import get_logger

_REFUSED = "This passkey could not be verified. Try again, or sign in with your password."
_NOT_CONFIRMED = "The passkey could not be verified. Try again."
_NOT_ADDED = "The passkey was not added: the authenticator's answer could not be verified. Try again."
_FULL = f"The passkey was not added: it is registered already, or you have {passkeys.MOST_OF_USER}, which is most."

_log = get_logger("api.dashboard.handlers.passkeys")


@dataclass(frozen=True, slots=True)
class _Proof:
    """An assertion whose signature is good. Its challenge and its sign count are checked by `_use`."""

    assertion: Assertion
    key: StoredKey
    sign_count: int


class PasskeyPages:
    """Holds nothing but the context: there may be one for each request."""

    def __init__(self, context: DashboardContext) -> None:
        self._context = context
        self._passkeys = Passkeys(context.clock, context.keyring, context.relying_party)

    # Signing in -----------------------------------------------------------------------------------------------

    async def get_sign_in(self, request: web.Request) -> web.StreamResponse:
        """Return what the authenticator is asked for, as JSON."""
        return self._options(self._passkeys.options_to_assert(ProofPurpose.SIGN_IN, self._guest(request)))

    async def post_sign_in(self, request: web.Request) -> web.StreamResponse:
        """Sign a user in by a passkey."""
        context, address = self._context, request[CLIENT_ADDRESS]
        if wait := context.throttle.charge_address(address):
            _log.warning("sign-in slowed", address=address)
            words = f"Too many attempts. Try again in {math.ceil(wait)} seconds."
            response = sign_in_page(context, request, status=429, error=words)
            response.headers["Retry-After"] = str(math.ceil(wait))
            return response
        try:
            proof = await self._verify(text_of(request, "credential"), ProofPurpose.SIGN_IN, self._guest(request))
            with acting(Actor("dashboard", proof.key.email, request[REQUEST_ID])):
                async with context.database.transaction() as connection:
                    is_good = await _use(connection, proof)
                    user = await users.get_user(connection, proof.key.user_id)
        except NotProven as error:
            _log.info("sign-in refused", address=address, reason=str(error))
            return sign_in_page(context, request, status=422, error=_REFUSED)
        if not is_good or user is None:
            return sign_in_page(context, request, status=422, error=_REFUSED)
        by = {"by": "passkey", "passkey": proof.key.name}
        return await start_session(context, request, user, local_path(text_of(request, "next")), by)

    # Confirming -----------------------------------------------------------------------------------------------

    async def get_confirm(self, request: web.Request) -> web.StreamResponse:
        """Return what the authenticator is asked for, as JSON."""
        visitor = visitor_of(request)
        async with self._context.database.connection() as connection:
            known = await passkeys.list_passkeys(connection, visitor.user.id)
        allowed = [each.credential_id for each in known]
        options = self._passkeys.options_to_assert(ProofPurpose.CONFIRM, _holder(visitor), allowed)
        return self._options(options)

    async def post_confirm(self, request: web.Request) -> web.StreamResponse:
        """Confirm the session by a passkey."""
        visitor, context = visitor_of(request), self._context
        try:
            if context.throttle.charge_address(visitor.user.id):
                raise NotProven("too many attempts")
            proof = await self._verify(text_of(request, "credential"), ProofPurpose.CONFIRM, _holder(visitor))
            if proof.key.user_id != visitor.user.id:
                raise NotProven("the passkey is another user's")
            async with context.database.transaction() as connection:
                if is_good := await _use(connection, proof):
                    await sessions.confirm(connection, visitor.session_hash)
        except NotProven as error:
            _log.info("confirmation refused", user=visitor.user.id, reason=str(error))
            is_good = False
        if not is_good:
            return await confirm_page(context, request, status=422, error=_NOT_CONFIRMED)
        return context.renderer.redirect(local_path(text_of(request, "next")))

    # Registering and removing ---------------------------------------------------------------------------------

    async def get_new(self, request: web.Request) -> web.StreamResponse:
        """Return what the authenticator is asked for, as JSON.

        Raises: HTTPForbidden for a session that is not confirmed.
        """
        visitor = visitor_of(request)
        async with self._context.database.connection() as connection:
            if visitor.by_key is not None or not await sessions.is_confirmed(connection, visitor.session_hash):
                raise web.HTTPForbidden
            known = await passkeys.list_passkeys(connection, visitor.user.id)
        return self._options(
            self._passkeys.options_to_register(
                visitor.user.id, visitor.user.email, [each.credential_id for each in known], _holder(visitor)
            )
        )

    async def post_new(self, request: web.Request) -> web.StreamResponse:
        """Register a passkey."""
        visitor, context = visitor_of(request), self._context
        if visitor.by_key is not None:
            return await account_page(context, request, status=403, passkey_error=BY_KEY)
        try:
            name = read_name(text_of(request, "name"))
            made = self._passkeys.verify_registration(text_of(request, "credential"), _holder(visitor))
        except InvalidSetting as error:
            return await account_page(context, request, status=422, passkey_error=f"Not added: {error}.")
        except NotProven as error:
            _log.info("passkey registration refused", user=visitor.user.id, reason=str(error))
            return await account_page(context, request, status=422, passkey_error=_NOT_ADDED)
        async with context.database.transaction() as connection:
            if not await sessions.hold_confirmed(connection, visitor.session_hash):
                return context.renderer.redirect(CONFIRM)
            is_new = await passkeys.use_challenge(connection, hash_challenge(made.challenge))
            is_new = is_new and await credentials.add_passkey(
                connection, visitor.user, made.credential_id, made.public_key, made.sign_count, name
            )
        if not is_new:
            return await account_page(context, request, status=422, passkey_error=_FULL)
        return context.renderer.redirect(f"{ROOT}/account", Flash(f"{name} signs you in from now on."))

    async def remove(self, request: web.Request) -> web.StreamResponse:
        """Remove a passkey, and end the user's other sessions, which it may have started."""
        visitor, context = visitor_of(request), self._context
        if visitor.by_key is not None:
            return await account_page(context, request, status=403, passkey_error=BY_KEY)
        try:
            credential_id = bytes.fromhex(text_of(request, "passkey"))
        except ValueError as error:
            raise web.HTTPBadRequest from error
        async with context.database.transaction() as connection:
            if not await sessions.hold_confirmed(connection, visitor.session_hash):
                return context.renderer.redirect(CONFIRM)
            name = await credentials.remove_passkey(connection, visitor.user, credential_id, but=visitor.session_hash)
        if name is None:
            return context.renderer.redirect(f"{ROOT}/account")
        flash = Flash(f"{name} signs in no more. Other sessions of yours have ended.")
        return context.renderer.redirect(f"{ROOT}/account", flash)

    # Parts ----------------------------------------------------------------------------------------------------

    async def _verify(self, answer: str, purpose: ProofPurpose, holder: str) -> _Proof:
        """Return what the authenticator's answer proves. Raises: `NotProven`."""
        assertion = self._passkeys.read_assertion(answer, purpose, holder)
        async with self._context.database.connection() as connection:
            key = await passkeys.find(connection, assertion.credential_id)
        if key is None:
            raise NotProven("no such passkey")
        if assertion.user_handle != key.user_id.encode() and (
            purpose is ProofPurpose.SIGN_IN or assertion.user_handle is not None  # §7.2, step 6
        ):
            raise NotProven("the authenticator names another user")
        return _Proof(assertion, key, self._passkeys.verify_assertion(assertion, key.public_key))

    def _guest(self, request: web.Request) -> str:
        """Return the browser's token. Raises: HTTPForbidden without the cookie of the page of signing in."""
        guest = self._context.cookies.read(request, "guest")
        if guest is None or not self._context.relying_party.is_possible:
            raise web.HTTPForbidden
        return guest

    def _options(self, options: str) -> web.Response:
        return web.Response(text=options, content_type="application/json")


async def _use(connection: Connection, proof: _Proof) -> bool:
    """Whether the proof is good, now and never again."""
    if not await passkeys.use_challenge(connection, hash_challenge(proof.assertion.challenge)):
        return False
    return await credentials.note_passkey_use(connection, proof.key, proof.assertion.credential_id, proof.sign_count)


def _holder(visitor: SignedInVisitor) -> str:
    return visitor.session_hash.hex()
