"""What one client of HTTP/2 can make its worker hold, or go on with: each of these had no bound once."""

from __future__ import annotations

import asyncio
import gc
import inspect
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from edge.http2 import frames
from edge.http2.errors import ErrorCode
from edge.proxy.http2_connection import FAIR_EXCHANGES, Http2ClientConnection
from edge.proxy.http2_stream import NEVER, Http2Stream
from tests.component.http2_peers import get, http2_client, post
from tests.component.peers import Edge, Wire, served
from tests.waiting import until

BODY_LIMIT_BYTES = 100
FEW: dict[str, Any] = {"FRONTAGE_EDGE_ORIGIN_CONNECTIONS": "40"}
TOO_LARGE = b"x" * (2 * BODY_LIMIT_BYTES)


async def hang(wire: Wire) -> None:
    await wire.head()
    await wire.rest()


async def answer(content: bytes, wire: Wire) -> None:
    while await wire.head():
        await wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(content), content))


def http2_connection(proxy: Edge) -> Http2ClientConnection:
    (connection,) = (each for each in proxy.worker.connections if isinstance(each, Http2ClientConnection))
    return connection


async def test_streams_that_the_connection_s_window_stopped_are_gone_once_they_are_reset(tmp_path: Path) -> None:
    async with served(partial(answer, b"x" * 60_000), tmp_path) as (_, proxy), http2_client(proxy) as client:
        client.acknowledges = False
        filling = [client.request(get(b"/%d" % number)) for number in range(2)]
        await client.until(lambda: sum(len(client.responses[stream].content) for stream in filling) == 65_535)
        connection = http2_connection(proxy)
        for _ in range(20):
            stream_id = client.request(get())
            await client.until(lambda: client.responses[stream_id].fields)  # noqa: B023 - called at once
            client.h2.reset_stream(stream_id, ErrorCode.CANCEL)
            client.flush()
            await until(lambda: stream_id not in connection._http2.streams)  # noqa: B023
        await until(lambda: not proxy.worker.cancellations)
        gc.collect()
        held = [each for each in gc.get_objects() if type(each) is Http2Stream and each._connection is connection]
        assert len(held) == len(connection._http2.streams) == 1


@pytest.mark.parametrize("attacks", [False, True])
async def test_exchanges_of_a_removed_domain_end_whatever_waits_for_them(tmp_path: Path, attacks: bool) -> None:
    settings = FEW | {"FRONTAGE_EDGE_MAX_BODY_BYTES": str(BODY_LIMIT_BYTES)}
    async with served(hang, tmp_path, **settings) as (there, proxy), http2_client(proxy) as client:
        others = [await proxy.connect() for _ in range(20)]
        for other in others:
            await other.send(b"GET / HTTP/1.1\r\nHost: shop.example.com\r\n\r\n")
        await until(lambda: len(there.connections) == 20)
        for number in range(FAIR_EXCHANGES):
            client.request(get(b"/%d" % number))
        await until(lambda: len(there.connections) == 20 + FAIR_EXCHANGES)
        if attacks:  # they are refused when they start: once one of the others has ended
            for _ in range(3):
                client.request(post(), TOO_LARGE)
            await until(lambda: len(http2_connection(proxy).waiting) == 3)
        proxy.replica.remove("shop.example.com")
        proxy.change()
        await until(lambda: not any(connection.exchanges() for connection in proxy.worker.connections))


async def test_client_that_does_not_read_has_a_deadline_without_a_stream(tmp_path: Path) -> None:
    async with served(hang, tmp_path) as (_, proxy), http2_client(proxy) as client:
        client.request(get())
        await until(lambda: len(http2_connection(proxy).exchanges()) == 1)
        connection, worker = http2_connection(proxy), proxy.worker
        connection.deadline = NEVER
        connection.pause_writing()
        assert connection.deadline <= worker.now + worker.exchanges.timeouts.body
        client.h2.reset_stream(1, ErrorCode.CANCEL)
        client.flush()
        await until(lambda: not connection.exchanges())
        connection._become_idle()
        connection._idle_deadline = NEVER
        connection._update_deadline()
        assert connection.deadline <= worker.now + worker.exchanges.timeouts.body
        connection._read_by = connection.deadline = worker.now - 1
        await until(lambda: not worker.connections)


async def test_client_that_reads_slowly_is_not_ended_by_a_deadline_of_something_else(tmp_path: Path) -> None:
    async with served(hang, tmp_path) as (_, proxy), http2_client(proxy) as client:
        client.request(get())
        await until(lambda: len(http2_connection(proxy).exchanges()) == 1)
        connection = http2_connection(proxy)
        connection.pause_writing()  # the client took all up to now
        connection.deadline = proxy.worker.now - 1  # of its first request's head, for example
        await until(lambda: connection.deadline > proxy.worker.now)
        assert len(connection.exchanges()) == 1


