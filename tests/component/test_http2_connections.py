"""The life of a stream and of a connection of HTTP/2: cancelled, drained, idle, too slow."""

from __future__ import annotations

import asyncio
import gc
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hpack import NeverIndexedHeaderTuple

from common.traffic import HTTP2
from edge.http.error_responses import CLIENT_DISCONNECTED
from edge.http2 import frames
from edge.http2.connection import Http2Connection
from edge.http2.errors import ErrorCode
from edge.http2.output import Output
from edge.proxy.exchange_states import FINISHED
from edge.proxy.http2_connection import Http2ClientConnection
from edge.proxy.http2_stream import Http2Stream
from edge.proxy.http2_writing import FORGET_SECONDS
from tests.component.http2_peers import BROWSER, get, http2_client, post
from tests.component.origins import Recorder, sends
from tests.component.peers import Edge, Wire, answer_each, edge, enrol, origin, served
from tests.unit.edge.http2.machine import split
from tests.waiting import until


async def test_reset_of_a_stream_cancels_its_exchange(tmp_path: Path) -> None:
    asked: list[bytes] = []
    ends: list[bytes] = []

    async def script(wire: Wire) -> None:
        head = await wire.head()
        asked.append(head)
        if b"/slow" in head:
            ends.append(await wire.rest())
        else:
            await wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    async with served(script, tmp_path) as (_, proxy), http2_client(proxy) as client:
        slow = client.request(get(b"/slow"))
        await until(lambda: asked)  # before that, the connection to the origin would be kept for others
        client.h2.reset_stream(slow, ErrorCode.CANCEL)
        client.flush()
        await until(lambda: ends == [b""])
        assert (await client.exchange(get())).content == b"ok"


async def test_end_of_the_connection_cancels_all_exchanges(tmp_path: Path) -> None:
    asked: list[bytes] = []
    ends: list[bytes] = []

    async def script(wire: Wire) -> None:
        asked.append(await wire.head())
        ends.append(await wire.rest())

    async with served(script, tmp_path) as (_, proxy):
        async with http2_client(proxy) as client:
            for number in range(5):
                client.request(get(b"/%d" % number))
            await until(lambda: len(asked) == 5)
        await until(lambda: len(ends) == 5)
        await until(lambda: not proxy.worker.connections)


@pytest.mark.parametrize("how", ["leaves", "breaks a rule"])
async def test_end_of_a_hundred_exchanges_takes_several_turns_of_the_loop(tmp_path: Path, how: str) -> None:
    asked: list[bytes] = []

    async def script(wire: Wire) -> None:
        asked.append(await wire.head())
        await wire.rest()

    settings: dict[str, Any] = {"FRONTAGE_EDGE_ORIGIN_CONNECTIONS": "1000"}
    async with served(script, tmp_path, **settings) as (_, proxy):
        async with http2_client(proxy) as client:
            for number in range(100):
                client.request(get(b"/%d" % number))
            await until(lambda: len(asked) == 100)
            (connection,) = proxy.worker.connections
            exchanges = connection.exchanges()
            ended: list[int] = []  # how many have, turn by turn

            def count() -> None:
                ended.append(sum(exchange.phase is FINISHED for exchange in exchanges))
                if ended[-1] < 100:
                    asyncio.get_running_loop().call_soon(count)

            count()
            if how == "leaves":
                client.writer.transport.abort()
            else:
                client.send_raw(frames.frame(frames.PING, 0, 0))
            await until(lambda: ended[-1] == 100)
        assert max(later - before for before, later in pairwise(ended)) < 100  # a turn is 0.1 ms of work
        await until(proxy.worker.is_idle)
        assert {exchange.failure for exchange in exchanges} == {CLIENT_DISCONNECTED}
        counters = {family.name: family.samples for family in proxy.worker.measurements()}
        assert counters["frontage_edge_http2_exchanges"] == {(): [100.0]}
        assert proxy.worker.counters.domains.total[HTTP2] == 100
        await until(lambda: not proxy.worker.upstream_count)


