"""Parts of pages that stay up to date, by server-sent events (HTML Living Standard §9.2).

A page opens one stream for all of its parts: a browser opens six connections to a host. An event's data are elements
``<template data-into="ID">``, and the script puts the content of each into the element of that id. Each part is
rendered once for all who see the same (`api.dashboard.renderings`). The rights of a stream's own user are read anew
before anything is sent to it, and every `LiveIntervals.rights` seconds.

The number of streams is bounded in all and by user (`api.stream_slots`). Each ends after `_LONGEST_SECONDS` (a browser
reconnects), and as soon as its session has ended or its user may no longer see what it sends. A database that is away
ends none: the event ``state`` tells the page that it is not up to date.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Awaitable, Callable
from typing import TypeAlias

from aiohttp import web
from markupsafe import Markup

from api.dashboard.context import DashboardContext
from api.dashboard.middlewares import find_visitor
from api.dashboard.rendering import HEADERS
from api.dashboard.renderings import LivePart, Renderings, Viewer
from api.dashboard.visitors import VISITOR, visitor_of
from api.draining import is_draining, pause
from api.errors import Refused
from api.stream_slots import NoSlotFree, StreamSlots
from common.errors import DatabaseUnavailable

_LONGEST_SECONDS = 600.0
_CLOSED_SECONDS = 1.0
"""How often a stream looks whether its connection is closed."""
_UP_TO_DATE = b"event: state\ndata: on\n\n"
_DATABASE_AWAY = b"event: state\ndata: off\n\n"
_MOST = 200
_MOST_OF_USER = 8

SLOTS: web.AppKey[StreamSlots] = web.AppKey("stream slots", StreamSlots)
RENDERINGS: web.AppKey[Renderings] = web.AppKey("renderings", Renderings)

Parts: TypeAlias = Callable[[], Awaitable[tuple[LivePart, ...]]]
"""Checks the rights of `visitor_of(request)`, which is read anew each time, and returns what the visitor may see.

Raises: HTTPNotFound, `Refused`, which end the stream.
"""


def into(element_id: str, html: str) -> str:
    """Return the content of one element of the page, as an event has it."""
    return Markup('<template data-into="{}">{}</template>').format(element_id, Markup(html))  # noqa: S704 - rendered


async def stream(context: DashboardContext, request: web.Request, parts: Parts) -> web.StreamResponse:
    """Send each part whenever it differs from what was sent of it last.

    Raises: HTTPTooManyRequests; what `parts` raises at first.
    """
    first = await parts()
    ended = asyncio.Event()
    try:
        with (
            request.config_dict[SLOTS].taken(visitor_of(request).user.id, ended.set),
            request.config_dict[RENDERINGS].viewer() as viewer,
        ):
            viewer.follow(first)
            return await _send(context, request, ended, viewer, parts)
    except NoSlotFree as error:
        raise web.HTTPTooManyRequests from error


def stream_slots() -> StreamSlots:
    """Return the slots for streams of the dashboard."""
    return StreamSlots(most=_MOST, most_of_tenant=_MOST_OF_USER)


async def _send(
    context: DashboardContext, request: web.Request, ended: asyncio.Event, viewer: Viewer, parts: Parts
) -> web.StreamResponse:
    """Until `ended`, the connection closes, or the visitor may not see the parts any more."""
    response = web.StreamResponse(headers={**HEADERS, "Content-Type": "text/event-stream"})
    await response.prepare(request)
    tasks = [
        asyncio.create_task(_send_parts(context, request, response, viewer, parts), name="live parts"),
        asyncio.create_task(_until(ended), name="live parts: end"),
        asyncio.create_task(_until_closed(request), name="live parts: connection"),
    ]
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


async def _until_closed(request: web.Request) -> None:
    """Until the connection or this process ends."""
    while not (request.transport is None or request.transport.is_closing() or is_draining(request)):
        await pause(request, _CLOSED_SECONDS)


async def _send_parts(
    context: DashboardContext, request: web.Request, response: web.StreamResponse, viewer: Viewer, parts: Parts
) -> None:
    with contextlib.suppress(ConnectionError, web.HTTPNotFound, Refused):
        while True:
            await viewer.wait(context.live.rights)
            try:
                visitor = await find_visitor(context, request)
                if visitor is None:
                    return
                request[VISITOR] = visitor
                viewer.follow(await parts())
            except DatabaseUnavailable:
                await response.write(_DATABASE_AWAY)
                await asyncio.sleep(context.live.database_away)
                viewer.wake()
                continue
            if viewer.has_ended:
                return
            text = viewer.take()
            await response.write((_event(text) if text else b"") + _UP_TO_DATE)


def _event(text: str) -> bytes:
    lines = "\n".join(f"data: {line}" for line in text.splitlines())
    return f"event: content\n{lines}\n\n".encode()
