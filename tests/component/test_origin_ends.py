"""How origins' answers end, and what comes after their end, on both loops (RFC 9112 §8, §9.8, §11.1)."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.component.origins import sends
from tests.component.peers import Edge, Origin, Wire, edge, origin, served
from tests.component.test_origin_tls import server_context
from tests.waiting import until

HOST = b"Host: shop.example.com\r\n"
GET = b"GET / HTTP/1.1\r\n" + HOST + b"\r\n"
GET_1_0 = b"GET / HTTP/1.0\r\n" + HOST + b"\r\n"
OK = b"HTTP/1.1 200 OK\r\n"


def below(wire: Wire) -> socket.socket:
    """The wire's socket, for what the loop and TLS would not do."""
    return socket.socket(fileno=os.dup(wire.writer.get_extra_info("socket").fileno()))


def fin(wire: Wire) -> None:
    """End the stream below TLS, as anybody on the way could: no close_notify goes before."""
    with below(wire) as raw:
        raw.shutdown(socket.SHUT_WR)


@asynccontextmanager
async def tls_origin(tmp_path: Path, answer: bytes, end: Callable[[Wire], None]) -> AsyncIterator[tuple[Edge, Origin]]:
    async def script(wire: Wire) -> None:
        await wire.head()
        await wire.send(answer)
        end(wire)
        await wire.rest()

    async with origin(script, server_context(tmp_path, "localhost")) as there, edge(tmp_path) as proxy:
        proxy.replica.enrol("shop.example.com", f"https://localhost:{there.port}")
        proxy.replica.records["application", "app"]["origin_verify"] = False
        proxy.change()
        yield proxy, there


async def ask(proxy: Edge, request: bytes) -> tuple[bytes, bool]:
    """All that comes back, and whether the connection ended in order."""
    client = await proxy.connect()
    await client.send(request)
    received = b""
    try:
        async with asyncio.timeout(10):
            while piece := await client.reader.read(65536):
                received += piece
                if received.endswith(b"0\r\n\r\n"):
                    break
    except ConnectionError:
        return received, False
    return received, True


async def test_a_body_that_ends_with_close_notify_is_complete(tmp_path: Path) -> None:
    async with tls_origin(tmp_path, OK + b"\r\nhello", Wire.close) as (proxy, _):
        received, _ = await ask(proxy, GET)
        assert received.endswith(b"\r\n\r\n5\r\nhello\r\n0\r\n\r\n")
        received, in_order = await ask(proxy, GET_1_0)
        assert received.endswith(b"\r\n\r\nhello")
        assert in_order


@pytest.mark.parametrize(
    "answer",
    [
        OK + b"\r\nhello",
        OK + b"Content-Length: 6\r\n\r\nhello",
        OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n",
        OK + b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n",
    ],
)
async def test_a_body_cut_off_below_tls_never_passes_as_complete(tmp_path: Path, answer: bytes) -> None:
    async with tls_origin(tmp_path, answer, fin) as (proxy, _):
        received, _ = await ask(proxy, GET)
        assert b"hello" in received
        assert not received.endswith(b"0\r\n\r\n")
        _, in_order = await ask(proxy, GET_1_0)
        assert in_order is (b"Content-Length" in answer)  # who has counted needs no reset to see it


async def test_a_head_cut_off_below_tls_is_a_bad_gateway(tmp_path: Path) -> None:
    async with tls_origin(tmp_path, OK + b"Content-Length: 5\r\n", fin) as (proxy, _):
        client = await proxy.connect()
        await client.send(GET)
        assert (await client.head()).startswith(b"HTTP/1.1 502 ")


FORGED = OK + b"Content-Length: 6\r\n\r\nforged"


