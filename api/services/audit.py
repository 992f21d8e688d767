"""The audit log as the API, the dashboard and the command line read it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from api.schemas.audit import AuditQuery
from common.db import audit
from common.db.audit import AuditEntry
from common.db.pool import Database
from common.db.request_effects import Effect, find_effects


class AuditPage(NamedTuple):
    """Entries, newest first; `caused` is of the one request asked for, and `next` where to go on, None at the end."""

    entries: list[AuditEntry]
    caused: list[Effect]
    next: str | None


async def read_page(
    database: Database,
    query: AuditQuery,
    *,
    application_id: str | None = None,
    organisation_ids: Sequence[str] | None = None,
) -> AuditPage:
    """Read a page: of an application, of some organisations, or of all that is recorded."""
    async with database.connection() as connection:
        found, following = await audit.list_part(
            connection,
            before=query.before,
            limit=query.limit,
            application_id=application_id,
            organisation_ids=None if organisation_ids is None else list(organisation_ids),
            subject=query.subject,
            request_id=query.request_id,
            kind=query.kind,
            actor=query.actor,
        )
        caused = [] if query.request_id is None else await find_effects(connection, query.request_id, found)
    return AuditPage(found, caused, following)
