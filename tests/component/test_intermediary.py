"""What RFC 9110 asks of whoever stands between a client and an origin, on both loops."""

from __future__ import annotations

import re
from dataclasses import replace
from email.utils import parsedate_to_datetime
from pathlib import Path

import pytest

from tests.component.peers import Edge, Wire, answer_each, edge, enrol, origin, served_client

HOST = b"Host: shop.example.com\r\n"
GET = b"GET / HTTP/1.1\r\n" + HOST + b"\r\n"
OK = b"HTTP/1.1 200 OK\r\n"
DATE = b"Date: Sat, 21 Nov 2026 09:00:00 GMT\r\n"


def dates(head: bytes) -> list[bytes]:
    return re.findall(rb"(?i)\r\ndate: ([^\r]*)", head)


def is_now(date: bytes, proxy: Edge) -> bool:
    return abs(parsedate_to_datetime(date.decode()).timestamp() - proxy.worker.unix_seconds()) < 60


async def test_an_answer_without_a_date_gets_one(tmp_path: Path) -> None:
    """§6.6.1; and nobody gets yesterday's because the origin repeats itself."""
    async with (
        origin(lambda wire: answer_each(wire, OK + b"Content-Length: 2\r\n\r\nok")) as there,
        edge(tmp_path) as proxy,
    ):
        enrol(proxy, there)
        client = await proxy.connect()
        said = []
        for seconds in (0, 0, 86_400):
            proxy.worker.exchanges = replace(
                proxy.worker.exchanges,
                date_field=lambda: b"\r\nDate: " + b"%d" % seconds,  # noqa: B023 - called within the round
            )
            await client.send(GET)
            said += dates((await client.response())[0])
        assert said == [b"0", b"0", b"86400"]


async def test_the_origins_own_date_stays_the_only_one(tmp_path: Path) -> None:
    answer = OK + b"dAtE: Thu, 01 Jan 1970 00:00:00 GMT\r\nContent-Length: 2\r\n\r\nok"
    async with served_client(lambda wire: answer_each(wire, answer), tmp_path) as client:
        for _ in range(2):
            await client.send(GET)
            assert dates((await client.response())[0]) == [b"Thu, 01 Jan 1970 00:00:00 GMT"]


async def test_our_own_answers_say_when(tmp_path: Path) -> None:
    async with edge(tmp_path, secure=False) as proxy:
        proxy.replica.enrol("shop.example.com", "http://127.0.0.1:9")
        proxy.change()
        client = await proxy.connect()
        for request, status in (
            (GET, b"308"),
            (GET.replace(b"shop", b"nobody"), b"404"),
            (b"nonsense\r\n\r\n", b"400"),
        ):
            await client.send(request)
            head, _ = await client.response()
            assert head.startswith(b"HTTP/1.1 " + status)
            (date,) = dates(head)
            assert is_now(date, proxy)


@pytest.mark.parametrize(
    ("origins", "ours"),
    [
        (b"Connection: upgrade\r\nUpgrade: websocket\r\n", b"Upgrade: websocket\r\nConnection: upgrade\r\n"),
        (b"Connection: upgrade\r\nUpgrade: h2c, irc/6.9\r\n", b"Upgrade: irc/6.9\r\nConnection: upgrade\r\n"),
        (b"Connection: upgrade\r\nUpgrade: h2c\r\n", b""),
        (b"Upgrade: websocket\r\n", b""),
    ],
)
async def test_what_an_upgrade_required_requires_is_told(tmp_path: Path, origins: bytes, ours: bytes) -> None:
    """§15.5.22. The field is the next connection's, so it is stated anew; h2c is not ours to offer."""
    answer = b"HTTP/1.1 426 Upgrade Required\r\n" + DATE + origins + b"Content-Length: 0\r\n\r\n"
    async with served_client(lambda wire: answer_each(wire, answer), tmp_path) as client:
        for _ in range(2):
            await client.send(GET)
            head = await client.head()
            assert head == b"HTTP/1.1 426 Upgrade Required\r\n" + DATE + b"Content-Length: 0\r\n" + ours + b"\r\n"
        await client.send(GET.replace(b"\r\n\r\n", b"\r\nConnection: close\r\n\r\n"))
        last = await client.rest()
        assert (b"\r\nConnection: upgrade, close\r\n" if ours else b"\r\nConnection: close\r\n") in last


async def test_options_goes_no_further_than_it_may(tmp_path: Path) -> None:
    """§7.6.2."""
    seen: list[bytes] = []

    async def script(wire: Wire) -> None:
        while True:
            seen.append(await wire.head())
            await wire.send(OK + b"Content-Length: 2\r\n\r\nok")

    async with served_client(script, tmp_path) as client:
        for hops in (0, 1, 0, 5):
            await client.send(b"OPTIONS * HTTP/1.1\r\n%bMax-Forwards: %d\r\n\r\n" % (HOST, hops))
            head, body = await client.response()
            assert head.startswith(OK)
            assert (body, b"\r\nAllow: GET, " in head) == ((b"ok", False) if hops else (b"", True))
        assert [re.findall(rb"\r\nMax-Forwards: (.*)\r\n", head) for head in seen] == [[b"0"], [b"4"]]
        await client.send(b"OPTIONS * HTTP/1.1\r\n" + HOST + b"Max-Forwards: many\r\n\r\n")
        assert (await client.rest()).startswith(b"HTTP/1.1 400 ")
