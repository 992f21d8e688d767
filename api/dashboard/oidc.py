"""Signing in by the operator's OpenID Connect provider: where a browser is sent, and who comes back.

Rules
    authorization code flow with PKCE, state and nonce (OpenID Connect Core 1.0 §3.1, RFC 7636), all derived from one
        random token that only a cookie of the browser holds: nothing is stored here
    the issuer states itself by its discovery document, and in the answer where it does (RFC 9207)
    an ID token counts with an asymmetric signature by one of the issuer's keys, for our client, with our nonce
    what the ID token does not say is asked of the userinfo endpoint
    document and keys are kept for an hour; a key that is not among them is asked for at most once a minute
    they are read once at a time, and after a failure not for some seconds: a provider that is away holds no requests up
"""

from __future__ import annotations

import asyncio
import base64
import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import quote, urlencode

import aiohttp
import jwt
import orjson

from api.dashboard.browser import ROOT, is_same_token
from common.clock import Clock
from common.errors import FrontageError, OperatorError
from common.settings import Settings

RETURN_PATH: Final = f"{ROOT}/sign-in/oidc/return"

_SECONDS: Final = 10.0
_MOST_BYTES: Final = 512 * 1024
_KEPT_SECONDS: Final = 3600.0
_NEW_KEY_SECONDS: Final = 60.0
_PAUSE_SECONDS: Final = 5.0
_LEEWAY_SECONDS: Final = 60
_ALGORITHMS: Final = ("RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA")
_MOST_TEXT: Final = 2048


class OidcFailed(FrontageError):
    """The provider did not say who the user is. The text is for the log."""


@dataclass(frozen=True, slots=True)
class OidcIdentity:
    """The user, by the provider's word. `email`: None unless the provider has verified it."""

    issuer: str
    subject: str
    email: str | None
    values: frozenset[str]