async def test_rapid_reset_ends_the_connection_and_is_counted(tmp_path: Path) -> None:
    async with served(answer_each, tmp_path) as (_, proxy), http2_client(proxy) as client:
        await client.exchange(get())
        for _ in range(200):
            stream_id = client.request(get())
            client.h2.reset_stream(stream_id, ErrorCode.CANCEL)
            client.flush()
        await client.closed()
        assert client.goaway_code == ErrorCode.ENHANCE_YOUR_CALM
        assert proxy.worker.counters.http2.ends["early_ends"] == 1
        await until(proxy.worker.is_idle)
        (family,) = [each for each in proxy.worker.measurements() if each.name == "frontage_edge_http2_ends"]
        assert family.samples[("early_ends",)] == [1.0]


async def test_broken_connection_is_told_why(tmp_path: Path) -> None:
    async with edge(tmp_path) as proxy, http2_client(proxy) as client:
        client.send_raw(frames.frame(frames.PING, 0, 0, b"short"))
        await client.closed()
        assert client.goaway_code == ErrorCode.FRAME_SIZE_ERROR
        assert proxy.worker.counters.http2.ends["frame_size_error"] == 1


async def test_streams_that_are_reset_for_malformed_requests_are_counted(tmp_path: Path) -> None:
    async with edge(tmp_path) as proxy, http2_client(proxy) as client:
        for fields in (get(b"echo"), [*get(), (b"Connection", b"close")], get()):
            response = await client.exchange(fields)
        assert response.status == 404  # the connection goes on
        (family,) = [each for each in proxy.worker.measurements() if each.name == "frontage_edge_http2_resets"]
        assert family.samples == {("protocol_error",): [2.0]}


async def test_http_1_1_on_a_connection_of_http_2_is_refused(tmp_path: Path) -> None:
    async with edge(tmp_path) as proxy:
        reader, writer = await asyncio.open_connection("127.0.0.1", proxy.http2_port)
        writer.write(b"GET / HTTP/1.1\r\nHost: shop.example.com\r\n\r\n")
        last = split(await reader.read())[-1]
        assert (last.kind, frames.read_word(last.payload, 4)[0]) == (frames.GOAWAY, ErrorCode.PROTOCOL_ERROR)
        writer.close()
        await writer.wait_closed()


class SlowOrigin:
    """An origin that answers /slow once it is released, and all else at once."""

    def __init__(self) -> None:
        self.asked: list[bytes] = []
        self.released = asyncio.Event()

    async def __call__(self, wire: Wire) -> None:
        while True:
            self.asked.append(await wire.head())
            if b"/slow" in self.asked[-1]:
                await self.released.wait()
            await wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")


async def test_draining_announces_the_end_twice(tmp_path: Path) -> None:
    script = SlowOrigin()
    async with origin(script) as there, edge(tmp_path) as proxy, http2_client(proxy) as client:
        proxy.worker.final_goaway_seconds = 0.0
        enrol(proxy, there)
        slow = client.request(get(b"/slow"))
        await until(lambda: script.asked)
        proxy.worker.drain()
        await client.until(lambda: client.goaways == [2**31 - 1, slow])
        assert not proxy.worker.is_idle()
        script.released.set()
        assert (await client.response(slow)).content == b"ok"
        await client.closed()
        assert proxy.worker.is_idle()


async def test_requests_are_served_until_the_end_is_announced_finally(tmp_path: Path) -> None:
    async with origin(SlowOrigin()) as there, edge(tmp_path) as proxy, http2_client(proxy) as client:
        proxy.worker.final_goaway_seconds = 3600.0  # it does not come here
        enrol(proxy, there)
        assert (await client.exchange(get())).content == b"ok"
        proxy.worker.drain()
        await client.until(lambda: client.goaways == [2**31 - 1])
        assert (await client.exchange(get(b"/late"))).content == b"ok"


async def test_idle_connection_is_closed_with_goaway(tmp_path: Path) -> None:
    async with edge(tmp_path, FRONTAGE_EDGE_IDLE_TIMEOUT_SECONDS="1") as proxy, http2_client(proxy) as client:
        await client.closed()
        assert (client.goaway_code, client.last_allowed) == (ErrorCode.NO_ERROR, 0)


