"""The origin behind a secured domain: which one counts, and what is tried before it is taken."""

from __future__ import annotations

import asyncio
import ssl
from pathlib import Path
from typing import Any

import pytest

from api.bounds import Bounds
from bench.lab.zone import Behaviour
from tests.integration.api.conftest import Service, open_service
from tests.integration.api.secure.parts import DOMAIN, UNREACHABLE, refusal, set_application
from tests.integration.api.secured import Origin, Ssl, serve_origin
from tests.timeouts import UNHURRIED
from tests.tls_parts import the_ca


async def test_the_applications_origin_is_the_default(service: Service, ssl_partner: Ssl) -> None:
    service.point(DOMAIN)
    answer = await ssl_partner.post(DOMAIN, applicationUrl=None)
    assert refusal(answer) == (502, "Invalid 'applicationUrl' parameter")
    assert "application has none" in answer.body["hint"]

    await set_application(service, ssl_partner.id, application_url="http://127.0.0.1:1")
    assert refusal(await ssl_partner.post(DOMAIN, applicationUrl=None)) == (502, UNREACHABLE)

    await set_application(service, ssl_partner.id, application_url=ssl_partner.origin)
    assert (await ssl_partner.post(DOMAIN, applicationUrl=None)).status == 200
    assert (await ssl_partner.get(domain=DOMAIN)).body["applicationUrl"] == ssl_partner.origin

    await set_application(service, ssl_partner.id, application_url="https://other.example.com")
    assert (await ssl_partner.get()).body["items"][0]["applicationUrl"] == "https://other.example.com"


async def test_a_url_sent_wins_over_the_applications(service: Service, ssl_partner: Ssl) -> None:
    service.point(DOMAIN)
    await set_application(service, ssl_partner.id, application_url="http://127.0.0.1:1")

    assert (await ssl_partner.post(DOMAIN)).status == 200

    assert (await ssl_partner.get()).body["items"][0]["applicationUrl"] == ssl_partner.origin


@pytest.mark.parametrize("status", [204, 302, 404, 500])
async def test_any_answer_of_the_origin_will_do(service: Service, status: int) -> None:
    async with serve_origin(status) as origin:
        partner = Ssl(await service.partner(), origin.url + "/")
        service.point(DOMAIN)

        assert (await partner.post(DOMAIN)).status == 200
        assert origin.asked == [("HEAD", origin.url.removeprefix("http://"))]


