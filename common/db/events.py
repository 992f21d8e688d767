"""Events as rows: what happened, written once, in the transaction that made it happen.

Owns the SQL of ``events`` and ``event_sequences``; `common.db.deliveries` owns what becomes of them.

Rules
    A domain's events are numbered from 1 without gaps. Recording one locks the domain's number until the
    transaction ends, so that the events of a domain become visible in their order.
    ``domain.record_restored`` supersedes the domain's ``domain.record_missing`` that still are on their way.
    An application without a webhook URL has events, and no deliveries.
    ``request_id`` is the request that caused the event, by itself or through the order that it made.
    An event of a domain has the notes that its application keeps of the domain (``metadata``), if there are any.
    An event of an application for tests is marked (``test``).
"""

# ruff: noqa: S608 - what is formatted into SQL here are constants of this module

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal, TypeAlias

from asyncpg import Record

from common.actors import current_request_id
from common.db import deliveries
from common.db.paging import find_page
from common.db.session import Connection

EventType: TypeAlias = Literal[
    "domain.record_missing",
    "domain.record_restored",
    "domain.secure",
    "domain.power",
    "domain.added",
    "domain.propagation.timeout",
    "domain.flow.completed",
    "domain.flow.undone",
    "domain.origin_failing",
    "domain.origin_recovered",
    "domain.certificate_expiring",
    "domain.prepared",
    "domain.renewal_at_risk",
    "webhook.test",
]
KEPT_DAYS = 30
"""How long an event is kept, with its deliveries: long past the last attempt to send it. What a disabled webhook has
not been sent by then is too old to act on."""
TEST: EventType = "webhook.test"

_MARK = """(select case when is_test then '{"test": true}' else '{}' end::jsonb from applications where id = $1)"""


@dataclass(frozen=True, slots=True)
class NewEvent:
    """An event to record: `domain` is the registrable name and `subdomain` what stands before it, if anything.

    `fields` are the payload's other fields: ``user_id, data, connect_link`` of a missing or restored record,
    ``secure_status`` or ``power_status`` and ``reason`` of a certificate. No domain: about the application.
    """

    application_id: str
    type: EventType
    domain: str | None
    subdomain: str | None
    fields: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Event:
    """A recorded event. `delivery` is its delivery's status, if it has one."""

    id: str
    type: EventType
    application_id: str
    domain: str | None
    subdomain: str | None
    sequence: int | None
    fields: Mapping[str, Any]
    created_at: datetime
    delivery: deliveries.Status | None
    request_id: str | None = None

    @property
    def payload(self) -> dict[str, Any]:
        """Return the webhook's body."""
        return payload_of(
            self.id,
            self.type,
            self.application_id,
            self.created_at,
            self.domain,
            self.subdomain,
            self.sequence,
            self.fields,
        )


def payload_of(
    event_id: str,
    event_type: str,
    application_id: str,
    occurred_at: datetime,
    domain: str | None,
    subdomain: str | None,
    sequence: int | None,
    fields: Mapping[str, Any],
) -> dict[str, Any]:
    """Return the webhook's body: what every event has, and the event's own fields."""
    about = {"domain": domain, "subdomain": subdomain, "sequence": sequence} if domain is not None else {}
    every = {
        "id": event_id,
        "type": event_type,
        "application_id": application_id,
        "occurred_at": occurred_at.astimezone(UTC).isoformat(timespec="milliseconds"),
    }
    return every | about | dict(fields)


async def record(connection: Connection, event: NewEvent) -> str:
    """Write the event and its delivery in the caller's transaction, and return the event's id.

    The domain's other events wait for the end of the transaction: record late in it.
    """
    event_id = await (_insert(connection, event) if event.domain is None else _insert_numbered(connection, event))
    await deliveries.add(connection, event_id, event.application_id)  # locks the endpoint: before its deliveries
    if event.type == "domain.record_restored":
        await deliveries.supersede(
            connection, event_id, event.application_id, event.domain, event.subdomain, "domain.record_missing"
        )
    return event_id


async def _insert(connection: Connection, event: NewEvent) -> str:
    """Insert an event about the application, without a number."""
    event_id: str = await connection.fetchval(
        "insert into events (application_id, type, fields, request_id)"
        f" values ($1, $2, $3 || {_MARK}, $4) returning id",
        event.application_id,
        event.type,
        event.fields,
        current_request_id(),
    )
    return event_id


async def _insert_numbered(connection: Connection, event: NewEvent) -> str:
    """Insert an event of a domain with the domain's next number."""
    event_id: str = await connection.fetchval(
        f"""
        with numbered as (
            insert into event_sequences as given (application_id, domain, subdomain) values ($1, $3, coalesce($4, ''))
            on conflict (application_id, domain, subdomain) do update set last = given.last + 1
            returning last
        )
        insert into events (application_id, type, domain, subdomain, sequence, fields, request_id)
        select $1, $2, $3, $4, last, coalesce((select jsonb_build_object('metadata', metadata) from domains
            where domain = monitored_name($3, $4) and application_id = $1 and metadata is not null
            order by $2 = 'domain.' || product desc limit 1), '{{}}') || $5 || {_MARK}, $6
        from numbered returning id
        """,
        event.application_id,
        event.type,
        event.domain,
        event.subdomain,
        event.fields,
        current_request_id(),
    )
    return event_id


async def list_events(
    connection: Connection,
    application_id: str,
    *,
    before: str | None,
    limit: int,
    event_type: str | None = None,
    domain: str | None = None,
) -> list[Event]:
    """Return the application's events, newest first: those older than the event `before`."""
    narrower = {"domain": domain} if domain else {"type": event_type} if event_type else {}
    filters = {"type": event_type if domain else None}
    page = find_page(
        {"events.application_id": application_id} | narrower, "events.id", before=before, limit=limit, filters=filters
    )
    rows = await connection.fetch(
        f"""
        select events.id, type, events.application_id, domain, subdomain, sequence, fields, events.created_at,
            status as delivery, events.request_id
        from events left join deliveries on event_id = events.id
        {page.clause}
        """,
        *page.values,
    )
    return [_event(row) for row in rows]


async def get_event(connection: Connection, application_id: str, event_id: str) -> Event | None:
    """Return the application's event with this id, or None."""
    row = await connection.fetchrow(
        "select events.id, type, events.application_id, domain, subdomain, sequence, fields, events.created_at,"
        " status as delivery, events.request_id"
        " from events left join deliveries on event_id = events.id"
        " where events.id = $1 and events.application_id = $2",
        event_id,
        application_id,
    )
    return _event(row) if row else None


async def has_event(connection: Connection, application_id: str, event_id: str) -> bool:
    """Return whether the application has an event with this id."""
    return bool(
        await connection.fetchval(
            "select exists (select from events where id = $1 and application_id = $2)", event_id, application_id
        )
    )


def _event(row: Record) -> Event:
    return Event(**row)
