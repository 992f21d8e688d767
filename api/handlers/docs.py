"""``/docs``: the handbook, open to everyone."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from aiohttp import hdrs, web

from api.built_once import BuiltOnce
from api.errors import NOT_FOUND, Refused
from api.pages import handbook as pages


class DocsHandlers:
    """Handlers of the handbook."""

    def __init__(self, base_url: str, render_calls: Callable[[str], Mapping[str, str]]) -> None:
        self._handbook = BuiltOnce(lambda: pages.Handbook.load(render_calls(base_url)))
        self._base_url = base_url

    async def index(self, request: web.Request) -> web.Response:
        """Show the first page, or what a search for ``q`` finds."""
        handbook = await self._handbook.get()
        if query := request.query.get("q", "").strip():
            return _html(handbook.show_hits(query))
        return _html(handbook.show("start") or "")

    async def llms(self, _: web.Request) -> web.Response:
        """List the pages with their Markdown, for language models (llmstxt.org)."""
        return _text((await self._handbook.get()).list_for_models(self._base_url), "text/plain")

    async def page(self, request: web.Request) -> web.Response:
        """Show a page, or its Markdown as ``name.md``; browsers get a page in any case. Raises: `Refused`."""
        handbook = await self._handbook.get()
        if (markdown := handbook.markdown(request.match_info["page"])) is not None:
            return _text(markdown, "text/markdown")
        if (page := handbook.show(request.match_info["page"])) is not None:
            return _html(page)
        if "text/html" in request.headers.get(hdrs.ACCEPT, ""):
            return _html(handbook.show_missing(), status=404)
        raise Refused(NOT_FOUND, hint="the handbook has no such page; /docs has its contents")


def _text(text: str, content_type: str) -> web.Response:
    return web.Response(text=text, content_type=content_type, charset="utf-8", headers=pages.HEADERS)


def _html(text: str, *, status: int = 200) -> web.Response:
    return web.Response(text=text, status=status, content_type="text/html", charset="utf-8", headers=pages.HEADERS)
