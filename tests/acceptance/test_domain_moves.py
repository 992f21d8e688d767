"""A domain moves from one application to another, with every process real, seen by visitors over HTTPS: from the
answer to the POST on, none of them meets the first application's page or certificate."""

from __future__ import annotations

import asyncio
import random
import socket
import ssl
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Any

import aiohttp
import pytest
from aiohttp import web

from bench.demo.stage import CNAME_TARGET, Stage
from bench.lab.server import NameServer
from bench.lab.zone import Zone
from bench.private_stage import private_stage
from common.db.address import resolve_dsn
from common.db.pool import open_pool
from common.secrets import load_keyring
from tests.integration.api.partner import Partner, enrol_partner

DOMAIN = "shop.customer.test"
OTHER_TARGET = "apps.other.test"
SECONDS = 30.0


@dataclass(frozen=True, slots=True)
class Page:
    body: str
    serial: str
    session: ssl.SSLSession | None
    is_resumed: bool


class Visitor:
    """Browses the edge; blocking, so that TLS sessions are in its hands. `keep` leaves the connection open."""

    def __init__(self, stage: Stage) -> None:
        self._address = (stage.edge_https_host, stage.settings.edge_https.port)
        self._context = ssl.create_default_context(cafile=str(stage.ca_file))

    def connect(self, session: ssl.SSLSession | None = None) -> ssl.SSLSocket:
        plain = socket.create_connection(self._address, timeout=SECONDS)
        return self._context.wrap_socket(plain, server_hostname=DOMAIN, session=session)

    def get(self, connection: ssl.SSLSocket) -> Page:
        connection.sendall(f"GET / HTTP/1.1\r\nHost: {DOMAIN}\r\n\r\n".encode())
        answer = b""
        while not answer.endswith(b"\n"):  # as each page ends
            if not (some := connection.recv(65536)):
                raise ConnectionError("closed before the page's end")
            answer += some
        certificate: dict[str, Any] = connection.getpeercert() or {}
        body = answer.decode().rpartition("\r\n\r\n")[2].strip()
        return Page(body, certificate["serialNumber"], connection.session, bool(connection.session_reused))

    async def visit(self, session: ssl.SSLSession | None = None) -> Page:
        """Over a new connection. Raises: ssl.SSLError, OSError."""

        def browse() -> Page:
            with self.connect(session) as connection:
                return self.get(connection)

        return await asyncio.to_thread(browse)


@asynccontextmanager
async def serve_page(text: str) -> AsyncIterator[str]:
    async def answer(_: web.Request) -> web.Response:
        return web.Response(text=f"{text}\n")

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        yield f"http://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


@asynccontextmanager
async def serve_zone() -> AsyncIterator[NameServer]:
    """Every zone's own name server, so on port 53; each run has a loopback address of its own."""
    host = f"127.{random.randint(2, 250)}.{random.randint(1, 250)}.{random.randint(1, 250)}"
    async with AsyncExitStack() as stack:
        try:
            server = await stack.enter_async_context(NameServer.serve(Zone(), host, 53))
        except PermissionError:
            pytest.skip("this user may not listen on port 53")
        server.zone.add("test", "NS", "ns.test")
        server.zone.add("ns.test", "A", host)
        yield server


async def make_other(stage: Stage, session: aiohttp.ClientSession) -> Partner:
    settings = stage.settings
    async with open_pool(resolve_dsn(settings), size=1, application_name="test") as database:
        application, secret = await enrol_partner(database, load_keyring(settings.key_file), OTHER_TARGET)
    return Partner(application.id, secret, session, settings.base_url)


async def test_visitors_of_a_domain_that_moved_never_meet_its_former_application() -> None:
    async with AsyncExitStack() as stack:
        names = await stack.enter_async_context(serve_zone())
        stage = await stack.enter_async_context(private_stage(DNS_SERVERS=names.address))
        old_origin = await stack.enter_async_context(serve_page("the old application"))
        new_origin = await stack.enter_async_context(serve_page("the new application"))
        session = await stack.enter_async_context(aiohttp.ClientSession())
        zone, visitor = names.zone, Visitor(stage)
        for target in (CNAME_TARGET, OTHER_TARGET):
            zone.add(target, "CNAME", stage.settings.power_target)
        zone.add(DOMAIN, "CNAME", CNAME_TARGET)
        old = Partner(stage.application_id, stage.client_secret, session, stage.settings.base_url)
        new = await make_other(stage, session)

        assert (await old.post(DOMAIN, old_origin)).status == 200
        before = await visitor.visit()
        assert before.body == "the old application"
        kept = await asyncio.to_thread(visitor.connect)
        stack.callback(kept.close)
        assert (await asyncio.to_thread(visitor.get, kept)).serial == before.serial
        assert (await new.post(DOMAIN, new_origin)).message == "This domain has been already powered."

        zone.replace(DOMAIN, "CNAME", OTHER_TARGET)
        moved = await new.post(DOMAIN, new_origin)
        assert (moved.status, moved.body.get("code")) == (200, None), moved.body  # each edge serves the change

        pages = await asyncio.gather(*(visitor.visit(before.session if n % 2 else None) for n in range(20)))
        assert {page.body for page in pages} == {"the new application"}
        assert before.serial not in {page.serial for page in pages}
        assert not any(page.is_resumed for page in pages)
        assert (await asyncio.to_thread(visitor.get, kept)).body == "the new application"

        events = (await old.call("GET", "/webhooks/events")).body["events"]
        assert (events[0]["payload"]["type"], events[0]["payload"]["power_status"], events[0]["payload"]["reason"]) == (
            "domain.power",
            "inactive",
            "moved",
        )
        assert (await old.put(DOMAIN, applicationUrl=old_origin)).message == "Domain not valid"
        assert (await new.delete(DOMAIN)).status == 200
        with pytest.raises((ssl.SSLError, OSError)):
            await visitor.visit()
