"""The audit log, and what a request caused."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

from typing_extensions import TypedDict

from api.answers.lists import ListOf, list_of
from api.services.audit import AuditPage
from common.db import audit
from common.db.request_effects import Effect


class AuditEntry(TypedDict):
    """A change: when, by whom, by which way, from what to what."""

    id: str
    at: datetime
    way: Literal["api", "dashboard", "command", "monitor"]
    actor: str
    request_id: str | None
    action: str
    subject: str
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None


class RequestEffect(TypedDict):
    """What a request caused, and how it stands: a change of the edges, an order, an event, a delivery."""

    kind: Literal["change", "order", "event", "delivery"]
    subject: str
    state: str
    at: datetime | None
    error: str | None


class AuditEntries(ListOf[AuditEntry]):
    """`caused` is empty unless one `request_id` is asked for."""

    caused: list[RequestEffect]
    entries: list[AuditEntry]
    """Deprecated: the name of `items` in 1.0.0."""


def audit_page(page: AuditPage, limit: int) -> AuditEntries:
    """Render a part of the log."""
    items = list(map(audit_entry, page.entries))
    return {**list_of(items, page.next, limit), "caused": list(map(request_effect, page.caused)), "entries": items}


def audit_entry(entry: audit.AuditEntry) -> AuditEntry:
    """Render an entry of the log."""
    return {
        "id": entry.id,
        "at": entry.at,
        "way": entry.way,
        "actor": entry.actor,
        "request_id": entry.request_id,
        "action": entry.action,
        "subject": entry.subject,
        "before": entry.before,
        "after": entry.after,
    }


def request_effect(effect: Effect) -> RequestEffect:
    """Render what a request caused."""
    return {
        "kind": effect.kind,
        "subject": effect.subject,
        "state": effect.state,
        "at": effect.at,
        "error": effect.error,
    }
