"""Bodies through a real edge: their framing in both directions, and answers that have none."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path

import pytest

from tests.component.origins import sends
from tests.component.peers import Wire, answer_each, served, served_client
from tests.waiting import let_run

GET = b"GET / HTTP/1.1\r\nHost: shop.example.com\r\n\r\n"


DATE = b"Date: Sat, 21 Nov 2026 09:00:00 GMT\r\n"


@pytest.mark.parametrize("size", [0, 1, 5, 70_000, 3_000_000])
async def test_bodies_pass_both_ways_with_their_length(tmp_path: Path, size: int) -> None:
    async def script(wire: Wire) -> None:
        while True:
            _, body = await wire.response()
            await wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)

    body = bytes(range(256)) * (size // 256 + 1)
    body = body[:size]
    async with served(script, tmp_path) as (there, proxy):
        client = await proxy.connect()
        for _ in range(2):
            sending = asyncio.create_task(
                client.send(b"POST / HTTP/1.1\r\nHost: shop.example.com\r\nContent-Length: %d\r\n\r\n" % size + body)
            )
            assert (await client.response())[1] == body
            await sending
        assert len(there.connections) == 1


async def test_chunked_bodies_pass_both_ways_and_are_stated_anew(tmp_path: Path) -> None:
    async def script(wire: Wire) -> None:
        while True:
            head = await wire.head()
            assert b"Transfer-Encoding: chunked" in head
            body = await wire.chunks()
            await wire.send(b"HTTP/1.1 200 OK\r\ntransfer-encoding: CHUNKED\r\n" + DATE + b"\r\n2;ext=1\r\nok\r\n")
            await wire.send(b"%x\r\n%b\r\n0\r\nTrailer: x\r\n\r\n" % (len(body), body))

    async with served(script, tmp_path) as (there, proxy):
        client = await proxy.connect()
        for _ in range(2):
            await client.send(b"POST / HTTP/1.1\r\nHost: shop.example.com\r\nTransfer-Encoding: chunked\r\n\r\n3;x\r\n")
            await client.send(b"abc\r\n0\r\nTrailer: y\r\n\r\n")
            assert await client.head() == b"HTTP/1.1 200 OK\r\n" + DATE + b"Transfer-Encoding: chunked\r\n\r\n"
            assert await client.chunks() == b"okabc"
        assert len(there.connections) == 1


async def test_a_body_ended_by_close_is_chunked_for_1_1_and_closed_for_1_0(tmp_path: Path) -> None:
    async def script(wire: Wire) -> None:
        await wire.head()
        await wire.send(b"HTTP/1.0 200 OK\r\n" + DATE + b"\r\nto the ")
        await wire.send(b"end")

    async with served(script, tmp_path) as (_, proxy):
        client = await proxy.connect()
        for _ in range(2):
            await client.send(GET)
            assert b"Transfer-Encoding: chunked" in await client.head()
            assert await client.chunks() == b"to the end"
        client = await proxy.connect()
        await client.send(b"GET / HTTP/1.0\r\nHost: shop.example.com\r\nConnection: keep-alive\r\n\r\n")
        assert await client.rest() == b"HTTP/1.1 200 OK\r\n" + DATE + b"Connection: close\r\n\r\nto the end"


@pytest.mark.parametrize(
    ("request_line", "answer", "expected"),
    [
        (b"HEAD", b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n"),
        (b"GET", b"HTTP/1.1 304 Not Modified\r\nETag: x\r\n\r\n", b"HTTP/1.1 304 Not Modified\r\nETag: x\r\n\r\n"),
        (b"GET", b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n", b"HTTP/1.1 204 No Content\r\n\r\n"),
        (b"HEAD", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n"),
    ],
)
async def test_answers_without_a_body_leave_the_connection_usable(
    tmp_path: Path, request_line: bytes, answer: bytes, expected: bytes
) -> None:
    answer, expected = (each.replace(b"\r\n", b"\r\n" + DATE, 1) for each in (answer, expected))
    async with served(lambda wire: answer_each(wire, answer), tmp_path) as (there, proxy):
        client = await proxy.connect()
        for _ in range(3):
            await client.send(request_line + b" / HTTP/1.1\r\nHost: shop.example.com\r\n\r\n")
            assert await client.head() == expected
        assert len(there.connections) == (3 if request_line == b"HEAD" else 1)


@pytest.mark.parametrize("turns", [0, 1, 20], ids=["at once", "next turn", "later"])
async def test_body_behind_an_answer_to_head_is_no_answer_to_the_next_request(tmp_path: Path, turns: int) -> None:
    body = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged"

    async def script(wire: Wire) -> None:
        while True:
            is_head = (await wire.head()).startswith(b"HEAD ")
            await wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (len(body) if is_head else 5))
            if is_head:
                await let_run(turns)
            await wire.send(body if is_head else b"right")

    async with served_client(script, tmp_path) as client:
        for _ in range(20):
            await client.send(GET.replace(b"GET", b"HEAD"))
            await client.head()
            await client.send(GET)
            assert (await client.response())[1] == b"right"


@pytest.mark.parametrize(
    ("method", "answer"),
    [
        (b"HEAD", b"HTTP/1.1 200 OK\r\nContent-Length: 44\r\n\r\n"),
        (b"HEAD", b"HTTP/1.1 200 OK\r\n\r\n"),
        (b"GET", b"HTTP/1.1 304 Not Modified\r\nContent-Length: 44\r\n\r\n"),
        (b"GET", b"HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n"),
        (b"GET", b"HTTP/1.1 204 No Content\r\nContent-Length: 44\r\n\r\n"),
    ],
)
async def test_body_that_must_not_follow_is_never_read_however_late_it_comes(
    tmp_path: Path, method: bytes, answer: bytes
) -> None:
    """The origin sends the body when the next request has arrived: later than any silence that could be waited for."""
    next_arrived = asyncio.Event()

    async def script(wire: Wire) -> None:
        if b" /first " in await wire.head():
            await wire.send(answer)
            await next_arrived.wait()
            await wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged")
        else:
            next_arrived.set()
            await wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nright")

    async with served_client(script, tmp_path) as client:
        await client.send(method + b" /first HTTP/1.1\r\nHost: shop.example.com\r\n\r\n")
        await client.head()
        await client.send(GET)
        assert (await client.response())[1] == b"right"


@pytest.mark.parametrize("status", [b"204 No Content", b"304 Not Modified"])
async def test_body_right_behind_a_head_that_describes_none_is_no_answer(tmp_path: Path, status: bytes) -> None:
    async def script(wire: Wire) -> None:
        while True:
            if b" /first " in await wire.head():
                await wire.send(b"HTTP/1.1 " + status + b"\r\n\r\n")
                await wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged")
            else:
                await wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nright")

    async with served_client(script, tmp_path) as client:
        for _ in range(20):
            await client.send(GET.replace(b" / ", b" /first "))
            await client.head()
            await client.send(GET)
            assert (await client.response())[1] == b"right"


async def test_connection_is_used_again_after_head_of_an_empty_resource(tmp_path: Path) -> None:
    script = partial(answer_each, response=b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    async with served(script, tmp_path) as (there, proxy):
        client = await proxy.connect()
        for _ in range(3):
            await client.send(GET.replace(b"GET", b"HEAD"))
            await client.head()
        assert len(there.connections) == 1


async def test_continue_is_asked_of_the_origin(tmp_path: Path) -> None:
    async def script(wire: Wire) -> None:
        assert b"Expect: 100-continue" in await wire.head()
        await wire.send(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n")
        assert await wire.exactly(3) == b"abc"
        await wire.send(b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n")

    async with served_client(script, tmp_path) as client:
        await client.send(
            b"PUT / HTTP/1.1\r\nHost: shop.example.com\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n"
        )
        assert await client.head() == b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
        assert await client.head() == b"HTTP/1.1 100 Continue\r\n\r\n"
        await client.send(b"abc")
        assert (await client.head()).startswith(b"HTTP/1.1 201 Created\r\n")


async def test_trailers_of_a_request_reach_the_origin_without_those_that_decide(tmp_path: Path) -> None:
    """However the body is cut into pieces; the connection serves the next request."""
    end = asyncio.get_running_loop().create_future()

    async def script(wire: Wire) -> None:
        head = await wire.head()
        assert b"\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n" in head
        received = b""
        while not received.endswith(b"\r\n\r\n"):
            received += await wire.reader.readuntil(b"\r\n")
        end.set_result(received)
        await wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        await answer_each(wire)

    async with served(script, tmp_path) as (there, proxy):
        client = await proxy.connect()
        await client.send(
            b"POST / HTTP/1.1\r\nHost: shop.example.com\r\nTransfer-Encoding: chunked\r\n"
            b"Trailer: X-Sum, X-Forwarded-For\r\n\r\n3\r\nabc\r\n0\r\nX-S"
        )
        await client.send(b"um: 1\r\nX-Forwarded-For: 6.6.6.6\r\nTransfer_Encoding: gzip\r\n\r\n" + GET)
        assert (await client.response())[1] == b"ok"
        assert (await end).replace(b"3\r\nabc\r\n", b"") == b"0\r\nX-Sum: 1\r\n\r\n"
        assert (await client.response())[1] == b"ok"
        assert len(there.connections) == 1


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nshort\r\nX",
    ],
)
async def test_a_short_answer_never_passes_as_complete(tmp_path: Path, answer: bytes) -> None:
    async with served_client(sends(answer, closes=True), tmp_path) as client:
        await client.send(GET)
        received = await client.rest()
        assert b"short" in received or received == b""
        assert not received.endswith(b"0\r\n\r\n")


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/1.1 200 OK\nContent-Length: 0\n\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 70_000 + b"\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n" * 100,
        b"",
        b"HTTP/1.1 200",
    ],
)
async def test_an_origin_that_talks_nonsense_is_a_bad_gateway(tmp_path: Path, answer: bytes) -> None:
    async with served_client(sends(answer, closes=True), tmp_path) as client:
        await client.send(GET)
        head = await client.head()
        while head.startswith(b"HTTP/1.1 100"):
            head = await client.head()
        assert head.startswith(b"HTTP/1.1 502 ")


async def test_bytes_beyond_an_answer_are_not_passed_on_and_end_the_upstream_connection(tmp_path: Path) -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong"
    async with served(lambda wire: answer_each(wire, answer), tmp_path) as (there, proxy):
        client = await proxy.connect()
        for _ in range(3):
            await client.send(GET)
            assert (await client.response())[1] == b"ok"
        assert len(there.connections) == 3
