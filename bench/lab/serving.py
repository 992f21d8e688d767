"""Serving an aiohttp application on a loopback port, for the lab's origin and sink."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

from aiohttp import web

_SHUTDOWN_SECONDS = 1


@contextlib.asynccontextmanager
async def serving(app: web.Application, host: str, port: int) -> AsyncIterator[str]:
    """The address (``host:port``) `app` is served on until the context ends; port 0 takes a free one."""
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=_SHUTDOWN_SECONDS)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
        bound_host, bound_port = runner.addresses[0][:2]
        yield f"{bound_host}:{bound_port}"
    finally:
        await runner.cleanup()
