"""Tell the requests under way that this process ends.

Event streams then end, so that their clients connect to the process that follows. The server sets `DRAINING` once it
accepts no more connections; an application without it never drains early.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

from aiohttp import web

DRAINING: web.AppKey[asyncio.Event] = web.AppKey("draining", asyncio.Event)


def is_draining(request: web.Request) -> bool:
    """Return whether the process of this request is about to end."""
    return request.config_dict[DRAINING].is_set()


async def pause(request: web.Request, seconds: float) -> None:
    """Sleep, but no longer than until this process drains."""
    with suppress(TimeoutError):
        async with asyncio.timeout(seconds):
            await request.config_dict[DRAINING].wait()
