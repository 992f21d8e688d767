"""Uploads that an application has buffered, between a raw client and a raw origin, on both loops."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import socket
import struct
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from edge.upstream.dialling import Connected, dial
from tests.component.peers import Edge, Origin, Wire, answer_each, edge, origin
from tests.waiting import until

DOMAIN = "shop.example.com"
MB = 1 << 20
GET = b"GET / HTTP/1.1\r\nHost: shop.example.com\r\n\r\n"
OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"


def post(*fields: bytes, method: bytes = b"POST", version: bytes = b"1.1") -> bytes:
    return b"\r\n".join((method + b" / HTTP/" + version, b"Host: shop.example.com", *fields, b"", b""))


def sized(size: int) -> bytes:
    return b"Content-Length: %d" % size


def content(size: int) -> bytes:
    """No two places of it alike."""
    return b"".join(number.to_bytes(4, "big") for number in range(size // 4 + 1))[:size]


def chunked(data: bytes, *, size: int = 50_000) -> bytes:
    pieces = [data[start : start + size] for start in range(0, len(data), size)]
    return b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces) + b"0\r\n\r\n"


class Receiver:
    """An origin's script: reads each request to its end, keeps head and body, and answers."""

    def __init__(self) -> None:
        self.received: list[tuple[bytes, bytes]] = []

    async def __call__(self, wire: Wire) -> None:
        while True:
            head = await wire.head()
            lowered = head.lower()
            if b"transfer-encoding: chunked" in lowered:
                body = await wire.chunks()
            else:
                length = lowered.partition(b"content-length: ")[2].partition(b"\r\n")[0]
                body = await wire.exactly(int(length or b"0"))
            self.received.append((head, body))
            await wire.send(OK)


@contextlib.asynccontextmanager
async def buffering(tmp_path: Path, there: Origin, size: int = 16 * MB, **environ: Any) -> AsyncIterator[Edge]:
    async with edge(tmp_path, FRONTAGE_STATE_DIR=str(tmp_path), **environ) as proxy:
        enrol(proxy, DOMAIN, there, size)
        yield proxy
        for client in proxy.clients:
            await client.closed()
        await until(lambda: kept_bytes(proxy) == 0)
        assert [path.name for path in tmp_path.iterdir() if path.name.startswith("upload-")] == []


def enrol(proxy: Edge, domain: str, there: Origin, size: int, application: str = "app") -> None:
    proxy.replica.enrol(domain, there.url, application=application)
    proxy.replica.records["application", application]["buffer_uploads_bytes"] = size
    proxy.change()


def figure(proxy: Edge, name: str) -> float:
    [samples] = [family.samples for family in proxy.worker.measurements() if family.name == name]
    return samples[()][0]


def kept_bytes(proxy: Edge) -> float:
    return figure(proxy, "frontage_edge_buffered_upload_bytes")


def not_buffered(proxy: Edge) -> float:
    return figure(proxy, "frontage_edge_uploads_not_buffered")


async def arrived(proxy: Edge, size: int) -> None:
    await until(lambda: kept_bytes(proxy) == size)


@pytest.mark.parametrize("size", [1, 65_536, 65_537, 3 * MB])
@pytest.mark.parametrize("is_chunked", [False, True])
async def test_the_origin_is_asked_when_the_body_is_whole(tmp_path: Path, size: int, is_chunked: bool) -> None:
    script, body = Receiver(), content(size)
    framing, sent = (b"Transfer-Encoding: chunked", chunked(body)) if is_chunked else (sized(size), body)
    async with origin(script) as there, buffering(tmp_path, there) as proxy:
        client = await proxy.connect()
        await client.send(post(framing) + sent[:-1])
        await arrived(proxy, size if is_chunked else size - 1)
        assert there.connections == []
        await client.send(sent[-1:] + GET)
        assert (await client.response())[1] == b"ok"
        assert kept_bytes(proxy) == 0
        assert (await client.response())[1] == b"ok"  # the next request, on the same connections
        [(head, received), _] = script.received
        assert received == body
        assert b"\r\nContent-Length: %d\r\n" % size in head
        assert b"chunked" not in head
        assert len(there.connections) == 1
        assert not_buffered(proxy) == 0


