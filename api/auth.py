"""Verify what opens a request: a bearer token with the ``applicationId`` header, or a user's API key.

Secrets are read from Postgres for every request and kept nowhere, so that a rotation ends what it should end. What is
remembered is that a secret has signed a token, which stays true; under a digest of both, so that neither is kept.

Rules
    HS256 and nothing else; ``exp`` is required, at most 24 hours ahead; the clock may be `LEEWAY_SECONDS` off
    the current client secret verifies, and the previous one while a rotation lasts
    403 only for a token that is good for the application named in its own ``applicationId`` claim while the
    header names another; whatever else is wrong is 401
    what the current secret signed is marked so: changes of secrets need it (`api.services.applications`)
    deleting an application and transferring a domain are its owners': a user's key opens them, a token does not
    a token of a sharing link (claim ``share``) ends with the link
    a token with a ``scope`` opens what that scope opens, and no more (`api.middlewares`); without one, everything
    an API key opens what its user may do at the time of the request (`api.rights`); with it, ``applicationId`` chooses
        one of the user's applications, and another's is not found
"""

from __future__ import annotations

import hmac
from collections.abc import Mapping
from datetime import datetime
from enum import StrEnum
from types import MappingProxyType
from typing import Any, Final, TypeGuard

import jwt
from aiohttp import web
from multidict import CIMultiDictProxy

from api.access import Access
from api.errors import FORBIDDEN, NOT_FOUND, UNAUTHORIZED, Refused
from api.rights import KeyHolder, Rights
from api.rules.application_tokens import TOKEN_LIFETIME, is_id, mint_api_token
from common.accounts import KEY_PREFIX, Permission, hash_token
from common.clock import Clock
from common.db import shares, user_keys, users
from common.db.application_secrets import client_secret_identity
from common.db.applications import Application, get_application
from common.db.pool import Connection, Database
from common.secrets import Keyring

LEEWAY_SECONDS = 5
LONGEST_SECONDS = 24 * 60 * 60
_MOST_USER_CHARACTERS = 1024
_MOST_KEPT = 2000
_LONGEST_KEPT = 2048  # characters of a token whose claims are remembered
_LAST_TIME = 253_402_300_799  # the end of the year 9999: what is later is no date, and may not even be a float

_OPTIONS: Any = {"verify_signature": True, "verify_exp": False, "verify_nbf": False, "verify_iat": False,
                 "verify_aud": False, "verify_iss": False, "verify_sub": False, "verify_jti": False}  # fmt: skip
# What reading a hostile token can raise: nesting ends in RecursionError, odd text in ValueError.
_UNREADABLE = (jwt.PyJWTError, ValueError, TypeError, RecursionError)


class TokenFault(StrEnum):
    """Why a token opens nothing. The values are what the API shows as ``code``."""

    MISSING = "token_missing"
    UNSIGNED = "token_unsigned"  # by no secret of the application; also where there is no such application
    EXPIRED = "token_expired"
    TOO_LONG = "token_too_long"  # or without an end
    NOT_YET = "token_not_yet_valid"
    KEY_UNKNOWN = "key_unknown"
    KEY_EXPIRED = "key_expired"


_HINTS: Final = MappingProxyType(
    {
        TokenFault.MISSING: "send the headers applicationId and Authorization: Bearer <JWT>, each once",
        TokenFault.UNSIGNED: "not signed (HS256) with the client secret of this application, or it is being deleted",
        TokenFault.EXPIRED: "ask POST /token for another",
        TokenFault.TOO_LONG: "the token needs an exp at most 24 hours ahead, in seconds since 1970",
        TokenFault.NOT_YET: "its nbf lies ahead: compare your clock",
        TokenFault.KEY_UNKNOWN: "there is no such API key: revoked, or ended as its user gained rights",
        TokenFault.KEY_EXPIRED: "make another API key, under Account in the dashboard",
    }
)


KEY_HOLDER: web.RequestKey[KeyHolder] = web.RequestKey("key_holder", KeyHolder)
"""Of requests that an API key opened."""


def rights_of(request: web.Request) -> Rights:
    """Return the rights of a request whose route API keys alone open."""
    return request[KEY_HOLDER].rights


def may_change(request: web.Request, application: Application) -> bool:
    """Return whether what opened the request may change the application, and not only look at it."""
    holder = request.get(KEY_HOLDER)
    return holder is None or holder.rights.may(Permission.CHANGE, application.organisation_id)


class SignedTokens:
    """Remembers the claims of tokens, whose verification takes longer than the rest of an authentication.

    Mutable state: by a digest of token and secret, the claims, the oldest dropped first.
    """

    def __init__(self, *, most: int = _MOST_KEPT) -> None:
        self._most = most
        self._claims: dict[bytes, Mapping[str, Any]] = {}

    def read(self, token: str, secret: str) -> Mapping[str, Any] | None:
        """Return the claims, whose time may be over; None for a token that the secret did not sign."""
        digest = hmac.digest(secret.encode(), token.encode("utf-8", "surrogatepass"), "sha256")
        claims = self._claims.get(digest)
        if claims is None:
            try:
                claims = MappingProxyType(jwt.decode(token, secret, algorithms=["HS256"], options=_OPTIONS))
            except _UNREADABLE:
                return None
            if len(token) <= _LONGEST_KEPT:
                self._claims[digest] = claims
                if len(self._claims) > self._most:
                    del self._claims[next(iter(self._claims))]
        return claims


