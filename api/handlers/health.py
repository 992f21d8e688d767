"""``/healthz`` (this process runs), ``/readyz`` (it can do its work) and ``/metrics``."""

from __future__ import annotations

from aiohttp import web

from api.counters import Counters
from api.schemas import answers
from common import exposition
from common.db.pool import Database
from common.db.schema import check_schema


class HealthHandlers:
    def __init__(self, database: Database, counters: Counters) -> None:
        self._database = database
        self._counters = counters

    async def healthz(self, _: web.Request) -> web.Response:
        return answers.respond({"status": "ok"})

    async def readyz(self, _: web.Request) -> web.Response:
        async with self._database.connection() as connection:
            await check_schema(connection)
        return answers.respond({"status": "ready"})

    async def metrics(self, _: web.Request) -> web.Response:
        body = exposition.render(self._counters.families())
        return web.Response(body=body, headers={"Content-Type": exposition.CONTENT_TYPE})
