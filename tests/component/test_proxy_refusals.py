"""Requests that the edge answers itself: unknown domains, redirects to HTTPS, refusals, origins out of reach."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from common.probe import CHALLENGE_PROBE_PATH, PROBE_PATH, new_nonce, probe_answer
from tests.component.peers import Wire, answer_each, edge, enrol, origin, served, served_client

GET = b"GET / HTTP/1.1\r\nHost: shop.example.com\r\n\r\n"


async def test_unknown_domains_get_a_neutral_404_and_keep_the_connection(tmp_path: Path) -> None:
    async with edge(tmp_path, secure=False) as proxy:
        client = await proxy.connect()
        for accept, shape in ((b"*/*", b'{"message":'), (b"text/html", b"<!doctype html>")):
            await client.send(b"GET / HTTP/1.1\r\nHost: nobody.example\r\nAccept: %b\r\n\r\n" % accept)
            head, body = await client.response()
            assert head.startswith(b"HTTP/1.1 404 Not Found\r\n")
            assert body.startswith(shape)


@pytest.mark.parametrize("path", [PROBE_PATH, CHALLENGE_PROBE_PATH])
async def test_probes_are_answered_for_domains_that_are_not_enrolled(tmp_path: Path, path: str) -> None:
    async with edge(tmp_path, secure=False) as proxy:
        client = await proxy.connect()
        nonce = new_nonce()
        await client.send(b"GET %b HTTP/1.1\r\nHost: New.example:80\r\n\r\n" % (path + nonce).encode())
        assert (await client.response())[1] == probe_answer(proxy.keyring, "new.example", nonce)


@pytest.mark.parametrize(
    ("host", "location"),
    [
        (b"shop.example.com", b"https://shop.example.com/a?b"),
        (b"shop.example.com:8080", b"https://shop.example.com:8443/a?b"),
        (b"shop.example.com:80", b"https://shop.example.com/a?b"),
    ],
)
async def test_plain_http_is_sent_to_https(tmp_path: Path, host: bytes, location: bytes) -> None:
    async with edge(tmp_path, secure=False) as proxy:
        proxy.replica.enrol("shop.example.com", "http://127.0.0.1:9")
        proxy.change()
        client = await proxy.connect()
        await client.send(b"GET /a?b HTTP/1.1\r\nHost: %b\r\n\r\n" % host)
        head = await client.head()
        assert head.startswith(b"HTTP/1.1 308 Permanent Redirect\r\nLocation: " + location + b"\r\n")


async def test_refused_requests_never_reach_the_origin_and_close(tmp_path: Path) -> None:
    async with served(answer_each, tmp_path) as (there, proxy):
        for raw, status in (
            (b"GET / HTTP/1.1\nHost: shop.example.com\n\n", b"400"),
            (
                b"POST / HTTP/1.1\r\nHost: shop.example.com\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n",
                b"400",
            ),
            (b"GET / HTTP/1.1\r\nHost: shop.example.com\r\nX: " + b"y" * 40_000, b"431"),
            (b"GET /" + b"y" * 40_000, b"414"),
            (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", b"505"),
        ):
            client = await proxy.connect()
            await client.send(raw)
            received = await client.rest()
            assert received.startswith(b"HTTP/1.1 " + status)
            assert b"\r\nConnection: close\r\n" in received
        assert not there.connections


@pytest.mark.parametrize(
    "upload",
    [
        b"Content-Length: 1001\r\n\r\n",
        b"Transfer-Encoding: chunked\r\n\r\n3e8\r\n" + b"x" * 1000 + b"\r\n3e8\r\n" + b"x" * 1000,
    ],
)
async def test_a_body_beyond_the_limit_is_refused(tmp_path: Path, upload: bytes) -> None:
    async with served_client(Wire.rest, tmp_path, FRONTAGE_EDGE_MAX_BODY_BYTES="1000") as client:  # type: ignore[arg-type]
        await client.send(b"POST / HTTP/1.1\r\nHost: shop.example.com\r\n" + upload)
        assert (await client.rest()).startswith(b"HTTP/1.1 413 ")


async def test_an_upload_whose_coding_breaks_is_refused_and_cut_off_at_the_origin(tmp_path: Path) -> None:
    received = asyncio.get_running_loop().create_future()
    has_begun = asyncio.Event()

    async def script(wire: Wire) -> None:
        await wire.head()
        has_begun.set()
        received.set_result(await wire.rest())

    async with served_client(script, tmp_path) as client:
        await client.send(
            b"POST / HTTP/1.1\r\nHost: shop.example.com\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n"
        )
        await has_begun.wait()  # a connection that is reset before takes the head with it
        await client.send(b"zz\r\n")
        assert (await client.rest()).startswith(b"HTTP/1.1 400 ")
        assert not (await received).endswith(b"0\r\n\r\n")


async def test_origins_that_are_down_or_private_are_a_bad_gateway(tmp_path: Path) -> None:
    async with origin(answer_each) as there, edge(tmp_path, FRONTAGE_ALLOW_PRIVATE_ADDRESSES="127.0.0.2/32") as proxy:
        proxy.replica.enrol("private.example.com", there.url)
        proxy.replica.enrol("down.example.com", "http://127.0.0.2:9")
        proxy.change()
        client = await proxy.connect()
        for host in (b"private.example.com", b"down.example.com"):
            await client.send(b"GET / HTTP/1.1\r\nHost: %b\r\n\r\n" % host)
            head, body = await client.response()
            assert head.startswith(b"HTTP/1.1 502 ")
            assert b"127.0.0" not in body
        assert not there.connections


async def test_a_request_that_keeps_coming_back_is_a_loop(tmp_path: Path) -> None:
    async with edge(tmp_path) as proxy:

        async def back_to_us(wire: Wire) -> None:
            # As if the origin's name led to this very edge, which the address policy cannot see through a CDN.
            head = (await wire.head()).replace(b"Host: 127.0.0.1:%d" % there.port, b"Host: shop.example.com")
            again = await proxy.connect()
            await again.send(head)
            head, body = await again.response()
            await wire.send(head + body)

        async with origin(back_to_us) as there:
            enrol(proxy, there)
            client = await proxy.connect()
            await client.send(GET)
            head, _ = await client.response()
            assert head.startswith(b"HTTP/1.1 508 ")
            assert len(there.connections) == 3
