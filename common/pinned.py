"""HTTP requests to addresses from outside: the address that was checked is the address that is dialled.

aiohttp calls no resolver for a literal address, and a second look-up of a name may give another answer. So the caller
resolves the name, the session uses only those addresses, and the policy is applied where each socket is created.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Sequence
from ipaddress import ip_address
from typing import Any

import aiohttp
from aiohttp.abc import AbstractResolver, ResolveResult

from common.addresses import AddressPolicy
from common.dns import Resolver
from common.errors import AddressRefused
from common.ip_addresses import parse_address


async def find_addresses(resolver: Resolver, host: str) -> list[str]:
    """Resolve a URL's host for `pinned_session`.

    There are none for a literal address, which aiohttp dials itself.
    """
    if parse_address(host) is not None:
        return []
    async with resolver.open_pass() as questions:
        answers = await asyncio.gather(questions.ask(host, "A"), questions.ask(host, "AAAA"))
    return [value for answer in answers for value in answer.values]


def pinned_session(
    policy: AddressPolicy,
    addresses: Sequence[str],
    *,
    longest_seconds: float,
    tls: ssl.SSLContext | None = None,
) -> aiohttp.ClientSession:
    """Open a session that connects only to `addresses` that the policy allows.

    It is for one request, to be closed after it. It keeps no cookie, no connection and no proxy, decodes nothing,
    and ends whatever takes `longest_seconds`. `tls`: without one, the system's authorities are trusted.
    """
    connector = aiohttp.TCPConnector(
        resolver=_PinnedResolver(addresses),
        socket_factory=_CheckedSockets(policy).open,
        use_dns_cache=False,
        force_close=True,
        ssl=tls if tls is not None else True,
    )
    return aiohttp.ClientSession(
        connector=connector,
        timeout=aiohttp.ClientTimeout(total=longest_seconds),
        cookie_jar=aiohttp.DummyCookieJar(),
        auto_decompress=False,
    )


class _CheckedSockets:
    def __init__(self, policy: AddressPolicy) -> None:
        self._policy = policy

    def open(self, address_info: Any) -> socket.socket:
        """Create the socket for an address.

        Raises: OSError for an address the policy refuses; aiohttp then tries the next.
        """
        family, kind, protocol, _, (host, port, *_) = address_info
        try:
            self._policy.check(ip_address(host), port)
        except AddressRefused as error:
            raise OSError(str(error)) from error
        opened = socket.socket(family, kind, protocol)
        opened.setblocking(False)
        return opened


class _PinnedResolver(AbstractResolver):
    """Answers with the addresses that the caller has found."""

    def __init__(self, addresses: Sequence[str]) -> None:
        self._addresses = addresses

    async def resolve(
        self, host: str, port: int = 0, family: socket.AddressFamily = socket.AF_UNSPEC
    ) -> list[ResolveResult]:
        """Return the pinned addresses for any host.

        Raises: OSError where there is no address: aiohttp asserts that there is one.
        """
        if not self._addresses:
            raise OSError(f"{host} has no address")
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

    async def close(self) -> None:
        """Do nothing: the resolver holds nothing open."""
