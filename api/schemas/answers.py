"""Answers: JSON, and the envelope of a page."""

from __future__ import annotations

from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import orjson
from aiohttp import web

from api.notices import Notice, combined
from api.schemas.queries import ListQuery, PartQuery
from common.db.domain_pages import DomainPage


def envelope(page: DomainPage, items: list[dict[str, Any]], query: ListQuery) -> dict[str, Any]:
    """The envelope of a page. `prevPage` of a page beyond the end is the last page."""
    pages = -(-page.total // query.size)
    return {
        "items": items,
        "total": page.total,
        "page": query.page,
        "limit": query.size,
        "count": len(items),
        "pages": pages,
        "nextPage": query.page + 1 if query.page + 1 < pages else None,
        "prevPage": min(query.page, pages) - 1 if min(query.page, pages) > 0 else None,
    }


def part(items: list[dict[str, Any]], following: str | None, query: PartQuery) -> dict[str, Any]:
    """A part of a list that is sorted or searched."""
    return {"items": items, "limit": query.size, "count": len(items), "next": following}


def given(**fields: Any) -> dict[str, Any]:
    """Of optional fields, those that have a value."""
    return {name: value for name, value in fields.items() if value}


def message(text: str, status: int = 200, notices: Iterable[Notice] = ()) -> web.Response:
    return respond({"message": text, **combined(notices)}, status)


def respond(content: dict[str, Any] | list[Any], status: int = 200) -> web.Response:
    return web.Response(body=orjson.dumps(content), status=status, content_type="application/json")


async def stream(
    request: web.Request, name: str, items: Iterable[dict[str, Any]], rest: dict[str, Any]
) -> web.StreamResponse:
    """An object whose first field is a long list: one item at a time is in memory, and sent before the next is made."""
    response = web.StreamResponse(headers={"Content-Type": "application/json"})
    with suppress(ConnectionError):  # the client has disconnected
        await response.prepare(request)
        await response.write(b"{" + orjson.dumps(name) + b":[")
        for number, item in enumerate(items):
            await response.write((b"," if number else b"") + orjson.dumps(item))
        await response.write(b"]," + orjson.dumps(rest).removeprefix(b"{"))
        await response.write_eof()
    return response
