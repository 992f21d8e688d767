"""Parts of pages that stay up to date, by server-sent events (HTML Living Standard §9.2).

The number of streams is bounded in all and by user. Each ends after `_LONGEST_SECONDS` (a browser reconnects), and as
soon as its session has ended or its user may no longer see what it sends. A database that is away ends none.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections import Counter
from collections.abc import Awaitable, Callable

from aiohttp import web

from api.dashboard.context import DashboardContext
from api.dashboard.middlewares import find_visitor
from api.dashboard.rendering import HEADERS
from api.dashboard.visitors import VISITOR, visitor_of
from api.draining import is_draining, pause
from api.errors import Refused
from common.errors import DatabaseUnavailable

_LONGEST_SECONDS = 600.0
_SILENT_SECONDS = 15.0
_MOST = 200
_MOST_OF_USER = 8

STREAMS: web.AppKey[Counter[str]] = web.AppKey("streams", Counter)


async def stream(
    context: DashboardContext, request: web.Request, render: Callable[[], Awaitable[str]], *, every: float
) -> web.StreamResponse:
    """Send what `render` returns, now and whenever it differs from what was sent last; asked every `every` seconds.

    `render` checks the rights of `visitor_of(request)`, which is read anew each time.

    Raises: HTTPTooManyRequests.
    """
    streams, user_id = request.config_dict[STREAMS], visitor_of(request).user.id
    if streams[user_id] >= _MOST_OF_USER or streams.total() >= _MOST:
        raise web.HTTPTooManyRequests
    streams[user_id] += 1
    try:
        return await _send(context, request, render, every)
    finally:
        streams[user_id] -= 1
        if not streams[user_id]:
            del streams[user_id]


async def _send(
    context: DashboardContext, request: web.Request, render: Callable[[], Awaitable[str]], every: float
) -> web.StreamResponse:
    loop = asyncio.get_running_loop()
    response = web.StreamResponse(headers={**HEADERS, "Content-Type": "text/event-stream"})
    ends_at, sent, sent_at = loop.time() + _LONGEST_SECONDS, "", loop.time()
    await response.prepare(request)
    with contextlib.suppress(ConnectionError, web.HTTPNotFound, Refused):
        while loop.time() < ends_at and not _is_over(request):
            with contextlib.suppress(DatabaseUnavailable):
                visitor = await find_visitor(context, request)
                if visitor is None:
                    break
                request[VISITOR] = visitor
                text = await render()
                if text != sent:
                    await response.write(_event(text))
                    sent, sent_at = text, loop.time()
            if loop.time() - sent_at > _SILENT_SECONDS:
                await response.write(b": still here\n\n")
                sent_at = loop.time()
            await pause(request, every)
    return response


def _is_over(request: web.Request) -> bool:
    return request.transport is None or request.transport.is_closing() or is_draining(request)


def _event(text: str) -> bytes:
    lines = "\n".join(f"data: {line}" for line in text.splitlines())
    return f"event: content\n{lines}\n\n".encode()
