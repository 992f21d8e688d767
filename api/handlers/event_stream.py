"""A flow's progress as server-sent events (WHATWG HTML, "Server-sent events").

The first event is the flow as it is; then one for each change that is seen: of two changes in a moment, the later one
is enough, as every event has the whole flow. A comment every few seconds shows both sides that the connection stands.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress

import orjson
from aiohttp import web

from api.answers.connect import flow_answer
from api.services.flow_watch import Watcher
from common.db.connect_flows import Flow
from common.flow_states import ENDED

LONGEST_SECONDS = 30 * 60.0
"""A browser connects again by itself, with a token that is good."""
_COMMENT_SECONDS = 10.0
_WRITE_SECONDS = 10.0
_HEADERS = {
    "Content-Type": "text/event-stream",
    "Cache-Control": "no-store",
    "X-Accel-Buffering": "no",
}


async def stream_flow(request: web.Request, flow: Flow, watcher: Watcher) -> web.StreamResponse:
    """Send a flow and its changes.

    The stream ends when the flow does, when the client disconnects, when this process drains, and after
    `LONGEST_SECONDS`.
    """
    response = web.StreamResponse(headers=_HEADERS)
    with suppress(ConnectionError, TimeoutError):
        async with asyncio.timeout(LONGEST_SECONDS):
            await response.prepare(request)
            await _write(response, b"retry: 1000\n" + _event(flow))
            while flow.state not in ENDED and not watcher.is_over:
                changed = await watcher.next_change(within_seconds=_COMMENT_SECONDS)
                if changed is None and not watcher.is_over:
                    await _write(response, b":\n\n")
                elif changed is not None:
                    flow = changed
                    await _write(response, _event(flow))
            await response.write_eof()
    return response


async def _write(response: web.StreamResponse, data: bytes) -> None:
    async with asyncio.timeout(_WRITE_SECONDS):
        await response.write(data)


def _event(flow: Flow) -> bytes:
    return b"event: flow\nid: %d\ndata: %s\n\n" % (flow.version, orjson.dumps(flow_answer(flow)))
