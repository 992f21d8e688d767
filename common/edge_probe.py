"""Asks for a domain over HTTP whether our own edge answers there (`common.probe`), through whatever CDN.

The domain's addresses are the customer's word: the policy is asked about each where its socket is made, nothing is
followed, and time and size are bounded.
"""

from __future__ import annotations

import hmac
import socket
from ipaddress import ip_address
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from common.addresses import AddressPolicy
from common.dns import Pass
from common.errors import AddressRefused
from common.probe import PROBE_PATH, new_nonce, probe_answer
from common.secrets import Keyring

_LONGEST_SECONDS = 3.0


class HttpEdgeProbe:
    """One a process. `port` is where the world speaks HTTP."""

    def __init__(self, keyring: Keyring, policy: AddressPolicy, *, port: int = 80) -> None:
        self._keyring = keyring
        self._policy = policy
        self._port = port

    async def __call__(self, questions: Pass, domain: str) -> bool:
        addresses = [*(await questions.ask(domain, "A")).values, *(await questions.ask(domain, "AAAA")).values]
        if not addresses:
            return False
        nonce = new_nonce()
        expected = probe_answer(self._keyring, domain, nonce)
        assert expected is not None
        try:
            answer = await self._get(domain, addresses, nonce, len(expected))
        except (aiohttp.ClientError, OSError, TimeoutError, ValueError):
            return False
        return hmac.compare_digest(answer, expected)

    async def _get(self, domain: str, addresses: list[str], nonce: str, size: int) -> bytes:
        """The first bytes of a 200; nothing for any other status."""
        connector = aiohttp.TCPConnector(
            resolver=_Known(addresses), socket_factory=self._open_socket, use_dns_cache=False, force_close=True
        )
        timeout = aiohttp.ClientTimeout(total=_LONGEST_SECONDS)
        url = f"http://{domain}:{self._port}{PROBE_PATH}{nonce}"
        async with (
            aiohttp.ClientSession(connector=connector, timeout=timeout, auto_decompress=False) as session,
            session.get(url, allow_redirects=False, headers={"Accept-Encoding": "identity"}) as response,
        ):
            if response.status != 200:
                return b""
            return await response.content.read(size + 1)

    def _open_socket(self, address_info: Any) -> socket.socket:
        """Raises: OSError for an address the policy refuses; aiohttp then tries the next."""
        family, kind, protocol, _, (host, port, *_) = address_info
        try:
            self._policy.check(ip_address(host), port)
        except AddressRefused as error:
            raise OSError(str(error)) from error
        opened = socket.socket(family, kind, protocol)
        opened.setblocking(False)
        return opened


class _Known(AbstractResolver):
    """Answers with the addresses this pass has already asked for."""

    def __init__(self, addresses: list[str]) -> None:
        self._addresses = addresses

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        return [
            ResolveResult(
                hostname=host,
                host=address,
                port=port,
                family=socket.AF_INET6 if ":" in address else socket.AF_INET,
                proto=socket.IPPROTO_TCP,
                flags=socket.AI_NUMERICHOST,
            )
            for address in self._addresses
        ]

    async def close(self) -> None: ...
