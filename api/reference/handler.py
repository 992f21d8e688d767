"""``/openapi.json``: the API's reference for programs, open to everyone."""

from __future__ import annotations

import orjson
from aiohttp import web

from api.built_once import BuiltOnce
from api.reference.document import build

_HEADERS = {"Cache-Control": "public, max-age=300", "Access-Control-Allow-Origin": "*"}


class ReferenceHandler:
    """Handler of the reference."""

    def __init__(self, base_url: str) -> None:
        self._document = BuiltOnce(lambda: orjson.dumps(build(base_url)))

    async def get(self, _: web.Request) -> web.Response:
        """Serve the document, which the first request builds."""
        return web.Response(body=await self._document.get(), content_type="application/json", headers=_HEADERS)
