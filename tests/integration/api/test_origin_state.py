"""Origins that do not serve: named beside an accepted change, and by the diagnosis of a domain that is live."""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from aiohttp import test_utils, web

from bench.lab.ports import free_ports
from common.db import applications
from tests.integration.api.conftest import Service
from tests.integration.api.partner import Partner
from tests.integration.api.secured import go_live, serve_origin
from tests.tls_parts import the_ca

DOMAIN = "shop.customer.test"


async def live(service: Service, url: str) -> Partner:
    partner = await service.partner()
    service.point(DOMAIN)
    assert (await partner.post(DOMAIN, url)).status == 200
    await go_live(service, DOMAIN, partner.id)
    return partner


@asynccontextmanager
async def silent_origin() -> AsyncIterator[str]:
    """Accepts connections and answers nothing."""
    held: list[asyncio.StreamWriter] = []
    server = await asyncio.start_server(lambda _, writer: held.append(writer), "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    finally:
        for writer in held:
            writer.close()
        server.close()


async def test_an_origin_that_answers_leaves_nothing_to_say(service: Service) -> None:
    async with serve_origin(status=500) as origin:
        partner = await service.partner()
        service.point(DOMAIN)
        accepted = await partner.post(DOMAIN, origin.url)
        assert (accepted.status, "origin" in accepted.body.get("hint", "")) == (200, False)
        await go_live(service, DOMAIN, partner.id)
        found = await partner.diagnose(DOMAIN)
    assert (found["status"], found["origin"]["status"]) == ("ok", "ok")
    assert len(origin.asked) == 1  # the diagnosis used the answer of a moment ago


async def test_an_origin_that_refuses_is_named_until_it_is_mended(service: Service, partner: Partner) -> None:
    service.point(DOMAIN)
    accepted = await partner.post(DOMAIN, f"http://127.0.0.1:{free_ports(1)[0]}")
    assert (accepted.status, accepted.message) == (200, "Domain successfully powered.")
    assert "it refuses connections" in accepted.body["hint"]

    await go_live(service, DOMAIN, partner.id)
    found = await partner.diagnose(DOMAIN)
    assert (found["status"], found["origin"]["code"]) == ("action needed", "refused")
    assert found["next_step"].startswith("Visitors get an error: the origin")

    async with serve_origin() as origin:
        answer = await partner.put(DOMAIN, applicationUrl=origin.url)
        assert "origin" not in answer.body.get("hint", "")
        assert (await partner.diagnose(DOMAIN))["status"] == "ok"


async def test_an_origin_whose_name_has_no_address_is_named(service: Service) -> None:
    partner = await live(service, "https://gone.partner.test")
    found = await partner.diagnose(DOMAIN)
    assert (found["status"], found["origin"]["code"]) == ("action needed", "unresolved")


async def test_an_origin_with_a_bad_certificate_is_named_unless_it_is_not_verified(
    service: Service, tmp_path: Path
) -> None:
    chain, key = the_ca().issue("127.0.0.1")
    (tmp_path / "origin.pem").write_bytes(chain.encode() + key)
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(tmp_path / "origin.pem")
    async with serve_origin(tls=tls) as origin:
        partner = await live(service, origin.url)
        found = await partner.diagnose(DOMAIN)
        assert (found["status"], found["origin"]["code"]) == ("action needed", "certificate")
        assert "issuer certificate" in found["origin"]["reason"]

        async with service.database.transaction() as connection:
            await applications.update_application(connection, partner.id, origin_verify=False)
        assert (await partner.diagnose(DOMAIN))["status"] == "ok"


async def test_an_origin_on_an_address_that_may_not_be_dialled_is_named(service: Service) -> None:
    service.zone.add("inside.partner.test", "A", "10.0.0.1")
    partner = await live(service, "http://inside.partner.test")
    found = await partner.diagnose(DOMAIN)
    assert (found["status"], found["origin"]["code"]) == ("action needed", "forbidden")
    assert "10.0.0.1" not in str(found["origin"])


async def test_a_silent_origin_keeps_an_answer_waiting_for_a_second(service: Service, partner: Partner) -> None:
    service.point(DOMAIN)
    async with silent_origin() as url:
        began = time.monotonic()
        accepted = await partner.post(DOMAIN, url)
        took = time.monotonic() - began
    assert (accepted.status, "it has not answered within 1 seconds" in accepted.body["hint"]) == (200, True)
    assert took >= 1.0


async def test_a_redirect_has_no_origin_to_ask(service: Service, partner: Partner) -> None:
    service.point(DOMAIN)
    body = {"domain": DOMAIN, "redirectTo": "https://elsewhere.test"}
    assert (await partner.call("POST", "/ssl", json=body)).status == 200
    await go_live(service, DOMAIN, partner.id)
    found = await partner.diagnose(DOMAIN)
    assert (found["status"], found["origin"]) == ("ok", None)


@asynccontextmanager
async def redirecting_origin(paths: dict[str, str]) -> AsyncIterator[str]:
    """Redirects these paths to these locations, and answers every other one."""

    async def answer(request: web.BaseRequest) -> web.Response:
        location = paths.get(request.path)
        return web.Response() if location is None else web.Response(status=301, headers={"Location": location})

    server = test_utils.RawTestServer(answer, host="127.0.0.1")
    async with server:
        yield str(server.make_url("")).removesuffix("/")


async def test_a_root_that_is_redirected_to_its_slash_is_said(service: Service, partner: Partner) -> None:
    service.point(DOMAIN)
    async with redirecting_origin({"/shop": "/shop/"}) as origin:
        accepted = await partner.post(DOMAIN, f"{origin}/shop")
        assert (accepted.status, accepted.body["code"]) == (200, "origin_redirect")
        assert f"redirects {origin}/shop to {origin}/shop/: edges ask" in accepted.body["hint"]
        changed = await partner.put(DOMAIN, applicationUrl=f"{origin}/other")
        assert "code" not in changed.body  # nothing is said of a path that was not asked


async def test_an_origin_that_redirects_to_and_fro_is_said(service: Service, partner: Partner) -> None:
    service.point(DOMAIN)
    async with redirecting_origin({"/a/b/": "../b", "/a/b": f"//{DOMAIN}/a/b/"}) as origin:
        accepted = await partner.post(DOMAIN, f"{origin}/a/b/")
        assert (accepted.status, accepted.body["code"]) == (200, "origin_redirect_loop")
        assert f"redirects {origin}/a/b/ to {origin}/a/b and back" in accepted.body["hint"]


@pytest.mark.parametrize("location", ["/shop", "/", "/shop/?a", "http://[", "http://else.test/shop/", "/shop/login"])
async def test_other_redirects_are_no_news(service: Service, partner: Partner, location: str) -> None:
    service.point(DOMAIN)
    async with redirecting_origin({"/shop": location}) as origin:
        accepted = await partner.post(DOMAIN, f"{origin}/shop")
        assert (accepted.status, accepted.body.get("code")) == (200, None)
