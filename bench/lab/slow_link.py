"""A slow link in front of a server: what either side sends, its end included, arrives so much later.

It needs neither root nor a kernel with netem. The system establishes a connection without delay; what a handshake of
TCP would take is `connecting_seconds`, by which the first octets come later.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from typing import cast


@contextlib.asynccontextmanager
async def slow_link(port: int, one_way_seconds: float, *, connecting_seconds: float = 0.0) -> AsyncIterator[int]:
    """Yield the port on loopback that leads to `port`, until the block ends."""
    loop = asyncio.get_running_loop()
    server = await loop.create_server(
        lambda: _Side(port, one_way_seconds, connecting_seconds=connecting_seconds), "127.0.0.1", 0
    )
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


class _Side(asyncio.Protocol):
    """One side's connection. `port`: the server that the other side is to be connected to; 0 where it is."""

    def __init__(
        self, port: int, seconds: float, other: _Side | None = None, *, connecting_seconds: float = 0.0
    ) -> None:
        self._loop = asyncio.get_running_loop()
        self._port = port
        self._seconds = seconds
        self._connecting_seconds = connecting_seconds
        self._other = other
        self._connecting: asyncio.Task[None] | None = None
        self._waiting: list[bytes | None] = []  # what arrived before the other side was connected; None: its end

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        if self._other is None:
            self._connecting = self._loop.create_task(self._connect(), name="slow link")

    async def _connect(self) -> None:
        await asyncio.sleep(self._connecting_seconds)
        try:
            _, other = await self._loop.create_connection(
                lambda: _Side(0, self._seconds, self), "127.0.0.1", self._port
            )
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
            self._loop.call_later(self._seconds, self._other.deliver, piece)

    def deliver(self, piece: bytes | None) -> None:
        if self.transport.is_closing():
            return
        if piece is None:
            self.transport.close()
        else:
            self.transport.write(piece)