@pytest.mark.parametrize(
    "unasked",
    [FORGED, b"HTTP/1.1 100 Continue\r\n\r\n", b"HTTP/1.1 103 Early Hints\r\nLink: </forged>\r\n\r\n", b"\r\n", b"H"],
)
async def test_what_an_idle_origin_says_is_no_answer(tmp_path: Path, unasked: bytes) -> None:
    async with served(sends(OK + b"Content-Length: 5\r\n\r\nright"), tmp_path) as (there, proxy):
        client = await proxy.connect()
        for _ in range(3):
            await client.send(GET)
            head, body = await client.response()
            assert body == b"right"
            assert b"forged" not in head
            await there.connections[-1].send(unasked)
            await until(lambda: proxy.worker.upstream_count == 0)
        assert len(there.connections) == 3


async def test_what_an_idle_origin_said_before_we_looked_is_no_answer_either(tmp_path: Path) -> None:
    """The request and the forged answer wait in the kernel together, and the request is read first."""

    async with served(sends(OK + b"Content-Length: 5\r\n\r\nright"), tmp_path) as (there, proxy):
        client = await proxy.connect()
        await client.send(GET)
        await client.response()
        given_back_at = proxy.worker.now
        await until(lambda: proxy.worker.now > given_back_at)
        with below(client) as asking, below(there.connections[0]) as forging:
            asking.send(GET)
            forging.send(FORGED)
        assert (await client.response())[1] == b"right"


@pytest.mark.parametrize("status", [b"204 No Content", b"304 Not Modified"])
async def test_origin_that_once_sent_what_was_not_asked_gets_a_connection_for_each_request(
    tmp_path: Path, status: bytes
) -> None:
    """Behind the second such response its body comes when the next request has arrived: too late to be noticed."""
    next_arrived = asyncio.Event()

    async def script(wire: Wire) -> None:
        while True:
            request = await wire.head()
            if b" /late " in request:
                await wire.send(b"HTTP/1.1 " + status + b"\r\n\r\n")
                await next_arrived.wait()
            elif b" /once " in request:
                await wire.send(b"HTTP/1.1 " + status + b"\r\n\r\n")
            else:
                next_arrived.set()
                await wire.send(OK + b"Content-Length: 5\r\n\r\nright")
                continue
            await wire.send(OK + b"Content-Length: 6\r\n\r\nforged")

    async with served(script, tmp_path) as (there, proxy):
        client = await proxy.connect()
        await client.send(GET.replace(b" / ", b" /once "))
        await client.head()
        await until(lambda: not proxy.worker.upstream_count)  # it was noticed
        await client.send(GET.replace(b" / ", b" /late "))
        await client.head()
        for number in range(3):
            await client.send(GET)
            assert (await client.response())[1] == b"right"
            assert len(there.connections) == 3 + number


@pytest.mark.parametrize(
    ("sent", "when_idle", "connections"),
    [
        (OK + b"Content-Length: 2\r\n\r\nok and more", b"", 3),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\nmore", b"", 3),
        (OK + b"Content-Length: 2\r\n\r\nok", b"more", 3),
        (OK + b"Content-Length: 2\r\n\r\nok", b"HTTP/1.1 408 Request Timeout\r\n\r\n", 2),  # a server's goodbye
    ],
)
async def test_bytes_beyond_the_end_are_remembered_and_a_goodbye_is_not(
    tmp_path: Path, sent: bytes, when_idle: bytes, connections: int
) -> None:
    is_idle = asyncio.Event()

    async def script(wire: Wire) -> None:
        is_first = len(there.connections) == 1
        while True:
            await wire.head()
            await wire.send(sent if is_first else OK + b"Content-Length: 2\r\n\r\nok")
            if is_first:
                await is_idle.wait()
                await wire.send(when_idle)

    async with served(script, tmp_path) as (there, proxy):
        client = await proxy.connect()
        await client.send(GET)
        await client.reader.readuntil(b"0\r\n\r\n" if b"chunked" in sent else b"ok")
        is_idle.set()
        await until(lambda: not proxy.worker.upstream_count)
        for _ in range(2):
            await client.send(GET)
            assert (await client.response())[1] == b"ok"
        assert len(there.connections) == connections