async def test_idle_connection_forgets_its_requests_once_and_serves_others(tmp_path: Path) -> None:
    recorder = Recorder()
    async with served(recorder, tmp_path) as (_, proxy), http2_client(proxy) as client:
        for number in range(9):
            fields = get(b"/%d" % number, *BROWSER)
            fields[2] = NeverIndexedHeaderTuple(*fields[2])
            assert (await client.exchange(fields)).status == 200
            if number % 3 == 2:
                (connection,) = proxy.worker.connections
                assert isinstance(connection, Http2ClientConnection)
                assert proxy.worker.now < connection.deadline <= proxy.worker.now + FORGET_SECONDS
                assert connection._memory.last_request() is not None
                connection.on_deadline()
                assert connection._memory.last_request() is None
                assert connection.deadline > proxy.worker.now + FORGET_SECONDS
    paths = [head.split(b" ")[1] for head in recorder.heads]
    assert paths == [b"/%d" % number for number in range(9)]
    assert len({head.partition(b"\r\n")[2] for head in recorder.heads}) == 1


async def test_pings_do_not_keep_an_idle_connection(tmp_path: Path) -> None:
    async with edge(tmp_path, FRONTAGE_EDGE_IDLE_TIMEOUT_SECONDS="1") as proxy, http2_client(proxy) as client:
        while client.goaway_code is None:
            client.h2.ping(bytes(8))
            client.flush()
            await asyncio.sleep(0.05)
        assert client.goaway_code == ErrorCode.NO_ERROR


@pytest.mark.parametrize(
    "start",
    [
        frames.header(frames.HEADERS, frames.END_HEADERS, 1, 100) + b"\x82",
        frames.frame(frames.HEADERS, 0, 1, b"\x82"),
    ],
)
async def test_slow_head_ends_the_connection(tmp_path: Path, start: bytes) -> None:
    async with edge(tmp_path, FRONTAGE_EDGE_HEAD_TIMEOUT_SECONDS="1") as proxy, http2_client(proxy) as client:
        await client.exchange(get())
        client.send_raw(start)
        await client.closed()
        assert client.goaway_code == ErrorCode.ENHANCE_YOUR_CALM
        assert proxy.worker.counters.http2.ends["slow_heads"] == 1


async def test_slow_upload_is_not_a_slow_head(tmp_path: Path) -> None:
    recorder, body = Recorder(), b"x" * 40
    settings: dict[str, Any] = {
        "FRONTAGE_EDGE_HEAD_TIMEOUT_SECONDS": "1",
        "FRONTAGE_EDGE_BODY_TIMEOUT_SECONDS": "2",
        "FRONTAGE_EDGE_IDLE_TIMEOUT_SECONDS": "1",
    }
    async with served(recorder, tmp_path, **settings) as (_, proxy), http2_client(proxy) as client:
        await client.exchange(get())  # settings are acknowledged
        stream_id = client.request(post(b"/", (b"content-length", b"40")), ends=False)
        client.send_raw(frames.header(frames.DATA, frames.END_STREAM, stream_id, 40))
        for at in range(0, 40, 4):
            client.send_raw(body[at : at + 4])
            await asyncio.sleep(0.3)
        assert (await client.response(stream_id)).content == body


async def test_stalled_upload_is_408(tmp_path: Path) -> None:
    settings: dict[str, Any] = {"FRONTAGE_EDGE_BODY_TIMEOUT_SECONDS": "1"}
    async with served(Recorder(), tmp_path, **settings) as (_, proxy), http2_client(proxy) as client:
        await client.exchange(get())
        stream_id = client.request(post(b"/", (b"content-length", b"40")), ends=False)
        client.send_raw(frames.frame(frames.DATA, frames.END_STREAM, stream_id, b"x" * 40)[:20])
        assert (await client.response(stream_id)).status == 408


async def test_client_that_says_nothing_is_closed(tmp_path: Path) -> None:
    async with edge(tmp_path, FRONTAGE_EDGE_HEAD_TIMEOUT_SECONDS="1") as proxy:
        reader, writer = await asyncio.open_connection("127.0.0.1", proxy.http2_port)
        async with asyncio.timeout(10):
            await reader.read()
        writer.close()
        await writer.wait_closed()


