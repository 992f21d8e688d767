"""Parts of pages that stay up to date, by server-sent events (HTML Living Standard §9.2).

A page opens one stream for all of its parts: a browser opens six connections to a host. An event's data are elements
``<template data-into="ID">``, and the script puts the content of each into the element of that id.

The number of streams is bounded in all and by user (`api.stream_slots`). Each ends after `_LONGEST_SECONDS` (a browser
reconnects), and as soon as its session has ended or its user may no longer see what it sends. A database that is away
ends none.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from aiohttp import web
from markupsafe import Markup

from api.dashboard.context import DashboardContext
from api.dashboard.middlewares import find_visitor
from api.dashboard.rendering import HEADERS
from api.dashboard.visitors import VISITOR, visitor_of
from api.draining import is_draining, pause
from api.errors import Refused
from api.stream_slots import NoSlotFree, StreamSlots
from common.errors import DatabaseUnavailable

_LONGEST_SECONDS = 600.0
_SILENT_SECONDS = 15.0
_MOST = 200
_MOST_OF_USER = 8

SLOTS: web.AppKey[StreamSlots] = web.AppKey("stream slots", StreamSlots)


@dataclass(frozen=True, slots=True)
class Part:
    """`render` returns what `into` returns, one or more, and checks the rights of `visitor_of(request)`, which is read
    anew each time. It is called `after` seconds from the beginning, and then every `every` seconds."""

    render: Callable[[], Awaitable[str]]
    every: float
    after: float = 0.0


def into(element_id: str, html: str) -> str:
    """The content of one element of the page, as an event has it."""
    return Markup('<template data-into="{}">{}</template>').format(element_id, Markup(html))  # noqa: S704 - rendered


async def stream(context: DashboardContext, request: web.Request, *parts: Part) -> web.StreamResponse:
    """Send what each part renders, whenever it differs from what was sent of it last.

    Raises: HTTPTooManyRequests.
    """
    ended = asyncio.Event()
    try:
        with request.config_dict[SLOTS].taken(visitor_of(request).user.id, ended.set):
            return await _send(context, request, ended, parts)
    except NoSlotFree as error:
        raise web.HTTPTooManyRequests from error


def stream_slots() -> StreamSlots:
    return StreamSlots(most=_MOST, most_of_tenant=_MOST_OF_USER)


async def _send(
    context: DashboardContext, request: web.Request, ended: asyncio.Event, parts: tuple[Part, ...]
) -> web.StreamResponse:
    """Until `ended`, or until the first part ends, and all with it."""
    response = web.StreamResponse(headers={**HEADERS, "Content-Type": "text/event-stream"})
    await response.prepare(request)
    tasks = [asyncio.create_task(_send_part(context, request, response, part), name="live part") for part in parts]
    tasks.append(asyncio.create_task(_until(ended), name="live parts: end"))
    try:
        await asyncio.wait(tasks, timeout=_LONGEST_SECONDS, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for task in tasks:
            task.cancel()
        results = await asyncio.gather(*tasks, return_exceptions=True)
    for error in results:
        if isinstance(error, Exception):
            raise error
    return response


async def _until(ended: asyncio.Event) -> None:
    await ended.wait()


async def _send_part(context: DashboardContext, request: web.Request, response: web.StreamResponse, part: Part) -> None:
    """Ends with the connection, the session, the user's rights or this process."""
    loop = asyncio.get_running_loop()
    sent, sent_at = "", loop.time()
    with contextlib.suppress(ConnectionError, web.HTTPNotFound, Refused):
        await pause(request, part.after)
        while not _is_over(request):
            with contextlib.suppress(DatabaseUnavailable):
                visitor = await find_visitor(context, request)
                if visitor is None:
                    return
                request[VISITOR] = visitor
                text = await part.render()
                if text != sent:
                    await response.write(_event(text))
                    sent, sent_at = text, loop.time()
            if loop.time() - sent_at > _SILENT_SECONDS:
                await response.write(b": still here\n\n")
                sent_at = loop.time()
            await pause(request, part.every)


def _is_over(request: web.Request) -> bool:
    return request.transport is None or request.transport.is_closing() or is_draining(request)


def _event(text: str) -> bytes:
    lines = "\n".join(f"data: {line}" for line in text.splitlines())
    return f"event: content\n{lines}\n\n".encode()
