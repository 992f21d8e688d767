"""What comes after 101, on both loops: WebSockets as their peers see them, flow control, and how a tunnel ends."""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from edge.proxy.connection_states import ENDED
from tests.component.peers import Edge, Script, Wire, edge, origin, served
from tests.component.proxied import reset
from tests.component.test_origin_tls import server_context
from tests.waiting import let_run, until

UPGRADE = b"GET / HTTP/1.1\r\nHost: shop.example.com\r\nUpgrade: tcp\r\nConnection: upgrade\r\n\r\n"
SWITCHED = b"HTTP/1.1 101 X\r\nUpgrade: tcp\r\nConnection: upgrade\r\n\r\n"


@asynccontextmanager
async def tunnel(
    tmp_path: Path, script: Script, *, tls: bool = False, **settings: Any
) -> AsyncIterator[tuple[Edge, Wire]]:
    """A client whose origin follows `script` once the tunnel is open."""

    async def switch(wire: Wire) -> None:
        await wire.head()
        await wire.send(SWITCHED)
        await script(wire)

    context = server_context(tmp_path, "localhost") if tls else None
    async with origin(switch, context) as there, edge(tmp_path, **settings) as proxy:
        proxy.replica.enrol("shop.example.com", f"http{'s' * tls}://localhost:{there.port}")
        proxy.replica.records["application", "app"]["origin_verify"] = False
        proxy.change()
        client = await proxy.connect()
        await client.send(UPGRADE)
        assert (await client.head()).startswith(b"HTTP/1.1 101 ")
        yield proxy, client


# How it ends ----------------------------------------------------------------------------------------------------


async def test_a_client_that_ended_its_half_hears_the_origin_out(tmp_path: Path) -> None:
    """As a command does whose standard input has ended: for longer than a FIN is borne with in HTTP."""

    async def script(wire: Wire) -> None:
        assert await wire.rest() == b"abc"
        heard_at = proxy.worker.now
        await until(lambda: proxy.worker.now > heard_at + 3)
        await wire.send(b"cba")

    async with tunnel(tmp_path, script) as (proxy, client):
        await client.send(b"abc")
        client.writer.write_eof()
        assert await client.rest() == b"cba"
        await until(lambda: proxy.worker.upstream_count == 0)


async def test_an_origin_that_ended_its_half_is_still_told(tmp_path: Path) -> None:
    told = asyncio.get_running_loop().create_future()

    async def script(wire: Wire) -> None:
        await wire.send(b"done")
        wire.writer.write_eof()
        told.set_result(await wire.rest())

    async with tunnel(tmp_path, script) as (proxy, client):
        assert await client.rest() == b"done"
        await client.send(b"and I ")
        await client.send(b"too")
        client.close()
        assert await told == b"and I too"
        await until(lambda: proxy.worker.upstream_count == 0)


async def test_a_client_that_ended_before_the_switch_is_told_of_too(tmp_path: Path) -> None:
    async def script(wire: Wire) -> None:
        await wire.head()
        await until(lambda: proxy.only_connection()._input is ENDED)
        await wire.send(SWITCHED)
        await wire.send(await wire.rest() + b"!")

    async with served(script, tmp_path) as (_, proxy):
        client = await proxy.connect()
        await client.send(UPGRADE + b"abc")
        client.writer.write_eof()
        assert (await client.head()).startswith(b"HTTP/1.1 101 ")
        assert await client.rest() == b"abc!"


@pytest.mark.parametrize(
    ("request_head", "answer"),
    [(UPGRADE, SWITCHED), (b"POST / HTTP/1.1\r\nHost: shop.example.com\r\nContent-Length: 9\r\n\r\nabc", b"")],
    ids=["tunnel", "upload"],
)
async def test_a_worker_that_ends_cuts_what_runs_without_an_error(
    tmp_path: Path, request_head: bytes, answer: bytes
) -> None:
    errors: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: errors.append(context))
    arrived = asyncio.Event()

    async def script(wire: Wire) -> None:
        await wire.head()
        await wire.send(answer)
        arrived.set()
        await wire.rest()

    async with served(script, tmp_path) as (_, proxy):
        client = await proxy.connect()
        await client.send(request_head)
        if answer:
            await client.head()
        await arrived.wait()
        proxy.worker.close()
        assert await client.rest() == b""
        await until(lambda: not proxy.worker.connections and not proxy.worker.upstream_count)
    assert errors == []


