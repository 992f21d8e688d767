"""HTTP/2 inside TLS: what ALPN chooses, and whose names a connection serves, on both loops."""

from __future__ import annotations

import asyncio
import contextlib
import socket
import ssl
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import orjson
import pytest

from common.settings import load
from edge.process import worker_service
from tests.component.http2_peers import get, secure_client
from tests.component.peers import answer_each, origin
from tests.tls_parts import MemoryReplica as Certificates
from tests.tls_parts import keyring, the_ca
from tests.waiting import until

NO_PROTOCOL = "(?i)no application protocol"  # RFC 7301 §3.2
NAMES = ("shop.example.com", "blog.example.com", "other.example.com")


class Replica(Certificates):
    """A replica in memory: certificates, and routes: the third name is another application's."""

    def close(self) -> None:
        """Nothing is open."""

    def enrol(self, url: str) -> None:
        for name, application in zip(NAMES, ("app", "app", "other"), strict=True):
            self.put_certificate(name)
            self.put("application", application, {"id": application, "application_url": url})
            self.put("route", f"power/{name}", {"domain": name, "product": "power", "application_id": application})


@contextlib.asynccontextmanager
async def service(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, url: str, replica: Any = None, **environ: str
) -> AsyncIterator[int]:
    """The edge as a worker serves it; yields its port for TLS."""
    allowed = {"FRONTAGE_ALLOW_PRIVATE_ADDRESSES": "127.0.0.0/8", "FRONTAGE_STATE_DIR": str(tmp_path)}
    settings = load(allowed | environ)
    replica = replica or Replica()
    replica.enrol(url)
    loop = asyncio.get_running_loop()
    monkeypatch.setattr(worker_service, "load_keyring", lambda _: keyring())
    here = worker_service.EdgeService(settings, replica, loop)
    server = await loop.create_server(here.secure_protocol, "127.0.0.1", 0)
    try:
        yield server.sockets[0].getsockname()[1]
    finally:
        server.close()
        here.close()
        await until(lambda: not here._worker.upstream_count)


@pytest.mark.parametrize(
    ("switch", "offered", "chosen"),
    [
        ("on", ("h2", "http/1.1"), "h2"),
        ("on", ("http/1.1", "h2"), "h2"),
        ("on", ("http/1.1",), "http/1.1"),
        ("on", ("http/1.0",), "http/1.0"),
        ("on", (), None),
        ("off", ("h2", "http/1.1"), "http/1.1"),
    ],
)
async def test_alpn_chooses(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, switch: str, offered: tuple[str, ...], chosen: str | None
) -> None:
    async with (
        origin(answer_each) as there,
        service(tmp_path, monkeypatch, there.url, FRONTAGE_EDGE_HTTP2=switch) as port,
        secure_client(port, NAMES[0], *offered) as (selected, http2),
    ):
        assert selected == chosen
        if chosen == "h2":
            assert (await http2.exchange(get())).content == b"ok"


async def test_client_that_speaks_http_2_alone_is_refused_where_it_is_off(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = {"FRONTAGE_EDGE_HTTP2": "off"}
    async with origin(answer_each) as there, service(tmp_path, monkeypatch, there.url, **settings) as port:
        with pytest.raises(ssl.SSLError, match=NO_PROTOCOL):
            async with secure_client(port, NAMES[0], "h2"):
                pass


@pytest.mark.parametrize(
    ("ciphers", "chosen"),
    [
        ("ECDHE-ECDSA-AES128-GCM-SHA256", "h2"),
        ("ECDHE-ECDSA-AES128-SHA256:ECDHE-ECDSA-AES256-SHA384:ECDHE-ECDSA-AES128-SHA", None),
    ],
)
async def test_rfc9113_9_2_2_no_cipher_suite_is_used_that_http_2_prohibits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, ciphers: str, chosen: str | None
) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=the_ca().pem)
    context.maximum_version = ssl.TLSVersion.TLSv1_2
    context.set_ciphers(ciphers)
    context.set_alpn_protocols(["h2"])
    async with service(tmp_path, monkeypatch, "http://127.0.0.1:9") as port:
        refused = contextlib.nullcontext() if chosen else pytest.raises((ssl.SSLError, ConnectionError))
        with refused:
            _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=NAMES[0])
            assert writer.get_extra_info("ssl_object").selected_alpn_protocol() == chosen
            writer.close()


