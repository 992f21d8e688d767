"""The access log as an operator reads it, on both loops."""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import orjson
import pytest

from bench.lab.ports import free_ports
from common.clock import SystemClock
from common.errors import OperatorError
from edge.proxy.access_log import _Writer, check
from edge.proxy.client_connection import ClientConnection
from edge.tls.layer import TlsLayer
from edge.tls.shared import TlsShared
from tests.component.origins import Recorder, sends
from tests.component.peers import Edge, Wire, answer_each, edge, enrol, origin, served, served_client
from tests.tls_parts import MemoryReplica, keyring
from tests.waiting import until

GET = b"GET /a/b?token=secret HTTP/1.1\r\nHost: shop.example.com\r\nUser-Agent: curl/7.88.1\r\n\r\n"
HEADERLESS = b"GET / HTTP/1.1\r\n\r\n"


def entries(path: Path) -> list[dict[str, Any]]:
    return [orjson.loads(line) for line in path.read_bytes().splitlines()] if path.exists() else []


async def logged(path: Path, count: int) -> list[dict[str, Any]]:
    await until(lambda: len(entries(path)) >= count)
    return entries(path)


async def test_a_request_is_one_line_without_its_query(tmp_path: Path) -> None:
    path, seen = tmp_path / "access.log", list[bytes]()

    async def script(wire: Wire) -> None:
        while True:
            head, _ = await wire.response()
            seen.append(head)
            await wire.send(b"HTTP/1.1 200 OK\r\nDate: x\r\nContent-Length: 2\r\n\r\nok")

    async with served_client(script, tmp_path, FRONTAGE_EDGE_ACCESS_LOG=str(path)) as client:
        post = b"POST /up HTTP/1.1\r\nHost: shop.example.com\r\nX-Request-Id: forged\r\nContent-Length: 5\r\n\r\nhello"
        for request in (GET, GET, post):  # the second is a repetition of the first
            await client.send(request)
            assert (await client.response())[1] == b"ok"
        first, again, posted = await logged(path, 3)
    assert b"secret" not in path.read_bytes()
    assert {
        name: first[name]
        for name in ("node", "status", "client", "scheme", "method", "domain", "path", "user_agent", "application")
    } == {
        "node": socket.gethostname(),
        "user_agent": "curl/7.88.1",
        "status": 200,
        "client": "127.0.0.1",
        "scheme": "https",
        "method": "GET",
        "domain": "shop.example.com",
        "path": "/a/b",
        "application": "app",
    }
    assert first["bytes_down"] == len(b"HTTP/1.1 200 OK\r\nDate: x\r\nContent-Length: 2\r\n\r\nok")
    assert (first["bytes_up"], again["bytes_up"], posted["bytes_up"]) == (0, 0, 5)
    assert (first["reused"], again["reused"], posted["reused"]) == (False, True, True)
    assert 0 <= first["origin_seconds"] <= first["seconds"] < 10
    assert "refusal" not in first
    assert "cut" not in first
    assert first["time"].endswith("+00:00")
    ids = [each["id"] for each in (first, again, posted)]
    assert len(set(ids)) == 3
    assert [head.count(b"X-Request-Id: ") for head in seen] == [1, 1, 1]
    assert all(b"\r\nX-Request-Id: %b\r\n" % each.encode() in head for each, head in zip(ids, seen, strict=True))


async def test_refusals_are_logged_with_the_id_the_client_was_shown(tmp_path: Path) -> None:
    path = tmp_path / "access.log"

    async def gone(wire: Wire) -> None:
        await wire.head()

    async with served(gone, tmp_path, FRONTAGE_EDGE_ACCESS_LOG=str(path)) as (_, proxy):
        shown = []
        broken = b"POST / HTTP/1.1\r\nHost: shop.example.com\r\nTransfer-Encoding: chunked\r\n\r\nnonsense\r\n"
        for request in (GET.replace(b"shop", b"none"), GET, HEADERLESS, broken):
            client = await proxy.connect()
            await client.send(request)
            shown.append(orjson.loads((await client.response())[1])["request_id"])
        written = await logged(path, 4)
    assert [each["id"] for each in written] == shown
    assert [(each["status"], each["refusal"]) for each in written] == [
        (404, "domain_not_enrolled"),
        (502, "origin_down"),
        (400, "bad_host"),
        (400, "bad_request"),
    ]
    assert all(each["bytes_down"] > 100 for each in written)
    assert written[1]["reason"] == "the origin closed the connection before the end of its response's head"
    assert "origin_seconds" not in written[1]