@pytest.mark.parametrize("tls", [False, True])
@pytest.mark.parametrize("end", [Wire.close, reset])
async def test_what_an_origin_said_last_arrives_however_it_ends(
    tmp_path: Path, end: Callable[[Wire], None], tls: bool
) -> None:
    last = b"x" * 1_000_000 + b"last"
    go = asyncio.Event()

    async def script(wire: Wire) -> None:
        sending = asyncio.create_task(wire.send(last))
        await go.wait()
        await sending
        end(wire)

    async with tunnel(tmp_path, script, tls=tls) as (proxy, client):
        connection = proxy.only_connection()
        connection._transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 16_384)
        received = b""
        while connection.bytes_down < len(SWITCHED + last):  # then the edge has it all, and the client not yet
            received += await client.exactly(1000)
        go.set()
        received += await client.rest()
        assert received == last


async def test_half_a_tunnel_does_not_stay_for_ever(tmp_path: Path) -> None:
    async def script(wire: Wire) -> None:
        await wire.rest()
        await asyncio.Event().wait()

    async with tunnel(tmp_path, script, FRONTAGE_EDGE_BODY_TIMEOUT_SECONDS="0.3") as (proxy, client):
        client.writer.write_eof()
        await until(lambda: not proxy.worker.connections)
        await until(lambda: not proxy.worker.upstream_count)


# Flow control ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tls", [False, True])
async def test_a_peer_that_does_not_read_stops_the_other(tmp_path: Path, tls: bool) -> None:
    size = 64_000_000
    sent = 0
    go = asyncio.Event()

    async def script(wire: Wire) -> None:
        nonlocal sent
        wire.writer.transport.pause_reading()  # type: ignore[attr-defined]
        while sent < size:
            await wire.send(b"x" * 100_000)
            sent += 100_000
        await go.wait()

    async with tunnel(tmp_path, script, tls=tls) as (proxy, client):
        client.writer.transport.pause_reading()  # type: ignore[attr-defined]
        pushed, stalled = 0, False
        while not stalled:
            try:
                async with asyncio.timeout(1):
                    await client.send(b"y" * 100_000)
                pushed += 100_000
            except TimeoutError:
                stalled = True
        assert pushed < size / 2
        assert sent < size / 2
        connection = proxy.only_connection()
        (upstream,) = proxy.worker._dispatcher._connections
        assert connection._transport.get_write_buffer_size() < 1_000_000
        assert upstream.transport.get_write_buffer_size() < 1_000_000
        client.writer.transport.resume_reading()  # type: ignore[attr-defined]
        received = 0
        while received < size:
            received += len(await client.exactly(100_000))
        go.set()


# WebSockets -----------------------------------------------------------------------------------------------------


@asynccontextmanager
async def socket_application(handler: Callable[[web.WebSocketResponse], object]) -> AsyncIterator[int]:
    """A real WebSocket server; its port."""

    async def answer(request: web.Request) -> web.WebSocketResponse:
        response = web.WebSocketResponse(max_msg_size=1 << 26, autoping=False, protocols=("chat.v2",))
        await response.prepare(request)
        await handler(response)  # type: ignore[misc]
        return response

    application = web.Application()
    application.router.add_get("/", answer)
    runner = web.AppRunner(application)
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0)
    await site.start()
    try:
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


async def echo(ws: web.WebSocketResponse) -> None:
    async for message in ws:
        if message.type is aiohttp.WSMsgType.PING:
            await ws.pong(message.data)
        elif message.type is aiohttp.WSMsgType.TEXT:
            await ws.send_str(message.data)
        else:
            await ws.send_bytes(message.data)


