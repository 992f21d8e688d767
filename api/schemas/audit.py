"""The audit log's query."""

from __future__ import annotations

import re
from typing import NamedTuple

from multidict import MultiMapping

from api.errors import Refused, invalid_parameter
from api.schemas.queries import DEFAULT_SIZE, LARGEST_SIZE, cursor_name, parse_integer, parse_optional_text

_REQUEST_ID = re.compile(r"[0-9a-f]{16}")
_KIND = re.compile(r"[a-z_]{1,40}")
_ENTRY_ID = re.compile(r"aud_[0-9a-f]{34}")


class AuditQuery(NamedTuple):
    """Which entries of the audit log are listed.

    `before`: only entries older than this one. `subject`: what was changed, in full. `request_id`: the request that
    made the change. `kind`: what the action's name begins with, such as ``domain``. `actor`: who made it, in full.
    """

    before: str | None
    limit: int
    subject: str | None
    request_id: str | None
    kind: str | None = None
    actor: str | None = None


def parse_audit_query(query: MultiMapping[str]) -> AuditQuery:
    """Read the query of a list of entries. Raises: `Refused`."""
    name = cursor_name(query)
    before = parse_optional_text(query, name)
    if before is not None and not _ENTRY_ID.fullmatch(before):
        raise Refused(invalid_parameter(name), hint="expected the id of an entry")
    limit = parse_integer(query, "limit", default=DEFAULT_SIZE, least=1, most=LARGEST_SIZE)
    subject = parse_optional_text(query, "subject")
    if subject is not None and "\0" in subject:
        raise Refused(invalid_parameter("subject"))
    request_id = parse_optional_text(query, "request_id")
    if request_id is not None and not is_request_id(request_id):
        raise Refused(invalid_parameter("request_id"), hint="expected the X-Request-Id of an answer")
    kind = parse_optional_text(query, "kind")
    if kind is not None and not is_kind(kind):
        raise Refused(invalid_parameter("kind"), hint="expected what an action's name begins with, such as domain")
    actor = parse_optional_text(query, "actor")
    if actor is not None and "\0" in actor:
        raise Refused(invalid_parameter("actor"))
    return AuditQuery(before, limit, subject, request_id, kind, actor)


def is_kind(text: str) -> bool:
    """Return whether a text is what the name of an action may begin with, before its dot."""
    return _KIND.fullmatch(text) is not None


def is_request_id(text: str) -> bool:
    """Return whether a text is the id of a request."""
    return _REQUEST_ID.fullmatch(text) is not None
