"""``/healthz`` (this process runs) and ``/readyz`` (it can do its work), for the balancers in front of the API."""

from __future__ import annotations

from aiohttp import web

from api.schemas import answers
from common.db.pool import Database
from common.db.schema import check_schema


class HealthHandlers:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def healthz(self, _: web.Request) -> web.Response:
        return answers.respond({"status": "ok"})

    async def readyz(self, _: web.Request) -> web.Response:
        async with self._database.connection() as connection:
            await check_schema(connection)
        return answers.respond({"status": "ready"})