@asynccontextmanager
async def connected(
    tmp_path: Path, handler: Callable[[web.WebSocketResponse], object], *, compress: int = 0
) -> AsyncIterator[aiohttp.ClientWebSocketResponse]:
    async with socket_application(handler) as port, edge(tmp_path) as proxy, aiohttp.ClientSession() as session:
        proxy.replica.enrol("shop.example.com", f"http://127.0.0.1:{port}")
        proxy.change()
        async with session.ws_connect(
            f"http://127.0.0.1:{proxy.port}/",
            headers={"Host": "shop.example.com"},
            protocols=("chat.v1", "chat.v2"),
            max_msg_size=1 << 26,
            compress=compress,
            autoping=False,
        ) as ws:
            assert ws.protocol == "chat.v2"
            assert bool(ws.compress) is bool(compress)
            yield ws


@pytest.mark.parametrize("compress", [0, 15])
async def test_messages_of_every_length_come_back(tmp_path: Path, compress: int) -> None:
    async with connected(tmp_path, echo, compress=compress) as ws:
        for size in (0, 1, 125, 126, 127, 65535, 65536, 1_000_000, 16_000_000):
            text, data = "ö" * (size // 2), os.urandom(size % 5000) * 3 + b"x" * size
            sending = asyncio.create_task(ws.send_bytes(data))
            assert (await ws.receive_bytes(timeout=20)) == data
            await sending
            sending = asyncio.create_task(ws.send_str(text))
            assert (await ws.receive_str(timeout=20)) == text
            await sending
        await ws.ping(b"p" * 125)
        pong = await ws.receive(timeout=20)
        assert (pong.type, pong.data) == (aiohttp.WSMsgType.PONG, b"p" * 125)


def frame(opcode: int, payload: bytes, *, final: bool = True) -> bytes:
    """One frame as clients send it (RFC 6455 §5.2), masked with zeros."""
    size = len(payload)
    length = bytes((0x80 | size,)) if size < 126 else b"\xfe" + struct.pack("!H", size)
    return bytes((opcode | final << 7,)) + length + bytes(4) + payload


@pytest.mark.parametrize("piece", [1, 7, 1 << 20])
async def test_fragments_with_control_frames_between_arrive_as_one_message(tmp_path: Path, piece: int) -> None:
    async with connected(tmp_path, echo) as ws:
        transport = ws._conn.transport
        sent = (
            frame(1, b"frag", final=False) + frame(9, b"ping") + frame(0, b"men", final=False)
            + frame(0, b"", final=False) + frame(0, b"ted" * 100)
        )  # fmt: skip
        for start in range(0, len(sent), piece):
            transport.write(sent[start : start + piece])
            await let_run()
        pong = await ws.receive(timeout=20)
        assert (pong.type, pong.data) == (aiohttp.WSMsgType.PONG, b"ping")
        assert await ws.receive_str(timeout=20) == "fragmen" + "ted" * 100


@pytest.mark.parametrize("code", [1000, 1001, 1003, 1007, 1011, 3000, 4999])
async def test_close_codes_and_reasons_pass_both_ways(tmp_path: Path, code: int) -> None:
    closed = asyncio.get_running_loop().create_future()

    async def closes(ws: web.WebSocketResponse) -> None:
        await ws.close(code=code, message=b"because")

    async def is_closed(ws: web.WebSocketResponse) -> None:
        closed.set_result(await ws.receive(timeout=20))

    async with connected(tmp_path, closes) as ws:
        message = await ws.receive(timeout=20)
        assert (message.type, message.data, message.extra) == (aiohttp.WSMsgType.CLOSE, code, "because")
    async with connected(tmp_path, is_closed) as ws:
        await ws.close(code=code, message=b"because")
        message = await closed
        assert (message.type, message.data, message.extra) == (aiohttp.WSMsgType.CLOSE, code, "because")
