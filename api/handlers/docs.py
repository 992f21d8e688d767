"""``/docs``: the handbook, open to everyone."""

from __future__ import annotations

from aiohttp import web

from api.built_once import BuiltOnce
from api.errors import NOT_FOUND, Refused
from api.pages import handbook as pages


class DocsHandlers:
    def __init__(self) -> None:
        self._handbook = BuiltOnce(pages.Handbook.load)

    async def index(self, request: web.Request) -> web.Response:
        """The first page, or what a search for ``q`` finds."""
        handbook = await self._handbook.get()
        if query := request.query.get("q", "").strip():
            return _html(handbook.show_hits(query))
        return _html(handbook.show("start") or "")

    async def page(self, request: web.Request) -> web.Response:
        """Raises: Refused."""
        page = (await self._handbook.get()).show(request.match_info["page"])
        if page is None:
            raise Refused(NOT_FOUND, hint="the handbook has no such page; /docs has its contents")
        return _html(page)


def _html(text: str) -> web.Response:
    return web.Response(text=text, content_type="text/html", charset="utf-8", headers=pages.HEADERS)