async def test_response_that_the_client_never_takes_is_reset(tmp_path: Path) -> None:
    script = sends(b"HTTP/1.1 200 OK\r\nContent-Length: 30000\r\n\r\n" + bytes(30_000))
    settings: dict[str, Any] = {"FRONTAGE_EDGE_BODY_TIMEOUT_SECONDS": "1"}
    async with served(script, tmp_path, **settings) as (_, proxy), http2_client(proxy, window=10) as client:
        response = await client.exchange(get())
        assert (response.reset, len(response.content)) == (ErrorCode.CANCEL, 10)
        assert not client.is_closed


@pytest.mark.parametrize("size", [30_000, 3_000_000], ids=["whole", "paused"])
async def test_first_deadline_of_a_response_that_the_client_does_not_take_resets_it(tmp_path: Path, size: int) -> None:
    script = sends(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (size, bytes(size)))
    async with served(script, tmp_path) as (_, proxy), http2_client(proxy, window=10) as client:
        response = client.responses[client.request(get())]
        await client.until(lambda: len(response.content) == 10)
        (connection,) = proxy.worker.connections
        assert isinstance(connection, Http2ClientConnection)
        (stream,) = connection._streams()
        await until(lambda: stream.has_ended or stream.is_full)
        stream.deadline = connection.deadline = 0.0
        await client.until(lambda: response.reset == ErrorCode.CANCEL)
        assert not client.is_closed


async def test_origin_that_is_silent_is_504(tmp_path: Path) -> None:
    async def script(wire: Wire) -> None:
        await wire.rest()

    settings: dict[str, Any] = {"FRONTAGE_EDGE_ORIGIN_TIMEOUT_SECONDS": "1"}
    async with served(script, tmp_path, **settings) as (_, proxy), http2_client(proxy) as client:
        assert (await client.exchange(get())).status == 504


async def test_removed_domain_loses_its_streams_only(tmp_path: Path) -> None:
    async def script(wire: Wire) -> None:
        if b"/wait" in await wire.head():
            await wire.rest()
        await wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    async with origin(script) as there, edge(tmp_path) as proxy, http2_client(proxy) as client:
        for name in ("shop.example.com", "gone.example.com"):
            proxy.replica.enrol(name, there.url)
        proxy.change()
        stream_id = client.request(get(b"/wait", authority=b"gone.example.com"))
        await until(lambda: there.connections)
        proxy.replica.remove("gone.example.com")
        proxy.change()
        assert (await client.response(stream_id)).reset == ErrorCode.CANCEL
        assert (await client.exchange(get())).content == b"ok"


@pytest.mark.parametrize("ending", ["leaves", "breaks a rule", "leaves with uploads", "leaves with downloads"])
async def test_nothing_is_left_of_connections_that_ended(tmp_path: Path, ending: str) -> None:
    """Freed by reference counts alone: the collector knows nothing of the engine of TLS that they keep."""

    async def script(wire: Wire) -> None:
        while True:
            if (await wire.head()).startswith(b"GET /long"):
                await wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 50000000\r\n\r\n")
                await wire.send(bytes(50_000_000))
            await wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    def alive() -> int:
        kinds = (Http2ClientConnection, Http2Connection, Http2Stream, Output)
        return sum(type(thing) in kinds for thing in gc.get_objects())

    async def visit(proxy: Edge) -> None:
        async with http2_client(proxy) as client:
            client.acknowledges = False
            assert (await client.exchange(get())).content == b"ok"
            if ending == "breaks a rule":
                client.request(get(b"/long"))
                client.send_raw(frames.frame(frames.PING, 0, 1, bytes(8)))
                await client.closed()
            elif ending == "leaves with uploads":
                for _ in range(10):
                    client.request(post(b"/long"), b"some", ends=False)
            elif ending == "leaves with downloads":
                asked = [client.request(get(b"/long")) for _ in range(20)]
                await client.until(lambda: any(client.responses[stream].content for stream in asked))
        await until(lambda: not proxy.worker.connections)
        await until(lambda: not proxy.worker.cancellations)

    async with served(script, tmp_path) as (_, proxy):
        await visit(proxy)
        gc.collect()
        gc.disable()
        try:
            before = alive()
            for _ in range(3):
                await visit(proxy)
            await until(lambda: alive() <= before)
        finally:
            gc.enable()
