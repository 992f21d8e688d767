"""Addresses of origins: hosts file first, then DNS, remembered for their TTL (1 s to 5 min).

Each look-up has a c-ares channel of its own: a channel answers from a private cache that also keeps failures.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Sequence
from typing import NamedTuple

import aiodns

from common.clock import Clock
from common.errors import FrontageError
from common.ip_addresses import parse_address
from common.settings import HostPort

_MIN_TTL_SECONDS = 1
_MAX_TTL_SECONDS = 300
_MAX_REMEMBERED = 10_000


class Unresolvable(FrontageError):
    """The origin's name has no address, or its name servers could not be asked."""


class _Answer(NamedTuple):
    addresses: tuple[str, ...]
    good_until: float  # monotonic


class OriginResolver:
    """One a worker; remembers at most 10,000 names."""

    def __init__(self, servers: Sequence[HostPort], clock: Clock) -> None:
        self._servers = [str(server) for server in servers] or None
        self._clock = clock
        self._answers: dict[str, _Answer] = {}

    async def addresses(self, host: str, *, timeout_seconds: float) -> tuple[str, ...]:
        """IP literals, IPv6 first where there are both.

        Raises: `Unresolvable`.
        """
        if parse_address(host) is not None:
            return (host,)
        known = self._answers.get(host)
        if known is not None and self._clock.monotonic() < known.good_until:
            return known.addresses
        answer = await self._ask(host, timeout_seconds)
        if len(self._answers) >= _MAX_REMEMBERED:
            self._answers.pop(next(iter(self._answers)))
        self._answers[host] = answer
        return answer.addresses

    async def _ask(self, host: str, timeout_seconds: float) -> _Answer:
        try:
            async with aiodns.DNSResolver(nameservers=self._servers, timeout=timeout_seconds / 2, tries=2) as resolver:
                async with asyncio.timeout(timeout_seconds):
                    result = await resolver.getaddrinfo(host, socket.AF_UNSPEC, type=socket.SOCK_STREAM)
        except (aiodns.error.DNSError, TimeoutError, ValueError, UnicodeError) as error:
            raise Unresolvable(host) from error
        found = [(node.family, node.addr[0], node.ttl) for node in result.nodes]
        if not found:
            raise Unresolvable(host)
        ttl = max(_MIN_TTL_SECONDS, min(_MAX_TTL_SECONDS, *(node_ttl for *_, node_ttl in found)))
        ordered = sorted(found, key=lambda node: node[0] != socket.AF_INET6)
        addresses = tuple(dict.fromkeys(_text(address) for _, address, _ in ordered))
        return _Answer(addresses, self._clock.monotonic() + ttl)


def _text(address: str | bytes) -> str:
    return address.decode("ascii") if isinstance(address, bytes) else address
