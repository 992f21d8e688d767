"""The caps on connections, tripped over real sockets, on both loops."""

from __future__ import annotations

import asyncio
import contextlib
from pathlib import Path

from edge.transport.connection_limits import ConnectionLimits
from tests.component import tls_peers as tls
from tests.component.peers import Edge, Wire, answer_each, edge, served
from tests.waiting import until

GET = b"GET / HTTP/1.1\r\nHost: shop.example.com\r\n\r\n"


async def held(proxy: Edge, count: int) -> list[Wire]:
    """Connections that the edge has accepted and keeps."""
    before = proxy.worker.connection_limits.open_count
    wires = [await proxy.connect() for _ in range(count)]
    await until(lambda: proxy.worker.connection_limits.open_count == before + count)
    return wires


async def test_beyond_the_cap_clients_are_told_and_the_place_is_given_again(tmp_path: Path) -> None:
    async with served(answer_each, tmp_path, FRONTAGE_EDGE_MAX_CONNECTIONS="2") as (_, proxy):
        first, second = await held(proxy, 2)
        third = await proxy.connect()
        await third.send(GET)  # sent before the answer is read, as clients do
        answer = await third.rest()
        assert answer.startswith(b"HTTP/1.1 503 Service Unavailable\r\n")
        assert b"\r\nRetry-After: 5\r\n" in answer
        assert b"\r\nConnection: close\r\n" in answer
        assert b'"code":"too_many_connections"' in answer
        await first.send(GET)
        assert (await first.response())[1] == b"ok"
        await second.closed()
        await until(lambda: proxy.worker.connection_limits.open_count == 1)
        fourth = await proxy.connect()
        await fourth.send(GET)
        assert (await fourth.response())[1] == b"ok"


async def test_one_address_cannot_take_every_place(tmp_path: Path) -> None:
    async with edge(tmp_path, FRONTAGE_EDGE_MAX_CONNECTIONS_PER_ADDRESS="3") as proxy:
        await held(proxy, 3)
        assert b"503" in await (await proxy.connect()).rest()
        samples = proxy.worker.connection_limits.families()[0].samples
        assert samples == {("in_all",): [0.0], ("per_client",): [1.0]}


async def test_trusted_proxies_have_no_cap_of_their_own(tmp_path: Path) -> None:
    async with edge(
        tmp_path, FRONTAGE_EDGE_MAX_CONNECTIONS_PER_ADDRESS="1", FRONTAGE_EDGE_TRUSTED_PROXIES="127.0.0.0/8"
    ) as proxy:
        await held(proxy, 4)


async def test_the_tls_port_closes_beyond_the_cap_and_counts_through_every_stage() -> None:
    async with tls.edge() as here:
        here.tls.connection_limits = ConnectionLimits(in_all=1)
        reader, writer = await asyncio.open_connection("127.0.0.1", here.port)
        await until(lambda: here.tls.connection_limits.open_count == 1)  # without a byte said
        late_reader, late_writer = await asyncio.open_connection("127.0.0.1", here.port)
        with contextlib.suppress(ConnectionResetError):
            assert await late_reader.read() == b""
        late_writer.close()
        writer.write(b"GET / HTTP/1.1\r\n\r\n")  # refused, and lingering
        assert await reader.read()
        assert here.tls.connection_limits.open_count == 1
        writer.close()
        await until(lambda: here.tls.connection_limits.open_count == 0)
        assert await tls.in_thread(lambda: tls.ask(here.port)) == b"hello"
        assert here.tls.counters.handshaking == 0
