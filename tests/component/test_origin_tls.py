"""Origins behind HTTPS, on both loops: verified by authority and by name."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from tests.component.peers import Edge, Origin, Wire, answer_each, edge, origin
from tests.tls_parts import the_ca
from tests.waiting import until

GET = b"GET / HTTP/1.1\r\nHost: shop.example.com\r\n\r\n"


def server_context(tmp_path: Path, name: str) -> ssl.SSLContext:
    chain, key = the_ca().issue(name)
    (tmp_path / "origin.pem").write_text(chain + key.decode())
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "origin.pem")
    return context


@pytest.mark.parametrize(
    ("certified", "is_trusted", "status"),
    [("localhost", True, b"200"), ("localhost", False, b"502"), ("other.example", True, b"502")],
)
async def test_an_https_origin_is_asked_only_if_its_certificate_is_good(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, certified: str, is_trusted: bool, status: bytes
) -> None:
    if is_trusted:
        (tmp_path / "roots.pem").write_text(the_ca().pem)
        monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "roots.pem"))
    received: list[bytes] = []

    async def script(wire: object) -> None:
        received.append(b"connected")
        await answer_each(wire)  # type: ignore[arg-type]

    async with origin(script, server_context(tmp_path, certified)) as there, edge(tmp_path) as proxy:
        proxy.replica.enrol("shop.example.com", f"https://localhost:{there.port}")
        proxy.change()
        client = await proxy.connect()
        for _ in range(2):
            await client.send(GET)
            assert (await client.response())[0].startswith(b"HTTP/1.1 " + status)
        assert len(received) == (1 if status == b"200" else 0)


async def answer_once(wire: Wire) -> None:
    await wire.head()
    await wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")


def enrol_unverified(proxy: Edge, there: Origin) -> None:
    proxy.replica.enrol("shop.example.com", f"https://127.0.0.1:{there.port}")
    proxy.replica.records["application", "app"]["origin_verify"] = False
    proxy.change()


async def count_resumed(proxy: Edge, there: Origin, *, requests: int) -> tuple[int, int]:
    """Ask so often, each time on a new connection to the origin; return the handshakes, and those that resumed."""
    enrol_unverified(proxy, there)
    for _ in range(requests):
        client = await proxy.connect()
        await client.send(GET)
        assert (await client.response())[0].startswith(b"HTTP/1.1 200")
        await until(lambda: not proxy.worker.upstream_count)
    counted = {family.name: family for family in proxy.worker.measurements()}
    handshakes, resumed = (
        int(counted[f"frontage_edge_origin_tls_{name}"].samples[()][0]) for name in ("handshakes", "resumed")
    )
    return handshakes, resumed


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3], ids=["1.2", "1.3"])
async def test_sessions_with_an_origin_are_resumed(tmp_path: Path, version: ssl.TLSVersion) -> None:
    context = server_context(tmp_path, "localhost")
    context.maximum_version = version
    async with origin(answer_once, context) as there, edge(tmp_path) as proxy:
        assert await count_resumed(proxy, there, requests=4) == (4, 3)


async def test_origin_that_resumes_nothing_is_asked_all_the_same(tmp_path: Path) -> None:
    context = server_context(tmp_path, "localhost")
    context.num_tickets = 0
    context.options |= ssl.OP_NO_TICKET
    async with origin(answer_once, context) as there, edge(tmp_path) as proxy:
        assert await count_resumed(proxy, there, requests=3) == (3, 0)


async def test_session_is_not_resumed_at_an_origin_that_is_verified_otherwise(tmp_path: Path) -> None:
    """A session that was made without verification must not stand for one that needs it."""
    context = server_context(tmp_path, "other.example")
    async with origin(answer_once, context) as there, edge(tmp_path) as proxy:
        await count_resumed(proxy, there, requests=2)
        proxy.replica.records["application", "app"]["origin_verify"] = True
        proxy.replica.touch()
        proxy.change()
        client = await proxy.connect()
        await client.send(GET)
        assert (await client.response())[0].startswith(b"HTTP/1.1 502")


@pytest.mark.parametrize("words", [b"", b"HTTP/1.1 400 plain\r\n\r\n", b"\x15\x03\x01\x00\x02\x02\x28"], ids=repr)
async def test_origin_that_speaks_no_tls_is_refused_at_once(tmp_path: Path, words: bytes) -> None:
    async def script(wire: Wire) -> None:
        if words:
            await wire.send(words)

    async with origin(script) as there, edge(tmp_path) as proxy:
        proxy.replica.enrol("shop.example.com", f"https://127.0.0.1:{there.port}")
        proxy.change()
        client = await proxy.connect()
        await client.send(GET)
        assert (await client.response())[0].startswith(b"HTTP/1.1 502")
        await until(lambda: not proxy.worker.upstream_count)


async def test_large_bodies_pass_an_origins_tls_both_ways(tmp_path: Path) -> None:
    body = bytes(range(256)) * 8192

    async def echo(wire: Wire) -> None:
        head = await wire.head()
        assert b"Content-Length: %d" % len(body) in head
        received = await wire.exactly(len(body))
        await wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % len(received) + received)

    async with origin(echo, server_context(tmp_path, "localhost")) as there, edge(tmp_path) as proxy:
        enrol_unverified(proxy, there)
        client = await proxy.connect()
        await client.send(b"POST / HTTP/1.1\r\nHost: shop.example.com\r\nContent-Length: %d\r\n\r\n" % len(body))
        await client.send(body)
        head, received = await client.response()
        assert head.startswith(b"HTTP/1.1 200")
        assert received == body
