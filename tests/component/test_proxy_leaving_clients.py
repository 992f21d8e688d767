"""Clients that leave: at any byte, in the middle of a body, far ahead, or by halves."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.component.peers import Edge, Wire, answer_each, served, served_client
from tests.component.proxied import ANSWERS, GET, HOST, LAST_GET, POST, ask, is_whole, reset
from tests.waiting import let_run, until


@pytest.mark.parametrize("leave", [Wire.close, reset])
async def test_a_client_that_leaves_at_any_byte_leaves_nothing_behind(
    tmp_path: Path, leave: Callable[[Wire], None]
) -> None:
    whole = 0

    async def script(wire: Wire) -> None:
        nonlocal whole
        while True:
            await wire.response()
            whole += 1
            await wire.send(ANSWERS["length"])

    async with served(script, tmp_path) as (_, proxy):
        for cut in range(len(POST)):
            client = await proxy.connect()
            await client.send(POST[:cut])
            leave(client)
        await until(lambda: not proxy.worker.connections)
        assert whole == 0
        received, _ = await ask(proxy, LAST_GET)
        assert is_whole(received)


async def test_a_body_that_ends_early_is_refused_and_cut_off_at_the_origin(tmp_path: Path) -> None:
    arrived = asyncio.get_running_loop().create_future()

    async def script(wire: Wire) -> None:
        await wire.head()
        arrived.set_result(await wire.rest())

    async with served(script, tmp_path) as (there, proxy):
        client = await proxy.connect()
        await client.send(POST[:-1])
        await until(lambda: bool(there.connections))
        client.writer.write_eof()
        assert (await client.rest()).startswith(b"HTTP/1.1 400 ")
        assert await arrived == b"hell"


async def test_bytes_beyond_a_body_are_the_next_request(tmp_path: Path) -> None:
    async def script(wire: Wire) -> None:
        while True:
            await wire.response()
            await wire.send(ANSWERS["length"])

    async with served_client(script, tmp_path) as client:
        await client.send(POST + b"(" + GET)
        assert is_whole(b"".join(await client.response()))
        assert (await client.rest()).startswith(b"HTTP/1.1 400 ")


CHUNK = b"2000\r\n" + b"x" * 0x2000 + b"\r\n"


@asynccontextmanager
async def stuck_upload(tmp_path: Path, framing: bytes) -> AsyncIterator[tuple[Edge, Wire, asyncio.Event]]:
    """A client that has sent a few hundred KB of a body nobody takes any more, until the event is set."""
    go = asyncio.Event()

    async def script(wire: Wire) -> None:
        await wire.head()
        wire.writer.transport.pause_reading()  # type: ignore[attr-defined]
        await go.wait()
        wire.writer.transport.resume_reading()  # type: ignore[attr-defined]
        await wire.chunks()
        await wire.send(ANSWERS["length"])

    async with served(script, tmp_path) as (_, proxy):
        client = await proxy.connect()
        await client.send(b"POST / HTTP/1.1\r\n" + HOST + framing + b"\r\n\r\n")
        await until(lambda: any(each.holder for each in proxy.worker._dispatcher._connections))
        (upstream,) = proxy.worker._dispatcher._connections
        upstream.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        while not proxy.worker.paused:
            await client.send(CHUNK)
            await let_run()
        await client.send(CHUNK)  # the kernel takes it still
        yield proxy, client, go


@pytest.mark.parametrize("leave", [Wire.close, reset])
async def test_an_uploading_client_that_leaves_is_missed_although_nobody_reads_from_it(
    tmp_path: Path, leave: Callable[[Wire], None]
) -> None:
    async with stuck_upload(tmp_path, b"Content-Length: 100000000") as (proxy, client, _):
        leave(client)
        await until(lambda: not proxy.worker.connections)
        await until(lambda: not proxy.worker.upstream_count)


async def test_a_client_that_half_closed_behind_its_upload_is_no_client_that_left(tmp_path: Path) -> None:
    async with stuck_upload(tmp_path, b"Transfer-Encoding: chunked") as (proxy, client, go):
        await client.send(b"0\r\n\r\n")
        client.writer.write_eof()
        half_closed_at = proxy.worker.now
        await until(lambda: proxy.worker.now > half_closed_at + 1)
        go.set()
        assert is_whole(await client.rest())


async def test_a_client_that_asked_far_ahead_and_reset_frees_its_lease(tmp_path: Path) -> None:
    async with served(Wire.rest, tmp_path) as (there, proxy):  # type: ignore[arg-type]
        client = await proxy.connect()
        await client.send(GET)
        await until(lambda: bool(there.connections))
        await client.send(GET * 1000)
        await until(lambda: bool(proxy.worker.paused))
        reset(client)
        await until(lambda: not proxy.worker.connections)
        await until(lambda: not proxy.worker.upstream_count)
        assert not proxy.worker.paused


async def test_requests_sent_ahead_of_a_half_close_are_all_answered(tmp_path: Path) -> None:
    async with served_client(answer_each, tmp_path) as client:
        await client.send(GET * 3)
        client.writer.write_eof()
        assert (await client.rest()).count(b"HTTP/1.1 200 ") == 3


async def test_a_tunnel_is_closed_by_halves(tmp_path: Path) -> None:
    async def script(wire: Wire) -> None:
        await wire.head()
        await wire.send(b"HTTP/1.1 101 X\r\nUpgrade: echo\r\nConnection: upgrade\r\n\r\n")
        await wire.send((await wire.rest())[::-1])

    async with served_client(script, tmp_path) as client:
        await client.send(b"GET / HTTP/1.1\r\n" + HOST + b"Upgrade: echo\r\nConnection: upgrade\r\n\r\n")
        assert (await client.head()).startswith(b"HTTP/1.1 101 ")
        await client.send(b"abc")
        client.writer.write_eof()
        assert await client.rest() == b"cba"
