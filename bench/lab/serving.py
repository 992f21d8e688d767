"""Serving an aiohttp application on a loopback port, for the lab's origin and sink."""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator

from aiohttp import web

from common.host_ports import HostPort

_SHUTDOWN_SECONDS = 1


@contextlib.asynccontextmanager
async def serving(app: web.Application, host: str, port: int) -> AsyncIterator[str]:
    """Serve `app` until the context ends. Yield ``host:port`` or ``[v6]:port``; port 0 takes a free one."""
    runner = web.AppRunner(app, access_log=None, shutdown_timeout=_SHUTDOWN_SECONDS)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
        yield str(HostPort(*runner.addresses[0][:2]))
    finally:
        await runner.cleanup()
