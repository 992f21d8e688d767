"""``/openapi.json``: the API's reference for programs, open to everyone."""

from __future__ import annotations

from functools import cached_property

import orjson
from aiohttp import web

from api.reference.document import build

_HEADERS = {"Cache-Control": "public, max-age=300", "Access-Control-Allow-Origin": "*"}


class ReferenceHandler:
    def __init__(self, base_url: str) -> None:
        self._base_url = base_url

    @cached_property
    def _document(self) -> bytes:
        return orjson.dumps(build(self._base_url))

    async def get(self, _: web.Request) -> web.Response:
        return web.Response(body=self._document, content_type="application/json", headers=_HEADERS)
