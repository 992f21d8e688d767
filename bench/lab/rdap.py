"""An RDAP server (RFC 9082, RFC 9083), with the bootstrap file that leads to it (RFC 9224).

``GET /dns.json`` names it for the top-level domains it was given, ``GET /domain/NAME`` answers about a domain that it
knows and 404 about any other. In a test, `answer_with` sets how the next questions are answered.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, Self

import orjson
from aiohttp import web

from bench.lab.serving import serving


@dataclass(frozen=True, slots=True)
class Registered:
    """A registered domain. `expires_at` None: the registry does not state it."""

    expires_at: datetime | None
    statuses: tuple[str, ...] = ("active",)

    def as_json(self, name: str) -> dict[str, Any]:
        """Return the RDAP answer."""
        events = [] if self.expires_at is None else [{"eventAction": "expiration", "eventDate": _text(self.expires_at)}]
        return {
            "rdapConformance": ["rdap_level_0"],
            "objectClassName": "domain",
            "ldhName": name.upper(),  # as many registries write it
            "status": list(self.statuses),
            "events": [{"eventAction": "registration", "eventDate": "2020-01-01T00:00:00Z"}, *events],
        }


Answerer = Callable[[web.Request], Awaitable[web.StreamResponse]]


class RdapServer:
    """A registry's server. Created and closed by `serve`.

    `asked`: the names it was asked about, in their order.
    """

    def __init__(self, domains: Sequence[str]) -> None:
        self.url = ""
        self.asked: list[str] = []
        self._domains = list(domains)
        self._registered: dict[str, Registered] = {}
        self._answer: Answerer | None = None

    @classmethod
    @contextlib.asynccontextmanager
    async def serve(cls, *domains: str, host: str = "127.0.0.1", port: int = 0) -> AsyncIterator[Self]:
        """Serve everything beneath `domains` within the block."""
        server = cls(domains)
        app = web.Application()
        app.router.add_get("/dns.json", server._bootstrap)
        app.router.add_get("/domain/{name}", server._domain)
        async with serving(app, host, port) as address:
            server.url = f"http://{address}/"
            yield server

    def register(
        self, name: str, *, expires_in_days: float | None = 365, statuses: Sequence[str] = ("active",)
    ) -> None:
        """Register a domain."""
        expires_at = None if expires_in_days is None else datetime.now(UTC) + timedelta(days=expires_in_days)
        self._registered[name] = Registered(expires_at, tuple(statuses))

    def forget(self, name: str) -> None:
        """Delete a registered domain."""
        del self._registered[name]

    def answer_with(self, answerer: Answerer | None) -> None:
        """Answer every question from now on by `answerer`; None: as registered."""
        self._answer = answerer

    @property
    def bootstrap(self) -> bytes:
        """Return the registry's bootstrap file."""
        content = {
            "version": "1.0",
            "publication": _text(datetime.now(UTC)),
            "services": [[self._domains, [self.url]]],
        }
        return orjson.dumps(content)

    async def _bootstrap(self, _: web.Request) -> web.Response:
        return web.Response(body=self.bootstrap, content_type="application/json")

    async def _domain(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["name"]
        self.asked.append(name)
        if self._answer is not None:
            return await self._answer(request)
        registered = self._registered.get(name)
        if registered is None:
            return web.Response(status=404, body=b'{"errorCode":404}', content_type="application/rdap+json")
        return web.Response(body=orjson.dumps(registered.as_json(name)), content_type="application/rdap+json")


def _text(at: datetime) -> str:
    return at.strftime("%Y-%m-%dT%H:%M:%SZ")