async def test_user_agents_can_be_left_out(tmp_path: Path) -> None:
    path = tmp_path / "access.log"
    settings: dict[str, Any] = {"FRONTAGE_EDGE_ACCESS_LOG": str(path), "FRONTAGE_EDGE_ACCESS_LOG_USER_AGENT": "off"}
    async with served_client(answer_each, tmp_path, **settings) as client:
        await client.send(GET)
        await client.response()
        (written,) = await logged(path, 1)
    assert "user_agent" not in written


@pytest.mark.parametrize("has_access_log", [True, False])
async def test_an_unreachable_origin_is_logged_with_the_id_the_client_was_shown(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], has_access_log: bool
) -> None:
    path = tmp_path / "access.log"
    async with edge(tmp_path, FRONTAGE_EDGE_ACCESS_LOG=str(path) if has_access_log else "off") as proxy:
        proxy.replica.enrol("shop.example.com", f"http://127.0.0.1:{free_ports(1)[0]}")
        proxy.change()
        client = await proxy.connect()
        shown = []
        for _ in range(2):
            await client.send(GET)
            shown.append(orjson.loads((await client.response())[1])["request_id"])
        if has_access_log:
            written = await logged(path, 2)
            assert [each["id"] for each in written] == shown
            assert "ConnectionRefusedError" in written[0]["reason"]
    output = "".join(capfd.readouterr())
    for request_id in shown:
        (line,) = [line for line in output.splitlines() if request_id in line]
        assert "origin could not be reached" in line
        assert "shop.example.com" in line
    assert len(set(shown)) == 2


async def test_what_is_cut_off_and_what_we_answer_ourselves_is_logged_too(tmp_path: Path) -> None:
    path = tmp_path / "access.log"

    half = sends(b"HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf", closes=True)
    async with served_client(half, tmp_path, secure=False, FRONTAGE_EDGE_ACCESS_LOG=str(path)) as client:
        await client.send(GET)
        assert (await client.head()).startswith(b"HTTP/1.1 308 ")
        (redirect,) = await logged(path, 1)
    assert (redirect["status"], redirect["scheme"], redirect["path"]) == (308, "http", "/a/b")
    path.unlink()
    async with served_client(half, tmp_path, FRONTAGE_EDGE_ACCESS_LOG=str(path)) as client:
        await client.send(GET)
        assert (await client.rest()).endswith(b"half")
        (cut,) = await logged(path, 1)
    assert (cut["status"], cut["cut"]) == (200, True)


