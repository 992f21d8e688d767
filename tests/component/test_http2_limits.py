"""What streams of HTTP/2 share, and what logs and metrics say of them."""

from __future__ import annotations

import asyncio
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from edge.http2.errors import ErrorCode
from edge.proxy.http2_connection import FAIR_EXCHANGES
from tests.component.http2_peers import BROWSER, HOST, get, http2_client, post
from tests.component.origins import Recorder, sends
from tests.component.peers import Wire, answer_each, served
from tests.waiting import until


async def answer_after(released: asyncio.Event, wire: Wire) -> None:
    while True:
        await wire.head()
        await released.wait()
        await wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")


async def test_one_connection_has_a_fair_share_of_an_origin(tmp_path: Path) -> None:
    released = asyncio.Event()
    settings: dict[str, Any] = {"FRONTAGE_EDGE_ORIGIN_CONNECTIONS": "10"}
    async with (
        served(partial(answer_after, released), tmp_path, **settings) as (there, proxy),
        http2_client(proxy) as client,
    ):
        streams = [client.request(get(b"/%d" % number)) for number in range(50)]
        await until(lambda: len(there.connections) == FAIR_EXCHANGES)
        async with http2_client(proxy) as other:
            stream_id = other.request(get())
            await until(lambda: len(there.connections) == FAIR_EXCHANGES + 1)
            released.set()
            assert (await other.response(stream_id)).content == b"ok"
        for stream_id in streams:
            assert (await client.response(stream_id)).content == b"ok"
        assert len(there.connections) <= FAIR_EXCHANGES + 1


async def test_waiting_stream_can_be_reset(tmp_path: Path) -> None:
    released = asyncio.Event()
    settings: dict[str, Any] = {"FRONTAGE_EDGE_ORIGIN_CONNECTIONS": "2"}
    async with (
        served(partial(answer_after, released), tmp_path, **settings) as (there, proxy),
        http2_client(proxy) as client,
    ):
        streams = [client.request(post(b"/", (b"content-length", b"2")), b"ok") for _ in range(20)]
        await until(lambda: len(there.connections) == 2)
        for stream_id in streams[10:]:
            client.h2.reset_stream(stream_id, ErrorCode.CANCEL)
        client.flush()
        released.set()
        for stream_id in streams[:10]:
            response = await client.response(stream_id)
            assert response.status == 200
        await until(proxy.worker.is_idle)


async def test_hundreds_of_requests_at_once_leave_the_loop_to_others(tmp_path: Path) -> None:
    async with served(answer_each, tmp_path) as (_, proxy), http2_client(proxy) as client:
        for _ in range(5):
            streams = [client.request(get(b"/%d" % number, *BROWSER)) for number in range(100)]
            for stream_id in streams:
                assert (await client.response(stream_id)).content == b"ok"


async def test_access_log_states_the_protocol(tmp_path: Path) -> None:
    path = tmp_path / "access.log"
    async with served(answer_each, tmp_path, FRONTAGE_EDGE_ACCESS_LOG=str(path)) as (_, proxy):
        async with http2_client(proxy) as client:
            for _ in range(2):
                await client.exchange(get(b"/a?secret"))
            await client.exchange(get(authority=b"none.example.com"))
        await until(lambda: path.exists() and path.read_bytes().count(b"\n") == 3)
    lines = [orjson.loads(line) for line in path.read_bytes().splitlines()]
    assert [(line["protocol"], line["status"], line.get("path")) for line in lines] == [
        ("HTTP/2", 200, "/a"),
        ("HTTP/2", 200, "/a"),
        ("HTTP/2", 404, "/"),
    ]
    assert HOST.decode() == lines[0]["domain"]


async def test_exchanges_are_counted_by_protocol(tmp_path: Path) -> None:
    async with served(answer_each, tmp_path) as (_, proxy), http2_client(proxy) as client:
        plain = await proxy.connect()
        await plain.send(b"GET / HTTP/1.1\r\nHost: shop.example.com\r\n\r\n")
        await plain.response()
        await client.exchange(get())
        await client.exchange(get())
        counters = {family.name: family.samples for family in proxy.worker.measurements()}
        assert counters["frontage_edge_http2_exchanges"] == {(): [2.0]}
        assert counters["frontage_edge_http2_accepted"] == {(): [1.0]}
        assert counters["frontage_edge_exchanges"] == {("200",): [3.0]}


async def test_urgent_response_overtakes_when_the_client_is_slow(tmp_path: Path) -> None:
    body = bytes(400_000)
    script = sends(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
    async with served(script, tmp_path) as (_, proxy), http2_client(proxy) as client:
        lazy = [client.request(get(b"/%d" % n, (b"priority", b"u=7"))) for n in range(3)]
        urgent = client.request(get(b"/urgent", (b"priority", b"u=0")))
        assert (await client.response(urgent)).content == body
        for stream_id in lazy:
            assert (await client.response(stream_id)).content == body


async def test_grpc_shaped_request_gets_a_clear_answer(tmp_path: Path) -> None:
    """An origin of HTTP/1.1 sees a POST; what it answers comes back."""
    async with served(Recorder(), tmp_path) as (_, proxy), http2_client(proxy) as client:
        fields = post(b"/pkg.Service/Call", (b"content-type", b"application/grpc"), (b"te", b"trailers"))
        response = await client.exchange(fields, b"\0\0\0\0\x05hello")
        assert (response.status, response.content) == (200, b"\0\0\0\0\x05hello")
