"""The edge's admin port, for probes, Prometheus and the operator; on loopback, without authentication.

It shows what the supervisor knows and passes on the one thing an operator may command here. It decides nothing.
A browser may be made to send requests to loopback by any page, so commands that come from one are refused.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import orjson
from aiohttp import web

from common.exposition import CONTENT_TYPE, render
from common.machine_metrics import LoopLag
from common.metrics import add_up
from edge.process.acceptor import Acceptor
from edge.process.health import View

CLOSE_POLL_SECONDS = 0.01
CLOSE_POLLS = 100


class AdminPort:
    """Handles the admin port's requests; created by `listening`."""

    def __init__(self, view: View, lag: LoopLag) -> None:
        self._view = view
        self._lag = lag

    def build_app(self) -> web.Application:
        """Return the application with its routes."""
        app = web.Application()
        app.router.add_get("/healthz", self.healthz)
        app.router.add_get("/readyz", self.readyz)
        app.router.add_get("/metrics", self.metrics)
        app.router.add_post("/replica/accept", self.accept)
        return app

    async def healthz(self, _request: web.Request) -> web.Response:
        """Answer that the process is alive."""
        return _json(200, {"message": "alive"})

    async def readyz(self, _request: web.Request) -> web.Response:
        """Answer whether the edge can serve, and with what."""
        health = self._view.health()
        message = "not ready" if not health.is_ready else "ready" if health.is_current else "ready, with old routes"
        return _json(200 if health.is_ready else 503, {"message": message, **health.details})

    async def metrics(self, _request: web.Request) -> web.Response:
        """Answer with the metrics of all workers and of the supervisor."""
        families = add_up([*self._view.measurements(), *self._lag.families()])
        return _last(web.Response(body=render(families, with_process=True), headers={"Content-Type": CONTENT_TYPE}))

    async def accept(self, request: web.Request) -> web.Response:
        """Accept the held copy, as the operator commands."""
        if "Origin" in request.headers or "Sec-Fetch-Site" in request.headers:
            return _json(403, {"message": "Not from a web page."})
        if not self._view.accept_held_copy():
            return _json(409, {"message": "No copy is held."})
        return _json(200, {"message": "The held copy will be applied."})


@asynccontextmanager
async def listening(descriptor: int, view: View) -> AsyncIterator[None]:
    """Answer at the listening socket `descriptor`, which stays open: later connections are for the next generation."""
    lag = LoopLag()
    runner = web.AppRunner(
        AdminPort(view, lag).build_app(), access_log=None, shutdown_timeout=CLOSE_POLLS * CLOSE_POLL_SECONDS
    )
    await runner.setup()
    assert runner.server is not None
    sampling = asyncio.create_task(lag.run(), name="loop lag")
    try:
        listener = socket.socket(fileno=os.dup(descriptor))
        acceptor = Acceptor([await asyncio.get_running_loop().create_server(runner.server, sock=listener)])
        try:
            yield
        finally:
            await acceptor.close()
            await _wait_for_connections(runner.server)
    finally:
        sampling.cancel()
        await runner.cleanup()


async def _wait_for_connections(server: web.Server) -> None:
    """Wait for the connections' ends: each carries one request."""
    for _ in range(CLOSE_POLLS):
        if not server.connections:
            break
        await asyncio.sleep(CLOSE_POLL_SECONDS)


def _json(status: int, body: dict[str, Any]) -> web.Response:
    return _last(
        web.Response(
            status=status, body=orjson.dumps(body, default=str), content_type="application/json", charset="utf-8"
        )
    )


def _last(response: web.Response) -> web.Response:
    """Return the response with the end of its connection: the next request may be meant for the next generation."""
    response.force_close()
    return response
