"""``/healthz`` (this process runs) and ``/readyz`` (it can do its work), for the balancers in front of the API."""

from __future__ import annotations

from aiohttp import web

from api.answers.health import Health, readiness
from api.notices import NO_EDGE, NO_MONITOR
from api.responses import respond
from common.db import edge_nodes, monitor_nodes
from common.db.pool import Database
from common.db.schema import find_newer_schema


class HealthHandlers:
    """Handlers of the probes of balancers."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def healthz(self, _: web.Request) -> web.Response:
        """Answer that the process runs."""
        answer: Health = {"status": "ok"}
        return respond(answer)

    async def readyz(self, _: web.Request) -> web.Response:
        """Answer 200 while requests can be answered.

        What keeps accepted work from visitors is named beside it: every API process reports the same, so
        leaving a balancer would not help. Nor would it with a schema newer than this program's, as between
        ``frontage migrate`` and the restart of an upgrade.
        """
        async with self._database.connection() as connection:
            await find_newer_schema(connection)
            is_issuing = await monitor_nodes.is_issuing(connection)
            edges = await edge_nodes.count_alive(connection)
        lacking = {} if is_issuing else {"no monitor issues certificates": NO_MONITOR}
        if not edges:
            lacking["no edge reports"] = NO_EDGE
        return respond(readiness(lacking))