async def test_slow_uploads_hold_no_connection_to_the_origin(tmp_path: Path) -> None:
    script = Receiver()
    async with (
        origin(script) as there,
        buffering(tmp_path, there, FRONTAGE_EDGE_ORIGIN_CONNECTIONS="2", FRONTAGE_EDGE_ORIGIN_WAITERS="1") as proxy,
    ):
        uploads = [await proxy.connect() for _ in range(10)]
        for client in uploads:
            await client.send(post(sized(200_000)) + bytes(100_000))
        await arrived(proxy, 1_000_000)
        visitor = await proxy.connect()
        await visitor.send(GET)
        assert (await visitor.response())[1] == b"ok"
        for client in uploads:
            await client.send(bytes(100_000))
            assert (await client.response())[1] == b"ok"


async def test_uploads_that_end_together_are_dialled_one_in_a_turn_of_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, turn, dialled_in = asyncio.get_running_loop(), 0, []

    def count_turns() -> None:
        nonlocal turn
        turn += 1
        loop.call_soon(count_turns)

    async def noted(*arguments: Any, **options: Any) -> Connected:
        dialled_in.append(turn)
        return await dial(*arguments, **options)

    async with origin(Receiver()) as there, buffering(tmp_path, there) as proxy:
        uploads = [await proxy.connect() for _ in range(16)]
        for client in uploads:
            await client.send(post(sized(10)) + bytes(9))
        await arrived(proxy, 16 * 9)
        monkeypatch.setattr("edge.upstream.connector.dial", noted)
        count_turns()
        await asyncio.gather(*(client.send(b"x") for client in uploads))
        for client in uploads:
            assert (await client.response())[1] == b"ok"
    assert len(set(dialled_in)) == len(dialled_in) == 16


async def test_chunks_without_content_make_a_length_of_zero(tmp_path: Path) -> None:
    """Trailers that do not go on make no difference."""
    script = Receiver()
    async with origin(script) as there, buffering(tmp_path, there) as proxy:
        client = await proxy.connect()
        await client.send(post(b"Transfer-Encoding: chunked", b"Trailer: X-Sum") + b"0\r\nHost: x\r\n\r\n")
        assert (await client.response())[1] == b"ok"
        [(head, body)] = script.received
        assert (b"\r\nContent-Length: 0\r\n" in head, b"X-Sum" in head, body) == (True, False, b"")


@pytest.mark.parametrize("size", [0, 1000, 3 * MB])
@pytest.mark.parametrize("budget", [16 * MB, 400_000])
async def test_trailers_reach_the_origin_behind_the_buffered_body(tmp_path: Path, size: int, budget: int) -> None:
    """From memory, from the file, and without room for all of it."""
    ended: asyncio.Future[tuple[bytes, bytes]] = asyncio.get_running_loop().create_future()

    async def script(wire: Wire) -> None:
        head = await wire.head()
        assert b"\r\nTransfer-Encoding: chunked\r\nTrailer: X-Sum\r\n" in head
        assert b"Content-Length" not in head
        received = b""
        while (length := int(await wire.reader.readuntil(b"\r\n"), 16)) > 0:
            received += (await wire.exactly(length + 2))[:-2]
        ended.set_result((received, await wire.reader.readuntil(b"\r\n\r\n")))
        await wire.send(OK)

    data = content(size)
    async with (
        origin(script) as there,
        buffering(tmp_path, there, FRONTAGE_EDGE_UPLOAD_BUFFER_BYTES=str(budget)) as proxy,
    ):
        client = await proxy.connect()
        body = chunked(data).removesuffix(b"\r\n") + b"X-Sum: 1\r\nHost: x\r\n\r\n"
        await client.send(post(b"Transfer-Encoding: chunked", b"Trailer: X-Sum, Host") + body)
        assert (await client.response())[1] == b"ok"
        assert await ended == (data, b"X-Sum: 1\r\n\r\n")


