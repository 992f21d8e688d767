"""Requests through a real edge to a real origin: routing, rewriting, pipelining, tunnels."""

from __future__ import annotations

import asyncio
import base64
from functools import partial
from pathlib import Path

import pytest

from edge.proxy.client_connection import ClientConnection
from edge.proxy.worker_limits import TICK_SECONDS
from tests.component.origins import Recorder
from tests.component.peers import Wire, answer_each, edge, enrol, origin, served, served_client
from tests.waiting import until

GET = b"GET / HTTP/1.1\r\nHost: shop.example.com\r\n\r\n"


DATE = b"Date: Sat, 21 Nov 2026 09:00:00 GMT\r\n"


async def test_a_request_reaches_the_origin_with_our_fields_and_without_forged_ones(tmp_path: Path) -> None:
    seen: list[bytes] = []

    async def script(wire: Wire) -> None:
        seen.append(await wire.head())
        await wire.send(b"HTTP/1.1 200 Fine\r\nServer: o\r\nConnection: keep-alive\r\n" + DATE)
        await wire.send(b"Content-Length: 2\r\n\r\nok")

    async with origin(script) as there, edge(tmp_path) as proxy:
        envelope = proxy.keyring.seal(b"token-1", "application/app/service-auth")
        proxy.replica.enrol("shop.example.com", there.url + "/base", service_auth=base64.encodebytes(envelope).decode())
        proxy.change()
        client = await proxy.connect()
        await client.send(
            b"GET /x?y=%20 HTTP/1.1\r\nHost: SHOP.example.com:444\r\nAccept: */*\r\nX-Forwarded-For: 6.6.6.6\r\n"
            b"x-service-auth: forged\r\nConnection: X-Service-Auth, X-Gone\r\nX-Gone: 1\r\n\r\n"
        )
        assert await client.response() == (
            b"HTTP/1.1 200 Fine\r\nServer: o\r\n" + DATE + b"Content-Length: 2\r\n\r\n",
            b"ok",
        )
        assert seen == [
            b"GET /base/x?y=%20 HTTP/1.1\r\nHost: 127.0.0.1:" + str(there.port).encode() + b"\r\nAccept: */*\r\n"
            b"X-Forwarded-For: 127.0.0.1\r\nX-Forwarded-IP: 127.0.0.1\r\nX-Forwarded-Proto: https\r\n"
            b"X-Forwarded-Port: 444\r\nX-Forwarded-Host: SHOP.example.com:444\r\n"
            b"x-service-forwarded-host: shop.example.com\r\n"
            b"Via: 1.1 frontage\r\nX-Service-Auth: token-1\r\n\r\n"
        ]


async def test_pipelined_requests_are_answered_in_order_over_one_upstream_connection(tmp_path: Path) -> None:
    async def script(wire: Wire) -> None:
        while True:
            target = (await wire.head()).split()[1]
            await wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(target), target))

    async with served(script, tmp_path) as (there, proxy):
        client = await proxy.connect()
        await client.send(b"".join(b"GET /%d HTTP/1.1\r\nHost: shop.example.com\r\n\r\n" % n for n in range(50)))
        for n in range(50):
            assert (await client.response())[1] == b"/%d" % n
        assert len(there.connections) == 1


@pytest.mark.parametrize("change", ["none", "moved", "removed"])
async def test_request_sent_ahead_again_is_routed_as_when_its_turn_comes(tmp_path: Path, change: str) -> None:
    """The same bytes as the request before, which were received before the route changed."""

    async def script(wire: Wire) -> None:
        await wire.head()
        if change == "moved":
            proxy.replica.enrol("shop.example.com", other.url)
        elif change == "removed":
            proxy.replica.remove("shop.example.com")
        proxy.change()
        while True:
            await wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nold")
            await wire.head()

    new = partial(answer_each, response=b"HTTP/1.1 200 OK\r\nContent-Length: 3\r\n\r\nnew")
    async with origin(script) as there, origin(new) as other, edge(tmp_path) as proxy:
        enrol(proxy, there)
        client = await proxy.connect()
        await client.send(GET * 3)
        assert (await client.response())[1] == b"old"
        for _ in range(2):
            head, body = await client.response()
            if change == "removed":
                assert not head.startswith(b"HTTP/1.1 200")
            else:
                assert body == (b"old" if change == "none" else b"new")


async def test_requests_sent_ahead_do_not_pile_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """However much a client pipelines, what waits in the edge is bounded, by 16 KB and the last read."""
    request = b"GET / HTTP/1.1\r\nHost: shop.example.com\r\nX-Filler: " + b"x" * 1000 + b"\r\n\r\n"
    received_bytes, forwarded, most_waiting_bytes = 0, 0, 0
    receive = ClientConnection.data_received

    def count(self: ClientConnection, data: bytes) -> None:
        nonlocal received_bytes
        received_bytes += len(data)
        receive(self, data)

    monkeypatch.setattr(ClientConnection, "data_received", count)

    async def script(wire: Wire) -> None:
        nonlocal forwarded, most_waiting_bytes
        while True:
            await wire.head()
            forwarded += 1
            most_waiting_bytes = max(most_waiting_bytes, received_bytes - forwarded * len(request))
            await wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    async with served_client(script, tmp_path) as client:
        sending = asyncio.create_task(client.send(request * 3000))
        for _ in range(3000):
            assert (await client.response())[1] == b"ok"
        await sending
    assert most_waiting_bytes < 16_384 + 256 * 1024


