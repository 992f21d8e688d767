"""Secure as a partner and visitors meet it, with every process real: from POST to the first verified HTTPS answer,
through renewal, redirects and both products on one name, to the end of serving."""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest
import pytest_asyncio

from bench.demo.stage import CNAME_TARGET, Stage
from bench.lab.server import NameServer
from bench.lab.zone import Zone
from bench.private_stage import private_stage
from tests.waiting import until

pytestmark = pytest.mark.asyncio(loop_scope="module")

DOMAIN = "shop.customer.test"
SHARED = "both.customer.test"
ROOT = "customer.test"
SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Page:
    status: int
    fields: dict[str, str]
    body: bytes
    serial: str


@dataclass(frozen=True, slots=True)
class Place:
    """A stage whose DNS is in the test's hands, a partner's session, and visitors."""

    stage: Stage
    zone: Zone
    session: aiohttp.ClientSession

    @property
    def origin(self) -> str:
        return self.stage.lab.origin

    async def call(self, method: str, path: str, **options: Any) -> tuple[int, dict[str, Any]]:
        async with self.session.request(method, path, **options) as response:
            return response.status, await response.json()

    async def change(self, method: str, path: str, **body: Any) -> None:
        status, said = await self.call(method, path, json=body)
        assert status == 200, said

    async def ssl_status(self, domain: str) -> str:
        status, found = await self.call("GET", "/ssl", params={"domain": domain})
        assert status == 200, found
        return str(found["sslStatus"])

    async def visit(self, domain: str, target: str = "/", *, https: bool = True) -> Page:
        """A connection of its own, the certificate verified. Raises: ssl.SSLError, ConnectionError."""
        settings = self.stage.settings
        port = settings.edge_https.port if https else settings.edge_http.port
        context = ssl.create_default_context(cafile=str(self.stage.ca_file)) if https else None
        async with asyncio.timeout(SECONDS):
            reader, writer = await asyncio.open_connection(
                self.stage.edge_https_host, port, ssl=context, server_hostname=domain if https else None
            )
            try:
                writer.write(f"GET {target} HTTP/1.1\r\nHost: {domain}\r\nConnection: close\r\n\r\n".encode())
                head, _, body = (await reader.read()).partition(b"\r\n\r\n")
                shown = writer.get_extra_info("peercert") or {}
            finally:
                writer.close()
        status, *lines = head.decode().split("\r\n")
        fields = {name.lower(): value.strip() for name, _, value in (line.partition(":") for line in lines)}
        return Page(int(status.split()[1]), fields, body, shown.get("serialNumber", ""))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def place() -> AsyncIterator[Place]:
    async with AsyncExitStack() as stack:
        names = await stack.enter_async_context(NameServer.serve(Zone()))
        stage = await stack.enter_async_context(private_stage(DNS_SERVERS=names.address))
        names.zone.add(CNAME_TARGET, "CNAME", stage.settings.ssl_target)
        names.zone.add(f"*.{ROOT}", "CNAME", CNAME_TARGET)
        names.zone.add(ROOT, "A", "127.0.0.1")
        session = await stack.enter_async_context(aiohttp.ClientSession(stage.settings.base_url))
        credentials = {"applicationId": stage.application_id, "secret": stage.client_secret}
        async with session.post("/token", json=credentials) as response:
            token = (await response.json())["auth_token"]
        session.headers.update({"applicationId": stage.application_id, "Authorization": f"Bearer {token}"})
        yield Place(stage, names.zone, session)


async def test_a_domain_is_secured_renewed_and_removed(place: Place) -> None:
    with pytest.raises((ssl.SSLError, ConnectionError)):
        await place.visit(DOMAIN)
    await place.change("POST", "/ssl", domain=DOMAIN, applicationUrl=place.origin)

    first = await place.visit(DOMAIN, "/echo?x=%2F")  # the handshake is held until there is a certificate
    assert first.status == 200
    assert (json.loads(first.body)["path"], json.loads(first.body)["query"]) == ("/echo", "x=%2F")
    await until(lambda: is_active(place, DOMAIN))
    assert (await place.call("POST", "/ssl", json={"domain": DOMAIN, "applicationUrl": place.origin}))[1][
        "message"
    ] == "There is already a valid certificate for this domain."

    status, diagnosis = await place.call("GET", f"/domains/{DOMAIN}/diagnosis")
    assert (status, diagnosis["status"]) == (200, "ok"), diagnosis
    assert diagnosis["order"]["phases"]

    await place.change("PUT", "/ssl", domain=DOMAIN)

    async def is_renewed() -> bool:
        assert await place.ssl_status(DOMAIN) == "active"
        return (await place.visit(DOMAIN)).serial != first.serial

    await until(is_renewed)

    await place.change("DELETE", "/ssl", domain=DOMAIN)
    with pytest.raises((ssl.SSLError, ConnectionError)):
        await place.visit(DOMAIN)
    assert (await place.visit(DOMAIN, https=False)).status == 404


async def test_a_root_sends_its_visitors_on(place: Place) -> None:
    await place.change("POST", "/ssl", domain=ROOT, redirectTo=f"www.{ROOT}")
    for https in (True, False):
        page = await place.visit(ROOT, "/a%20b?c=d", https=https)
        assert (page.status, page.fields["location"]) == (308, f"https://www.{ROOT}/a%20b?c=d")

    status, said = await place.call("POST", "/ssl", json={"domain": f"www.{ROOT}", "redirectTo": ROOT})
    assert (status, said["message"]) == (502, "Invalid 'redirectTo' parameter")


async def test_power_wins_on_a_name_that_has_both(place: Place) -> None:
    await place.change("POST", "/ssl", domain=SHARED, applicationUrl=place.origin)
    secured = await place.visit(SHARED, "/echo")
    await until(lambda: is_active(place, SHARED))

    await place.change("POST", "/power", domain=SHARED, applicationUrl=f"{place.origin}/a")
    powered = await place.visit(SHARED, "/echo")
    assert json.loads(powered.body)["path"] == "/a/echo"
    assert powered.serial == secured.serial

    await place.change("DELETE", "/power", domain=SHARED)
    page = await place.visit(SHARED, "/echo")
    assert json.loads(page.body)["path"] == "/echo"
    assert page.serial == secured.serial
    assert await place.ssl_status(SHARED) == "active"


async def is_active(place: Place, domain: str) -> bool:
    return await place.ssl_status(domain) == "active"