@asynccontextmanager
async def tls_port(proxy: Edge) -> AsyncIterator[int]:
    """The same proxy behind its TLS layer."""
    loop = asyncio.get_running_loop()
    certificates = MemoryReplica()
    certificates.put_certificate("shop.example.com")
    tls = TlsShared(certificates, keyring(), loop, SystemClock())

    def inner(_protocol: str | None) -> ClientConnection:
        return ClientConnection(proxy.worker, secure=True)

    server = await loop.create_server(lambda: TlsLayer(tls, inner), "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()


@pytest.mark.parametrize("is_tls", [False, True], ids=["plain", "tls"])
async def test_client_that_leaves_while_the_origin_thinks_is_logged_as_such(tmp_path: Path, is_tls: bool) -> None:
    path = tmp_path / "access.log"
    async with served(Wire.rest, tmp_path, FRONTAGE_EDGE_ACCESS_LOG=str(path)) as (there, proxy):  # type: ignore[arg-type]
        async with tls_port(proxy) as port:
            url = f"https://shop.example.com:{port}/" if is_tls else f"http://shop.example.com:{proxy.port}/"
            options = ("--silent", "--insecure", "--connect-to", "::127.0.0.1:")
            curl = await asyncio.create_subprocess_exec("curl", *options, "-H", "Host: shop.example.com", url)
            await until(lambda: bool(there.connections))
            curl.terminate()
            await curl.wait()
            (entry,) = await logged(path, 1)
            await until(lambda: not proxy.worker.upstream_count)
        assert (entry["status"], entry["client_disconnected"]) == (499, True)
        assert "refusal" not in entry
        counted = {family.name: family for family in proxy.worker.measurements()}
        assert counted["frontage_edge_client_disconnects"].samples == {(): [1.0]}
        assert counted["frontage_edge_refusals"].samples == {}


async def test_a_trusted_proxys_id_and_client_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "access.log"
    recorder = Recorder()
    async with (
        origin(recorder) as there,
        edge(tmp_path, FRONTAGE_EDGE_ACCESS_LOG=str(path), FRONTAGE_EDGE_TRUSTED_PROXIES="127.0.0.0/8") as proxy,
    ):
        enrol(proxy, there)
        client = await proxy.connect()
        await client.send(GET[:-2] + b"X-Request-Id: theirs-1\r\nX-Forwarded-For: 192.0.2.7\r\n\r\n")
        await client.response()
        (entry,) = await logged(path, 1)
    assert (entry["id"], entry["client"]) == ("theirs-1", "192.0.2.7")
    assert recorder.heads[0].count(b"X-Request-Id:") == 1


async def test_sampling_keeps_every_error(tmp_path: Path) -> None:
    path = tmp_path / "access.log"
    async with edge(tmp_path, FRONTAGE_EDGE_ACCESS_LOG=str(path), FRONTAGE_EDGE_ACCESS_LOG_SAMPLE="0") as proxy:
        proxy.replica.enrol("shop.example.com", "http://127.0.0.1:1")
        proxy.change()
        client = await proxy.connect()
        for request in (GET.replace(b"shop", b"none"), GET):
            await client.send(request)
            await client.response()
        (entry,) = await logged(path, 1)
    assert entry["status"] == 502


async def serve_one(proxy: Edge, path: Path, count: int) -> None:
    client = await proxy.connect()
    await client.send(GET)
    await client.response()
    await logged(path, count)


async def test_a_file_that_is_moved_away_is_made_anew(tmp_path: Path) -> None:
    path = tmp_path / "access.log"
    async with served(answer_each, tmp_path, FRONTAGE_EDGE_ACCESS_LOG=str(path)) as (_, proxy):
        await serve_one(proxy, path, 1)
        path.rename(tmp_path / "access.log.1")
        await serve_one(proxy, path, 1)
    assert len(entries(tmp_path / "access.log.1")) == 1


async def test_without_a_log_nothing_is_written_and_no_id_is_made(tmp_path: Path) -> None:
    recorder = Recorder()
    async with served_client(recorder, tmp_path) as client:
        await client.send(GET[:-2] + b"X-Request-Id: the-clients\r\n\r\n")
        await client.response()
    assert recorder.heads[0].count(b"X-Request-Id: the-clients") == 1
    assert recorder.heads[0].count(b"X-Request-Id") == 1


def count_bytes(descriptor: int) -> int:
    """Up to the end of file."""
    total = 0
    while piece := os.read(descriptor, 1 << 20):
        total += len(piece)
    return total


async def test_a_reader_that_stands_still_costs_lines_and_not_the_loop(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    try:
        writer = _Writer(str(path))
        line = b"x" * 999 + b"\n"
        async with asyncio.timeout(10):
            for _ in range(20_000):  # 20 MB into 64 KB
                writer.add(line)
        writer.flush()
        assert 10_000 < writer.dropped_count < 20_000
        os.set_blocking(reader, True)
        drained, _ = await asyncio.gather(asyncio.to_thread(count_bytes, reader), asyncio.to_thread(writer.close))
        assert drained == (20_000 - writer.dropped_count) * 1000
    finally:
        os.close(reader)


def test_a_destination_that_cannot_be_opened_is_for_the_operator(tmp_path: Path) -> None:
    with pytest.raises(OperatorError, match=r"FRONTAGE_EDGE_ACCESS_LOG: .*: No such file or directory"):
        check(str(tmp_path / "none" / "access.log"))
    check(str(tmp_path / "access.log"))
    check("-")
    check("off")
