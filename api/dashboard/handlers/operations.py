"""The operators' page: what runs, what is due, certificates by days left, the CA's limits, and what fails."""

from __future__ import annotations

import asyncio

from aiohttp import web

from api.dashboard.context import DashboardContext
from api.dashboard.live import stream
from api.dashboard.visitors import visitor_of
from common.db.ca_ledger import Limits
from common.db.status import Status, read_status

_FRESH_SECONDS = 2.0


class OperationsPages:
    """One a process. Mutable state: the status read last, shared by every visitor for `_FRESH_SECONDS`."""

    def __init__(self, context: DashboardContext) -> None:
        self._context = context
        self._limits = Limits.of(context.settings)
        self._reading = asyncio.Lock()
        self._last: tuple[float, Status] | None = None

    async def get(self, request: web.Request) -> web.StreamResponse:
        visitor_of(request).require_operator()
        return self._context.renderer.page(request, "operations.html", content=await self._html(request))

    async def get_live(self, request: web.Request) -> web.StreamResponse:
        visitor_of(request).require_operator()
        return await stream(self._context, request, lambda: self._html(request), every=_FRESH_SECONDS)

    async def _html(self, request: web.Request) -> str:
        return self._context.renderer.fragment(request, "_operations.html", status=await self._status())

    async def _status(self) -> Status:
        async with self._reading:
            now = self._context.clock.monotonic()
            if self._last is None or now - self._last[0] > _FRESH_SECONDS:
                async with self._context.database.connection() as connection:
                    self._last = now, await read_status(connection, self._limits)
            return self._last[1]
