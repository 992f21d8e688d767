"""Either side of an exchange ends early: retries, clients that leave or half-close, early answers, draining."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from edge.routing.route import Origin
from edge.upstream.idle_times import IdleTimes
from tests.component.peers import Wire, answer_each, edge, enrol, origin, served, served_client
from tests.waiting import never, until

GET = b"GET / HTTP/1.1\r\nHost: shop.example.com\r\n\r\n"


class AlwaysYoung(IdleTimes):
    """Any connection is young enough for any request."""

    def longest(self, origin: Origin) -> float:
        return 60.0


POST = b"POST / HTTP/1.1\r\nHost: shop.example.com\r\nContent-Length: 0\r\n\r\n"


async def answer_once(wire: Wire) -> None:
    await wire.head()
    await wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    await wire.head()  # and closes without an answer


async def test_a_reused_connection_that_died_retries_get_once_and_post_never(tmp_path: Path) -> None:
    async with (
        origin(answer_once) as there,
        edge(tmp_path) as proxy,
    ):
        proxy.worker._dispatcher._idle_times = AlwaysYoung()
        enrol(proxy, there)
        client = await proxy.connect()
        for _ in range(2):
            await client.send(GET)
            assert (await client.response())[1] == b"ok"
        assert len(there.connections) == 2
        await client.send(POST)
        assert (await client.head()).startswith(b"HTTP/1.1 502 ")
        assert len(there.connections) == 2


async def test_a_post_avoids_connections_like_one_that_died_under_a_get(tmp_path: Path) -> None:
    async with served(answer_once, tmp_path) as (there, proxy):
        client = await proxy.connect()
        for request in (GET, GET, POST):
            await client.send(request)
            assert (await client.response())[1] == b"ok"
        assert len(there.connections) == 3


@pytest.mark.parametrize("method", [b"PUT", b"DELETE"])
@pytest.mark.parametrize(
    "framing", [b"Content-Length: 5\r\n\r\nhello", b"Transfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n0\r\n\r\n"]
)
async def test_small_body_is_sent_again_when_a_reused_connection_has_died(
    tmp_path: Path, method: bytes, framing: bytes
) -> None:
    async def script(wire: Wire) -> None:
        head, body = await wire.response()
        if b"chunked" in head:
            body = await wire.chunks()
        await wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
        await wire.head()  # and closes without an answer

    async with served(script, tmp_path) as (there, proxy):
        client = await proxy.connect()
        for count in (1, 2, 3):
            await client.send(method + b" / HTTP/1.1\r\nHost: shop.example.com\r\n" + framing)
            assert (await client.response())[1] == b"hello"
            assert len(there.connections) == count


async def test_a_client_that_leaves_frees_its_lease(tmp_path: Path) -> None:
    left = asyncio.Event()

    async def script(wire: Wire) -> None:
        await wire.head()
        assert await wire.rest() == b""
        left.set()

    async with served(script, tmp_path) as (there, proxy):
        client = await proxy.connect()
        await client.send(GET)
        await until(lambda: len(there.connections) == 1)
        client.close()
        async with asyncio.timeout(10):
            await left.wait()
        await until(lambda: not proxy.worker.connections)


async def test_a_client_that_half_closed_still_gets_its_answer(tmp_path: Path) -> None:
    async with served_client(answer_each, tmp_path) as client:
        await client.send(GET)
        client.writer.write_eof()
        assert (await client.rest()).endswith(b"\r\n\r\nok")


@pytest.mark.parametrize("version", [b"1.1", b"1.0"])
async def test_half_closed_client_gets_its_answer_however_long_the_origin_takes(tmp_path: Path, version: bytes) -> None:
    go = asyncio.Event()

    async def script(wire: Wire) -> None:
        await wire.head()
        await go.wait()
        await wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    async with served(script, tmp_path) as (_, proxy):
        proxy.worker.probe_after_seconds = 0.05
        client = await proxy.connect()
        await client.send(GET.replace(b"HTTP/1.1", b"HTTP/" + version))
        client.writer.write_eof()
        half_closed_at = proxy.worker.now
        await until(lambda: proxy.worker.now > half_closed_at + 2.5)
        go.set()
        if version == b"1.1":
            assert await client.head() == b"HTTP/1.1 100 Continue\r\n\r\n"
        head, body = await client.response()
        assert head.startswith(b"HTTP/1.1 200 ")
        assert body == b"ok"


async def test_a_client_that_does_not_read_stops_the_origin(tmp_path: Path) -> None:
    sent = 0
    stalled = asyncio.Event()

    async def script(wire: Wire) -> None:
        nonlocal sent
        await wire.head()
        await wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n")
        while sent < 100_000_000:
            try:
                async with asyncio.timeout(1):
                    await wire.send(b"x" * 100_000)
            except TimeoutError:
                stalled.set()
                return
            sent += 100_000

    async with served_client(script, tmp_path) as client:
        await client.send(GET)
        async with asyncio.timeout(20):
            await stalled.wait()
        assert sent < 20_000_000  # the kernels' buffers, not ours


async def test_an_early_answer_ends_the_upload_and_reaches_the_client(tmp_path: Path) -> None:
    async def script(wire: Wire) -> None:
        await wire.head()
        await wire.send(b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\n\r\nno!")
        await never()

    async with served_client(script, tmp_path) as client:
        await client.send(
            b"POST / HTTP/1.1\r\nHost: shop.example.com\r\nContent-Length: 1000000\r\n\r\n" + b"x" * 50_000
        )
        head, body = await client.response()
        assert head.startswith(b"HTTP/1.1 413 ")
        assert b"\r\nConnection: close\r\n" in head
        assert body == b"no!"
        assert await client.rest() == b""


@contextlib.contextmanager
def resetting_origin() -> Iterator[str]:
    """Answers after a request's head and closes at once, with an upload unread: a reset follows the answer."""
    with socket.create_server(("127.0.0.1", 0)) as listener:

        def serve() -> None:
            while True:
                try:
                    accepted, _ = listener.accept()
                except OSError:
                    return
                with accepted, contextlib.suppress(OSError):
                    accepted.recv(1000)
                    accepted.sendall(b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\n\r\nno!")

        thread = threading.Thread(target=serve)
        thread.start()
        try:
            yield "http://{}:{}".format(*listener.getsockname())
        finally:
            listener.shutdown(socket.SHUT_RDWR)
            thread.join()


async def test_an_early_answer_before_a_reset_reaches_the_client(tmp_path: Path) -> None:
    with resetting_origin() as url:
        async with edge(tmp_path) as proxy:
            proxy.replica.enrol("shop.example.com", url)
            proxy.change()
            for _ in range(30):
                client = await proxy.connect()
                head = b"POST / HTTP/1.1\r\nHost: shop.example.com\r\nContent-Length: 2000000\r\n\r\n"
                sending = asyncio.create_task(client.send(head + b"x" * 1_000_000))
                answer, body = await client.response()
                await sending
                assert (answer[:13], body) == (b"HTTP/1.1 413 ", b"no!")


async def test_draining_finishes_what_is_under_way(tmp_path: Path) -> None:
    go = asyncio.Event()

    async def script(wire: Wire) -> None:
        await wire.head()
        await go.wait()
        await wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    async with served(script, tmp_path) as (there, proxy):
        idle, busy = await proxy.connect(), await proxy.connect()
        await busy.send(GET)
        await until(lambda: bool(there.connections) and len(proxy.worker.connections) == 2)
        proxy.worker.drain()
        assert await idle.rest() == b""
        assert not proxy.worker.is_idle()
        go.set()
        answer = await busy.rest()
        assert b"Connection: close" in answer
        assert answer.endswith(b"ok")
        assert proxy.worker.is_idle()


async def test_request_that_crosses_the_draining_is_answered(tmp_path: Path) -> None:
    async with served(answer_each, tmp_path) as (_, proxy):
        client = await proxy.connect()
        await client.send(GET)
        await client.response()
        proxy.worker.drain()
        await client.send(GET)
        assert b"Connection: close" in await client.rest()
