"""Responses over HTTP/2: what an origin sends, as a client of HTTP/2 gets it."""

from __future__ import annotations

from pathlib import Path
from random import Random

import orjson
import pytest

from edge.http2 import frames
from edge.http2.errors import ErrorCode
from tests.component.http2_peers import get, http2_client
from tests.component.origins import sends
from tests.component.peers import served
from tests.waiting import until


async def test_early_hints_reach_the_client(tmp_path: Path) -> None:
    hints = b"HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n"
    script = sends(hints, b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
    async with served(script, tmp_path) as (_, proxy), http2_client(proxy) as client:
        response = await client.exchange(get())
        assert response.interims == [[(b":status", b"103"), (b"link", b"</a.css>; rel=preload")]]
        assert response.content == b"ok"


@pytest.mark.parametrize("te", [True, False])
async def test_chunked_response_with_trailers(tmp_path: Path, te: bool) -> None:
    script = sends(
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2\r\nde\r\n0\r\ngrpc-status: 0\r\n\r\n"
    )
    async with served(script, tmp_path) as (_, proxy), http2_client(proxy) as client:
        for _ in range(6):
            response = await client.exchange(get(b"/", *([(b"te", b"trailers")] if te else [])))
            assert (response.status, response.content) == (200, b"abcde")
            assert response.trailers == ([(b"grpc-status", b"0")] if te else [])
            assert not {b"transfer-encoding", b"connection"} & {name for name, _ in response.fields}


@pytest.mark.parametrize(
    ("method", "answer", "fields"),
    [
        (b"HEAD", b"HTTP/1.1 200 OK\r\nDate: x\r\nContent-Length: 99\r\n\r\n", (b"content-length", b"99")),
        (b"GET", b"HTTP/1.1 204 No Content\r\nDate: x\r\n\r\n", None),
        (b"GET", b"HTTP/1.1 304 Not Modified\r\nDate: x\r\nETag: 1\r\n\r\n", (b"etag", b"1")),
        (b"GET", b"HTTP/1.1 200 OK\r\nDate: x\r\nContent-Length: 0\r\n\r\n", (b"content-length", b"0")),
    ],
)
async def test_response_without_content(
    tmp_path: Path, method: bytes, answer: bytes, fields: tuple[bytes, bytes] | None
) -> None:
    async with served(sends(answer), tmp_path) as (_, proxy), http2_client(proxy) as client:
        for _ in range(3):
            response = await client.exchange(get(method=method))
            assert response.fields[0][1] == answer[9:12]
            assert response.fields[1:] == [(b"date", b"x"), *([fields] if fields else [])]
            assert (response.ended, response.content) == (True, b"")


@pytest.mark.parametrize("answer", [b"204 No Content\r\n", b"200 OK\r\nContent-Length: 2\r\n"], ids=["empty", "small"])
async def test_first_response_says_that_it_needs_no_table_of_fields(tmp_path: Path, answer: bytes) -> None:
    content = b"ok" if b"Length" in answer else b""
    script = sends(b"HTTP/1.1 %b\r\n%b" % (answer, content))
    async with served(script, tmp_path) as (_, proxy), http2_client(proxy) as client:
        client.h2.update_settings({frames.HEADER_TABLE_SIZE: 0})
        client.flush()
        await client.until(lambda: client.h2.local_settings[frames.HEADER_TABLE_SIZE] == 0)  # acknowledged
        for _ in range(2):
            response = await client.exchange(get())
            assert (response.fields[0][1], response.content) == (answer[:3], content)


async def test_response_until_the_origins_end(tmp_path: Path) -> None:
    script = sends(b"HTTP/1.1 200 OK\r\n\r\nabc", b"def", closes=True)
    async with served(script, tmp_path) as (_, proxy), http2_client(proxy) as client:
        response = await client.exchange(get())
        assert (response.content, response.ended) == (b"abcdef", True)


async def test_response_that_the_origin_breaks_off_is_reset(tmp_path: Path) -> None:
    script = sends(b"HTTP/1.1 200 OK\r\nContent-Length: 99\r\n\r\nabc", closes=True)
    async with served(script, tmp_path) as (_, proxy), http2_client(proxy) as client:
        response = await client.exchange(get())
        assert (response.reset, response.ended) == (ErrorCode.INTERNAL_ERROR, False)
        assert not client.is_closed


async def test_origin_that_answers_nothing_is_502(tmp_path: Path) -> None:
    async with served(sends(closes=True), tmp_path) as (_, proxy), http2_client(proxy) as client:
        response = await client.exchange(get())
        assert (response.status, orjson.loads(response.content)["code"]) == (502, "origin_down")


async def test_switching_protocols_is_refused(tmp_path: Path) -> None:
    script = sends(b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: x\r\n\r\n")
    async with served(script, tmp_path) as (_, proxy), http2_client(proxy) as client:
        assert (await client.exchange(get())).status == 502


async def test_large_responses_of_many_streams_arrive_whole(tmp_path: Path) -> None:
    body = Random(1).randbytes(1_500_000)
    script = sends(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
    async with served(script, tmp_path) as (_, proxy), http2_client(proxy) as client:
        streams = [client.request(get(b"/%d" % number)) for number in range(10)]
        for stream_id in streams:
            assert (await client.response(stream_id)).content == body


async def test_stream_that_is_not_read_stops_only_itself(tmp_path: Path) -> None:
    body = bytes(3_000_000)
    script = sends(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))
    async with served(script, tmp_path) as (_, proxy), http2_client(proxy, window=10_000) as client:
        slow = client.responses[client.request(get())]
        await client.until(lambda: len(slow.content) == 10_000)
        (connection,) = proxy.worker.connections
        await until(lambda: connection._http2.held_bytes > 100_000)  # type: ignore[attr-defined]
        client.acknowledges = True
        stream_id = client.request(get(b"/other"))
        assert (await client.response(stream_id)).content == body
        assert len(slow.content) == 10_000
        assert connection._http2.held_bytes < 1_200_000  # type: ignore[attr-defined]
