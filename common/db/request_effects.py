"""What a request caused beyond the changes that the audit log has: of changes of the edges, orders, events, deliveries.

Owns no table. Rows name the request that caused them; orders and changes of the feed, which are found by their keys
only, are looked for at the subjects of the request's audit entries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Literal

from common.db.audit import AuditEntry
from common.db.session import Connection

MOST_EVENTS = 100
_DOMAIN_KEY_PREFIXES = ("power/", "secure/", "")
"""The beginnings of the feed's keys that a domain follows."""


@dataclass(frozen=True, slots=True)
class Effect:
    """A consequence of a request: `kind` is change, order, event or delivery.

    `state` is how it stands, `at` since when; None for a delivery that is under way.
    """

    kind: Literal["change", "order", "event", "delivery"]
    subject: str
    state: str
    at: datetime | None
    error: str | None = None


async def find_effects(connection: Connection, request_id: str, entries: Sequence[AuditEntry]) -> list[Effect]:
    """Return what the request caused, as far as it belongs to the applications of `entries`.

    `entries`: the audit entries of the request that may be seen.
    """
    subjects = list({entry.subject for entry in entries})
    applications = list({entry.application_id for entry in entries if entry.application_id is not None})
    rows = await connection.fetch(
        """
        select 'change' as kind, kind || ' ' || key as subject,
            'version ' || version || ' of shard ' || shard as state, changed_at as at, null as error
        from changes where kind = any(array['application', 'route', 'certificate', 'order', 'error_page'])
            and key = any($2) and request_id = $1
        union all
        select 'order', domain, state, coalesce(finished_at, requested_at), last_error
        from orders where domain = any($3) and application_id = any($4) and request_id = $1
        """,
        request_id,
        [prefix + subject for subject in subjects for prefix in _DOMAIN_KEY_PREFIXES],
        subjects,
        applications,
    )
    events = await connection.fetch(
        """
        select events.id, type, concat_ws('.', subdomain, domain) as name, events.created_at, status,
            settled_at, last_error
        from events left join deliveries on event_id = events.id
        where events.request_id = $1 and events.application_id = any($2) order by events.id limit $3
        """,
        request_id,
        applications,
        MOST_EVENTS,
    )
    found = [Effect(**row) for row in rows]
    for event in events:
        found.append(Effect("event", f"{event['id']} {event['name']}".rstrip(), event["type"], event["created_at"]))
        if event["status"] is not None:
            found.append(Effect("delivery", event["id"], event["status"], event["settled_at"], event["last_error"]))
    return found
