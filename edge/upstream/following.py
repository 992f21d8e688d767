"""Follows the DNS of origins while connections to them are open: one whose address has left the answer is retired.

A name is looked up again when its answer is no longer good, though not within `_MIN_PAUSE_SECONDS`; so a retired
connection's address was the origin's until its TTL ago (5 minutes at most). While the look-ups fail, connections serve
on for `_STALE_SECONDS`. Where a look-up leads is not connected to here: the connector checks every address it dials.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from heapq import heappop, heappush
from typing import Final

from common.ip_addresses import parse_address
from common.logs import get_logger
from edge.upstream.connection import UpstreamConnection
from edge.upstream.resolution import OriginResolver, Unresolvable

_MIN_PAUSE_SECONDS: Final = 5.0
_STALE_SECONDS: Final = 300.0
_MAX_LOOKUPS: Final = 16  # at once; further names wait for the next tick

_log = get_logger("edge.upstream.following")


class _Name:
    """A host name of origins, for as long as it is followed."""

    __slots__ = ("confirmed_at", "connections")

    def __init__(self, now: float) -> None:
        self.confirmed_at = now  # when it last had an answer
        self.connections: set[UpstreamConnection] = set()


class AddressFollower:
    """Follows a worker's origins.

    Created with its dispatcher, which calls `add`, `discard`, `tick` and `close`.

    Invariant: each name in `_names` is once in `_due`, or is being looked up. All times are the loop's.

    Invariant: each name in `_names` is once in `_due`, or is being looked up. All times are the loop's.
    """

    def __init__(self, resolver: OriginResolver, loop: asyncio.AbstractEventLoop, *, timeout_seconds: float) -> None:
        self._resolver = resolver
        self._loop = loop
        self._timeout_seconds = timeout_seconds
        self._names: dict[str, _Name] = {}
        self._due: list[tuple[float, str]] = []  # a heap
        self._lookups: set[asyncio.Task[None]] = set()
        self.retired_count = 0

    def __repr__(self) -> str:
        return f"<AddressFollower {len(self._names)} names, {len(self._lookups)} look-ups>"

    def add(self, connection: UpstreamConnection) -> None:
        """Follow the connection's origin, unless its host is an address."""
        host = connection.origin.host
        name = self._names.get(host)
        if name is None:
            if parse_address(host) is not None:
                return
            now = self._loop.time()
            name = self._names[host] = _Name(now)
            heappush(self._due, (now + _MIN_PAUSE_SECONDS, host))
        name.connections.add(connection)

    def discard(self, connection: UpstreamConnection) -> None:
        """Forget the connection."""
        name = self._names.get(connection.origin.host)
        if name is not None:
            name.connections.discard(connection)

    def tick(self, retire: Callable[[UpstreamConnection], None]) -> None:
        """Look up the names that are due. `retire` ends a connection as soon as no exchange has it."""
        now = self._loop.time()
        while self._due and self._due[0][0] <= now and len(self._lookups) < _MAX_LOOKUPS:
            _, host = heappop(self._due)
            if not self._names[host].connections:
                del self._names[host]
                continue
            task = self._loop.create_task(self._look_up(host, retire), name=f"follow {host}")
            self._lookups.add(task)
            task.add_done_callback(self._lookups.discard)

    def close(self) -> None:
        """Stop the look-ups."""
        for task in self._lookups:
            task.cancel()

    async def _look_up(self, host: str, retire: Callable[[UpstreamConnection], None]) -> None:
        name, pause_seconds = self._names[host], _MIN_PAUSE_SECONDS
        try:
            answer = await self._resolver.resolve(host, timeout_seconds=self._timeout_seconds)
            name.confirmed_at = self._loop.time()
            pause_seconds = max(pause_seconds, self._resolver.seconds_left(answer))
            self._retire_others(host, answer.addresses, retire)
        except Unresolvable:
            if self._loop.time() - name.confirmed_at >= _STALE_SECONDS:
                self._retire_others(host, (), retire)
        except Exception:  # noqa: BLE001 - a task's root: it logs, and the name stays followed
            _log.exception("an origin's name could not be followed", host=host)
        heappush(self._due, (self._loop.time() + pause_seconds, host))

    def _retire_others(
        self, host: str, addresses: tuple[str, ...], retire: Callable[[UpstreamConnection], None]
    ) -> None:
        unlisted = [each for each in self._names[host].connections if each.address not in addresses]
        for connection in unlisted:
            if not connection.is_retired:
                self.retired_count += 1
                retire(connection)
        if unlisted:
            _log.info("origin has other addresses now", host=host, connections=len(unlisted))
