"""``GET /audit``: every change of the application, by whom and by which way."""

from __future__ import annotations

from aiohttp import web

from api.requests import application_of
from api.schemas import answers
from api.schemas.audit import audit_page, parse_audit_query
from common.db.audit import list_entries
from common.db.pool import Database
from common.db.request_effects import find_effects


class AuditHandler:
    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, request: web.Request) -> web.Response:
        query = parse_audit_query(request.query)
        async with self._database.connection() as connection:
            found = await list_entries(
                connection,
                before=query.before,
                limit=query.limit,
                application_id=application_of(request).id,
                subject=query.subject,
                request_id=query.request_id,
            )
            effects = await find_effects(connection, query.request_id, found) if query.request_id else []
        return answers.respond(audit_page(found, effects, query))
