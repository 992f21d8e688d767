"""``GET /audit``: every change of the application, by whom and by which way."""

from __future__ import annotations

from aiohttp import web

from api.answers.audit import audit_page
from api.requests import application_of
from api.responses import respond
from api.schemas.audit import parse_audit_query
from api.services.audit import read_page
from common.db.pool import Database


class AuditHandler:
    """Handler of the audit log."""

    def __init__(self, database: Database) -> None:
        self._database = database

    async def get(self, request: web.Request) -> web.Response:
        """List the changes of the application, newest first."""
        query = parse_audit_query(request.query)
        page = await read_page(self._database, query, application_id=application_of(request).id)
        return respond(audit_page(page, query.limit))