class Authenticator:
    """Finds what a request is opened by. One instance per process; holds no secret."""

    def __init__(self, database: Database, keyring: Keyring, clock: Clock) -> None:
        self._database = database
        self._keyring = keyring
        self._clock = clock
        self._signed = SignedTokens()

    async def authenticate(self, headers: CIMultiDictProxy[str]) -> Access:
        """Return what the request's token opens. Raises: `Refused`, `DatabaseUnavailable`."""
        application_id, token = _credentials(headers)
        async with self._database.connection() as connection:
            application = await get_application(connection, application_id)
            if application is None:
                raise _unauthorized(TokenFault.UNSIGNED)
            claims = self._claims(token, application)
            if not isinstance(claims, TokenFault):
                is_current = application.previous_client_secret is None or not isinstance(
                    self._claims(token, application, only_current=True), TokenFault
                )
                access = _access(application, claims, by_current_secret=is_current)
                await _refuse_ended_link(connection, access)
                return access
            claimed_id = _claimed_application_id(token)
            if claimed_id is None or claimed_id == application_id:
                raise _unauthorized(claims)
            claimed = await get_application(connection, claimed_id)
        is_foreign = claimed is not None and not isinstance(self._claims(token, claimed), TokenFault)
        raise Refused(FORBIDDEN) if is_foreign else _unauthorized(claims)

    async def find_key_holder(self, headers: CIMultiDictProxy[str]) -> KeyHolder:
        """Return the user whose API key opens the request. Raises: `Refused`, `DatabaseUnavailable`."""
        async with self._database.connection() as connection:
            found = await user_keys.find(connection, hash_token(_bearer_token(headers)))
            if found is None:
                raise _unauthorized(TokenFault.KEY_UNKNOWN)
            if found.is_expired:
                raise _unauthorized(TokenFault.KEY_EXPIRED)
            memberships = await users.list_memberships(connection, found.user.id)
        rights = Rights(
            user_id=found.user.id,
            is_operator=found.user.is_operator,
            memberships=tuple(memberships),
            at_most=found.key.permission,
            by_key=found.key.id,
        )
        return KeyHolder(found.key, found.user, rights)

    async def find_for_key(self, headers: CIMultiDictProxy[str], holder: KeyHolder, permission: Permission) -> Access:
        """Return access to the application of the header. Raises: `Refused`, `DatabaseUnavailable`."""
        ids = headers.getall("applicationId", [])
        if len(ids) != 1:
            raise Refused(FORBIDDEN, code="application", hint="send the header applicationId, once")
        application, rights = None, holder.rights
        if is_id(ids[0]) and holder.key.application_id in (None, ids[0]):
            async with self._database.connection() as connection:
                application = await get_application(connection, ids[0])
        if application is None:
            raise Refused(NOT_FOUND, hint="there is no such application, or the key does not open it")
        rights.require(permission, application.organisation_id)
        return Access(application, by_key=rights.by_key)

    async def identify(self, application_id: str, secret: str) -> Application:
        """Return the application whose client secret this is: the current or, in a rotation, the previous one.

        Raises: `Refused`, `DatabaseUnavailable`.
        """
        if not is_id(application_id):
            raise Refused(UNAUTHORIZED)
        async with self._database.connection() as connection:
            application = await get_application(connection, application_id)
        if application is None or not _is_among(secret, self._secrets(application)):
            raise Refused(UNAUTHORIZED)
        return application

    async def mint_for_browser(self, application_id: str, claims: Mapping[str, str], ends_at: datetime) -> str:
        """Make a token that a page may hold, for `TOKEN_LIFETIME`, but not beyond `ends_at`.

        `claims` restrict it. Raises: `Refused` for an application that is being deleted; `DatabaseUnavailable`.
        """
        async with self._database.connection() as connection:
            application = await get_application(connection, application_id)
        secrets = [] if application is None else self._secrets(application)
        if not secrets:
            raise Refused(UNAUTHORIZED)
        now = self._clock.now()
        lifetime = min(TOKEN_LIFETIME, ends_at - now)
        return mint_api_token(application_id, secrets[0], now, lifetime=lifetime, claims=claims)

    def _claims(
        self, token: str, application: Application, *, only_current: bool = False
    ) -> Mapping[str, Any] | TokenFault:
        """Return the claims of a token that a secret of the application signed, or why it opens nothing."""
        now, known = self._clock.now(), self._secrets(application)
        read = (verify_token(token, secret, now, self._signed) for secret in (known[:1] if only_current else known))
        return next((found for found in read if found is not TokenFault.UNSIGNED), TokenFault.UNSIGNED)

    def _secrets(self, application: Application) -> list[str]:
        if application.deleting_at is not None:
            return []
        envelopes = filter(None, (application.client_secret, application.previous_client_secret))
        identity = client_secret_identity(application.id)
        return [self._keyring.open(envelope, identity).decode() for envelope in envelopes]


