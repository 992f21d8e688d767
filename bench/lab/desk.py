"""The zone's desk: the lab's DNS zone over HTTP, as a customer would change it at their provider's.

``PUT /`` adds the record in the body, ``DELETE /`` removes it, both as "NAME TYPE VALUE"; ``GET /`` lists all.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable

import dns.exception
from aiohttp import web

from bench.lab.serving import serving
from bench.lab.zone import Zone, parse_record


class ZoneDesk:
    """Serves the zone's records, to read and to change. Created and closed by `serve`."""

    def __init__(self, zone: Zone, url: str = "") -> None:
        self._zone = zone
        self.url = url

    @classmethod
    @contextlib.asynccontextmanager
    async def serve(cls, zone: Zone, host: str = "127.0.0.1", port: int = 0) -> AsyncIterator[ZoneDesk]:
        """Serve within the block."""
        desk = cls(zone)
        app = web.Application()
        app.router.add_get("/", desk._list)
        app.router.add_put("/", desk._add)
        app.router.add_delete("/", desk._remove)
        async with serving(app, host, port) as address:
            desk.url = f"http://{address}"
            yield desk

    async def _list(self, _: web.Request) -> web.Response:
        return web.Response(text="".join(f"{name} {kind} {value}\n" for name, kind, value in self._zone.listed()))

    async def _add(self, request: web.Request) -> web.Response:
        return await self._change(request, self._zone.add)

    async def _remove(self, request: web.Request) -> web.Response:
        return await self._change(request, self._zone.remove)

    async def _change(self, request: web.Request, change: Callable[[str, str, str], None]) -> web.Response:
        try:
            change(*parse_record((await request.text()).strip()))
        except (ValueError, dns.exception.DNSException) as error:
            return web.Response(status=400, text=f"{error}\n")
        return await self._list(request)
