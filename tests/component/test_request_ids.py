"""`EDGE_REQUEST_IDS`: the id of a request in its response and at its origin, in HTTP/1.1 and in HTTP/2."""

from __future__ import annotations

import contextlib
import re
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.component.http2_peers import get, http2_client
from tests.component.peers import Edge, Wire, edge, enrol, origin, served

ID = re.compile(rb"\r\nx-request-id: ([^\r\n]*)", re.IGNORECASE)
OURS = re.compile(rb"[0-9a-f]{16}")
TRUSTED = {"FRONTAGE_EDGE_TRUSTED_PROXIES": "127.0.0.0/8"}
Fetch = Callable[[bytes], Awaitable[list[bytes]]]


@dataclass
class Site:
    """An origin that states an id of its own below /own, and answers /gone by closing the connection."""

    received: list[bytes] = field(default_factory=list)  # ids, b"" for a request without

    async def __call__(self, wire: Wire) -> None:
        while head := await wire.head():
            self.received.append(b",".join(ID.findall(head)))
            path = head.split(b" ", 2)[1]
            if path == b"/gone":
                return
            more = b"X-REQUEST-ID: the-origins\r\n" if path.startswith(b"/own") else b""
            tag = b"%d" % len(self.received)  # differs, so that heads are read by a template
            await wire.send(b"HTTP/1.1 200 OK\r\nETag: %b\r\n%bContent-Length: 2\r\n\r\nok" % (tag, more))


@contextlib.asynccontextmanager
async def fetching(proxy: Edge, protocol: str, stated: bytes = b"") -> AsyncIterator[Fetch]:
    """Yield a client's way to ask for a path: it returns the ids in the response. `stated`: the client's own id."""
    if protocol == "HTTP/2":
        async with http2_client(proxy) as client:

            async def over_http2(path: bytes) -> list[bytes]:
                more = [(b"x-request-id", stated)] if stated else []
                response = await client.exchange(get(path, *more))
                return [value for name, value in response.fields if name == b"x-request-id"]

            yield over_http2
        return
    wire = await proxy.connect()

    async def over_http1(path: bytes) -> list[bytes]:
        more = b"X-Request-Id: %b\r\n" % stated if stated else b""
        await wire.send(b"GET %b HTTP/1.1\r\nHost: shop.example.com\r\n%b\r\n" % (path, more))
        return ID.findall((await wire.response())[0])

    yield over_http1


@contextlib.asynccontextmanager
async def site_behind(tmp_path: Path, ids: str = "on", **environ: Any) -> AsyncIterator[tuple[Edge, Site]]:
    site = Site()
    async with served(site, tmp_path, FRONTAGE_EDGE_REQUEST_IDS=ids, **environ) as (_, proxy):
        yield proxy, site


both_protocols = pytest.mark.parametrize("protocol", ["HTTP/1.1", "HTTP/2"])


@both_protocols
async def test_each_response_states_the_id_that_its_origin_got(tmp_path: Path, protocol: str) -> None:
    async with site_behind(tmp_path) as (proxy, site), fetching(proxy, protocol, b"the-clients") as fetch:
        stated = [await fetch(path) for path in (b"/", b"/", b"/a", b"/b", b"/c", b"/d", b"/e", b"/gone")]
    received = list(dict.fromkeys(site.received))  # /gone was asked for twice
    assert stated == [[each] for each in received]
    assert all(OURS.fullmatch(each) for each in received)


@both_protocols
async def test_an_id_that_the_origin_states_stands(tmp_path: Path, protocol: str) -> None:
    async with site_behind(tmp_path) as (proxy, _), fetching(proxy, protocol) as fetch:
        assert [await fetch(b"/own/%d" % number) for number in range(8)] == [[b"the-origins"]] * 8


@both_protocols
@pytest.mark.parametrize("path", [b"/", b"/gone", b"/../"], ids=["forwarded", "origin-down", "refused"])
async def test_a_trusted_proxys_id_is_kept(tmp_path: Path, protocol: str, path: bytes) -> None:
    async with site_behind(tmp_path, **TRUSTED) as (proxy, site), fetching(proxy, protocol, b"theirs-1") as fetch:
        assert await fetch(path) == [b"theirs-1"]
    assert set(site.received) <= {b"theirs-1"}


@both_protocols
@pytest.mark.parametrize("unusable", [b"x" * 129, b"two words", b"caf\xe9"], ids=["long", "blank", "not-ascii"])
async def test_a_trusted_proxys_id_that_is_unusable_is_replaced(tmp_path: Path, protocol: str, unusable: bytes) -> None:
    async with site_behind(tmp_path, **TRUSTED) as (proxy, site), fetching(proxy, protocol, unusable) as fetch:
        stated = [await fetch(b"/%d" % number) for number in range(8)]
    assert stated == [[each] for each in site.received]
    assert all(OURS.fullmatch(each) for each in site.received)


@both_protocols
async def test_responses_of_origins_state_none_without_the_setting(tmp_path: Path, protocol: str) -> None:
    async with site_behind(tmp_path, "off") as (proxy, site), fetching(proxy, protocol) as fetch:
        assert await fetch(b"/") == []
        ((of_refusal,),) = [await fetch(b"/gone")]
    assert set(site.received) == {b""}
    assert OURS.fullmatch(of_refusal)


async def test_redirects_and_tunnels_state_it_too(tmp_path: Path) -> None:
    async def switch(wire: Wire) -> None:
        await wire.head()
        await wire.send(b"HTTP/1.1 101 Switching Protocols\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n")
        await wire.rest()

    for secure, expected in ((False, b"HTTP/1.1 308"), (True, b"HTTP/1.1 101")):
        async with (
            origin(switch) as there,
            edge(tmp_path, secure=secure, FRONTAGE_EDGE_REQUEST_IDS="on") as proxy,
        ):
            enrol(proxy, there)
            client = await proxy.connect()
            await client.send(
                b"GET / HTTP/1.1\r\nHost: shop.example.com\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"
            )
            head = await client.head()
            assert head.startswith(expected)
            ((id_,),) = [ID.findall(head)]
            assert OURS.fullmatch(id_)
            client.close()