async def test_redirects_of_the_origin_stay_on_the_customers_domain(tmp_path: Path) -> None:
    async def script(wire: Wire) -> None:
        while True:
            await wire.head()
            await wire.send(
                b"HTTP/1.1 302 Found\r\nLocation: http://127.0.0.1:%d/base/in\r\n" % there.port
                + b"Set-Cookie: a=b; Path=/base\r\nContent-Length: 0\r\n\r\n"
            )

    async with origin(script) as there, edge(tmp_path) as proxy:
        for domain in ("shop.example.com", "store.example.com"):  # which share the upstream connection
            proxy.replica.enrol(domain, there.url + "/base")
        proxy.change()
        client = await proxy.connect()
        for host in (b"shop.example.com", b"store.example.com"):
            await client.send(b"GET / HTTP/1.1\r\nHost: %b\r\n\r\n" % host)
            assert (await client.head()).startswith(
                b"HTTP/1.1 302 Found\r\nLocation: https://%b/in\r\nSet-Cookie: a=b; Path=/\r\n" % host
            )


@pytest.mark.parametrize("successor", [None, "another"])
async def test_a_tunnel_ends_when_its_domain_leaves_its_application(tmp_path: Path, successor: str | None) -> None:
    async def script(wire: Wire) -> None:
        await wire.head()
        await wire.send(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
        await asyncio.Event().wait()  # it is not the origin that ends it

    async with served(script, tmp_path) as (there, proxy):
        client = await proxy.connect()
        await client.send(
            b"GET / HTTP/1.1\r\nHost: shop.example.com\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"
        )
        await client.head()
        proxy.replica.enrol("shop.example.com", there.url + "/elsewhere")  # a change of its route: it goes on
        proxy.change()
        changed_at = proxy.worker.now
        await until(lambda: proxy.worker.now > changed_at + TICK_SECONDS)
        assert not client.reader.at_eof()
        if successor is None:
            proxy.replica.remove("shop.example.com")
        else:
            proxy.replica.enrol("shop.example.com", there.url, application=successor)
        proxy.change()
        assert await client.rest() == b""


async def test_a_change_of_origin_is_seen_by_the_next_request_of_the_same_connection(tmp_path: Path) -> None:
    def named(name: bytes) -> object:
        return lambda wire: answer_each(wire, b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n" + name)

    async with origin(named(b"a")) as a, origin(named(b"b")) as b, edge(tmp_path) as proxy:  # type: ignore[arg-type]
        client = await proxy.connect()
        for there, name in ((a, b"a"), (a, b"a"), (b, b"b")):
            enrol(proxy, there)
            await client.send(GET)
            assert (await client.response())[1] == name


async def test_an_upgrade_becomes_an_opaque_tunnel(tmp_path: Path) -> None:
    async def script(wire: Wire) -> None:
        assert b"Connection: Upgrade\r\nUpgrade: websocket\r\n" in await wire.head()
        await wire.send(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nhello")
        for _ in range(3):
            await wire.send((await wire.exactly(4))[::-1])

    async with served_client(script, tmp_path) as client:
        await client.send(
            b"GET / HTTP/1.1\r\nHost: shop.example.com\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\nabcd"
        )
        assert (await client.head()).startswith(b"HTTP/1.1 101 ")
        assert await client.exactly(5) == b"hello"
        assert await client.exactly(4) == b"dcba"
        for _ in range(2):
            await client.send(b"GET ")
            assert await client.exactly(4) == b" TEG"
        assert await client.rest() == b""


async def test_paths_with_parents_and_raw_utf_8_are_served(tmp_path: Path) -> None:
    seen: list[bytes] = []

    async def script(wire: Wire) -> None:
        seen.append((await wire.head()).split()[1])
        await wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    async with origin(script) as there, edge(tmp_path) as proxy:
        proxy.replica.enrol("shop.example.com", there.url + "/app")
        proxy.change()
        options = ("--silent", "--path-as-is", "-H", "Host: shop.example.com")
        url = f"http://127.0.0.1:{proxy.port}/a/../b"
        curl = await asyncio.create_subprocess_exec("curl", *options, url, stdout=asyncio.subprocess.PIPE)
        assert (await curl.communicate())[0] == b"ok"
        client = await proxy.connect()  # curl encodes
        await client.send(GET.replace(b"GET /", b"GET /caf\xc3\xa9"))
        assert (await client.response())[1] == b"ok"
    assert seen == [b"/app/a/../b", b"/app/caf%C3%A9"]


async def test_a_request_line_that_comes_alone_gets_no_fields_of_another_client(tmp_path: Path) -> None:
    """The memory of requests took it for a whole one, with the fields of the client that the edge had learnt from."""
    recorder = Recorder(b"ok")
    async with served(recorder, tmp_path) as (_, proxy):
        request = b"GET /account HTTP/1.1\r\nHost: shop.example.com\r\nCookie: session=%b\r\n\r\n"
        for number in range(8):
            victim = await proxy.connect()
            await victim.send(request % b"victim-%d" % number)
            await victim.response()
        client = await proxy.connect()
        await client.send(request % b"own")
        await client.response()
        await client.send(request.partition(b"Host")[0])
        client.writer.write_eof()
        assert await client.rest() == b""
        assert [b"session=own" in head for head in recorder.heads] == [False] * 8 + [True]
