"""The audit log: of all that the visitor may see, or of one application."""

from __future__ import annotations

import re
from typing import Any

from aiohttp import web

from api.dashboard.access import find_application
from api.dashboard.application_view import ApplicationView
from api.dashboard.context import DashboardContext
from api.dashboard.visitors import visitor_of
from api.schemas.audit import AuditQuery, is_request_id
from api.services.audit import read_page

_LISTED = 50
_ENTRY_ID = re.compile(r"aud_[0-9a-f]{34}")


class AuditPages:
    """The log of changes. One instance per process."""

    def __init__(self, context: DashboardContext) -> None:
        self._context = context
        self._view = ApplicationView(context)

    async def list_all(self, request: web.Request) -> web.StreamResponse:
        """List the changes in all organisations that the visitor may see."""
        organisations = visitor_of(request).visible_organisation_ids
        shown = await self._read(request, organisation_ids=organisations)
        return self._context.renderer.page(request, "audit.html", application=None, **shown)

    async def list_of_application(self, request: web.Request) -> web.StreamResponse:
        """List the changes of an application."""
        application = await find_application(self._context, request)
        shown = await self._read(request, application_id=application.id)
        return self._view.page(request, "audit.html", application, **shown)

    async def _read(
        self, request: web.Request, *, application_id: str | None = None, organisation_ids: list[str] | None = None
    ) -> dict[str, Any]:
        query = AuditQuery(_before(request), _LISTED, _subject(request), _request_id(request))
        page = await read_page(
            self._context.database, query, application_id=application_id, organisation_ids=organisation_ids
        )
        return {
            "entries": page.entries,
            "effects": page.caused,
            "subject": query.subject or "",
            "of_request": query.request_id or "",
            "last": page.next,
            "is_first": query.before is None,
        }


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