async def test_names_of_one_application_share_a_connection_and_anothers_are_421(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with (
        origin(answer_each) as there,
        service(tmp_path, monkeypatch, there.url) as port,
        secure_client(port, NAMES[0], "h2") as (_, http2),
    ):
        for _ in range(3):
            assert (await http2.exchange(get(authority=b"shop.example.com"))).status == 200
            assert (await http2.exchange(get(authority=b"blog.example.com"))).status == 200
            misdirected = await http2.exchange(get(authority=b"other.example.com"))
            assert (misdirected.status, orjson.loads(misdirected.content)["code"]) == (421, "misdirected")


async def test_application_that_turned_http_2_off_offers_http_1_1_and_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    offered = ("h2", "http/1.1")
    replica = Replica()
    async with origin(answer_each) as there, service(tmp_path, monkeypatch, there.url, replica) as port:
        for turned, chosen in ((False, "http/1.1"), (True, "h2")):
            replica.put("application", "app", {"id": "app", "application_url": there.url, "http2": turned})
            if not turned:
                with pytest.raises(ssl.SSLError, match=NO_PROTOCOL):
                    async with secure_client(port, NAMES[0], "h2"):
                        pass
            for name, expected in ((NAMES[0], chosen), (NAMES[1], chosen), (NAMES[2], "h2")):
                async with secure_client(port, name, *offered) as (selected, _):
                    assert selected == expected


async def test_a_domain_that_asks_for_tls_1_3_speaks_no_older_one_and_others_go_on(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def connect(port: int, name: str) -> str | None:
        context = ssl.create_default_context(cadata=the_ca().pem)
        context.maximum_version = ssl.TLSVersion.TLSv1_2
        with (
            socket.create_connection(("127.0.0.1", port)) as raw,
            context.wrap_socket(raw, server_hostname=name) as tls,
        ):
            return tls.version()

    replica = Replica()
    async with origin(answer_each) as there, service(tmp_path, monkeypatch, there.url, replica) as port:
        assert await asyncio.to_thread(connect, port, NAMES[0]) == "TLSv1.2"
        route = {"domain": NAMES[0], "product": "power", "application_id": "app"}
        replica.put("route", f"power/{NAMES[0]}", route | {"visitors": {"minimumTls": "1.3"}})
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await asyncio.to_thread(connect, port, NAMES[0])
        assert await asyncio.to_thread(connect, port, NAMES[1]) == "TLSv1.2"
        async with secure_client(port, NAMES[0], "h2") as (selected, http2):
            assert selected == "h2"
            assert (await http2.exchange(get())).content == b"ok"
            assert (await http2.exchange(get(authority=NAMES[1].encode()))).content == b"ok"
        async with secure_client(port, NAMES[1], "h2") as (
            _,
            http2,
        ):  # made without that rule
            assert (await http2.exchange(get())).status == 421
        replica.put("application", "app", {"id": "app", "application_url": there.url, "minimum_tls": "1.3"})
        replica.put("route", f"power/{NAMES[0]}", route | {"visitors": {"minimumTls": "1.2"}})
        assert await asyncio.to_thread(connect, port, NAMES[0]) == "TLSv1.2"
        with pytest.raises((ssl.SSLError, ConnectionError)):
            await asyncio.to_thread(connect, port, NAMES[1])


async def test_names_beneath_a_wildcard_share_a_connection_and_anothers_among_them_are_421(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replica = Replica()
    replica.put_certificate("*.customer.example")
    for name, application in (("*.customer.example", "app"), ("b.customer.example", "other")):
        replica.put("route", f"power/{name}", {"domain": name, "product": "power", "application_id": application})
    async with (
        origin(answer_each) as there,
        service(tmp_path, monkeypatch, there.url, replica) as port,
        secure_client(port, "a.customer.example", "h2") as (_, http2),
    ):
        for _ in range(3):
            for label, status in ((b"a", 200), (b"c", 200), (b"b", 421), (b"x.a", 404)):
                assert (await http2.exchange(get(authority=label + b".customer.example"))).status == status
