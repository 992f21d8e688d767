"""The proxy between a raw client and a raw origin, on both loops: what goes through, and how it ends."""

from __future__ import annotations

import asyncio
import base64
from functools import partial
from pathlib import Path

import pytest

from common.probe import PROBE_PATH, new_nonce, probe_answer
from edge.proxy.client_connection import ClientConnection
from edge.proxy.worker_limits import TICK_SECONDS
from tests.component.peers import Wire, answer_each, edge, origin
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

    async with origin(script) as there, edge(tmp_path) as proxy:
        proxy.replica.enrol("shop.example.com", there.url)
        proxy.change()
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
        proxy.replica.enrol("shop.example.com", there.url)
        proxy.change()
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

    async with origin(script) as there, edge(tmp_path) as proxy:
        proxy.replica.enrol("shop.example.com", there.url)
        proxy.change()
        client = await proxy.connect()
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
        for domain in (b"shop.example.com", b"store.example.com"):
            await client.send(b"GET / HTTP/1.1\r\nHost: %b\r\n\r\n" % domain)
            assert (await client.head()).startswith(
                b"HTTP/1.1 302 Found\r\nLocation: https://%b/in\r\nSet-Cookie: a=b; Path=/\r\n" % domain
            )


@pytest.mark.parametrize("successor", [None, "another"])
async def test_a_tunnel_ends_when_its_domain_leaves_its_application(tmp_path: Path, successor: str | None) -> None:
    async def script(wire: Wire) -> None:
        await wire.head()
        await wire.send(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\n")
        await asyncio.Event().wait()  # it is not the origin that ends it

    async with origin(script) as there, edge(tmp_path) as proxy:
        proxy.replica.enrol("shop.example.com", there.url)
        proxy.change()
        client = await proxy.connect()
        await client.send(
            b"GET / HTTP/1.1\r\nHost: shop.example.com\r\nConnection: upgrade\r\nUpgrade: websocket\r\n\r\n"
        )
        await client.head()
        proxy.replica.enrol("shop.example.com", there.url + "/elsewhere")  # a change of its route: it goes on
        proxy.change()
        await asyncio.sleep(2 * TICK_SECONDS)
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
            proxy.replica.enrol("shop.example.com", there.url)
            proxy.change()
            await client.send(GET)
            assert (await client.response())[1] == name


@pytest.mark.parametrize("size", [0, 1, 5, 70_000, 3_000_000])
async def test_bodies_pass_both_ways_with_their_length(tmp_path: Path, size: int) -> None:
    async def script(wire: Wire) -> None:
        while True:
            _, body = await wire.response()
            await wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(body) + body)

    body = bytes(range(256)) * (size // 256 + 1)
    body = body[:size]
    async with origin(script) as there, edge(tmp_path) as proxy:
        proxy.replica.enrol("shop.example.com", there.url)
        proxy.change()
        client = await proxy.connect()
        for _ in range(2):
            sending = asyncio.create_task(
                client.send(b"POST / HTTP/1.1\r\nHost: shop.example.com\r\nContent-Length: %d\r\n\r\n" % size + body)
            )
            assert (await client.response())[1] == body
            await sending
        assert len(there.connections) == 1


async def test_chunked_bodies_pass_both_ways_and_are_stated_anew(tmp_path: Path) -> None:
    async def script(wire: Wire) -> None:
        while True:
            head = await wire.head()
            assert b"Transfer-Encoding: chunked" in head
            body = await wire.chunks()
            await wire.send(b"HTTP/1.1 200 OK\r\ntransfer-encoding: CHUNKED\r\n" + DATE + b"\r\n2;ext=1\r\nok\r\n")
            await wire.send(b"%x\r\n%b\r\n0\r\nTrailer: x\r\n\r\n" % (len(body), body))

    async with origin(script) as there, edge(tmp_path) as proxy:
        proxy.replica.enrol("shop.example.com", there.url)
        proxy.change()
        client = await proxy.connect()
        for _ in range(2):
            await client.send(b"POST / HTTP/1.1\r\nHost: shop.example.com\r\nTransfer-Encoding: chunked\r\n\r\n3;x\r\n")
            await client.send(b"abc\r\n0\r\nTrailer: y\r\n\r\n")
            assert await client.head() == b"HTTP/1.1 200 OK\r\n" + DATE + b"Transfer-Encoding: chunked\r\n\r\n"
            assert await client.chunks() == b"okabc"
        assert len(there.connections) == 1


async def test_a_body_ended_by_close_is_chunked_for_1_1_and_closed_for_1_0(tmp_path: Path) -> None:
    async def script(wire: Wire) -> None:
        await wire.head()
        await wire.send(b"HTTP/1.0 200 OK\r\n" + DATE + b"\r\nto the ")
        await wire.send(b"end")

    async with origin(script) as there, edge(tmp_path) as proxy:
        proxy.replica.enrol("shop.example.com", there.url)
        proxy.change()
        client = await proxy.connect()
        for _ in range(2):
            await client.send(GET)
            assert b"Transfer-Encoding: chunked" in await client.head()
            assert await client.chunks() == b"to the end"
        client = await proxy.connect()
        await client.send(b"GET / HTTP/1.0\r\nHost: shop.example.com\r\nConnection: keep-alive\r\n\r\n")
        assert await client.rest() == b"HTTP/1.1 200 OK\r\n" + DATE + b"Connection: close\r\n\r\nto the end"


@pytest.mark.parametrize(
    ("request_line", "answer", "expected"),
    [
        (b"HEAD", b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n", b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n"),
        (b"GET", b"HTTP/1.1 304 Not Modified\r\nETag: x\r\n\r\n", b"HTTP/1.1 304 Not Modified\r\nETag: x\r\n\r\n"),
        (b"GET", b"HTTP/1.1 204 No Content\r\nContent-Length: 0\r\n\r\n", b"HTTP/1.1 204 No Content\r\n\r\n"),
        (b"HEAD", b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n"),
    ],
)
async def test_answers_without_a_body_leave_the_connection_usable(
    tmp_path: Path, request_line: bytes, answer: bytes, expected: bytes
) -> None:
    answer, expected = (each.replace(b"\r\n", b"\r\n" + DATE, 1) for each in (answer, expected))
    async with origin(lambda wire: answer_each(wire, answer)) as there, edge(tmp_path) as proxy:
        proxy.replica.enrol("shop.example.com", there.url)
        proxy.change()
        client = await proxy.connect()
        for _ in range(3):
            await client.send(request_line + b" / HTTP/1.1\r\nHost: shop.example.com\r\n\r\n")
            assert await client.head() == expected
        assert len(there.connections) == (3 if request_line == b"HEAD" else 1)


@pytest.mark.parametrize("turns", [0, 1, 20], ids=["at once", "next turn", "later"])
async def test_body_behind_an_answer_to_head_is_no_answer_to_the_next_request(tmp_path: Path, turns: int) -> None:
    body = b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged"

    async def script(wire: Wire) -> None:
        while True:
            is_head = (await wire.head()).startswith(b"HEAD ")
            await wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (len(body) if is_head else 5))
            if is_head:
                for _ in range(turns):
                    await asyncio.sleep(0.001)
            await wire.send(body if is_head else b"right")

    async with origin(script) as there, edge(tmp_path) as proxy:
        proxy.replica.enrol("shop.example.com", there.url)
        proxy.change()
        client = await proxy.connect()
        for _ in range(20):
            await client.send(GET.replace(b"GET", b"HEAD"))
            await client.head()
            await client.send(GET)
            assert (await client.response())[1] == b"right"


@pytest.mark.parametrize(
    ("method", "answer"),
    [
        (b"HEAD", b"HTTP/1.1 200 OK\r\nContent-Length: 44\r\n\r\n"),
        (b"HEAD", b"HTTP/1.1 200 OK\r\n\r\n"),
        (b"GET", b"HTTP/1.1 304 Not Modified\r\nContent-Length: 44\r\n\r\n"),
        (b"GET", b"HTTP/1.1 304 Not Modified\r\nTransfer-Encoding: chunked\r\n\r\n"),
        (b"GET", b"HTTP/1.1 204 No Content\r\nContent-Length: 44\r\n\r\n"),
    ],
)
async def test_body_that_must_not_follow_is_never_read_however_late_it_comes(
    tmp_path: Path, method: bytes, answer: bytes
) -> None:
    """The origin sends the body when the next request has arrived: later than any silence that could be waited for."""
    next_arrived = asyncio.Event()

    async def script(wire: Wire) -> None:
        if b" /first " in await wire.head():
            await wire.send(answer)
            await next_arrived.wait()
            await wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged")
        else:
            next_arrived.set()
            await wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nright")

    async with origin(script) as there, edge(tmp_path) as proxy:
        proxy.replica.enrol("shop.example.com", there.url)
        proxy.change()
        client = await proxy.connect()
        await client.send(method + b" /first HTTP/1.1\r\nHost: shop.example.com\r\n\r\n")
        await client.head()
        await client.send(GET)
        assert (await client.response())[1] == b"right"


@pytest.mark.parametrize("status", [b"204 No Content", b"304 Not Modified"])
async def test_body_right_behind_a_head_that_describes_none_is_no_answer(tmp_path: Path, status: bytes) -> None:
    async def script(wire: Wire) -> None:
        while True:
            if b" /first " in await wire.head():
                await wire.send(b"HTTP/1.1 " + status + b"\r\n\r\n")
                await wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 6\r\n\r\nforged")
            else:
                await wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nright")

    async with origin(script) as there, edge(tmp_path) as proxy:
        proxy.replica.enrol("shop.example.com", there.url)
        proxy.change()
        client = await proxy.connect()
        for _ in range(20):
            await client.send(GET.replace(b" / ", b" /first "))
            await client.head()
            await client.send(GET)
            assert (await client.response())[1] == b"right"


async def test_connection_is_used_again_after_head_of_an_empty_resource(tmp_path: Path) -> None:
    script = partial(answer_each, response=b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
    async with origin(script) as there, edge(tmp_path) as proxy:
        proxy.replica.enrol("shop.example.com", there.url)
        proxy.change()
        client = await proxy.connect()
        for _ in range(3):
            await client.send(GET.replace(b"GET", b"HEAD"))
            await client.head()
        assert len(there.connections) == 1


async def test_continue_is_asked_of_the_origin(tmp_path: Path) -> None:
    async def script(wire: Wire) -> None:
        assert b"Expect: 100-continue" in await wire.head()
        await wire.send(b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\nHTTP/1.1 100 Continue\r\n\r\n")
        assert await wire.exactly(3) == b"abc"
        await wire.send(b"HTTP/1.1 201 Created\r\nContent-Length: 0\r\n\r\n")

    async with origin(script) as there, edge(tmp_path) as proxy:
        proxy.replica.enrol("shop.example.com", there.url)
        proxy.change()
        client = await proxy.connect()
        await client.send(
            b"PUT / HTTP/1.1\r\nHost: shop.example.com\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n"
        )
        assert await client.head() == b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"
        assert await client.head() == b"HTTP/1.1 100 Continue\r\n\r\n"
        await client.send(b"abc")
        assert (await client.head()).startswith(b"HTTP/1.1 201 Created\r\n")


async def test_an_upgrade_becomes_an_opaque_tunnel(tmp_path: Path) -> None:
    async def script(wire: Wire) -> None:
        assert b"Connection: Upgrade\r\nUpgrade: websocket\r\n" in await wire.head()
        await wire.send(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n\r\nhello")
        for _ in range(3):
            await wire.send((await wire.exactly(4))[::-1])

    async with origin(script) as there, edge(tmp_path) as proxy:
        proxy.replica.enrol("shop.example.com", there.url)
        proxy.change()
        client = await proxy.connect()
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


@pytest.mark.parametrize(
    "answer",
    [
        b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nshort",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nshort\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nshort\r\nX",
    ],
)
async def test_a_short_answer_never_passes_as_complete(tmp_path: Path, answer: bytes) -> None:
    async def script(wire: Wire) -> None:
        await wire.head()
        await wire.send(answer)

    async with origin(script) as there, edge(tmp_path) as proxy:
        proxy.replica.enrol("shop.example.com", there.url)
        proxy.change()
        client = await proxy.connect()
        await client.send(GET)
        received = await client.rest()
        assert b"short" in received or received == b""
        assert not received.endswith(b"0\r\n\r\n")


@pytest.mark.parametrize(
    "answer",
    [
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/1.1 200 OK\nContent-Length: 0\n\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\nab",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"y" * 70_000 + b"\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n" * 100,
        b"",
        b"HTTP/1.1 200",
    ],
)
async def test_an_origin_that_talks_nonsense_is_a_bad_gateway(tmp_path: Path, answer: bytes) -> None:
    async def script(wire: Wire) -> None:
        await wire.head()
        await wire.send(answer)

    async with origin(script) as there, edge(tmp_path) as proxy:
        proxy.replica.enrol("shop.example.com", there.url)
        proxy.change()
        client = await proxy.connect()
        await client.send(GET)
        head = await client.head()
        while head.startswith(b"HTTP/1.1 100"):
            head = await client.head()
        assert head.startswith(b"HTTP/1.1 502 ")


async def test_bytes_beyond_an_answer_are_not_passed_on_and_end_the_upstream_connection(tmp_path: Path) -> None:
    answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nokHTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nwrong"
    async with origin(lambda wire: answer_each(wire, answer)) as there, edge(tmp_path) as proxy:
        proxy.replica.enrol("shop.example.com", there.url)
        proxy.change()
        client = await proxy.connect()
        for _ in range(3):
            await client.send(GET)
            assert (await client.response())[1] == b"ok"
        assert len(there.connections) == 3


async def test_a_reused_connection_that_died_retries_get_once_and_post_never(tmp_path: Path) -> None:
    async def script(wire: Wire) -> None:
        await wire.head()
        await wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")
        await wire.head()  # and closes without an answer

    async with origin(script) as there, edge(tmp_path) as proxy:
        proxy.replica.enrol("shop.example.com", there.url)
        proxy.change()
        client = await proxy.connect()
        for _ in range(2):
            await client.send(GET)
            assert (await client.response())[1] == b"ok"
        assert len(there.connections) == 2
        await client.send(b"POST / HTTP/1.1\r\nHost: shop.example.com\r\nContent-Length: 0\r\n\r\n")
        assert (await client.head()).startswith(b"HTTP/1.1 502 ")
        assert len(there.connections) == 2


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

    async with origin(script) as there, edge(tmp_path) as proxy:
        proxy.replica.enrol("shop.example.com", there.url)
        proxy.change()
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

    async with origin(script) as there, edge(tmp_path) as proxy:
        proxy.replica.enrol("shop.example.com", there.url)
        proxy.change()
        client = await proxy.connect()
        await client.send(GET)
        await until(lambda: len(there.connections) == 1)
        client.close()
        async with asyncio.timeout(10):
            await left.wait()
        await until(lambda: not proxy.worker.connections)


async def test_a_client_that_half_closed_still_gets_its_answer(tmp_path: Path) -> None:
    async with origin(answer_each) as there, edge(tmp_path) as proxy:
        proxy.replica.enrol("shop.example.com", there.url)
        proxy.change()
        client = await proxy.connect()
        await client.send(GET)
        client.writer.write_eof()
        assert (await client.rest()).endswith(b"\r\n\r\nok")


@pytest.mark.parametrize("version", [b"1.1", b"1.0"])
async def test_half_closed_client_gets_its_answer_however_long_the_origin_takes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, version: bytes
) -> None:
    monkeypatch.setattr("edge.proxy.client_connection.PROBE_AFTER_SECONDS", 0.05)
    go = asyncio.Event()

    async def script(wire: Wire) -> None:
        await wire.head()
        await go.wait()
        await wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    async with origin(script) as there, edge(tmp_path) as proxy:
        proxy.replica.enrol("shop.example.com", there.url)
        proxy.change()
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

    async with origin(script) as there, edge(tmp_path) as proxy:
        proxy.replica.enrol("shop.example.com", there.url)
        proxy.change()
        client = await proxy.connect()
        await client.send(GET)
        async with asyncio.timeout(20):
            await stalled.wait()
        assert sent < 20_000_000  # the kernels' buffers, not ours


async def test_an_early_answer_ends_the_upload_and_reaches_the_client(tmp_path: Path) -> None:
    async def script(wire: Wire) -> None:
        await wire.head()
        await wire.send(b"HTTP/1.1 413 Content Too Large\r\nContent-Length: 3\r\n\r\nno!")
        await asyncio.sleep(5)

    async with origin(script) as there, edge(tmp_path) as proxy:
        proxy.replica.enrol("shop.example.com", there.url)
        proxy.change()
        client = await proxy.connect()
        await client.send(
            b"POST / HTTP/1.1\r\nHost: shop.example.com\r\nContent-Length: 1000000\r\n\r\n" + b"x" * 50_000
        )
        head, body = await client.response()
        assert head.startswith(b"HTTP/1.1 413 ")
        assert b"\r\nConnection: close\r\n" in head
        assert body == b"no!"
        assert await client.rest() == b""


async def test_unknown_domains_get_a_neutral_404_and_keep_the_connection(tmp_path: Path) -> None:
    async with edge(tmp_path, secure=False) as proxy:
        client = await proxy.connect()
        for accept, shape in ((b"*/*", b'{"message":'), (b"text/html", b"<!doctype html>")):
            await client.send(b"GET / HTTP/1.1\r\nHost: nobody.example\r\nAccept: %b\r\n\r\n" % accept)
            head, body = await client.response()
            assert head.startswith(b"HTTP/1.1 404 Not Found\r\n")
            assert body.startswith(shape)


async def test_the_apis_probe_is_answered_for_domains_that_are_not_enrolled(tmp_path: Path) -> None:
    async with edge(tmp_path, secure=False) as proxy:
        client = await proxy.connect()
        nonce = new_nonce()
        await client.send(b"GET %b HTTP/1.1\r\nHost: New.example:80\r\n\r\n" % (PROBE_PATH + nonce).encode())
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
    async with origin(answer_each) as there, edge(tmp_path) as proxy:
        proxy.replica.enrol("shop.example.com", there.url)
        proxy.change()
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
    async with origin(Wire.rest) as there, edge(tmp_path, FRONTAGE_EDGE_MAX_BODY_BYTES="1000") as proxy:  # type: ignore[arg-type]
        proxy.replica.enrol("shop.example.com", there.url)
        proxy.change()
        client = await proxy.connect()
        await client.send(b"POST / HTTP/1.1\r\nHost: shop.example.com\r\n" + upload)
        assert (await client.rest()).startswith(b"HTTP/1.1 413 ")


async def test_an_upload_whose_coding_breaks_is_refused_and_cut_off_at_the_origin(tmp_path: Path) -> None:
    received = asyncio.get_running_loop().create_future()
    has_begun = asyncio.Event()

    async def script(wire: Wire) -> None:
        await wire.head()
        has_begun.set()
        received.set_result(await wire.rest())

    async with origin(script) as there, edge(tmp_path) as proxy:
        proxy.replica.enrol("shop.example.com", there.url)
        proxy.change()
        client = await proxy.connect()
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
            proxy.replica.enrol("shop.example.com", there.url)
            proxy.change()
            client = await proxy.connect()
            await client.send(GET)
            head, _ = await client.response()
            assert head.startswith(b"HTTP/1.1 508 ")
            assert len(there.connections) == 3


async def test_draining_finishes_what_is_under_way(tmp_path: Path) -> None:
    go = asyncio.Event()

    async def script(wire: Wire) -> None:
        await wire.head()
        await go.wait()
        await wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    async with origin(script) as there, edge(tmp_path) as proxy:
        proxy.replica.enrol("shop.example.com", there.url)
        proxy.change()
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
    async with origin(answer_each) as there, edge(tmp_path) as proxy:
        proxy.replica.enrol("shop.example.com", there.url)
        proxy.change()
        client = await proxy.connect()
        await client.send(GET)
        await client.response()
        proxy.worker.drain()
        await client.send(GET)
        assert b"Connection: close" in await client.rest()
