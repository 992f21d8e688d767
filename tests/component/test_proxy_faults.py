"""Peers that misbehave on real sockets: they close at every byte, drip, reset, lie about lengths, and never read."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from tests.component.peers import Edge, Origin, Wire, answer_each, edge, origin
from tests.waiting import until

HOST = b"Host: shop.example.com\r\n"
GET = b"GET / HTTP/1.1\r\n" + HOST + b"\r\n"
LAST_GET = b"GET / HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n"
POST = b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 5\r\n\r\nhello"
ANSWERS = {
    "length": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    "chunked": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n",
    "close": b"HTTP/1.1 200 OK\r\n\r\nhello",
}


def enrol(proxy: Edge, there: Origin) -> None:
    proxy.replica.enrol("shop.example.com", there.url)
    proxy.change()


def reset(wire: Wire) -> None:
    """End the connection with RST."""
    sock = wire.writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    wire.writer.transport.abort()


async def ask(proxy: Edge, request: bytes) -> tuple[bytes, bool]:
    """All that comes back, and whether it ended in order rather than by a reset."""
    client = await proxy.connect()
    await client.send(request)
    received = b""
    try:
        async with asyncio.timeout(10):
            while piece := await client.reader.read(65536):
                received += piece
    except ConnectionError:
        return received, False
    finally:
        client.close()
    return received, True


def is_whole(answer: bytes) -> bool:
    head, _, body = answer.partition(b"\r\n\r\n")
    if b"Transfer-Encoding: chunked" in head:
        return body.endswith(b"0\r\n\r\n")
    return body == b"hello"


@pytest.mark.parametrize("framing", ANSWERS)
@pytest.mark.parametrize("ends_in_order", [True, False], ids=["close", "reset"])
async def test_an_origin_that_ends_at_any_byte_never_passes_for_a_whole_answer(
    tmp_path: Path, framing: str, ends_in_order: bool
) -> None:
    answer = ANSWERS[framing]
    cut = 0

    async def script(wire: Wire) -> None:
        await wire.head()
        await wire.send(answer[:cut])
        if not ends_in_order:
            await asyncio.sleep(0)
            reset(wire)

    head_bytes = answer.index(b"\r\n\r\n") + 4
    async with origin(script) as there, edge(tmp_path) as proxy:
        enrol(proxy, there)
        for cut in range(len(answer)):
            received, _ = await ask(proxy, LAST_GET)
            if cut < head_bytes:
                assert received.startswith(b"HTTP/1.1 502 ")
            elif framing == "close" and ends_in_order:
                assert is_whole(received)
                assert answer[head_bytes:cut] in received
            else:
                assert not is_whole(received) or received.startswith(b"HTTP/1.1 502 ")


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (b"HTTP/1.1 200 OK\nContent-Length: 2\n\nok", "LF instead of CR LF"),
        (b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\nok", "LF instead of CR LF"),
        (b"HTTP/1.1 103 Early Hints\r\n\r\nHTTP/1.1 200 OK\n\n", "LF instead of CR LF"),
        (b"SSH-2.0-OpenSSH_9.2p1\r\n", "does not begin with HTTP/1."),
    ],
)
@pytest.mark.parametrize("is_split", [False, True], ids=["at once", "by bytes"])
async def test_head_that_cannot_become_valid_is_refused_while_the_origin_waits(
    tmp_path: Path, answer: bytes, reason: str, is_split: bool
) -> None:
    async def script(wire: Wire) -> None:
        await wire.head()
        for piece in [answer[n : n + 1] for n in range(len(answer))] if is_split else [answer]:
            await wire.send(piece)
            await asyncio.sleep(0)
        await wire.rest()

    path = tmp_path / "access.log"
    async with origin(script) as there, edge(tmp_path, FRONTAGE_EDGE_ACCESS_LOG=str(path)) as proxy:
        enrol(proxy, there)
        received, _ = await ask(proxy, LAST_GET)
        assert b"HTTP/1.1 502 " in received
        assert b'"code":"origin_invalid"' in received
        await until(lambda: path.exists() and reason.encode() in path.read_bytes())


@pytest.mark.parametrize(
    "answer",
    [
        ANSWERS["chunked"].replace(b"2\r\nlo", b"zz\r\nlo"),
        ANSWERS["chunked"][:-5],
        pytest.param(ANSWERS["close"], id="reset"),
    ],
)
async def test_a_1_0_client_sees_a_broken_answer_by_a_reset(tmp_path: Path, answer: bytes) -> None:
    async def script(wire: Wire) -> None:
        await wire.head()
        await wire.send(answer)
        if answer == ANSWERS["close"]:
            await asyncio.sleep(0.05)  # so that the bytes are read before the reset discards them
            reset(wire)

    async with origin(script) as there, edge(tmp_path) as proxy:
        enrol(proxy, there)
        _, ended_in_order = await ask(proxy, b"GET / HTTP/1.0\r\n" + HOST + b"\r\n")
        assert not ended_in_order


async def test_bytes_that_drip_both_ways_mean_the_same(tmp_path: Path) -> None:
    async def drip(wire: Wire, data: bytes) -> None:
        for n in range(len(data)):
            await wire.send(data[n : n + 1])
            await asyncio.sleep(0)

    async def script(wire: Wire) -> None:
        while True:
            _, body = await wire.response()
            await drip(wire, b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))

    async with origin(script) as there, edge(tmp_path) as proxy:
        enrol(proxy, there)
        client = await proxy.connect()
        for _ in range(2):
            await drip(client, POST)
            assert (await client.response())[1] == b"hello"


@pytest.mark.parametrize("leave", [Wire.close, reset])
async def test_a_client_that_leaves_at_any_byte_leaves_nothing_behind(
    tmp_path: Path, leave: Callable[[Wire], None]
) -> None:
    whole = 0

    async def script(wire: Wire) -> None:
        nonlocal whole
        while True:
            await wire.response()
            whole += 1
            await wire.send(ANSWERS["length"])

    async with origin(script) as there, edge(tmp_path) as proxy:
        enrol(proxy, there)
        for cut in range(len(POST)):
            client = await proxy.connect()
            await client.send(POST[:cut])
            leave(client)
        await until(lambda: not proxy.worker.connections)
        assert whole == 0
        received, _ = await ask(proxy, LAST_GET)
        assert is_whole(received)


async def test_a_body_that_ends_early_is_refused_and_cut_off_at_the_origin(tmp_path: Path) -> None:
    arrived = asyncio.get_running_loop().create_future()

    async def script(wire: Wire) -> None:
        await wire.head()
        arrived.set_result(await wire.rest())

    async with origin(script) as there, edge(tmp_path) as proxy:
        enrol(proxy, there)
        client = await proxy.connect()
        await client.send(POST[:-1])
        await until(lambda: bool(there.connections))
        client.writer.write_eof()
        assert (await client.rest()).startswith(b"HTTP/1.1 400 ")
        assert await arrived == b"hell"


async def test_bytes_beyond_a_body_are_the_next_request(tmp_path: Path) -> None:
    async def script(wire: Wire) -> None:
        while True:
            await wire.response()
            await wire.send(ANSWERS["length"])

    async with origin(script) as there, edge(tmp_path) as proxy:
        enrol(proxy, there)
        client = await proxy.connect()
        await client.send(POST + b"(" + GET)
        assert is_whole(b"".join(await client.response()))
        assert (await client.rest()).startswith(b"HTTP/1.1 400 ")


async def test_interim_answers_are_passed_on_up_to_a_storm_and_never_to_1_0(tmp_path: Path) -> None:
    interim = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"

    async def script(wire: Wire) -> None:
        while True:
            count = int((await wire.head()).split()[1][1:])
            await wire.send(interim * count + ANSWERS["length"])

    async with origin(script) as there, edge(tmp_path) as proxy:
        enrol(proxy, there)
        ending = HOST + b"Connection: close\r\n\r\n"
        received, _ = await ask(proxy, b"GET /32 HTTP/1.1\r\n" + ending)
        assert received.startswith(interim * 32 + b"HTTP/1.1 200 ")
        received, _ = await ask(proxy, b"GET /33 HTTP/1.1\r\n" + ending)
        assert received.startswith(interim * 32 + b"HTTP/1.1 502 ")
        received, _ = await ask(proxy, b"GET /32 HTTP/1.0\r\n" + ending)
        assert received.startswith(b"HTTP/1.1 200 ")


async def send_until_stalled(client: Wire, data: bytes, limit: int) -> int:
    """How many bytes went before nothing moved for half a second, or we were let go."""
    sent = 0
    while sent < limit:
        try:
            async with asyncio.timeout(0.5):
                await client.send(data)
        except (TimeoutError, ConnectionError):
            break
        sent += len(data)
    return sent


async def test_an_origin_that_does_not_read_stops_the_upload(tmp_path: Path) -> None:
    async def script(wire: Wire) -> None:
        await wire.head()
        wire.writer.transport.pause_reading()  # type: ignore[attr-defined]
        await asyncio.sleep(30)

    # The FIN of a client that is not read from stands behind what nobody takes: the time-out lets it go.
    async with origin(script) as there, edge(tmp_path, FRONTAGE_EDGE_BODY_TIMEOUT_SECONDS="2") as proxy:
        enrol(proxy, there)
        client = await proxy.connect()
        await client.send(b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 100000000\r\n\r\n")
        sent = await send_until_stalled(client, b"x" * 100_000, 100_000_000)
        assert sent < 30_000_000  # the kernels' buffers, not ours
        (upstream,) = proxy.worker._dispatcher._connections
        assert upstream.transport.get_write_buffer_size() < 1_000_000


@asynccontextmanager
async def stuck_upload(tmp_path: Path, framing: bytes) -> AsyncIterator[tuple[Edge, Wire, asyncio.Event]]:
    """A client that has sent a few hundred KB of a body nobody takes any more, until the event is set."""
    go = asyncio.Event()

    async def script(wire: Wire) -> None:
        await wire.head()
        wire.writer.transport.pause_reading()  # type: ignore[attr-defined]
        await go.wait()
        wire.writer.transport.resume_reading()  # type: ignore[attr-defined]
        await wire.chunks()
        await wire.send(ANSWERS["length"])

    async with origin(script) as there, edge(tmp_path) as proxy:
        enrol(proxy, there)
        client = await proxy.connect()
        await client.send(b"POST / HTTP/1.1\r\n" + HOST + framing + b"\r\n\r\n")
        await until(lambda: any(each.holder for each in proxy.worker._dispatcher._connections))
        (upstream,) = proxy.worker._dispatcher._connections
        upstream.transport.get_extra_info("socket").setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 4096)
        while not proxy.worker.paused:
            await client.send(CHUNK)
            await asyncio.sleep(0)
        await client.send(CHUNK)  # the kernel takes it still
        yield proxy, client, go


CHUNK = b"2000\r\n" + b"x" * 0x2000 + b"\r\n"


@pytest.mark.parametrize("leave", [Wire.close, reset])
async def test_an_uploading_client_that_leaves_is_missed_although_nobody_reads_from_it(
    tmp_path: Path, leave: Callable[[Wire], None]
) -> None:
    async with stuck_upload(tmp_path, b"Content-Length: 100000000") as (proxy, client, _):
        leave(client)
        await until(lambda: not proxy.worker.connections)
        await until(lambda: not proxy.worker.upstream_count)


async def test_a_client_that_half_closed_behind_its_upload_is_no_client_that_left(tmp_path: Path) -> None:
    async with stuck_upload(tmp_path, b"Transfer-Encoding: chunked") as (proxy, client, go):
        await client.send(b"0\r\n\r\n")
        client.writer.write_eof()
        half_closed_at = proxy.worker.now
        await until(lambda: proxy.worker.now > half_closed_at + 1)
        go.set()
        assert is_whole(await client.rest())


async def test_a_client_that_asked_far_ahead_and_reset_frees_its_lease(tmp_path: Path) -> None:
    async with origin(Wire.rest) as there, edge(tmp_path) as proxy:  # type: ignore[arg-type]
        enrol(proxy, there)
        client = await proxy.connect()
        await client.send(GET)
        await until(lambda: bool(there.connections))
        await client.send(GET * 1000)
        await until(lambda: bool(proxy.worker.paused))
        reset(client)
        await until(lambda: not proxy.worker.connections)
        await until(lambda: not proxy.worker.upstream_count)
        assert not proxy.worker.paused


async def test_a_client_that_asks_and_never_reads_is_stopped_too(tmp_path: Path) -> None:
    async with edge(tmp_path, FRONTAGE_EDGE_IDLE_TIMEOUT_SECONDS="1") as proxy:
        client = await proxy.connect()
        client.writer.transport.pause_reading()  # type: ignore[attr-defined]
        unknown = b"GET / HTTP/1.1\r\nHost: nobody.example\r\n\r\n" * 2000
        await until(lambda: len(proxy.worker.connections) == 1)
        (connection,) = proxy.worker.connections
        assert await send_until_stalled(client, unknown, 100_000_000) < 30_000_000
        assert len(connection._reader.buffer) < 1_000_000
        assert connection._transport.get_write_buffer_size() < 2_000_000
        await until(lambda: not proxy.worker.connections)  # who never reads is let go


async def test_an_early_answer_is_delivered_although_the_origin_closes_on_the_upload(tmp_path: Path) -> None:
    async def script(wire: Wire) -> None:
        await wire.head()
        await wire.send(b"HTTP/1.1 413 No\r\nContent-Length: 3\r\n\r\nno!")

    async with origin(script) as there, edge(tmp_path) as proxy:
        enrol(proxy, there)
        for _ in range(10):
            client = await proxy.connect()
            request = b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 400000\r\n\r\n" + b"x" * 100_000
            sending = asyncio.create_task(client.send(request))
            head, body = await client.response()
            await sending
            assert (head[:13], body) == (b"HTTP/1.1 413 ", b"no!")


async def test_a_refused_upload_gets_its_answer_while_it_is_still_sent(tmp_path: Path) -> None:
    async with origin(answer_each) as there, edge(tmp_path, FRONTAGE_EDGE_MAX_BODY_BYTES="1000") as proxy:
        enrol(proxy, there)
        client = await proxy.connect()
        request = b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 5000000\r\n\r\n" + b"x" * 5_000_000
        sending = asyncio.create_task(client.send(request))
        head, _ = await client.response()
        assert head.startswith(b"HTTP/1.1 413 ")
        await sending


async def test_requests_sent_ahead_of_a_half_close_are_all_answered(tmp_path: Path) -> None:
    async with origin(answer_each) as there, edge(tmp_path) as proxy:
        enrol(proxy, there)
        client = await proxy.connect()
        await client.send(GET * 3)
        client.writer.write_eof()
        assert (await client.rest()).count(b"HTTP/1.1 200 ") == 3


async def test_a_tunnel_is_closed_by_halves(tmp_path: Path) -> None:
    async def script(wire: Wire) -> None:
        await wire.head()
        await wire.send(b"HTTP/1.1 101 X\r\nUpgrade: echo\r\nConnection: upgrade\r\n\r\n")
        await wire.send((await wire.rest())[::-1])

    async with origin(script) as there, edge(tmp_path) as proxy:
        enrol(proxy, there)
        client = await proxy.connect()
        await client.send(b"GET / HTTP/1.1\r\n" + HOST + b"Upgrade: echo\r\nConnection: upgrade\r\n\r\n")
        assert (await client.head()).startswith(b"HTTP/1.1 101 ")
        await client.send(b"abc")
        client.writer.write_eof()
        assert await client.rest() == b"cba"


async def test_trailers_reach_those_who_take_them(tmp_path: Path) -> None:
    seen: list[bytes] = []

    async def script(wire: Wire) -> None:
        while True:
            seen.append(await wire.head())
            await wire.send(
                b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n"
                b"0\r\nX-Sum: 1\r\nSet-Cookie: a=b\r\nContent-Length: 9\r\n\r\n"
            )

    async with origin(script) as there, edge(tmp_path) as proxy:
        enrol(proxy, there)
        client = await proxy.connect()
        for te, trailers in (
            (b"TE: trailers\r\nConnection: TE\r\n", b"X-Sum: 1\r\n"),
            (b"TE: gzip\r\n", b""),
            (b"", b""),
        ):
            await client.send(b"GET / HTTP/1.1\r\n" + HOST + te + b"\r\n")
            await client.head()
            whole = b"2\r\nok\r\n0\r\n" + trailers + b"\r\n"
            assert await client.exactly(len(whole)) == whole
            assert (b"\r\nTE: trailers\r\nConnection: TE\r\n" in seen[-1]) is bool(trailers)


Peer = Callable[[Wire], Awaitable[None]]


async def silent(wire: Wire) -> None:
    await wire.rest()


async def never_reads(wire: Wire) -> None:
    wire.writer.transport.pause_reading()  # type: ignore[attr-defined]
    await asyncio.sleep(30)


async def stops_in_the_body(wire: Wire) -> None:
    await wire.head()
    await wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhel")
    await wire.rest()


@pytest.mark.parametrize(
    ("setting", "peer", "request_bytes", "answer"),
    [
        ("HEAD", silent, b"GET / HTTP/1.1\r\n" + HOST, b"HTTP/1.1 408 "),
        ("HEAD", silent, b"", b""),
        ("BODY", silent, POST[:-1], b"HTTP/1.1 408 "),
        ("BODY", silent, POST.replace(b"Content-Length: 5", b"Transfer-Encoding: chunked")[:-5], b"HTTP/1.1 408 "),
        ("BODY", never_reads, POST.replace(b": 5", b": 90000000") + b"x" * 20_000_000, b"HTTP/1.1 504 "),
        ("BODY", silent, POST.replace(b"\r\n\r\nhello", b"\r\nExpect: 100-continue\r\n\r\n"), b"HTTP/1.1 504 "),
        ("ORIGIN", silent, LAST_GET, b"HTTP/1.1 504 "),
        ("ORIGIN", silent, POST.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"), b"HTTP/1.1 504 "),
        ("BODY", stops_in_the_body, GET, b"HTTP/1.1 200 "),
        ("IDLE", answer_each, GET, b"HTTP/1.1 200 "),
        ("IDLE", answer_each, GET + b"\r\n", b"HTTP/1.1 200 "),
        ("HEAD", answer_each, GET + b"GET /", b"HTTP/1.1 200 "),
    ],
)
async def test_every_wait_has_an_end(
    tmp_path: Path, setting: str, peer: Peer, request_bytes: bytes, answer: bytes
) -> None:
    timeouts = {f"FRONTAGE_EDGE_{setting}_TIMEOUT_SECONDS": "0.3"}
    async with origin(peer) as there, edge(tmp_path, secure=True, **timeouts) as proxy:
        enrol(proxy, there)
        client = await proxy.connect()
        sending = asyncio.create_task(client.send(request_bytes))
        received = await client.rest()
        assert received.startswith(answer)
        assert bool(received) is bool(answer)
        if request_bytes.endswith(b"GET /"):
            assert b"HTTP/1.1 408 " in received
        sending.cancel()


async def test_empty_lines_do_not_keep_a_connection_alive(tmp_path: Path) -> None:
    async with edge(tmp_path, FRONTAGE_EDGE_HEAD_TIMEOUT_SECONDS="0.5") as proxy:
        client = await proxy.connect()

        async def babble() -> None:
            while True:
                await client.send(b"\r\n")
                await asyncio.sleep(0.05)

        babbling = asyncio.create_task(babble())
        assert await client.rest() == b""
        babbling.cancel()


@pytest.mark.parametrize(
    ("request_bytes", "status"),
    [
        (b"GET /" + b"a" * 8192 + b" HTTP/1.1\r\n" + HOST + b"\r\n", 414),
        (b"GET / HTTP/1.1\r\n" + HOST + b"X: y\r\n" * 100 + b"\r\n", 431),
        (b"GET / HTTP/1.1\r\n" + HOST + b"X: " + b"y" * 32_768 + b"\r\n\r\n", 431),
        (b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 11\r\n\r\n", 413),
        (b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\nb\r\n", 413),
        (b"POST / HTTP/1.1\r\n" + HOST + b"Expect: miracles\r\nContent-Length: 1\r\n\r\n", 417),
        (b"GET / HTTP/2.0\r\n" + HOST + b"\r\n", 505),
        (b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: gzip\r\n\r\n", 501),
        (b"CONNECT shop.example.com:443 HTTP/1.1\r\n" + HOST + b"\r\n", 405),
        (b"TRACE / HTTP/1.1\r\n" + HOST + b"\r\n", 405),
        (b"GET /%2e%2e/ HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: nobody.example\r\nConnection: close\r\n\r\n", 404),
    ],
)
async def test_every_limit_trips(tmp_path: Path, request_bytes: bytes, status: int) -> None:
    async with origin(answer_each) as there, edge(tmp_path, FRONTAGE_EDGE_MAX_BODY_BYTES="10") as proxy:
        enrol(proxy, there)
        received, ended_in_order = await ask(proxy, request_bytes)
        assert received.startswith(b"HTTP/1.1 %d " % status)
        assert ended_in_order


async def test_a_chunked_body_may_be_as_long_as_the_limit_whatever_its_framing(tmp_path: Path) -> None:
    async def script(wire: Wire) -> None:
        await wire.head()
        assert await wire.chunks() == b"0123456789"
        await wire.send(ANSWERS["length"])

    async with origin(script) as there, edge(tmp_path, FRONTAGE_EDGE_MAX_BODY_BYTES="10") as proxy:
        enrol(proxy, there)
        client = await proxy.connect()
        chunks = b"".join(b"1;extension=%d\r\n%d\r\n" % (n, n) for n in range(10))
        await client.send(b"POST / HTTP/1.1\r\n" + HOST + b"Transfer-Encoding: chunked\r\n\r\n" + chunks + b"0\r\n\r\n")
        assert is_whole(b"".join(await client.response()))
