"""The log of changes."""

from __future__ import annotations

from typing import Final

from api.answers.audit import AuditEntries
from api.handlers.audit import AuditHandler
from api.operations.operation import Operation, Query
from api.operations.parameters import TEXT, back_in_time

OPERATIONS: Final[tuple[Operation[AuditHandler], ...]] = (
    Operation(
        "GET",
        "/audit",
        AuditHandler.get,
        "getAudit",
        "Audit",
        "List every change of the application, the newest first: who, by which way, from what to what",
        AuditEntries,
        queries=(
            *back_in_time({"type": "string", "pattern": "^aud_[0-9a-f]{34}$"}),
            Query("actor", TEXT, "Only by this one, in full: a user's address, an application's id."),
            Query("kind", TEXT, "Only actions whose name begins so, such as `domain`, `webhook`, `application`."),
            Query("request_id", {"type": "string", "pattern": "^[0-9a-f]{16}$"}, "Only what this request changed."),
            Query("subject", TEXT, "Only of what was changed, in full: a domain, an id, a user's address."),
        ),
        errors=(400,),
    ),
)
