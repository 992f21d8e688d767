"""``/docs``: the handbook, open to everyone."""

from __future__ import annotations

from aiohttp import hdrs, web

from api.built_once import BuiltOnce
from api.errors import NOT_FOUND, Refused
from api.pages import handbook as pages


class DocsHandlers:
    """Handlers of the handbook."""

    def __init__(self) -> None:
        self._handbook = BuiltOnce(pages.Handbook.load)

    async def index(self, request: web.Request) -> web.Response:
        """Show the first page, or what a search for ``q`` finds."""
        handbook = await self._handbook.get()
        if query := request.query.get("q", "").strip():
            return _html(handbook.show_hits(query))
        return _html(handbook.show("start") or "")

    async def page(self, request: web.Request) -> web.Response:
        """Show a page; browsers get one in any case. Raises: `Refused`."""
        handbook = await self._handbook.get()
        if (page := handbook.show(request.match_info["page"])) is not None:
            return _html(page)
        if "text/html" in request.headers.get(hdrs.ACCEPT, ""):
            return _html(handbook.show_missing(), status=404)
        raise Refused(NOT_FOUND, hint="the handbook has no such page; /docs has its contents")


def _html(text: str, *, status: int = 200) -> web.Response:
    return web.Response(text=text, status=status, content_type="text/html", charset="utf-8", headers=pages.HEADERS)
