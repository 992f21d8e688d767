"""The PROXY protocol before HTTP and before TLS, over real sockets, on both loops."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from functools import partial
from ipaddress import ip_network
from pathlib import Path

import pytest

from edge.tls.holding import HoldCaps
from edge.tls.layer import TlsLayer
from edge.tls.shared import TlsLimits
from edge.transport.connection_limits import ConnectionLimits
from edge.transport.proxy_protocol import Entrance
from tests.component import tls_peers as tls
from tests.component.origins import Recorder
from tests.component.peers import Wire, edge, served
from tests.tls_parts import client_hello, the_ca
from tests.waiting import let_run, until

LOOPBACK = (ip_network("127.0.0.0/8"),)
GET = b"GET / HTTP/1.1\r\nHost: shop.example.com\r\n\r\n"
VERSION_1 = b"PROXY TCP4 192.0.2.7 10.0.0.1 56324 443\r\n"
VERSION_2 = (
    b"\r\n\r\n\x00\r\nQUIT\n\x21\x11\x00\x14"
    + socket.inet_aton("192.0.2.7")
    + socket.inet_aton("10.0.0.1")
    + b"\xdc\x04\x01\xbb\x04\x00\x05abcde"
)
LOCAL = b"\r\n\r\n\x00\r\nQUIT\n\x20\x00\x00\x00"


async def slowly(wire: Wire, data: bytes, cut: int) -> None:
    await wire.send(data[:cut])
    await let_run(5)  # most likely two segments; right whether they are or not
    await wire.send(data[cut:])


@pytest.mark.parametrize(
    ("header", "client"),
    [
        (VERSION_1, b"192.0.2.7"),
        (VERSION_2, b"192.0.2.7"),
        (b"PROXY UNKNOWN\r\n", b"127.0.0.1"),
        (LOCAL, b"127.0.0.1"),
        (b"", b"127.0.0.1"),
    ],
)
async def test_the_stated_address_is_the_clients(tmp_path: Path, header: bytes, client: bytes) -> None:
    site = Recorder(b"ok")
    async with served(site, tmp_path, FRONTAGE_EDGE_TRUSTED_PROXIES="127.0.0.0/8") as (_, proxy):
        for cut in range(len(header) + 1):
            wire = await proxy.connect()
            await slowly(wire, header + GET, cut)
            assert (await wire.response())[1] == b"ok"
            await wire.send(GET)
            assert (await wire.response())[1] == b"ok"
            await wire.closed()
        assert len(site.heads) == 2 * (len(header) + 1)
        assert all(
            b"\r\nX-Forwarded-For: %b\r\nX-Forwarded-IP: %b\r\n" % (client, client) in head for head in site.heads
        )
        await until(lambda: proxy.worker.connection_limits.open_count == 0)


async def test_whom_a_proxy_names_is_not_believed_further_but_the_proxy_itself_is(tmp_path: Path) -> None:
    site = Recorder(b"ok")
    forwarded = GET[:-2] + b"X-Forwarded-For: 198.51.100.9\r\nX-Forwarded-Proto: http\r\nX-Forwarded-Port: 99\r\n\r\n"
    async with served(site, tmp_path, FRONTAGE_EDGE_TRUSTED_PROXIES="127.0.0.0/8") as (_, proxy):
        for header in (VERSION_1, b""):
            wire = await proxy.connect()
            await wire.send(header + forwarded)
            assert (await wire.response())[1] == b"ok"
    assert b"X-Forwarded-For: 192.0.2.7\r\nX-Forwarded-IP: 192.0.2.7\r\nX-Forwarded-Proto: https\r\n" in site.heads[0]
    assert b"X-Forwarded-For: 198.51.100.9, 127.0.0.1\r\nX-Forwarded-IP: 198.51.100.9\r\n" in site.heads[1]
    assert b"X-Forwarded-Proto: http\r\nX-Forwarded-Port: 80\r\n" in site.heads[1]


@pytest.mark.parametrize("header", [VERSION_1, VERSION_2])
async def test_a_strangers_header_is_a_bad_request(tmp_path: Path, header: bytes) -> None:
    async with edge(tmp_path, FRONTAGE_EDGE_TRUSTED_PROXIES="10.0.0.0/8") as proxy:
        wire = await proxy.connect()
        await wire.send(header + GET)
        assert (await wire.rest()).startswith(b"HTTP/1.1 400 ")


async def test_nonsense_from_a_trusted_proxy_ends_the_connection(tmp_path: Path) -> None:
    async with edge(tmp_path, FRONTAGE_EDGE_TRUSTED_PROXIES="127.0.0.0/8") as proxy:
        wire = await proxy.connect()
        await wire.send(b"PROXY TCP4 nobody nowhere 0 0\r\n" + GET)
        assert await wire.rest() == b""
        assert proxy.worker.connection_limits.malformed_headers == 1
        await until(lambda: proxy.worker.connection_limits.open_count == 0)


async def test_a_header_must_come_in_time(tmp_path: Path) -> None:
    async with edge(
        tmp_path, FRONTAGE_EDGE_TRUSTED_PROXIES="127.0.0.0/8", FRONTAGE_EDGE_HEAD_TIMEOUT_SECONDS="0.2"
    ) as proxy:
        wire = await proxy.connect()
        await wire.send(VERSION_1[:-2])
        assert await wire.rest() == b""
        await until(lambda: proxy.worker.connection_limits.open_count == 0)


async def test_caps_count_the_stated_address(tmp_path: Path) -> None:
    async with edge(
        tmp_path, FRONTAGE_EDGE_TRUSTED_PROXIES="127.0.0.0/8", FRONTAGE_EDGE_MAX_CONNECTIONS_PER_ADDRESS="1"
    ) as proxy:
        first = await proxy.connect()
        await first.send(VERSION_1)
        await until(lambda: "192.0.2.7" in proxy.worker.connection_limits._by_client)
        second = await proxy.connect()
        await second.send(VERSION_1 + GET)
        assert (await second.rest()).startswith(b"HTTP/1.1 503 ")
        other = await proxy.connect()
        await other.send(VERSION_1.replace(b"192.0.2.7", b"192.0.2.8") + GET)
        assert (await other.head()).startswith(b"HTTP/1.1 404 ")


def handshake(port: int, header: bytes, cut: int) -> bytes:
    """TLS after a header that comes in two segments; what an echo answers."""
    engine_in, engine_out = ssl.MemoryBIO(), ssl.MemoryBIO()
    engine = the_ca().client_context().wrap_bio(engine_in, engine_out, server_hostname="a.example")
    with tls.raw_connection(port) as outer:
        outer.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with contextlib.suppress(ssl.SSLWantReadError):
            engine.do_handshake()
        first = header + engine_out.read()
        outer.sendall(first[:cut])
        outer.sendall(first[cut:])
        while True:
            engine_in.write(outer.recv(65536))
            with contextlib.suppress(ssl.SSLWantReadError):
                engine.do_handshake()
                break
        engine.write(b"hello")
        outer.sendall(engine_out.read())
        while True:
            engine_in.write(outer.recv(65536))
            with contextlib.suppress(ssl.SSLWantReadError):
                return engine.read(100)


@pytest.mark.parametrize("header", [VERSION_1, VERSION_2])
async def test_a_header_stands_before_tls(header: bytes) -> None:
    connection_limits = ConnectionLimits()

    def first(layer: TlsLayer) -> asyncio.Protocol:
        return Entrance(lambda: layer, connection_limits, LOOPBACK, 10)

    async with tls.edge(first=first) as here:
        here.tls.connection_limits = connection_limits
        for cut in range(len(header) + 3):
            assert await tls.in_thread(partial(handshake, here.port, header, cut)) == b"hello"
        assert all(inner.transport.get_extra_info("peername") == ("192.0.2.7", 56324) for inner in here.inners)
        await until(lambda: connection_limits.open_count == 0)


async def test_holds_count_the_stated_address() -> None:
    connection_limits = ConnectionLimits()

    def first(layer: TlsLayer) -> asyncio.Protocol:
        return Entrance(lambda: layer, connection_limits, LOOPBACK, 10)

    async with tls.edge(first=first, limits=TlsLimits(hold_caps=HoldCaps(per_client=1))) as here:
        here.replica.put_order("new.example", hold_seconds=60)
        streams = [await asyncio.open_connection("127.0.0.1", here.port) for _ in range(3)]
        for (_, writer), client in zip(streams, (b"192.0.2.7", b"192.0.2.8", b"192.0.2.7"), strict=True):
            writer.write(VERSION_1.replace(b"192.0.2.7", client) + client_hello("new.example"))
            await writer.drain()
        assert await streams[2][0].read() != b""  # one too many of that client: an alert
        assert here.tls.held_now == 2
        for _, writer in streams:
            writer.close()
            await writer.wait_closed()
        await until(lambda: here.tls.held_now == 0)