@dataclass(frozen=True, slots=True)
class _Metadata:
    """Of the provider's discovery document, with its keys."""

    authorization_endpoint: str
    token_endpoint: str
    userinfo_endpoint: str | None
    states_issuer: bool
    takes_basic: bool
    keys: tuple[jwt.PyJWK, ...]
    read_at: float

    def find_key(self, key_id: object) -> jwt.PyJWK | None:
        """Return the key of a signature; the only one where the signature names none (OpenID Connect Core §10.1)."""
        if key_id is None:
            return self.keys[0] if len(self.keys) == 1 else None
        return next((key for key in self.keys if key.key_id == key_id), None)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One attempt of a browser to sign in. All that it sends is derived from `token`, which its cookie holds."""

    token: str

    @property
    def state(self) -> str:
        """Return what the answer has to carry."""
        return self._derive("state")

    @property
    def nonce(self) -> str:
        """Return what the ID token has to carry."""
        return self._derive("nonce")

    @property
    def verifier(self) -> str:
        """Return the secret that the code is exchanged with."""
        return self._derive("verifier")

    @property
    def challenge(self) -> str:
        """Return the digest of the verifier (RFC 7636 §4.2)."""
        return base64.urlsafe_b64encode(hashlib.sha256(self.verifier.encode()).digest()).rstrip(b"=").decode()

    def _derive(self, what: str) -> str:
        return hashlib.sha256(f"frontage oidc {what}/{self.token}".encode()).hexdigest()


class OidcProvider:
    """The operator's OpenID Connect provider. One instance per process.

    Mutable state: the provider's metadata, as read last, and when reading failed last.
    """

    def __init__(self, settings: Settings, clock: Clock, client_secret: str) -> None:
        assert settings.oidc_issuer is not None, "`of` makes it for an issuer alone"
        assert settings.oidc_client_id is not None, "the settings have it with the issuer"
        self.issuer = settings.oidc_issuer
        self._client_id = settings.oidc_client_id
        self._client_secret = client_secret
        self._claim = settings.oidc_claim
        self._return_url = settings.base_url + RETURN_PATH
        self._clock = clock
        self._metadata: _Metadata | None = None
        self._failed_at = -math.inf
        self._reading = asyncio.Lock()

    @classmethod
    def of(cls, settings: Settings, clock: Clock) -> OidcProvider | None:
        """Make the provider that the settings name, if they do. Raises: `OperatorError`."""
        path = settings.oidc_client_secret_file
        if settings.oidc_issuer is None or path is None:
            return None
        try:
            secret = path.read_text("utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            raise OperatorError(f"FRONTAGE_OIDC_CLIENT_SECRET_FILE cannot be read: {error}") from error
        if not secret:
            raise OperatorError(f"FRONTAGE_OIDC_CLIENT_SECRET_FILE is empty: {path}")
        return cls(settings, clock, secret)

    async def authorization_url(self, attempt: Attempt) -> str:
        """Return where the browser goes. Raises: `OidcFailed`."""
        async with self._session() as session:
            metadata = await self._read_metadata(session)
        query = {
            "response_type": "code",
            "client_id": self._client_id,
            "redirect_uri": self._return_url,
            "scope": "openid email profile",
            "state": attempt.state,
            "nonce": attempt.nonce,
            "code_challenge": attempt.challenge,
            "code_challenge_method": "S256",
        }
        separator = "&" if "?" in metadata.authorization_endpoint else "?"
        return f"{metadata.authorization_endpoint}{separator}{urlencode(query)}"

    async def identify(self, attempt: Attempt, answer: Mapping[str, str]) -> OidcIdentity:
        """Return who the user is by what the browser came back with. Raises: `OidcFailed`."""
        if not is_same_token(answer.get("state"), attempt.state):
            raise OidcFailed("the answer is of another attempt")
        async with self._session() as session:
            metadata = await self._read_metadata(session)
            if answer.get("iss", self.issuer) != self.issuer or (metadata.states_issuer and "iss" not in answer):
                raise OidcFailed("the answer is of another issuer")
            if error := answer.get("error"):
                raise OidcFailed(f"the provider answered {error[:100]!r}")
            code = answer.get("code", "")
            if not 0 < len(code) <= _MOST_TEXT:
                raise OidcFailed("the answer has no code")
            tokens = await self._exchange(session, metadata, code, attempt)
            claims = await self._verify(session, tokens.get("id_token"), attempt)
            asked = {"email", "email_verified", self._claim} - claims.keys()
            if asked and metadata.userinfo_endpoint and isinstance(tokens.get("access_token"), str):
                claims = await self._ask_more(session, metadata.userinfo_endpoint, tokens["access_token"], claims)
        email = claims.get("email")
        is_verified = claims.get("email_verified") is True and isinstance(email, str)
        return OidcIdentity(self.issuer, claims["sub"], email if is_verified else None, _texts(claims.get(self._claim)))

    def _session(self) -> aiohttp.ClientSession:
        timeout = aiohttp.ClientTimeout(total=_SECONDS)
        return aiohttp.ClientSession(timeout=timeout, cookie_jar=aiohttp.DummyCookieJar(), trust_env=False)

    async def _read_metadata(self, session: aiohttp.ClientSession, *, at_most_old: float = _KEPT_SECONDS) -> _Metadata:
        """Return the provider's metadata and keys, read anew after a time. Raises: `OidcFailed`."""
        async with self._reading:
            known, now = self._metadata, self._clock.monotonic()
            if known is not None and now - known.read_at < at_most_old:
                return known
            if now - self._failed_at < _PAUSE_SECONDS:
                raise OidcFailed("the provider failed a moment ago, and is not asked yet")
            try:
                self._metadata = await self._fetch_metadata(session, now)
            except OidcFailed:
                self._failed_at = self._clock.monotonic()
                raise
            return self._metadata

    async def _fetch_metadata(self, session: aiohttp.ClientSession, now: float) -> _Metadata:
        """Read the provider's document and keys. Raises: `OidcFailed`."""
        document = await _fetch(session, "GET", f"{self.issuer.rstrip('/')}/.well-known/openid-configuration")
        if document.get("issuer") != self.issuer:
            raise OidcFailed(f"the document is of the issuer {str(document.get('issuer'))[:200]!r}")
        endpoints = [
            self._endpoint(document, name) for name in ("authorization_endpoint", "token_endpoint", "jwks_uri")
        ]
        has_userinfo = document.get("userinfo_endpoint") is not None
        found = await _fetch(session, "GET", endpoints[2])
        methods = document.get("token_endpoint_auth_methods_supported", ["client_secret_basic"])
        return _Metadata(
            endpoints[0],
            endpoints[1],
            self._endpoint(document, "userinfo_endpoint") if has_userinfo else None,
            document.get("authorization_response_iss_parameter_supported") is True,
            isinstance(methods, list) and "client_secret_basic" in methods,
            _read_keys(found),
            now,
        )

    def _endpoint(self, document: Mapping[str, Any], name: str) -> str:
        """Return an address of the document, which is as safe as the issuer's. Raises: `OidcFailed`."""
        address = document.get(name)
        scheme = "https://" if self.issuer.startswith("https://") else ("https://", "http://")
        if not isinstance(address, str) or not address.startswith(scheme) or len(address) > _MOST_TEXT:
            raise OidcFailed(f"the document has no usable {name}")
        return address

    async def _exchange(
        self, session: aiohttp.ClientSession, metadata: _Metadata, code: str, attempt: Attempt
    ) -> dict[str, Any]:
        """Exchange the code for tokens. Raises: `OidcFailed`."""
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": self._return_url,
            "code_verifier": attempt.verifier,
        }
        headers = {}
        if metadata.takes_basic:  # RFC 6749 §2.3.1
            pair = f"{quote(self._client_id, safe='')}:{quote(self._client_secret, safe='')}"
            headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        else:
            form |= {"client_id": self._client_id, "client_secret": self._client_secret}
        return await _fetch(session, "POST", metadata.token_endpoint, data=form, headers=headers)

    async def _verify(self, session: aiohttp.ClientSession, token: object, attempt: Attempt) -> dict[str, Any]:
        """Return the claims of an ID token. Raises: `OidcFailed`."""
        if not isinstance(token, str):
            raise OidcFailed("the provider sent no ID token")
        try:
            key_id = jwt.get_unverified_header(token).get("kid")
            key = (await self._read_metadata(session)).find_key(key_id)
            if key is None:
                key = (await self._read_metadata(session, at_most_old=_NEW_KEY_SECONDS)).find_key(key_id)
            if key is None:
                raise OidcFailed("the ID token is signed by a key that the provider does not list")
            claims: dict[str, Any] = jwt.decode(
                token,
                key,
                algorithms=_ALGORITHMS,
                audience=self._client_id,
                issuer=self.issuer,
                leeway=_LEEWAY_SECONDS,
                options={"require": ["iss", "sub", "aud", "exp", "iat"]},
            )
        except jwt.PyJWTError as error:
            raise OidcFailed(f"the ID token is not good: {error}") from error
        if not is_same_token(claims.get("nonce"), attempt.nonce):
            raise OidcFailed("the ID token is of another attempt")
        if claims.get("azp", self._client_id) != self._client_id:
            raise OidcFailed("the ID token was made for another client")
        if not isinstance(claims["sub"], str) or not 0 < len(claims["sub"]) <= 255:
            raise OidcFailed("the ID token has no usable subject")
        return claims

    async def _ask_more(
        self, session: aiohttp.ClientSession, endpoint: str, access_token: str, claims: dict[str, Any]
    ) -> dict[str, Any]:
        """Return the claims with those of the userinfo endpoint that they lack. Raises: `OidcFailed`."""
        more = await _fetch(session, "GET", endpoint, headers={"Authorization": f"Bearer {access_token}"})
        if more.get("sub") != claims["sub"]:
            raise OidcFailed("the userinfo endpoint speaks of another user")
        return more | claims


