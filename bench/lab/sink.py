"""The webhook sink: takes every POST, remembers it, and lists what it has on GET.

Over HTTP: ``POST /any/path`` is recorded, ``GET /`` lists everything received as JSON, ``DELETE /`` forgets.
In a test, `answer_with` says how the next deliveries are answered.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from typing import Any, Self

import orjson
from aiohttp import web

from bench.lab.serving import serving


@dataclass(frozen=True, slots=True)
class Delivery:
    """One request the sink received; `headers` in lower case."""

    path: str
    headers: dict[str, str]
    body: str
    received_at: datetime

    def json(self) -> Any:
        return orjson.loads(self.body)


@dataclass(frozen=True, slots=True)
class _Answer:
    status: int = 204
    headers: Mapping[str, str] = field(default_factory=dict)


class WebhookSink:
    """Created and closed by `serve`."""

    def __init__(self) -> None:
        self.url = ""
        self.deliveries: list[Delivery] = []
        self._answer = _Answer()
        self._arrived = asyncio.Condition()

    @classmethod
    @contextlib.asynccontextmanager
    async def serve(cls, host: str = "127.0.0.1", port: int = 0) -> AsyncIterator[Self]:
        sink = cls()
        app = web.Application(client_max_size=16 * 2**20)
        app.router.add_get("/", sink._list)
        app.router.add_delete("/", sink._forget)
        app.router.add_post("/{path:.*}", sink._receive)
        async with serving(app, host, port) as address:
            sink.url = f"http://{address}"
            yield sink

    def answer_with(self, status: int, headers: Mapping[str, str] | None = None) -> None:
        """How every delivery from now on is answered."""
        self._answer = _Answer(status, headers or {})

    async def wait_for(self, count: int, *, timeout_seconds: float = 10) -> list[Delivery]:
        """All deliveries, once there are at least `count`.

        Raises: TimeoutError.
        """
        async with asyncio.timeout(timeout_seconds), self._arrived:
            await self._arrived.wait_for(lambda: len(self.deliveries) >= count)
        return list(self.deliveries)

    async def _receive(self, request: web.Request) -> web.Response:
        headers = {name.lower(): value for name, value in request.headers.items()}
        body = (await request.read()).decode("utf-8", "replace")
        async with self._arrived:
            self.deliveries.append(Delivery(request.path, headers, body, datetime.now(UTC)))
            self._arrived.notify_all()
        return web.Response(status=self._answer.status, headers=dict(self._answer.headers))

    async def _list(self, _: web.Request) -> web.Response:
        listed = orjson.dumps([asdict(delivery) for delivery in self.deliveries])
        return web.Response(body=listed, content_type="application/json")

    async def _forget(self, _: web.Request) -> web.Response:
        self.deliveries.clear()
        return web.Response(status=204)
