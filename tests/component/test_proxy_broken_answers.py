"""Origins whose answers end early, are invalid, drip or come as a storm of interim ones."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from tests.component.peers import Wire, served, served_client
from tests.component.proxied import ANSWERS, HOST, LAST_GET, POST, ask, is_whole, reset
from tests.waiting import let_run, until


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
            await let_run()
            reset(wire)

    head_bytes = answer.index(b"\r\n\r\n") + 4
    async with served(script, tmp_path) as (_, proxy):
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
            await let_run()
        await wire.rest()

    path = tmp_path / "access.log"
    async with served(script, tmp_path, FRONTAGE_EDGE_ACCESS_LOG=str(path)) as (_, proxy):
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

    async with served(script, tmp_path) as (_, proxy):
        _, ended_in_order = await ask(proxy, b"GET / HTTP/1.0\r\n" + HOST + b"\r\n")
        assert not ended_in_order


async def test_bytes_that_drip_both_ways_mean_the_same(tmp_path: Path) -> None:
    async def drip(wire: Wire, data: bytes) -> None:
        for n in range(len(data)):
            await wire.send(data[n : n + 1])
            await let_run()

    async def script(wire: Wire) -> None:
        while True:
            _, body = await wire.response()
            await drip(wire, b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))

    async with served_client(script, tmp_path) as client:
        for _ in range(2):
            await drip(client, POST)
            assert (await client.response())[1] == b"hello"


async def test_interim_answers_are_passed_on_up_to_a_storm_and_never_to_1_0(tmp_path: Path) -> None:
    interim = b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n"

    async def script(wire: Wire) -> None:
        while True:
            count = int((await wire.head()).split()[1][1:])
            await wire.send(interim * count + ANSWERS["length"])

    async with served(script, tmp_path) as (_, proxy):
        ending = HOST + b"Connection: close\r\n\r\n"
        received, _ = await ask(proxy, b"GET /32 HTTP/1.1\r\n" + ending)
        assert received.startswith(interim * 32 + b"HTTP/1.1 200 ")
        received, _ = await ask(proxy, b"GET /33 HTTP/1.1\r\n" + ending)
        assert received.startswith(interim * 32 + b"HTTP/1.1 502 ")
        received, _ = await ask(proxy, b"GET /32 HTTP/1.0\r\n" + ending)
        assert received.startswith(b"HTTP/1.1 200 ")


async def test_trailers_reach_those_who_take_them(tmp_path: Path) -> None:
    seen: list[bytes] = []

    async def script(wire: Wire) -> None:
        while True:
            seen.append(await wire.head())
            await wire.send(
                b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nok\r\n"
                b"0\r\nX-Sum: 1\r\nSet-Cookie: a=b\r\nContent-Length: 9\r\n\r\n"
            )

    async with served_client(script, tmp_path) as client:
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