@pytest.mark.parametrize(("field", "of_head"), [("X-Short: a", b"ok"), ("X-Long: " + "a" * 20_000, b"")])
async def test_an_answer_that_visitors_get_will_do(
    service: Service, ssl_partner: Ssl, field: str, of_head: bytes
) -> None:
    """A body after HEAD (RFC 9110 §9.3.2 has none), and a field longer than most."""

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await reader.readuntil(b"\r\n\r\n")
        writer.write(f"HTTP/1.1 200 OK\r\n{field}\r\nContent-Length: 2\r\n\r\n".encode())
        writer.write(of_head if request.startswith(b"HEAD") else b"ok")
        await writer.drain()
        writer.close()

    service.point(DOMAIN)
    async with await asyncio.start_server(answer, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        assert (await ssl_partner.post(DOMAIN, applicationUrl=f"http://127.0.0.1:{port}")).status == 200


async def test_an_origin_that_wants_the_customers_name_is_asked_by_it(service: Service, ssl_partner: Ssl) -> None:
    async with serve_origin() as origin:
        await set_application(service, ssl_partner.id, send_host="customer")
        service.point(DOMAIN)

        await ssl_partner.post(DOMAIN, applicationUrl=origin.url)

        assert origin.asked == [("HEAD", DOMAIN)]


async def test_an_origin_found_by_name_is_reached(service: Service, ssl_partner: Ssl, origin: Origin) -> None:
    service.point(DOMAIN)
    service.zone.add("origin.partner.test", "A", "127.0.0.1")
    port = origin.url.rpartition(":")[2]

    assert (await ssl_partner.post(DOMAIN, applicationUrl=f"http://origin.partner.test:{port}")).status == 200


async def test_an_origin_that_does_not_answer_is_not_reachable(service: Service, ssl_partner: Ssl) -> None:
    async def hang_up(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.close()

    async def babble(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(b"220 mail.example.com ESMTP\r\n")
        writer.close()

    service.point(DOMAIN)
    service.zone.add("private.partner.test", "A", "10.0.0.1")
    service.zone.add("broken.partner.test", "A", "127.0.0.1")
    service.zone.misbehave("broken.partner.test", Behaviour.SERVFAIL)
    async with (
        await asyncio.start_server(hang_up, "127.0.0.1", 0) as silent,
        await asyncio.start_server(babble, "127.0.0.1", 0) as babbling,
    ):
        ports = [server.sockets[0].getsockname()[1] for server in (silent, babbling)]
        for url in (
            "http://127.0.0.1:1",
            f"http://127.0.0.1:{ports[0]}",
            f"http://127.0.0.1:{ports[1]}",
            f"https://127.0.0.1:{ports[1]}",
            "http://private.partner.test",
            "http://absent.partner.test",
            "http://broken.partner.test",
        ):
            answer = await ssl_partner.post(DOMAIN, applicationUrl=url)
            assert refusal(answer) == (502, UNREACHABLE), url
            assert "10.0.0.1" not in str(answer.body)

    assert (await ssl_partner.get()).body["total"] == 0


@pytest.mark.parametrize("bounds", [Bounds(origin_seconds=0.2)], ids=["soon"])
async def test_a_silent_origin_is_given_up(service: Service, ssl_partner: Ssl) -> None:
    release = asyncio.Event()

    async def say_nothing(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await release.wait()
        writer.close()

    service.point(DOMAIN)
    async with await asyncio.start_server(say_nothing, "127.0.0.1", 0) as silent:
        url = f"http://127.0.0.1:{silent.sockets[0].getsockname()[1]}"
        answer = await ssl_partner.post(DOMAIN, applicationUrl=url)
        release.set()

    assert (*refusal(answer), answer.body["hint"]) == (502, UNREACHABLE, "it did not answer in time")


async def test_an_https_origin_is_verified_as_the_application_says(
    dsn: str, tmp_path: Path, probe_port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "authorities.pem").write_text(the_ca().pem)
    monkeypatch.setenv("SSL_CERT_FILE", str(tmp_path / "authorities.pem"))
    chain, key = the_ca().issue("inner.partner.test")
    (tmp_path / "origin.pem").write_bytes(chain.encode() + key)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(tmp_path / "origin.pem")
    async with serve_origin(tls=tls) as origin, open_service(dsn, tmp_path, probe_port, UNHURRIED) as service:
        partner = Ssl(await service.partner(), origin.url.replace("127.0.0.1", "origin.partner.test"))
        service.point(DOMAIN)
        service.point("other.customer.test")
        service.zone.add("origin.partner.test", "A", "127.0.0.1")

        answer = await partner.post(DOMAIN)
        assert refusal(answer) == (502, UNREACHABLE)
        assert answer.body["hint"].startswith("its certificate is not valid for it (Hostname mismatch")

        await set_application(service, partner.id, origin_server_name="inner.partner.test")
        assert (await partner.post(DOMAIN)).status == 200

        await set_application(service, partner.id, origin_server_name=None, origin_verify=False)
        assert (await partner.post("other.customer.test")).status == 200


async def test_urls_that_are_none_or_private_are_refused(service: Service, ssl_partner: Ssl) -> None:
    service.point(DOMAIN)
    no_urls: tuple[Any, ...] = (
        "http://10.0.0.1",
        "http://[::1]:8080",
        "ftp://a.example",
        "http://a@b.example",
        "",
        1,
        ["a"],
        {},
    )
    for url in no_urls:
        answer = await ssl_partner.post(DOMAIN, applicationUrl=url)
        assert refusal(answer) == (502, "Invalid 'applicationUrl' parameter"), url


async def test_an_application_url_with_a_path_is_refused_and_changes_nothing(
    service: Service, ssl_partner: Ssl
) -> None:
    service.point(DOMAIN)
    answer = await ssl_partner.post(DOMAIN, applicationUrl=f"{ssl_partner.origin}/shop")
    assert refusal(answer) == (502, "Invalid 'applicationUrl' parameter")
    assert f"send {ssl_partner.origin}" in answer.body["hint"]
    await set_application(service, ssl_partner.id, application_url=f"{ssl_partner.origin}/shop")
    answer = await ssl_partner.post(DOMAIN, applicationUrl=None)
    assert refusal(answer) == (502, "Invalid 'applicationUrl' parameter")
    assert (await ssl_partner.get()).body["total"] == 0

    assert (await ssl_partner.post(DOMAIN, applicationUrl=f"{ssl_partner.origin}/")).status == 200
    answer = await ssl_partner.put(DOMAIN, applicationUrl=f"{ssl_partner.origin}/shop")
    assert refusal(answer) == (502, "Invalid 'applicationUrl' parameter")
