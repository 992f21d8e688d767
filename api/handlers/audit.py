"""``GET /audit``: every change of the application, by whom and by which way."""

from __future__ import annotations

from aiohttp import web

from api.answers.audit import audit_page
from api.requests import application_of
from api.responses import respond
from api.schemas.audit import parse_audit_query
from common.db.audit import list_entries
from common.db.pool import Database
from common.db.request_effects import find_effects


class AuditHandler:
    """Handler of the audit log."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, request: web.Request) -> web.Response:
        """List the changes of the application, newest first."""
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
        return respond(audit_page(found, effects, query.limit))
