"""Peers that never read or never send: bounded memory, an end of every wait, and each limit of a request."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path

import pytest

from tests.component.origins import sends
from tests.component.peers import Wire, answer_each, edge, served, served_client
from tests.component.proxied import ANSWERS, GET, HOST, LAST_GET, POST, ask, is_whole
from tests.waiting import never, until


async def send_until_stalled(client: Wire, data: bytes, limit: int) -> int:
    """How many bytes went before nothing moved for half a second, or we were let go."""
    sent = 0
    while sent < limit:
        try:
            async with asyncio.timeout(0.5):
                await client.send(data)
        except (TimeoutError, ConnectionError):
            break
        sent += len(data)
    return sent


async def test_an_origin_that_does_not_read_stops_the_upload(tmp_path: Path) -> None:
    async def script(wire: Wire) -> None:
        await wire.head()
        wire.writer.transport.pause_reading()  # type: ignore[attr-defined]
        await never()

    # The FIN of a client that is not read from stands behind what nobody takes: the time-out lets it go.
    async with served(script, tmp_path, FRONTAGE_EDGE_BODY_TIMEOUT_SECONDS="2") as (_, proxy):
        client = await proxy.connect()
        await client.send(b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 100000000\r\n\r\n")
        sent = await send_until_stalled(client, b"x" * 100_000, 100_000_000)
        assert sent < 30_000_000  # the kernels' buffers, not ours
        (upstream,) = proxy.worker._dispatcher._connections
        assert upstream.transport.get_write_buffer_size() < 1_000_000


async def test_a_client_that_asks_and_never_reads_is_stopped_too(tmp_path: Path) -> None:
    async with edge(tmp_path, FRONTAGE_EDGE_IDLE_TIMEOUT_SECONDS="1") as proxy:
        client = await proxy.connect()
        client.writer.transport.pause_reading()  # type: ignore[attr-defined]
        unknown = b"GET / HTTP/1.1\r\nHost: nobody.example\r\n\r\n" * 2000
        await until(lambda: len(proxy.worker.connections) == 1)
        connection = proxy.only_connection()
        assert await send_until_stalled(client, unknown, 100_000_000) < 30_000_000
        assert len(connection._reader.buffer) < 1_000_000
        assert connection._transport.get_write_buffer_size() < 2_000_000
        await until(lambda: not proxy.worker.connections)  # who never reads is let go


async def test_an_early_answer_is_delivered_although_the_origin_closes_on_the_upload(tmp_path: Path) -> None:
    script = sends(b"HTTP/1.1 413 No\r\nContent-Length: 3\r\n\r\nno!", closes=True)
    async with served(script, tmp_path) as (_, proxy):
        for _ in range(10):
            client = await proxy.connect()
            request = b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 400000\r\n\r\n" + b"x" * 100_000
            sending = asyncio.create_task(client.send(request))
            head, body = await client.response()
            await sending
            assert (head[:13], body) == (b"HTTP/1.1 413 ", b"no!")


async def test_a_refused_upload_gets_its_answer_while_it_is_still_sent(tmp_path: Path) -> None:
    async with served_client(answer_each, tmp_path, FRONTAGE_EDGE_MAX_BODY_BYTES="1000") as client:
        request = b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 5000000\r\n\r\n" + b"x" * 5_000_000
        sending = asyncio.create_task(client.send(request))
        head, _ = await client.response()
        assert head.startswith(b"HTTP/1.1 413 ")
        await sending


Peer = Callable[[Wire], Awaitable[None]]


async def silent(wire: Wire) -> None:
    await wire.rest()


async def never_reads(wire: Wire) -> None:
    wire.writer.transport.pause_reading()  # type: ignore[attr-defined]
    await never()


async def stops_in_the_body(wire: Wire) -> None:
    await wire.head()
    await wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel")
    await wire.rest()


@pytest.mark.parametrize(
    ("setting", "peer", "request_bytes", "answer"),
    [
        ("HEAD", silent, b"GET / HTTP/1.1\r\n" + HOST, b"HTTP/1.1 408 "),
        ("HEAD", silent, b"", b""),
        ("BODY", silent, POST[:-1], b"HTTP/1.1 408 "),
        ("BODY", silent, POST.replace(b"Content-Length: 5", b"Transfer-Encoding: chunked")[:-5], b"HTTP/1.1 408 "),
        ("BODY", never_reads, POST.replace(b": 5", b": 90000000") + b"x" * 20_000_000, b"HTTP/1.1 504 "),
        ("BODY", silent, POST.replace(b"\r\n\r\nhello", b"\r\nExpect: 100-continue\r\n\r\n"), b"HTTP/1.1 504 "),
        ("ORIGIN", silent, LAST_GET, b"HTTP/1.1 504 "),
        ("ORIGIN", silent, POST.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"), b"HTTP/1.1 504 "),
        ("BODY", stops_in_the_body, GET, b"HTTP/1.1 200 "),
        ("IDLE", answer_each, GET, b"HTTP/1.1 200 "),
        ("IDLE", answer_each, GET + b"\r\n", b"HTTP/1.1 200 "),
        ("HEAD", answer_each, GET + b"GET /", b"HTTP/1.1 200 "),
    ],
)
async def test_every_wait_has_an_end(
    tmp_path: Path, setting: str, peer: Peer, request_bytes: bytes, answer: bytes
) -> None:
    timeouts = {f"FRONTAGE_EDGE_{setting}_TIMEOUT_SECONDS": "0.3"}
    async with served_client(peer, tmp_path, secure=True, **timeouts) as client:
        sending = asyncio.create_task(client.send(request_bytes))
        received = await client.rest()
        assert received.startswith(answer)
        assert bool(received) is bool(answer)
        if request_bytes.endswith(b"GET /"):
            assert b"HTTP/1.1 408 " in received
        sending.cancel()


async def test_empty_lines_do_not_keep_a_connection_alive(tmp_path: Path) -> None:
    async with edge(tmp_path, FRONTAGE_EDGE_HEAD_TIMEOUT_SECONDS="0.5") as proxy:
        client = await proxy.connect()

        async def babble() -> None:
            while True:
                await client.send(b"\r\n")
                await asyncio.sleep(0.05)

        babbling = asyncio.create_task(babble())
        assert await client.rest() == b""
        babbling.cancel()


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"GET /" + b"a" * 8192 + b" HTTP/1.1\r\n" + HOST + b"\r\n", 414),
        (b"GET / HTTP/1.1\r\n" + HOST + b"X: y\r\n" * 100 + b"\r\n", 431),
        (b"GET / HTTP/1.1\r\n" + HOST + b"X: " + b"y" * 32_768 + b"\r\n\r\n", 431),
        (b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 11\r\n\r\n", 413),
        (b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\nb\r\n", 413),
        (b"POST / HTTP/1.1\r\n" + HOST + b"Expect: miracles\r\nContent-Length: 1\r\n\r\n", 417),
        (b"GET / HTTP/2.0\r\n" + HOST + b"\r\n", 505),
        (b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: gzip\r\n\r\n", 501),
        (b"CONNECT shop.example.com:443 HTTP/1.1\r\n" + HOST + b"\r\n", 405),
        (b"TRACE / HTTP/1.1\r\n" + HOST + b"\r\n", 405),
        (b"GET /%2e%2e/ HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: nobody.example\r\nConnection: close\r\n\r\n", 404),
    ],
)
async def test_every_limit_trips(tmp_path: Path, request_bytes: bytes, status: int) -> None:
    async with served(answer_each, tmp_path, FRONTAGE_EDGE_MAX_BODY_BYTES="10") as (_, proxy):
        received, ended_in_order = await ask(proxy, request_bytes)
        assert received.startswith(b"HTTP/1.1 %d " % status)
        assert ended_in_order


async def test_a_chunked_body_may_be_as_long_as_the_limit_whatever_its_framing(tmp_path: Path) -> None:
    async def script(wire: Wire) -> None:
        await wire.head()
        assert await wire.chunks() == b"0123456789"
        await wire.send(ANSWERS["length"])

    async with served_client(script, tmp_path, FRONTAGE_EDGE_MAX_BODY_BYTES="10") as client:
        chunks = b"".join(b"1;extension=%d\r\n%d\r\n" % (n, n) for n in range(10))
        await client.send(b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n")
        assert is_whole(b"".join(await client.response()))
