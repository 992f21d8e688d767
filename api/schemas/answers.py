"""Answers: JSON, and the envelope of a page."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import orjson
from aiohttp import web

from api.schemas.queries import ListQuery
from api.services.notices import Notice, combined
from common.db.domains import Page


def envelope(page: Page, items: list[dict[str, Any]], query: ListQuery) -> dict[str, Any]:
    """SPEC 2.5. Before a page beyond the end stands the last page there is."""
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


def given(**fields: Any) -> dict[str, Any]:
    """Of optional fields, those that have a value."""
    return {name: value for name, value in fields.items() if value}


def message(text: str, status: int = 200, notices: Iterable[Notice] = ()) -> web.Response:
    return respond({"message": text, **combined(notices)}, status)


def respond(content: dict[str, Any] | list[Any], status: int = 200) -> web.Response:
    return web.Response(body=orjson.dumps(content), status=status, content_type="application/json")
