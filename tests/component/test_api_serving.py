"""The API's socket, before anybody has shown a token."""

from __future__ import annotations

import asyncio
import contextlib

import pytest
from aiohttp import web

from api.serving import serving
from common.settings import HostPort


async def test_connections_without_a_request_are_bounded_in_time_and_number(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("api.serving._FIRST_REQUEST_SECONDS", 0.2)
    monkeypatch.setattr("api.serving.MOST_CONNECTIONS", 3)
    async with serving(web.Application(), HostPort("127.0.0.1", 0)) as address:
        opened = [await asyncio.open_connection(*address) for _ in range(4)]
        opened[0][1].write(b"GET /power HTTP/1.1\r\nHost: x\r\nX: ")
        async with asyncio.timeout(10):
            for reader, writer in opened:
                with contextlib.suppress(ConnectionError):
                    assert await reader.read() == b""
                writer.close()
                with contextlib.suppress(ConnectionError):
                    await writer.wait_closed()
