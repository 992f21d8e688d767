"""The audit log: of all that the visitor may see, or of one application; as a page and as a file."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

from aiohttp import web

from api.dashboard.access import find_application
from api.dashboard.application_view import ApplicationView
from api.dashboard.codes import KINDS, action, way
from api.dashboard.context import DashboardContext
from api.dashboard.tables import respond_with_table
from api.dashboard.visitors import visitor_of
from api.schemas.audit import AuditQuery, is_request_id
from api.services.audit import AuditPage, read_page
from common.db import applications
from common.db.audit import AuditEntry

_LISTED = 50
_READ_AT_ONCE = 1000
_MOST_EXPORTED = 10_000
_HEADS = ("when", "action", "what", "subject", "who", "way", "request id", "application", "before", "after")
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

    async def export_all(self, request: web.Request) -> web.StreamResponse:
        """Send the changes in all organisations that the visitor may see, as CSV."""
        return await self._export(request, organisation_ids=visitor_of(request).visible_organisation_ids)

    async def export_of_application(self, request: web.Request) -> web.StreamResponse:
        """Send the changes of an application, as CSV."""
        application = await find_application(self._context, request)
        return await self._export(request, application_id=application.id)

    async def _read(self, request: web.Request, **scope: Any) -> dict[str, Any]:
        query = _query(request, _LISTED)
        page = await read_page(self._context.database, query, **scope)
        wanted = {"subject": query.subject, "request": query.request_id, "kind": query.kind, "actor": query.actor}
        given = {name: value for name, value in wanted.items() if value}
        return {
            "entries": page.entries,
            "effects": page.caused,
            "names": await self._names(page),
            "kinds": KINDS,
            "wanted": wanted,
            "next_query": urlencode(given | {"before": page.next}) if page.next else "",
            "is_filtered": bool(given),
            "is_first": query.before is None,
        }

    async def _names(self, page: AuditPage) -> Mapping[str, str]:
        """Return the names of the applications that made changes by their tokens."""
        ids = {each.actor for each in page.entries if each.way == "api"}
        async with self._context.database.connection() as connection:
            return await applications.find_names(connection, ids)

    async def _export(self, request: web.Request, **scope: Any) -> web.Response:
        """Send what the filters find, newest first, at most `_MOST_EXPORTED` entries."""
        query, found = _query(request, _READ_AT_ONCE), list[AuditEntry]()
        for _ in range(_MOST_EXPORTED // _READ_AT_ONCE):
            page = await read_page(self._context.database, query, **scope)
            found += page.entries
            if page.next is None:
                break
            query = query._replace(before=page.next)
        return respond_with_table("audit-log", _HEADS, map(_row, found))


def _row(entry: AuditEntry) -> Sequence[str]:
    sides = [json.dumps(each, ensure_ascii=False) if each else "" for each in (entry.before, entry.after)]
    who = (entry.actor, way(entry.way), entry.request_id or "", entry.application_id or "")
    return (entry.at.isoformat(), entry.action, action(entry.action), entry.subject, *who, *sides)


def _query(request: web.Request, limit: int) -> AuditQuery:
    kind, actor = request.query.get("kind"), request.query.get("actor", "").strip()
    return AuditQuery(
        _before(request),
        limit,
        _subject(request),
        _request_id(request),
        kind if kind in KINDS else None,
        None if "\0" in actor else actor[:300] or None,
    )


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