async def test_continue_is_answered_by_the_edge_and_not_asked_of_the_origin(tmp_path: Path) -> None:
    script = Receiver()
    async with origin(script) as there, buffering(tmp_path, there) as proxy:
        client = await proxy.connect()
        await client.send(post(sized(5), b"Expect: 100-continue"))
        assert await client.head() == b"HTTP/1.1 100 Continue\r\n\r\n"
        assert there.connections == []
        await client.send(b"hello")
        assert (await client.response())[1] == b"ok"
        [(head, body)] = script.received
        assert (b"Expect" in head, body) == (False, b"hello")


async def test_a_1_0_client_gets_no_continue_and_is_served(tmp_path: Path) -> None:
    script = Receiver()
    async with origin(script) as there, buffering(tmp_path, there) as proxy:
        client = await proxy.connect()
        await client.send(post(sized(5), b"Expect: 100-continue", version=b"1.0") + b"hello")
        assert (await client.rest()).startswith(b"HTTP/1.1 200 OK\r\n")
        assert [body for _, body in script.received] == [b"hello"]


@pytest.mark.parametrize(
    "sent",
    [
        post(sized(100_001), b"Expect: 100-continue"),
        post(sized(100_001)) + bytes(100_001),
        post(b"Transfer-Encoding: chunked") + chunked(bytes(100_001)),
        post(sized(90_000), b"Expect: 100-continue") + bytes(90_000),  # the limit of all applications
    ],
    ids=["expected", "length", "chunked", "everyones"],
)
async def test_what_is_above_a_limit_is_refused_and_not_shown_to_the_origin(tmp_path: Path, sent: bytes) -> None:
    limit = "80000" if b"90000" in sent else "1000000"
    async with (
        origin(Receiver()) as there,
        buffering(tmp_path, there, 100_000, FRONTAGE_EDGE_MAX_BODY_BYTES=limit) as proxy,
    ):
        client = await proxy.connect()
        await client.send(sent)
        head, body = await client.response()
        assert head.startswith(b"HTTP/1.1 413 ")
        assert orjson.loads(body)["code"] == "body_too_large"
        assert there.connections == []


async def test_a_body_as_long_as_the_limit_is_taken(tmp_path: Path) -> None:
    script = Receiver()
    async with origin(script) as there, buffering(tmp_path, there, 100_000) as proxy:
        client = await proxy.connect()
        for framing, sent in (
            (sized(100_000), bytes(100_000)),
            (b"Transfer-Encoding: chunked", chunked(bytes(100_000), size=10)),
        ):
            await client.send(post(framing) + sent)
            assert (await client.response())[1] == b"ok"
        assert [len(body) for _, body in script.received] == [100_000, 100_000]


@pytest.mark.parametrize("sent_bytes", [0, 1000, 500_000])
@pytest.mark.parametrize("is_reset", [False, True])
async def test_a_client_that_leaves_leaves_nothing_behind(tmp_path: Path, sent_bytes: int, is_reset: bool) -> None:
    async with origin(Receiver()) as there, buffering(tmp_path, there) as proxy:
        client = await proxy.connect()
        await client.send(post(sized(MB)) + bytes(sent_bytes))
        await until(lambda: any(connection.exchanges() for connection in proxy.worker.connections))
        await arrived(proxy, sent_bytes)
        if is_reset:
            raw = client.writer.get_extra_info("socket")
            raw.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        client.close()
        await until(lambda: not proxy.worker.connections)
        assert kept_bytes(proxy) == 0
        assert there.connections == []


async def test_a_client_that_half_closes_before_the_bodys_end_is_refused(tmp_path: Path) -> None:
    async with origin(Receiver()) as there, buffering(tmp_path, there) as proxy:
        client = await proxy.connect()
        await client.send(post(sized(1000)) + bytes(999))
        client.writer.write_eof()
        assert (await client.rest()).startswith(b"HTTP/1.1 400 ")
        assert there.connections == []


