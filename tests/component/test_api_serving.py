"""The API's socket, before anybody has shown a token."""

from __future__ import annotations

import asyncio
import contextlib
import socket

import pytest
from aiohttp import web

from api.serving import serving
from common.host_ports import HostPort


async def test_connections_without_a_request_are_bounded_in_time_and_number() -> None:
    async with serving(
        web.Application(), HostPort("127.0.0.1", 0), first_request_seconds=0.2, most_connections=3
    ) as address:
        opened = [await asyncio.open_connection(*address) for _ in range(4)]
        opened[0][1].write(b"GET /power HTTP/1.1\r\nHost: x\r\nX: ")
        async with asyncio.timeout(10):
            for reader, writer in opened:
                with contextlib.suppress(ConnectionError):
                    assert await reader.read() == b""
                writer.close()
                with contextlib.suppress(ConnectionError):
                    await writer.wait_closed()


async def test_connections_that_ask_for_nothing_lock_nobody_out() -> None:
    hold, is_asked = asyncio.Event(), asyncio.Event()

    async def answer_late(_: web.Request) -> web.Response:
        is_asked.set()
        await hold.wait()
        return web.Response(text="late")

    async def answer(_: web.Request) -> web.Response:
        return web.Response(text="at once")

    app = web.Application()
    app.router.add_get("/late", answer_late)
    app.router.add_get("/", answer)
    async with serving(app, HostPort("127.0.0.1", 0), most_connections=3) as address, asyncio.timeout(10):
        busy = await asyncio.open_connection(*address)
        busy[1].write(b"GET /late HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        await is_asked.wait()
        others = []
        for _ in range(8):
            others.append(await asyncio.open_connection(*address))
            others[-1][1].write(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n")
            assert b" 200 " in await others[-1][0].readuntil(b"\r\n\r\n")
        assert await others[0][0].read() == b"at once", "the oldest that waited made room"
        hold.set()
        assert (await busy[0].read()).endswith(b"late"), "what is under way is left alone"
        for _, writer in (busy, *others):
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()


async def test_a_body_that_claims_to_be_compressed_is_not_unpacked(caplog: pytest.LogCaptureFixture) -> None:
    async def refuse(_: web.Request) -> web.Response:
        return web.Response(status=415)

    app = web.Application()
    app.router.add_post("/", refuse)
    head = b"POST / HTTP/1.1\r\nHost: x\r\nContent-Encoding: gzip\r\nContent-Length: 4\r\n\r\n"
    async with serving(app, HostPort("127.0.0.1", 0)) as address, asyncio.timeout(10):
        reader, writer = await asyncio.open_connection(*address)
        for _ in range(2):  # the connection outlives it
            writer.write(head + b"\x1f\x8b{}")
            assert b" 415 " in await reader.readuntil(b"\r\n\r\n")
        writer.close()
        await writer.wait_closed()
    assert not caplog.records


async def test_what_a_client_sent_is_never_quoted_in_the_log(
    caplog: pytest.LogCaptureFixture, capsys: pytest.CaptureFixture[str]
) -> None:
    async with serving(web.Application(), HostPort("127.0.0.1", 0)) as address, asyncio.timeout(10):
        for broken in (b"GET / HTTP/1.1\r\nAuthorization Bearer s3cret\r\n\r\n", b"s3cret / HTTP/1.1\r\n\r\n"):
            reader, writer = await asyncio.open_connection(*address)
            writer.write(broken)
            assert b" 400 " in await reader.readline()
            writer.close()
            await writer.wait_closed()
    assert "s3cret" not in caplog.text + capsys.readouterr().err


async def test_requests_whose_body_does_not_come_are_evicted_before_any_other_is_cut() -> None:
    async def read(request: web.Request) -> web.Response:
        return web.Response(body=await request.read())

    app = web.Application()
    app.router.add_post("/token", read)
    app.router.add_get("/healthz", _answer)
    unfinished = b"POST /token HTTP/1.1\r\nHost: x\r\nContent-Length: 100\r\n\r\n{"
    whole = b"POST /token HTTP/1.1\r\nHost: x\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}"
    health = b"GET /healthz HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
    async with serving(app, HostPort("127.0.0.1", 0), most_connections=16) as address, asyncio.timeout(20):
        slow = []
        for _ in range(40):
            slow.append(await asyncio.open_connection(*address))
            slow[-1][1].write(unfinished)
            for request in (whole, health):
                reader, writer = await asyncio.open_connection(*address)
                writer.write(request)
                assert (await reader.read()).startswith(b"HTTP/1.1 200 "), "cut"
                writer.close()
                await writer.wait_closed()
        for _, writer in slow:
            writer.close()
            with contextlib.suppress(ConnectionError):
                await writer.wait_closed()


async def _answer(_: web.Request) -> web.Response:
    return web.Response(text="ok")


async def test_the_kernel_takes_little_of_a_response_that_nobody_reads() -> None:
    async def show(request: web.Request) -> web.Response:
        assert request.transport is not None
        of_connection = request.transport.get_extra_info("socket")
        return web.Response(text=str(of_connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_NOTSENT_LOWAT)))

    app = web.Application()
    app.router.add_get("/", show)
    async with serving(app, HostPort("127.0.0.1", 0)) as address, asyncio.timeout(10):
        reader, writer = await asyncio.open_connection(*address)
        writer.write(b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        assert (await reader.read()).endswith(b"\r\n\r\n65536")
        writer.close()
