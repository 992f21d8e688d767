"""Addresses of origins: hosts file first, then DNS, remembered for their TTL (1 s to 5 min).

Of a larger answer, `MAX_ADDRESSES` of each family are used: always the same ones, whatever order they come in. Each
look-up has a c-ares channel of its own: a channel answers from a private cache that also keeps failures.
"""

from __future__ import annotations

import asyncio
import math
import socket
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import aiodns

from common.clock import Clock
from common.errors import FrontageError
from common.host_ports import HostPort
from common.ip_addresses import parse_address
from common.metrics import Family, Labels

_NO_SORT = 1 << 7
"""ARES_AI_NOSORT, which pycares does not name. To sort, c-ares makes and connects a socket for each address, of
thousands too; `_choose` has an order of its own."""
_MIN_TTL_SECONDS = 1
_MAX_TTL_SECONDS = 300
_MAX_REMEMBERED = 10_000
_ABSENT = frozenset(
    (aiodns.error.ARES_ENOTFOUND, aiodns.error.ARES_ENODATA, aiodns.error.ARES_ENONAME, aiodns.error.ARES_EBADNAME)
)
_BOUNDS = (0.005, 0.02, 0.1, 0.5, 1.0, 2.0, 5.0)
MAX_ADDRESSES = 16
"""Of each family, of one name: each is checked against the policy whenever a connection is made."""


class Unresolvable(FrontageError):
    """The origin's name has no address, or its name servers could not be asked."""


class Answer(NamedTuple):
    """The addresses of a name: IP literals, IPv6 first where there are both."""

    addresses: tuple[str, ...]
    good_until: float  # monotonic; infinite for an address in place of a name


class OriginResolver:
    """Resolves a worker's origins; remembers at most 10,000 names."""

    def __init__(self, servers: Sequence[HostPort], clock: Clock) -> None:
        self._servers = [str(server) for server in servers] or None
        self._clock = clock
        self._answers: dict[str, Answer] = {}
        self._outcomes: dict[Labels, list[float]] = {(outcome,): [0.0] for outcome in ("answered", "absent", "failed")}
        self._seconds = [0.0] * (len(_BOUNDS) + 2)  # buckets, and the sum

    async def resolve(self, host: str, *, timeout_seconds: float) -> Answer:
        """Return an answer that is still good.

        Raises: `Unresolvable`.
        """
        if parse_address(host) is not None:
            return Answer((host,), math.inf)
        known = self._answers.get(host)
        if known is not None and self._clock.monotonic() < known.good_until:
            return known
        answer = await self._ask(host, timeout_seconds)
        if host not in self._answers and len(self._answers) >= _MAX_REMEMBERED:
            self._answers.pop(next(iter(self._answers)))
        self._answers[host] = answer
        return answer

    def seconds_left(self, answer: Answer) -> float:
        """Return how long the answer is still good."""
        return answer.good_until - self._clock.monotonic()

    def families(self) -> list[Family]:
        """Return the metrics."""
        return [
            Family(
                "frontage_edge_origin_lookups",
                "Look-ups of origins' names. Failed: the name servers could not be asked.",
                "counter",
                ("outcome",),
                samples=self._outcomes,
            ),
            Family(
                "frontage_edge_origin_lookup_seconds",
                "Time that a look-up of an origin's name took.",
                "histogram",
                bounds=_BOUNDS,
                samples={(): self._seconds},
            ),
        ]

    async def _ask(self, host: str, timeout_seconds: float) -> Answer:
        """Ask the name servers, and count what came of it."""
        began = self._clock.monotonic()
        try:
            answer = await self._look_up(host, timeout_seconds)
        except Unresolvable as error:
            self._count("absent" if _is_absent(error.__cause__) else "failed", began)
            raise
        self._count("answered", began)
        return answer

    def _count(self, outcome: str, began: float) -> None:
        seconds = self._clock.monotonic() - began
        self._outcomes[outcome,][0] += 1
        self._seconds[bisect_left(_BOUNDS, seconds)] += 1
        self._seconds[-1] += seconds

    async def _look_up(self, host: str, timeout_seconds: float) -> Answer:
        try:
            async with aiodns.DNSResolver(nameservers=self._servers, timeout=timeout_seconds / 2, tries=2) as resolver:
                async with asyncio.timeout(timeout_seconds):
                    lookup = resolver.getaddrinfo(host, socket.AF_UNSPEC, type=socket.SOCK_STREAM, flags=_NO_SORT)
                    result = await lookup
        except (aiodns.error.DNSError, TimeoutError, ValueError, UnicodeError) as error:
            raise Unresolvable(host) from error
        if not result.nodes:
            raise Unresolvable(host)
        ttl = max(_MIN_TTL_SECONDS, min(_MAX_TTL_SECONDS, *(node.ttl for node in result.nodes)))
        addresses = _choose(_text(node.addr[0]) for node in result.nodes)
        return Answer(addresses, self._clock.monotonic() + ttl)


def _is_absent(cause: BaseException | None) -> bool:
    """Return whether the name servers said that there is no address, or there can be none of such a name."""
    if isinstance(cause, aiodns.error.DNSError):
        return cause.args[0] in _ABSENT
    return not isinstance(cause, TimeoutError)


def _choose(addresses: Iterable[str]) -> tuple[str, ...]:
    by_family: dict[bool, list[str]] = {True: [], False: []}
    for address in sorted(set(addresses)):
        by_family[":" in address].append(address)
    return (*by_family[True][:MAX_ADDRESSES], *by_family[False][:MAX_ADDRESSES])


def _text(address: str | bytes) -> str:
    return address.decode("ascii") if isinstance(address, bytes) else address