async def test_a_client_that_stops_sending_is_timed_out_without_the_origin(tmp_path: Path) -> None:
    async with (
        origin(Receiver()) as there,
        buffering(tmp_path, there, FRONTAGE_EDGE_BODY_TIMEOUT_SECONDS="0.2") as proxy,
    ):
        client = await proxy.connect()
        await client.send(post(sized(1000)) + bytes(999))
        head, body = await client.response()
        assert head.startswith(b"HTTP/1.1 408 ")
        assert orjson.loads(body)["code"] == "request_timeout"
        assert there.connections == []


@pytest.mark.parametrize("is_chunked", [False, True])
async def test_an_application_without_room_has_uploads_streamed_and_others_buffered(
    tmp_path: Path, is_chunked: bool
) -> None:
    script, body = Receiver(), content(300_000)
    framing, sent = (b"Transfer-Encoding: chunked", chunked(body)) if is_chunked else (sized(len(body)), body)
    async with (
        origin(script) as there,
        buffering(tmp_path, there, FRONTAGE_EDGE_UPLOAD_BUFFER_BYTES="800000") as proxy,
    ):
        enrol(proxy, "other.example.com", there, 16 * MB, "another")
        client, other = await proxy.connect(), await proxy.connect()
        sending = asyncio.create_task(client.send(post(framing) + sent[:-50_000]))
        await until(lambda: len(there.connections) == 1)  # the share is 200,000
        await sending
        assert not_buffered(proxy) == 1
        await other.send(post(sized(190_000)).replace(b"shop", b"other") + bytes(100_000))
        await until(lambda: kept_bytes(proxy) >= 100_000)
        assert len(there.connections) == 1
        await client.send(sent[-50_000:])
        assert (await client.response())[1] == b"ok"
        head, received = script.received.pop()
        assert received == body
        assert (b"chunked" in head) is is_chunked
        await other.send(bytes(90_000))
        assert (await other.response())[1] == b"ok"
        assert not_buffered(proxy) == 1


@pytest.mark.parametrize("free_bytes", [0, 150_000])
@pytest.mark.parametrize("is_chunked", [False, True])
async def test_a_full_disk_has_uploads_streamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, free_bytes: int, is_chunked: bool
) -> None:
    write, body, script = os.pwrite, content(MB), Receiver()

    def write_to_small_disk(descriptor: int, data: Any, position: int) -> int:
        if position >= free_bytes:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write(descriptor, data[: free_bytes - position], position)

    monkeypatch.setattr(os, "pwrite", write_to_small_disk)
    framing, sent = (b"Transfer-Encoding: chunked", chunked(body)) if is_chunked else (sized(len(body)), body)
    async with origin(script) as there, buffering(tmp_path, there) as proxy:
        client = await proxy.connect()
        sending = asyncio.create_task(client.send(post(framing) + sent[:-1]))
        await until(lambda: len(there.connections) == 1)
        await sending
        await client.send(sent[-1:])
        assert (await client.response())[1] == b"ok"
        assert [received for _, received in script.received] == [body]
        assert not_buffered(proxy) == 1


async def test_a_body_that_cannot_be_read_again_is_an_error_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(*_: Any) -> bytes:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "pread", fail)
    async with origin(Receiver()) as there, buffering(tmp_path, there) as proxy:
        client = await proxy.connect()
        await client.send(post(sized(MB)) + bytes(MB))
        head, body = await client.response()
        assert head.startswith(b"HTTP/1.1 500 ")
        assert orjson.loads(body)["code"] == "upload_lost"
        await until(lambda: not proxy.worker.upstream_count)


