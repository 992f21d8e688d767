"""Secure as a partner calls it, an origin that answers, and certificates as the monitor would leave them."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

from aiohttp import web

from common.db import certificates
from common.db.certificates import Certificate
from tests.integration.api.conftest import Service
from tests.integration.api.partner import Answer, Partner


@dataclass(slots=True)
class Ssl:
    """A partner's calls of ``/ssl``; `origin` is sent unless a call says otherwise."""

    partner: Partner
    origin: str

    @property
    def id(self) -> str:
        return self.partner.id

    async def get(self, **query: Any) -> Answer:
        return await self.partner.call("GET", "/ssl", params=query)

    async def post(self, domain: Any, **fields: Any) -> Answer:
        body = {"domain": domain, "applicationUrl": self.origin, **fields}
        return await self.partner.call("POST", "/ssl", json=body)

    async def put(self, domain: Any, **fields: Any) -> Answer:
        return await self.partner.call("PUT", "/ssl", json={"domain": domain, **fields})

    async def delete(self, domain: Any, **fields: Any) -> Answer:
        return await self.partner.call("DELETE", "/ssl", json={"domain": domain, **fields})


@dataclass(slots=True)
class Origin:
    url: str
    asked: list[tuple[str, str]]


@asynccontextmanager
async def serve_origin(status: int = 200, tls: ssl.SSLContext | None = None, port: int = 0) -> AsyncIterator[Origin]:
    """`asked`: method and Host of each request."""
    asked: list[tuple[str, str]] = []

    async def answer(request: web.Request) -> web.Response:
        asked.append((request.method, request.host))
        return web.Response(status=status, headers={"Location": "http://127.0.0.1:1/"})

    app = web.Application()
    app.router.add_route("*", "/{path:.*}", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        site = web.TCPSite(runner, "127.0.0.1", port, ssl_context=tls)
        await site.start()
        port = runner.addresses[0][1]
        yield Origin(f"{'https' if tls else 'http'}://127.0.0.1:{port}", asked)
    finally:
        await runner.cleanup()


async def issue(service: Service, domain: str, application_id: str, *, lasts: timedelta = timedelta(days=90)) -> None:
    """What a monitor does: the certificate in service, its order waiting for the edges."""
    now = datetime.now(UTC)
    private_key = service.keyring.seal(b"key", certificates.key_identity(domain))
    certificate = Certificate("internal", "chain", private_key, now - timedelta(days=1), now + lasts)
    async with service.database.transaction() as connection:
        await certificates.store(connection, domain, application_id, certificate)
        await connection.execute("update orders set state = 'issued' where domain = $1", domain)


async def go_live(service: Service, domain: str, application_id: str, *, lasts: timedelta = timedelta(days=90)) -> None:
    await issue(service, domain, application_id, lasts=lasts)
    async with service.database.transaction() as connection:
        await certificates.set_live(connection, domain)


async def fail_order(service: Service, domain: str) -> None:
    async with service.database.transaction() as connection:
        await connection.execute("update orders set state = 'failed', attempts = 5 where domain = $1", domain)


async def order_state(service: Service, domain: str) -> str | None:
    async with service.database.connection() as connection:
        state: str | None = await connection.fetchval("select state from orders where domain = $1", domain)
    return state