async def _fetch(session: aiohttp.ClientSession, method: str, url: str, **request: Any) -> dict[str, Any]:
    """Return the JSON object that an endpoint answers. Raises: `OidcFailed`."""
    try:
        async with session.request(method, url, allow_redirects=False, **request) as response:
            body = await response.content.read(_MOST_BYTES)
            while len(body) < _MOST_BYTES and (more := await response.content.read(_MOST_BYTES - len(body))):
                body += more
            status = response.status
    except (aiohttp.ClientError, TimeoutError, ValueError) as error:
        raise OidcFailed(f"{url} cannot be reached: {type(error).__name__}: {error}") from error
    try:
        answer = orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise OidcFailed(f"{url} answered {status}, which is no JSON") from error
    if status != 200 or not isinstance(answer, dict):
        reason = answer.get("error") if isinstance(answer, dict) else None
        raise OidcFailed(f"{url} answered {status}: {str(reason)[:100]}")
    return answer


def _read_keys(document: Mapping[str, Any]) -> tuple[jwt.PyJWK, ...]:
    """Return the keys that sign. Raises: `OidcFailed`."""
    listed = document.get("keys")
    found = []
    for each in listed if isinstance(listed, list) else ():
        try:
            if isinstance(each, dict) and each.get("use", "sig") == "sig" and each.get("kty") != "oct":
                found.append(jwt.PyJWK(each))
        except (jwt.PyJWTError, ValueError, TypeError, KeyError):
            continue  # a kind of key that we do not know: others may sign
    if not found:
        raise OidcFailed("the provider lists no key that signs")
    return tuple(found)


def _texts(value: object) -> frozenset[str]:
    """Return a claim's values: of a list, or one text."""
    return frozenset(each for each in (value if isinstance(value, list) else [value]) if isinstance(each, str))
