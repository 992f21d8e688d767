"""Responses of the handlers: JSON of an answer, and long lists as they are read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress

import orjson
from aiohttp import web

from api.answers.messages import message_of, notices_of
from api.notices import Notice


def respond(content: Mapping[str, object] | Sequence[object], status: int = 200) -> web.Response:
    """Return the response that has this answer as its body."""
    return web.Response(body=orjson.dumps(content), status=status, content_type="application/json")


def respond_message(text: str, status: int = 200, notices: Iterable[Notice] = ()) -> web.Response:
    """Return the response to an accepted change."""
    return respond(message_of(text, notices), status)


def respond_change(content: Mapping[str, object], notices: Iterable[Notice]) -> web.Response:
    """Return the response to an accepted change that shows what was changed, with the change's notices."""
    response = respond({**content, **notices_of(notices)})
    response.headers["Preference-Applied"] = "return=representation"
    return response


async def stream(
    request: web.Request, name: str, items: Iterable[Mapping[str, object]], rest: Mapping[str, object]
) -> web.StreamResponse:
    """Send an object whose first field is a long list: one item at a time is in memory."""
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    with suppress(ConnectionError):  # the client has disconnected
        await response.prepare(request)
        await response.write(b"{" + orjson.dumps(name) + b":[")
        for number, item in enumerate(items):
            await response.write((b"," if number else b"") + orjson.dumps(item))
        await response.write(b"]," + orjson.dumps(rest).removeprefix(b"{"))
        await response.write_eof()
    return response
