"""The audit log: of all that the visitor may see, or of one application."""

from __future__ import annotations

import re

from aiohttp import web

from api.dashboard.access import find_application
from api.dashboard.application_view import ApplicationView
from api.dashboard.context import DashboardContext
from api.dashboard.visitors import visitor_of
from api.schemas.audit import is_request_id
from common.db import audit
from common.db.audit import AuditEntry
from common.db.request_effects import Effect, find_effects
from common.db.session import Connection

_LISTED = 50
_ENTRY_ID = re.compile(r"aud_[0-9a-f]{34}")


class AuditPages:
    """The log of changes. One instance per process."""

    def __init__(self, context: DashboardContext) -> None:
        self._context = context
        self._view = ApplicationView(context)

    async def list_all(self, request: web.Request) -> web.StreamResponse:
        """List the changes in all organisations that the visitor may see."""
        visitor = visitor_of(request)
        organisations = visitor.visible_organisation_ids
        subject, before = _subject(request), _before(request)
        async with self._context.database.connection() as connection:
            found = await audit.list_entries(
                connection,
                before=before,
                limit=_LISTED,
                organisation_ids=organisations,
                subject=subject,
                request_id=_request_id(request),
            )
            effects = await _find_effects(connection, request, found)
        return self._context.renderer.page(
            request,
            "audit.html",
            entries=found,
            effects=effects,
            subject=subject or "",
            of_request=_request_id(request) or "",
            last=found[-1].id if len(found) == _LISTED else None,
            is_first=before is None,
            application=None,
        )

    async def list_of_application(self, request: web.Request) -> web.StreamResponse:
        """List the changes of an application."""
        application = await find_application(self._context, request)
        subject, before = _subject(request), _before(request)
        async with self._context.database.connection() as connection:
            found = await audit.list_entries(
                connection,
                before=before,
                limit=_LISTED,
                application_id=application.id,
                subject=subject,
                request_id=_request_id(request),
            )
            effects = await _find_effects(connection, request, found)
        return self._view.page(
            request,
            "audit.html",
            application,
            entries=found,
            effects=effects,
            subject=subject or "",
            of_request=_request_id(request) or "",
            last=found[-1].id if len(found) == _LISTED else None,
            is_first=before is None,
        )


async def _find_effects(connection: Connection, request: web.Request, entries: list[AuditEntry]) -> list[Effect]:
    """Return what the request that is looked for has caused; nothing where none is."""
    request_id = _request_id(request)
    return [] if request_id is None else await find_effects(connection, request_id, entries)


def _subject(request: web.Request) -> str | None:
    return request.query.get("subject", "").strip().lower()[:300] or None


def _before(request: web.Request) -> str | None:
    before = request.query.get("before") or None
    if before is not None and not _ENTRY_ID.fullmatch(before):
        raise web.HTTPNotFound
    return before


def _request_id(request: web.Request) -> str | None:
    """Return the id of the request to look for. Raises: HTTPNotFound for what is no such id."""
    request_id = request.query.get("request", "").strip() or None
    if request_id is not None and not is_request_id(request_id):
        raise web.HTTPNotFound
    return request_id
