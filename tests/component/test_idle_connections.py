"""Connections that an origin may be closing, over real sockets: what must not be sent twice avoids them."""

from __future__ import annotations

import asyncio
from pathlib import Path
from unittest.mock import patch

import pytest

from edge.routing.route import Origin
from edge.upstream import idle_times
from tests.component.peers import Edge, Script, Wire, edge, origin
from tests.component.proxied import GET, POST
from tests.component.test_origin_tls import server_context
from tests.waiting import until

LARGE_PUT = b"PUT / HTTP/1.1\r\nHost: shop.example.com\r\nContent-Length: 100000\r\n\r\n" + bytes(100_000)
HOURS = b"Keep-Alive: timeout=7200, max=1000\r\n"


def answering(fields: bytes = b"", *, closes: asyncio.Event | None = None) -> Script:
    """Answers each request, until it `closes`."""

    async def answer(wire: Wire) -> None:
        while True:
            head = asyncio.ensure_future(wire.head())
            closing = asyncio.ensure_future((closes or asyncio.Event()).wait())
            await asyncio.wait({head, closing}, return_when=asyncio.FIRST_COMPLETED)
            closing.cancel()
            if not head.done():
                head.cancel()
                return
            size = (await head).partition(b"Content-Length: ")[2].partition(b"\r\n")[0]
            await wire.exactly(int(size or b"0"))
            await wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n%b\r\n" % fields)

    return answer


async def ask(proxy: Edge, url: str, *requests: bytes) -> list[bytes]:
    proxy.replica.enrol("shop.example.com", url)
    proxy.replica.records["application", "app"]["origin_verify"] = False
    proxy.change()
    client = await proxy.connect()
    seen = []
    for request in requests:
        await client.send(request)
        seen.append((await client.response())[0].split()[1])
    return seen


@pytest.mark.parametrize("request_", [POST, LARGE_PUT])
async def test_bodies_reuse_a_connection_that_the_origin_states_to_keep(tmp_path: Path, request_: bytes) -> None:
    with patch.object(idle_times, "_UNKNOWN_SECONDS", 0.0):
        async with origin(answering(HOURS)) as there, edge(tmp_path) as proxy:
            assert await ask(proxy, there.url, request_, GET, request_) == [b"200"] * 3
            assert len(there.connections) == 1


@pytest.mark.parametrize("request_", [POST, LARGE_PUT])
async def test_bodies_go_on_new_connections_where_nothing_is_known(tmp_path: Path, request_: bytes) -> None:
    with patch.object(idle_times, "_UNKNOWN_SECONDS", 0.0):
        async with origin(answering()) as there, edge(tmp_path) as proxy:
            assert await ask(proxy, there.url, request_, GET, request_) == [b"200"] * 3
            assert len(there.connections) == 2


@pytest.mark.parametrize("scheme", ["http", "https"])
async def test_the_close_of_an_idle_connection_is_learned(tmp_path: Path, scheme: str) -> None:
    closes = asyncio.Event()
    context = server_context(tmp_path, "localhost") if scheme == "https" else None
    async with origin(answering(HOURS, closes=closes), context) as there, edge(tmp_path) as proxy:
        url = f"{scheme}://localhost:{there.port}"
        known = proxy.worker._dispatcher._idle_times
        key = Origin("https" if context else "http", "localhost", there.port, "localhost", verify=False)
        assert await ask(proxy, url, POST) == [b"200"]
        assert known.longest(key) == 3600
        closes.set()
        await until(lambda: known.longest(key) < 3600)
        assert known.longest(key) < 60
        await until(lambda: not proxy.worker.upstream_count)
