"""Origins behind HTTPS, on both loops: verified by authority and by name."""

from __future__ import annotations

import ssl
from pathlib import Path

import pytest

from tests.component.peers import answer_each, edge, origin
from tests.tls_parts import the_ca

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