def verify_token(token: str, secret: str, now: datetime, signed: SignedTokens) -> Mapping[str, Any] | TokenFault:
    """Return the claims of a token that `secret` signed and whose time is right, or the fault."""
    claims = signed.read(token, secret)
    if claims is None:
        return TokenFault.UNSIGNED
    seconds = now.timestamp()
    expires, begins = claims.get("exp"), claims.get("nbf", 0)
    if not _is_time(expires) or expires - seconds > LONGEST_SECONDS + LEEWAY_SECONDS:
        return TokenFault.TOO_LONG
    if expires - seconds <= -LEEWAY_SECONDS:
        return TokenFault.EXPIRED
    if not _is_time(begins) or begins > seconds + LEEWAY_SECONDS:
        return TokenFault.NOT_YET
    return claims


def _unauthorized(fault: TokenFault) -> Refused:
    return Refused(UNAUTHORIZED, code=fault.value, hint=_HINTS[fault])


def _access(application: Application, claims: Mapping[str, Any], *, by_current_secret: bool) -> Access:
    """Return what a token's claims open. Raises: `Refused`.

    A claim of a wrong type restricts all the same: as text, it names no scope and no domain that there is.
    """
    scope = claims.get("scope")

    def restriction(name: str) -> str | None:
        claim = claims.get(name)
        return None if scope is None or claim is None else str(claim)

    return Access(
        application,
        None if scope is None else str(scope),
        restriction("domain"),
        _user_id(claims.get("userId"), is_bound=scope is not None),
        by_current_secret,
        restriction("configurationId"),
        restriction("share"),
        application.secret_generation - (0 if by_current_secret else 1),
    )


def _user_id(claim: object, *, is_bound: bool) -> str | None:
    """Return the user that a token is for; a number counts as its digits.

    One that cannot be kept is none to a full token, and would free a token with a scope from its bound.

    Raises: `Refused`.
    """
    text = str(claim) if isinstance(claim, int) and not isinstance(claim, bool) else claim
    if isinstance(text, str) and text and _is_storable(text):
        return text
    if is_bound and claim is not None:
        raise Refused(FORBIDDEN, code="user", hint=f"userId is text of 1 to {_MOST_USER_CHARACTERS} characters")
    return None


async def _refuse_ended_link(connection: Connection, access: Access) -> None:
    """Refuse the token of a sharing link that was revoked or has expired. Raises: `Refused`."""
    share_id = access.share_id
    if share_id is not None and (
        not _is_storable(share_id) or not await shares.is_living(connection, access.application.id, share_id)
    ):
        raise Refused(FORBIDDEN, code="link_ended", hint="the sharing link was revoked, or has expired")


def _credentials(headers: CIMultiDictProxy[str]) -> tuple[str, str]:
    """Return the application id and the token of a request. Raises: `Refused`."""
    ids = headers.getall("applicationId", [])
    if len(ids) != 1 or not is_id(ids[0]):
        raise _unauthorized(TokenFault.MISSING)
    return ids[0], _bearer_token(headers)


def _bearer_token(headers: CIMultiDictProxy[str]) -> str:
    """Return the token of the Authorization header. Raises: `Refused`."""
    authorizations = headers.getall("Authorization", [])
    scheme, _, token = authorizations[0].partition(" ") if len(authorizations) == 1 else ("", "", "")
    if scheme.lower() != "bearer" or not token.isascii():
        raise _unauthorized(TokenFault.MISSING)
    return token.strip()


def has_key(headers: CIMultiDictProxy[str]) -> bool:
    """Whether an API key stands where a token would."""
    scheme, _, token = headers.get("Authorization", "").partition(" ")
    return scheme.lower() == "bearer" and token.strip().startswith(KEY_PREFIX)


def _claimed_application_id(token: str) -> str | None:
    """Return the application that a token names, whose signature is not verified yet."""
    try:
        claimed = jwt.decode(token, options={"verify_signature": False}).get("applicationId")
    except _UNREADABLE:
        return None
    return claimed if isinstance(claimed, str) and is_id(claimed) else None


def _is_storable(text: str) -> bool:
    """Postgres keeps no NUL, and no half of a surrogate pair."""
    has_surrogate = any("\ud800" <= character <= "\udfff" for character in text[:_MOST_USER_CHARACTERS])
    return "\0" not in text and not has_surrogate and len(text) <= _MOST_USER_CHARACTERS


def _is_time(value: object) -> TypeGuard[float]:
    """RFC 7519 §2, NumericDate."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= _LAST_TIME


def _is_among(given: str, secrets: list[str]) -> bool:
    """Compare in constant time, wherever the texts differ."""
    matches = [hmac.compare_digest(given.encode(), secret.encode()) for secret in secrets]
    return any(matches)
