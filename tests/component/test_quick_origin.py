"""What the benchmarks' own origin and load say to each other, and to clients they did not write."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import AsyncIterator

import aiohttp
import pytest
import pytest_asyncio
from yarl import URL

from bench.load_client import LoadResult, echo
from bench.quick_origin import BODY, QuickOrigin


@pytest_asyncio.fixture
async def origin() -> AsyncIterator[URL]:
    server = await asyncio.get_running_loop().create_server(QuickOrigin, "127.0.0.1", 0)
    async with server:
        yield URL(f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}/socket")


async def test_it_answers_and_says_back(origin: URL) -> None:
    async with aiohttp.ClientSession() as session:
        async with session.get(origin) as response:
            assert await response.read() == BODY
        async with session.ws_connect(origin) as socket:
            for message in ("", "hello", "x" * 125):
                await socket.send_str(message)
                assert await socket.receive_str() == message


async def test_the_load_counts_what_comes_back(origin: URL) -> None:
    account = LoadResult(ends_at=time.perf_counter() + 0.2)
    await echo(origin, account)
    said = json.loads(account.as_json(0.2))
    assert said["requests"] > 64
    assert said["errors"] == 0
    assert 0 < said["p50_us"] <= said["p99_us"]


@pytest.mark.parametrize("path", ["/1k", "/"])
async def test_connections_are_kept(origin: URL, path: str) -> None:
    reader, writer = await asyncio.open_connection("127.0.0.1", origin.port)
    for _ in range(2):
        writer.write(f"GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n".encode())
        await reader.readuntil(b"\r\n\r\n")
        assert await reader.readexactly(len(BODY)) == BODY
    writer.close()