async def test_a_large_upload_is_sent_again_when_a_reused_connection_has_died(tmp_path: Path) -> None:
    bodies: list[bytes] = []

    async def script(wire: Wire) -> None:
        await wire.head()
        if len(there.connections) == 1:
            await wire.send(OK)
            await wire.head()
            await wire.exactly(MB)
            return  # closes without a byte of a response
        bodies.append(await wire.exactly(2 * MB))
        await wire.send(OK)

    async with origin(script) as there, buffering(tmp_path, there) as proxy:
        client = await proxy.connect()
        await client.send(GET)
        await client.response()
        body = content(2 * MB)
        await client.send(post(sized(2 * MB), method=b"PUT") + body)
        assert (await client.response())[1] == b"ok"
        assert bodies == [body]
        assert len(there.connections) == 2


async def test_an_origin_that_reads_slowly_gets_all_of_it(tmp_path: Path) -> None:
    body, go_on = content(8 * MB), asyncio.Event()
    received: list[bytes] = []

    async def script(wire: Wire) -> None:
        await wire.head()
        wire.writer.transport.pause_reading()  # type: ignore[attr-defined]
        await go_on.wait()
        wire.writer.transport.resume_reading()  # type: ignore[attr-defined]
        received.append(await wire.exactly(8 * MB))
        await wire.send(OK)

    async with origin(script) as there, buffering(tmp_path, there) as proxy:
        client = await proxy.connect()
        await client.send(post(sized(8 * MB)) + body)
        await until(lambda: len(there.connections) == 1)
        go_on.set()
        assert (await client.response())[1] == b"ok"
        assert received == [body]


async def test_an_early_answer_reaches_the_client_and_ends_the_upstream_connection(tmp_path: Path) -> None:
    async def script(wire: Wire) -> None:
        await wire.head()
        if len(there.connections) == 1:
            await wire.send(b"HTTP/1.1 413 Too Large\r\nContent-Length: 2\r\n\r\nno")
            await asyncio.Event().wait()  # reads no more
        await wire.send(OK)

    async with origin(script) as there, buffering(tmp_path, there) as proxy:
        client = await proxy.connect()
        await client.send(post(sized(8 * MB)) + bytes(8 * MB))
        head, body = await client.response()
        assert (head.startswith(b"HTTP/1.1 413 "), body) == (True, b"no")
        assert kept_bytes(proxy) == 0
        await client.send(GET)
        assert (await client.response())[1] == b"ok"
        assert len(there.connections) == 2


async def test_an_upgrade_is_not_buffered(tmp_path: Path) -> None:
    async def script(wire: Wire) -> None:
        await wire.head()
        await wire.send(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
        await wire.send((await wire.exactly(4)).upper())

    async with origin(script) as there, buffering(tmp_path, there) as proxy:
        client = await proxy.connect()
        await client.send(post(b"Connection: upgrade", b"Upgrade: websocket", method=b"GET") + b"ping")
        assert (await client.head()).startswith(b"HTTP/1.1 101 ")
        assert await client.exactly(4) == b"PING"


async def test_an_origin_that_is_down_is_a_bad_gateway_for_an_upload(tmp_path: Path) -> None:
    async with origin(answer_each) as there, buffering(tmp_path, there) as proxy:
        enrol(proxy, DOMAIN, Origin(1), MB)
        client = await proxy.connect()
        await client.send(post(sized(100_000)) + bytes(100_000))
        assert (await client.response())[0].startswith(b"HTTP/1.1 502 ")
        enrol(proxy, DOMAIN, there, MB)
        await client.send(GET)
        assert (await client.response())[1] == b"ok"


async def test_an_application_that_buffers_no_uploads_has_them_streamed(tmp_path: Path) -> None:
    script = Receiver()
    async with origin(script) as there, edge(tmp_path) as proxy:
        proxy.replica.enrol(DOMAIN, there.url)
        proxy.change()
        client = await proxy.connect()
        await client.send(post(sized(5)) + b"hell")
        await until(lambda: len(there.connections) == 1)
        await client.send(b"o")
        assert (await client.response())[1] == b"ok"
