"""Makes one attempt to POST to a webhook. A failure is a result too, explained for the webhook's owner.

The URL comes from a partner: its host is resolved for each attempt and every address is checked and pinned
(`common.pinned`). A redirect is a failure, because it could lead from a checked address to another. Only the status of
the response counts; how its body begins is kept for the webhook's owner.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from ipaddress import ip_address

import aiohttp
from yarl import URL

from common.addresses import AddressPolicy
from common.dns import Resolver
from common.errors import AddressRefused
from common.ip_addresses import parse_address
from common.pinned import pinned_session

TIMEOUT_SECONDS = 15.0
_USER_AGENT = "Frontage-Webhooks"
SHOWN_CHARS = 500
_MOST_BODY_BYTES = 16 * 1024
_BODY_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class WebhookResponse:
    """The result of one attempt. `status` is None when there was no answer; `error` is None when it was 2xx."""

    status: int | None
    error: str | None
    retry_after: str | None = None
    body: str | None = None
    """How the answer begins, at most `SHOWN_CHARS`; None for an empty one."""

    @property
    def is_gone(self) -> bool:
        """Return whether the endpoint says that it is gone for good (410)."""
        return self.status == 410


class _NoAddress(Exception):
    """The webhook has no address that may be dialled, in words for its owner."""


class Sender:
    """Posts to webhooks. One instance per process; it keeps no connection.

    `tls` replaces the system's trust; None keeps it.
    """

    def __init__(
        self,
        resolver: Resolver,
        policy: AddressPolicy,
        *,
        tls: ssl.SSLContext | None = None,
        timeout_seconds: float = TIMEOUT_SECONDS,
    ) -> None:
        self._resolver = resolver
        self._policy = policy
        self._tls = tls
        self._timeout_seconds = timeout_seconds

    async def post(self, url: str, body: bytes, headers: Mapping[str, str]) -> WebhookResponse:
        """Make the attempt. It ends within the time-out and a few seconds; no behaviour of the partner raises."""
        try:
            async with asyncio.timeout(self._timeout_seconds):
                return await self._post(URL(url, encoded=True), body, headers)
        except _NoAddress as error:
            return WebhookResponse(None, str(error))
        except TimeoutError:
            return WebhookResponse(None, f"no answer within {self._timeout_seconds:g} seconds")
        except (aiohttp.ClientSSLError, ssl.SSLError):
            return WebhookResponse(None, "TLS failed: its certificate may be invalid, expired or for another name")
        except (aiohttp.ClientConnectorError, OSError):
            return WebhookResponse(None, "no connection could be made")
        except (aiohttp.ClientError, ValueError):
            return WebhookResponse(None, "the answer was no valid HTTP, or broke off")

    async def _post(self, url: URL, body: bytes, headers: Mapping[str, str]) -> WebhookResponse:
        addresses = await self._find_addresses(url)
        async with (
            pinned_session(self._policy, addresses, longest_seconds=self._timeout_seconds, tls=self._tls) as session,
            session.post(url, data=body, headers=_headers(headers), allow_redirects=False) as response,
        ):
            return _answer(response, await _read_beginning(response))

    async def _find_addresses(self, url: URL) -> list[str]:
        """Return the host's addresses that webhooks may be sent to.

        Raises: `_NoAddress`.
        """
        found = await self._resolve(url.host or "")
        allowed = [address for address in found if self._is_allowed(address, url.port or 0)]
        if not allowed:
            raise _NoAddress("its address is none that webhooks may be sent to" if found else "its name has no address")
        return allowed

    async def _resolve(self, host: str) -> list[str]:
        """Return all addresses of the host.

        Raises: `_NoAddress` when its name could not be looked up.
        """
        if host == "localhost" or host.endswith(".localhost"):  # RFC 6761 §6.3
            return ["127.0.0.1"]
        literal = parse_address(host)
        if literal is not None:
            return [str(literal)]
        async with self._resolver.open_pass() as questions:
            answers = [await questions.ask(host, "A"), await questions.ask(host, "AAAA")]
        if not any(answer.outcome.is_known for answer in answers):
            raise _NoAddress("its name could not be looked up")
        return [address for answer in answers for address in answer.values]

    def _is_allowed(self, address: str, port: int) -> bool:
        try:
            self._policy.check(ip_address(address), port)
        except AddressRefused:
            return False
        return True


def _headers(headers: Mapping[str, str]) -> dict[str, str]:
    return {"Content-Type": "application/json", "User-Agent": _USER_AGENT, "Accept-Encoding": "identity"} | dict(
        headers
    )


async def _read_beginning(response: aiohttp.ClientResponse) -> bytes:
    """Read a short body, so that the sender sees no reset; cut off a long or slow one."""
    read = bytearray()
    with suppress(TimeoutError, aiohttp.ClientError):
        async with asyncio.timeout(_BODY_SECONDS):
            while len(read) < _MOST_BODY_BYTES and (chunk := await response.content.read(_MOST_BODY_BYTES - len(read))):
                read += chunk
    return bytes(read)


def _answer(response: aiohttp.ClientResponse, read: bytes) -> WebhookResponse:
    """Return the result of an attempt: the response's status, and the first bytes of its body."""
    status, body = response.status, _shown(read)
    if 200 <= status < 300:
        return WebhookResponse(status, None, body=body)
    words = "redirects are not followed" if 300 <= status < 400 else f"answered {status}"
    return WebhookResponse(status, words, response.headers.get("Retry-After"), body)


def _shown(read: bytes) -> str | None:
    """Return the beginning of a body as text: what is no UTF-8 or is not printed is replaced."""
    text = read[: 4 * SHOWN_CHARS].decode("utf-8", "replace")[:SHOWN_CHARS]
    return "".join(each if each.isprintable() or each in "\n\t" else "\ufffd" for each in text).strip() or None