async def test_waiting_uploads_that_time_out_are_not_kept(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"FRONTAGE_EDGE_ORIGIN_CONNECTIONS": "8", "FRONTAGE_EDGE_ORIGIN_TIMEOUT_SECONDS": "600"}
    async with served(hang, tmp_path, **settings) as (there, proxy), http2_client(proxy) as client:
        for number in range(FAIR_EXCHANGES):
            client.request(get(b"/%d" % number))
        await until(lambda: len(there.connections) == FAIR_EXCHANGES)
        stream_id = client.request(post(), b"some", ends=False)
        connection = http2_connection(proxy)
        await until(lambda: len(connection.waiting) == 1)
        (stream,) = connection.waiting
        stream.deadline = connection.deadline = proxy.worker.now - 1
        assert (await client.response(stream_id)).status == 408
        assert not connection.waiting


async def test_octets_of_a_frame_without_end_put_off_no_deadline_of_a_whole_request(tmp_path: Path) -> None:
    async with served(hang, tmp_path) as (there, proxy), http2_client(proxy) as client:
        stream_id = client.request(get())
        await until(lambda: there.connections)
        (exchange,) = http2_connection(proxy).exchanges()
        stream = exchange.client
        assert isinstance(stream, Http2Stream)
        stream.deadline = deadline = proxy.worker.now + 1000
        client.send_raw(frames.header(frames.DATA, 0, stream_id, 16_384) + b"x")
        await until(lambda: http2_connection(proxy)._http2._partial)
        client.send_raw(b"x")
        await until(lambda: len(http2_connection(proxy)._http2._partial) == frames.HEADER_BYTES + 2)
        assert stream.deadline == deadline


@pytest.mark.parametrize("has_length", [True, False])
async def test_upload_in_small_frames_that_waits_reaches_the_origin_as_one_piece(
    tmp_path: Path, has_length: bool
) -> None:
    released, bodies = asyncio.Event(), []

    async def script(wire: Wire) -> None:
        while True:
            head = await wire.head()
            if head.startswith(b"POST"):
                bodies.append(await wire.exactly(50 if has_length else len(b"32\r\n") + 50 + len(b"\r\n0\r\n\r\n")))
            else:
                await released.wait()
            await wire.send(b"HTTP/1.1 204 No Content\r\n\r\n")

    async with served(script, tmp_path, **FEW) as (there, proxy), http2_client(proxy) as client:
        for _ in range(20):  # the origin has room in plenty no more
            other = await proxy.connect()
            await other.send(b"GET / HTTP/1.1\r\nHost: shop.example.com\r\n\r\n")
        await until(lambda: len(there.connections) == 20)
        for number in range(FAIR_EXCHANGES):
            client.request(get(b"/%d" % number))
        await until(lambda: len(there.connections) == 20 + FAIR_EXCHANGES)
        length = [(b"content-length", b"50")] if has_length else []
        stream_id = client.request(post(b"/", *length), ends=False)
        for number in range(50):
            client.h2.send_data(stream_id, b"%c" % (48 + number), end_stream=number == 49)
        client.flush()
        await until(lambda: len(http2_connection(proxy).waiting) == 1)
        released.set()
        assert (await client.response(stream_id)).status == 204
    content = bytes(range(48, 98))
    assert bodies == [content if has_length else b"32\r\n%b\r\n0\r\n\r\n" % content]


async def test_uploads_that_are_refused_as_they_start_are_not_nested(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    depths: list[int] = []
    refuse = Http2ClientConnection.refuse

    def refuse_and_note(self: Http2ClientConnection, *arguments: Any) -> None:
        depths.append(len(inspect.stack(0)))
        refuse(self, *arguments)

    monkeypatch.setattr(Http2ClientConnection, "refuse", refuse_and_note)
    settings: dict[str, Any] = {
        "FRONTAGE_EDGE_ORIGIN_CONNECTIONS": "8",
        "FRONTAGE_EDGE_MAX_BODY_BYTES": str(BODY_LIMIT_BYTES),
    }
    async with served(hang, tmp_path, **settings) as (there, proxy), http2_client(proxy) as client:
        for number in range(FAIR_EXCHANGES):
            client.request(get(b"/%d" % number))
        await until(lambda: len(there.connections) == FAIR_EXCHANGES)
        streams = [client.request(post(), TOO_LARGE) for _ in range(50)]
        await until(lambda: len(http2_connection(proxy).waiting) == 50)
        client.h2.reset_stream(1, ErrorCode.CANCEL)
        client.flush()
        for stream_id in streams:
            assert (await client.response(stream_id)).status == 413
        assert len(depths) == 50
        assert max(depths) - min(depths) < 20
