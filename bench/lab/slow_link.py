"""A slow link in front of a server: what either side sends, its end included, arrives so much later.

It needs neither root nor a kernel with netem. The system establishes a connection without delay; what a handshake of
TCP would take is `connecting_seconds`, by which the first octets come later.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator
from dataclasses import dataclass
from typing import cast

from common.host_ports import HostPort


@dataclass
class SlowLink:
    """A link that leads to `target`. `one_way_seconds` may be changed at any time. Made by `opened_link`."""

    target: HostPort
    one_way_seconds: float = 0.0
    connecting_seconds: float = 0.0
    address: str = ""
    """Where it is entered, ``host:port``."""


@contextlib.asynccontextmanager
async def opened_link(
    target: HostPort, one_way_seconds: float = 0.0, *, connecting_seconds: float = 0.0, host: str = "127.0.0.1"
) -> AsyncIterator[SlowLink]:
    """Open a link for the block, entered at a free port of `host`."""
    link = SlowLink(target, one_way_seconds, connecting_seconds)
    server = await asyncio.get_running_loop().create_server(lambda: _Side(link), host, 0)
    link.address = str(HostPort(*server.sockets[0].getsockname()[:2]))
    try:
        yield link
    finally:
        server.close()


@contextlib.asynccontextmanager
async def slow_link(port: int, one_way_seconds: float, *, connecting_seconds: float = 0.0) -> AsyncIterator[int]:
    """Yield the port on loopback that leads to `port`, until the block ends."""
    target = HostPort("127.0.0.1", port)
    async with opened_link(target, one_way_seconds, connecting_seconds=connecting_seconds) as link:
        yield int(link.address.rpartition(":")[2])


class _Side(asyncio.Protocol):
    """One side's connection, whose `other` side is made by it, or has made it."""

    def __init__(self, link: SlowLink, other: _Side | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        self._link = link
        self._other = other
        self._connecting: asyncio.Task[None] | None = None
        self._waiting: list[bytes | None] = []  # what arrived before the other side was connected; None: its end
        self._under_way: deque[bytes | None] = deque()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        if self._other is None:
            self._connecting = self._loop.create_task(self._connect(), name="slow link")

    async def _connect(self) -> None:
        await asyncio.sleep(self._link.connecting_seconds)
        host, port = self._link.target.host, self._link.target.port
        try:
            _, other = await self._loop.create_connection(lambda: _Side(self._link, self), host, port)
        except OSError:
            self.transport.abort()
            return
        self._other = other
        for piece in self._waiting:
            self._pass_on(piece)

    def data_received(self, data: bytes) -> None:
        self._pass_on(data)

    def eof_received(self) -> bool:
        self._pass_on(None)
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        self._pass_on(None)

    def _pass_on(self, piece: bytes | None) -> None:
        if self._other is None:
            self._waiting.append(piece)
        else:
            self._under_way.append(piece)  # which stay in order, however the link changes
            self._loop.call_later(self._link.one_way_seconds, self._arrive)

    def _arrive(self) -> None:
        assert self._other is not None
        self._other.deliver(self._under_way.popleft())

    def deliver(self, piece: bytes | None) -> None:
        if self.transport.is_closing():
            return
        if piece is None:
            self.transport.close()
        else:
            self.transport.write(piece)
