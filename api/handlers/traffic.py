"""``GET /domains/:domain/traffic``: what the edges counted of a domain, over a day or a month."""

from __future__ import annotations

from aiohttp import web

from api.answers.traffic import traffic as traffic_answer
from api.requests import application_of
from api.responses import respond
from api.schemas import queries
from api.schemas.traffic import parse_period
from common.db import traffic
from common.db.pool import Database


class TrafficHandler:
    """Handler of the traffic of a domain.

    Nothing was counted of a domain that the application does not have: its lists are empty.
    """

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, request: web.Request) -> web.Response:
        """Show the traffic of a domain."""
        name = queries.parse_name(request.match_info["domain"])
        period = parse_period(request.query)
        async with self._database.connection() as connection:
            points = await traffic.list_points(
                connection, application_of(request).id, name.text, period.minutes, period.length
            )
        return respond(traffic_answer(name.text, period, points))
