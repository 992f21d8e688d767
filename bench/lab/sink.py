"""The webhook sink: takes every POST, remembers it, and lists what it has on GET.

Over HTTP: ``POST /any/path`` is recorded, ``GET /`` lists everything received as JSON, ``DELETE /`` forgets.
In a test, `answer_with` sets how the next deliveries are answered, `answer_by` the function that answers them.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Self

import orjson
from aiohttp import web

from bench.lab.serving import serving


@dataclass(frozen=True, slots=True)
class ReceivedRequest:
    """One request that the sink received; `headers` in lower case."""

    path: str
    headers: dict[str, str]
    body: str

    def json(self) -> Any:
        """Return the body, decoded."""
        return orjson.loads(self.body)


Answerer = Callable[[web.Request, ReceivedRequest], Awaitable[web.StreamResponse]]


class WebhookSink:
    """Receives webhooks. Created and closed by `serve`."""

    def __init__(self) -> None:
        self.url = ""
        self.deliveries: list[ReceivedRequest] = []
        self._answer: Answerer
        self._arrived = asyncio.Condition()
        self.answer_with(204)

    @classmethod
    @contextlib.asynccontextmanager
    async def serve(cls, host: str = "127.0.0.1", port: int = 0) -> AsyncIterator[Self]:
        """Serve within the block."""
        sink = cls()
        app = web.Application(client_max_size=16 * 2**20)
        app.router.add_get("/", sink._list)
        app.router.add_delete("/", sink._forget)
        app.router.add_post("/{path:.*}", sink._receive)
        async with serving(app, host, port) as address:
            sink.url = f"http://{address}"
            yield sink

    def answer_with(self, status: int, headers: Mapping[str, str] | None = None) -> None:
        """Answer every delivery from now on with this status."""

        async def answer(_: web.Request, __: ReceivedRequest) -> web.StreamResponse:
            return web.Response(status=status, headers=headers)

        self._answer = answer

    def answer_by(self, answerer: Answerer) -> None:
        """Answer every delivery from now on by `answerer`; the delivery is on the list by then."""
        self._answer = answerer

    async def wait_for(self, count: int, *, timeout_seconds: float = 10) -> list[ReceivedRequest]:
        """Return all deliveries, once there are at least `count`.

        Raises: TimeoutError.
        """
        async with asyncio.timeout(timeout_seconds), self._arrived:
            await self._arrived.wait_for(lambda: len(self.deliveries) >= count)
        return list(self.deliveries)

    async def _receive(self, request: web.Request) -> web.StreamResponse:
        headers = {name.lower(): value for name, value in request.headers.items()}
        body = (await request.read()).decode("utf-8", "replace")
        async with self._arrived:
            delivery = ReceivedRequest(request.path, headers, body)
            self.deliveries.append(delivery)
            self._arrived.notify_all()
        return await self._answer(request, delivery)

    async def _list(self, _: web.Request) -> web.Response:
        listed = orjson.dumps([asdict(delivery) for delivery in self.deliveries])
        return web.Response(body=listed, content_type="application/json")

    async def _forget(self, _: web.Request) -> web.Response:
        self.deliveries.clear()
        return web.Response(status=204)
