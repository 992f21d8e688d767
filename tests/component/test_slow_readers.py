"""Clients that read slowly, or not at all, on both loops."""

from __future__ import annotations

import asyncio
import socket
from pathlib import Path

import pytest

from tests.component.peers import Edge, Wire, edge, enrol, origin, served
from tests.waiting import until

GET = b"GET / HTTP/1.1\r\nHost: shop.example.com\r\n\r\n"
MUCH = b"x" * 16_000_000  # more than kernels buffer
HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(MUCH)


async def connect_narrowly(proxy: Edge, buffer_bytes: int = 4096) -> socket.socket:
    """A connection whose client reads only when told to, from a small buffer."""
    client = socket.socket()
    client.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, buffer_bytes)
    client.setblocking(False)
    await asyncio.get_running_loop().sock_connect(client, ("127.0.0.1", proxy.port))
    return client


async def endless(wire: Wire) -> None:
    await wire.head()
    await wire.send(HEAD + MUCH)
    await wire.head()


async def switching(wire: Wire) -> None:
    await wire.head()
    await wire.send(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
    await wire.send(MUCH)


async def closing(wire: Wire) -> None:
    """All of it comes at once, and the edge has nothing left but to be read."""
    await wire.head()
    size = 6_000_000
    await wire.send(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n" % size + MUCH[:size])


UPGRADE = GET[:-2] + b"Connection: Upgrade\r\nUpgrade: echo\r\n\r\n"
LAST = GET[:-2] + b"Connection: close\r\n\r\n"


@pytest.mark.parametrize(("script", "asked"), [(endless, GET), (switching, UPGRADE), (closing, LAST)])
async def test_a_client_that_stops_reading_is_ended(tmp_path: Path, script: object, asked: bytes) -> None:
    async with (
        origin(script) as there,  # type: ignore[arg-type]
        edge(tmp_path, FRONTAGE_EDGE_BODY_TIMEOUT_SECONDS="0.6") as proxy,
    ):
        enrol(proxy, there)
        client = await connect_narrowly(proxy)
        await asyncio.get_running_loop().sock_sendall(client, asked)
        await until(lambda: bool(there.connections))
        await until(lambda: not proxy.worker.connections)
        await until(lambda: not proxy.worker.upstream_count)
        client.close()


async def test_a_client_that_reads_slowly_gets_all_of_it(tmp_path: Path) -> None:
    loop = asyncio.get_running_loop()
    size = 1_500_000

    async def script(wire: Wire) -> None:
        await wire.head()
        await wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % size + MUCH[:size])
        await wire.head()

    async with served(script, tmp_path, FRONTAGE_EDGE_BODY_TIMEOUT_SECONDS="1") as (_, proxy):
        client = await connect_narrowly(proxy, 16_384)
        await until(lambda: bool(proxy.worker.connections))
        ours = proxy.only_connection()
        ours._transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 16_384)
        await loop.sock_sendall(client, GET)
        received, slow_until = 0, loop.time() + 4
        while received < size:  # the head counts too, and is much smaller than the last piece
            piece = await loop.sock_recv(client, 4_000 if loop.time() < slow_until else 100_000)
            assert piece, "ended early"
            received += len(piece)
            if loop.time() < slow_until:  # a trickle, for several times the limit
                await asyncio.sleep(0.02)
        client.close()
