"""Requests to one CA: signed, with a nonce each, repeated where that is safe.

Owns the nonces and the directory as last read. It knows nothing of orders: what an answer means is the caller's.

Rules
    a nonce is used once; every response brings another; a rejected one (badNonce, RFC 8555 §6.5) means that the request
    was not processed, so it is repeated
    a broken connection or a 5xx is retried a few times after a short pause, but only where the caller allows the
    request to be repeated
    redirects are not followed; a response is limited to `_MOST_BYTES` and `_REQUEST_SECONDS`
Payloads, keys and tokens never reach the log.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final, NamedTuple
from urllib.parse import urlsplit

import aiohttp
import orjson
from acme import messages
from acme.jws import JWS
from josepy.errors import DeserializationError
from josepy.interfaces import JSONDeSerializable
from josepy.json_util import decode_b64jose
from josepy.jwa import ES256
from josepy.jwk import JWKEC

from common.clock import Clock
from common.retry_pauses import RetryPauses
from monitor.certificates.acme.problems import AcmeProblem, failure, read_problem, retry_after_seconds
from monitor.certificates.issuer import IssuanceFailed

_REQUEST_SECONDS: Final = 20.0
_CONNECT_SECONDS: Final = 5.0
_MOST_BYTES: Final = 1 << 20
_MOST_NONCES: Final = 64
_NONCE_TRIES: Final = 20
_TRIES: Final = 3
_FIRST_PAUSE_SECONDS: Final = 0.1
_LONGEST_PAUSE_SECONDS: Final = 3.0  # where a CA asks for a longer one, the order's next attempt asks it again
_DIRECTORY_SECONDS: Final = 3600.0
_HEADERS: Final = {"Accept-Language": "en"}


class CaResponse(NamedTuple):
    """A successful response. `url` is the value of ``Location``, or ""."""

    body: bytes
    url: str
    retry_after_seconds: float

    def json(self) -> dict[str, Any]:
        """Parse the body as a JSON object.

        Raises: ValueError.
        """
        value = orjson.loads(self.body)
        if not isinstance(value, dict):
            raise ValueError("expected a JSON object")
        return value


class Unavailable(IssuanceFailed):
    """The CA did not answer, or asks to retry later.

    `was_taken`: the CA may have acted on the request nevertheless.
    """

    def __init__(self, words: str, *, was_taken: bool, retry_after_seconds: float = 0.0) -> None:
        super().__init__(words, kind="unavailable", retry_after_seconds=retry_after_seconds)
        self.was_taken = was_taken


class Transport:
    """Sends requests to one CA. One instance per CA, created by `open_acme`, whose session it borrows.

    `profiles` are those of the directory as last read.
    """

    def __init__(self, session: aiohttp.ClientSession, directory_url: str, key: JWKEC, clock: Clock) -> None:
        self.directory_url = directory_url
        self.authority = urlsplit(directory_url).hostname or directory_url
        self.key = key
        self._session = session
        self._clock = clock
        self._nonces: list[bytes] = []
        self._directory: tuple[float, messages.Directory] | None = None
        self.profiles: frozenset[str] = frozenset()

    async def directory(self) -> messages.Directory:
        """Return the CA's directory, fetched again each hour.

        Raises: `IssuanceFailed`.
        """
        now = self._clock.monotonic()
        if self._directory is None or now - self._directory[0] > _DIRECTORY_SECONDS:
            try:
                found = (await self.get(self.directory_url)).json()
                profiles = _profiles(found)
                directory = messages.Directory.from_json(found)  # which takes `meta` out of it
                for needed in ("newNonce", "newAccount", "newOrder"):
                    directory[needed]
            except AcmeProblem as problem:
                raise failure(problem, self.authority) from problem
            except (ValueError, KeyError, DeserializationError) as error:
                raise self.unreadable("directory") from error
            self._directory = now, directory
            self.profiles = profiles
        return self._directory[1]

    async def get(self, url: str) -> CaResponse:
        """Send a GET request.

        Raises: `AcmeProblem` for a refusal with a status below 500; `IssuanceFailed`.
        """
        return await self._send_with_retries("GET", url, None)

    async def post(
        self,
        url: str,
        payload: JSONDeSerializable | None,
        *,
        account_url: str | None,
        accept: str = "application/json",
        is_repeatable: bool = True,
        key: JWKEC | None = None,
    ) -> CaResponse:
        """Post `payload`, None for a POST-as-GET; without `account_url` the request carries the key itself (``jwk``).

        `key` signs in place of the account's own.

        Raises: `AcmeProblem` for a refusal with a status below 500; `IssuanceFailed`; `Unavailable` where the CA did
        not answer.
        """
        text = b"" if payload is None else payload.json_dumps().encode()
        signed = _Signed(key or self.key, text, account_url, accept)
        return await self._send_with_retries("POST", url, signed, tries=_TRIES if is_repeatable else 1)

    def unreadable(self, what: str) -> IssuanceFailed:
        """Return the failure for a response that cannot be parsed as `what`."""
        return IssuanceFailed(f"{self.authority} sent a {what} that cannot be read", kind="unavailable")

    async def _send_with_retries(
        self, method: str, url: str, signed: _Signed | None, *, tries: int = _TRIES
    ) -> CaResponse:
        """Send a request up to `tries` times, with pauses, while the CA fails for a moment."""
        pauses = RetryPauses(first=_FIRST_PAUSE_SECONDS, longest=_LONGEST_PAUSE_SECONDS)
        while True:
            tries -= 1
            pause = pauses.next_seconds()
            try:
                return await self._send_with_nonces(method, url, signed)
            except AcmeProblem as problem:
                if not problem.is_passing:
                    raise
                pause = max(pause, problem.retry_after_seconds)
                if not tries or pause > _LONGEST_PAUSE_SECONDS:
                    raise self._unavailable(problem) from problem
            except (aiohttp.ClientError, OSError, TimeoutError, ValueError) as error:
                if not tries:
                    raise self._unreachable(error) from error
            await asyncio.sleep(pause)

    async def _send_with_nonces(self, method: str, url: str, signed: _Signed | None) -> CaResponse:
        """Send a request, signed anew whenever the CA rejects its nonce."""
        for _ in range(_NONCE_TRIES):
            data = None if signed is None else signed.text(url, await self._take_nonce())
            try:
                return await self._send(method, url, data, signed)
            except AcmeProblem as problem:
                if problem.code != "badNonce":
                    raise
                refused = problem
        raise refused

    async def _take_nonce(self) -> bytes:
        """Take the newest nonce; fetch one if none is left."""
        if not self._nonces:
            directory = await self.directory()
            try:
                await self._send_with_retries("HEAD", directory["newNonce"], None)
            except Unavailable as error:
                raise Unavailable(str(error), was_taken=False, retry_after_seconds=error.retry_after_seconds) from error
        if not self._nonces:
            raise self.unreadable("nonce")
        return self._nonces.pop()

    async def _send(self, method: str, url: str, data: bytes | None, signed: _Signed | None) -> CaResponse:
        """Send one request and return its successful response.

        Raises: `AcmeProblem`, aiohttp's errors, OSError, TimeoutError.
        """
        headers = {**_HEADERS, **(signed.headers if signed else {})}
        async with self._session.request(method, url, data=data, headers=headers, allow_redirects=False) as response:
            body = await _read(response)
        self._keep_nonce(response.headers)
        retry_after = retry_after_seconds(response.headers, self._clock.now())
        if not 200 <= response.status < 300:
            raise read_problem(response.status, body, retry_after)
        return CaResponse(body, response.headers.get("Location", ""), retry_after)

    def _keep_nonce(self, headers: Mapping[str, str]) -> None:
        """Store the response's nonce. The newest is taken first, since CAs forget old ones."""
        with suppress(DeserializationError):
            nonce = decode_b64jose(headers.get("Replay-Nonce", ""))
            self._nonces.extend([nonce] if nonce else [])
            del self._nonces[:-_MOST_NONCES]

    def _unavailable(self, problem: AcmeProblem) -> Unavailable:
        """Return the failure for a CA that answered with a passing error."""
        return Unavailable(
            str(failure(problem, self.authority)),
            was_taken=problem.status != 503,
            retry_after_seconds=problem.retry_after_seconds,
        )

    def _unreachable(self, error: Exception) -> Unavailable:
        """Return the failure for a CA that could not be reached or broke off, with the reason in plain words."""
        if isinstance(error, TimeoutError):
            why = "did not answer in time"
        elif isinstance(error, aiohttp.ClientConnectorCertificateError | aiohttp.ClientConnectorSSLError):
            why = "cannot be trusted (FRONTAGE_ACME_CA_FILE names more authorities to trust)"
        elif isinstance(error, aiohttp.ClientConnectorError):
            why = "cannot be connected to"
        else:
            why = "broke off the connection"
        never_connected = isinstance(error, aiohttp.ClientConnectorError | aiohttp.ConnectionTimeoutError)
        return Unavailable(f"{self.authority} {why}", was_taken=not never_connected)


def _profiles(directory: Mapping[str, Any]) -> frozenset[str]:
    """Return the profiles that a directory offers (draft-aaron-acme-profiles §3), which the library leaves out."""
    meta = directory.get("meta")
    offered = meta.get("profiles") if isinstance(meta, dict) else None
    return frozenset(offered) if isinstance(offered, dict) else frozenset()


class _Signed(NamedTuple):
    """A request that is signed anew for each nonce."""

    key: JWKEC
    payload: bytes
    account_url: str | None
    accept: str

    @property
    def headers(self) -> dict[str, str]:
        return {"Content-Type": "application/jose+json", "Accept": self.accept}

    def text(self, url: str, nonce: bytes) -> bytes:
        """Sign the payload for this URL and nonce."""
        signed: str = JWS.sign(self.payload, self.key, ES256, nonce, url, self.account_url).json_dumps()
        return signed.encode()


async def _read(response: aiohttp.ClientResponse) -> bytes:
    """Read a response's body.

    Raises: ValueError for a body of more than `_MOST_BYTES`.
    """
    body = bytearray()
    async for chunk in response.content.iter_any():
        body += chunk
        if len(body) > _MOST_BYTES:
            raise ValueError("too large")
    return bytes(body)


def session_timeout() -> aiohttp.ClientTimeout:
    """Return the time-outs of a session for requests to CAs."""
    return aiohttp.ClientTimeout(total=_REQUEST_SECONDS, connect=_CONNECT_SECONDS)
