"""The audit log as rows: every change that a request, a command or a user of the dashboard made.

Owns the SQL of ``audit``. A use case records its change once, in the transaction of the change, so that neither is
there without the other: in `api.services`, or, where the API, flows, batches and imports make the same change, in the
services that they share (`common.enrolment.changes`, `common.monitored_changes`). No query module records a change.
The actor is `common.actors.current_actor`; without one nothing is recorded.

Rules
    `before` and `after` hold only what differs; a change that changes nothing is not recorded
    no secret is recorded: a rotation is an action without values
    rows are never changed, and erased by age alone (`common.db.retention`)
    an entry sets `frontage.request_id` for its transaction: the change feed states it (0062_request_of_change.sql)

Functions that write need a transaction; the caller opens it.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from common.actors import Way, current_actor, earlier_request_ids
from common.db.session import Connection

KEPT_DAYS = 90

_LONGEST_TEXT = 300
_SCANNED = 5000
"""How many entries a filter without an index of its own looks through for one part."""
_COLUMNS = "id, at, way, actor, request_id, application_id, action, subject, before, after"
_AFTER_ALL = "aud_g"  # ids go on in hexadecimal

ReadState = Callable[[], Awaitable[Mapping[str, Any]]]


@dataclass(frozen=True, slots=True)
class AuditEntry:
    """A recorded change. `subject` is what was changed: a domain, an application's or a user's id."""

    id: str
    at: datetime
    way: Way
    actor: str
    request_id: str | None
    application_id: str | None
    action: str
    subject: str
    before: Mapping[str, Any] | None
    after: Mapping[str, Any] | None


async def record(
    connection: Connection,
    action: str,
    subject: str,
    *,
    application_id: str | None = None,
    organisation_id: str | None = None,
    before: Mapping[str, Any] | None = None,
    after: Mapping[str, Any] | None = None,
) -> None:
    """Record an action of the current actor; the organisation is the application's, where an application is given."""
    actor = current_actor()
    if actor is None:
        return
    await connection.execute(
        "insert into audit (way, actor, request_id, organisation_id, application_id, action, subject, before, after)"
        " values ($1, $2, nullif(set_config('frontage.request_id', coalesce($3, ''), true), ''),"
        " coalesce($4, (select organisation_id from applications where id = $5)), $5, $6, $7, $8, $9)",
        actor.way,
        actor.name,
        actor.request_id,
        organisation_id,
        application_id,
        action,
        subject,
        _shorten(before),
        _shorten(after),
    )


async def record_many(
    connection: Connection, action: str, after: Mapping[str, Mapping[str, Any]], *, application_id: str
) -> None:
    """Record one action of the current actor on several subjects of an application.

    `after` maps each subject to its new state.
    """
    actor = current_actor()
    if actor is None or not after:
        return
    await connection.execute(
        "insert into audit (way, actor, request_id, organisation_id, application_id, action, subject, after)"
        " select $1, $2, nullif(set_config('frontage.request_id', coalesce($3, ''), true), ''),"
        " (select organisation_id from applications where id = $4), $4, $5, subject, after"
        " from jsonb_to_recordset($6) as changes (subject text, after jsonb)",
        actor.way,
        actor.name,
        actor.request_id,
        application_id,
        action,
        [{"subject": subject, "after": _shorten(each)} for subject, each in after.items()],
    )


async def find_earlier(connection: Connection, action: str, subject: str | None = None) -> AuditEntry | None:
    """Return what an earlier attempt at the present request did, whose answer was lost (`earlier_request_ids`)."""
    attempts = earlier_request_ids()
    if not attempts:
        return None
    row = await connection.fetchrow(
        f"select {_COLUMNS} from audit where request_id = any($1) and action = $2"  # noqa: S608 - a constant
        " and ($3::text is null or subject = $3) order by id limit 1",
        list(attempts),
        action,
        subject,
    )
    return None if row is None else AuditEntry(**row)


@asynccontextmanager
async def recorded(
    connection: Connection, action: str, subject: str, read_state: ReadState, *, application_id: str
) -> AsyncIterator[None]:
    """Record how the block changes what `read_state` returns; nothing if that does not differ."""
    if current_actor() is None:
        yield
        return
    before = await read_state()
    yield
    await record_difference(connection, action, subject, before, await read_state(), application_id)


async def record_difference(
    connection: Connection,
    action: str,
    subject: str,
    before: Mapping[str, Any],
    after: Mapping[str, Any],
    application_id: str,
) -> None:
    """Record the fields in which `before` and `after` differ, if any do."""
    changed = [name for name in {**before, **after} if before.get(name) != after.get(name)]
    if changed:
        await record(
            connection,
            action,
            subject,
            application_id=application_id,
            before={name: before[name] for name in changed if name in before} or None,
            after={name: after[name] for name in changed if name in after} or None,
        )


async def list_part(
    connection: Connection,
    *,
    before: str | None,
    limit: int,
    application_id: str | None = None,
    organisation_ids: list[str] | None = None,
    subject: str | None = None,
    request_id: str | None = None,
    kind: str | None = None,
    actor: str | None = None,
    scanned: int = _SCANNED,
) -> tuple[list[AuditEntry], str | None]:
    """Return a part of the log as `list_entries` does, and the id that the next part is before; None at the end.

    `kind` is what the actions' names begin with, `actor` who made the changes. With one of these a part looks through
    `scanned` entries: it may hold fewer than `limit`, even none, while the log goes on.
    """
    source, values = _source(before, application_id, organisation_ids, subject, request_id)
    is_filtered = kind is not None or actor is not None
    values.append(scanned if is_filtered else limit)
    shown = "true"
    if is_filtered:
        place = len(values)
        shown = (
            f"(${place + 1}::text is null or starts_with(action, ${place + 1} || '.'))"
            f" and (${place + 2}::text is null or actor = ${place + 2})"
        )
    rows = await connection.fetch(
        f"select * from ({source}) scanned where {shown} order by id desc limit {limit:d}",  # noqa: S608
        *values,
        *((kind, actor) if is_filtered else ()),
    )
    found = [AuditEntry(**row) for row in rows]
    if len(found) == limit:
        return found, found[-1].id
    if not is_filtered:
        return found, None
    last = f"select id from ({source}) scanned order by id desc offset {scanned - 1:d} limit 1"  # noqa: S608
    following: str | None = await connection.fetchval(last, *values)
    return found, following


async def list_entries(
    connection: Connection,
    *,
    before: str | None,
    limit: int,
    application_id: str | None = None,
    organisation_ids: list[str] | None = None,
    subject: str | None = None,
) -> list[AuditEntry]:
    """Return at most `limit` entries that are older than the entry with the id `before` (None: all), newest first.

    The other arguments narrow them to an application, some organisations or a subject.
    """
    source, values = _source(before, application_id, organisation_ids, subject, None)
    return [AuditEntry(**row) for row in await connection.fetch(source, *values, limit)]


def _source(
    before: str | None,
    application_id: str | None,
    organisation_ids: list[str] | None,
    subject: str | None,
    request_id: str | None,
) -> tuple[str, list[object]]:
    """Return the statement of the newest entries, each read by an index, and its values but the last, their number."""
    conditions, values = ["id < $1"], [before or _AFTER_ALL]
    sources = "audit"
    for column, value in (("application_id", application_id), ("subject", subject), ("request_id", request_id)):
        if value is not None:
            values.append(value)
            conditions.append(f"{column} = ${len(values)}")
    where, given = " and ".join(conditions), [*values]
    if organisation_ids is not None:  # each one's newest, found in its index
        sources = (
            f"unnest(${len(values) + 1}::text[]) organisation cross join lateral (select * from audit"  # noqa: S608
            f" where organisation_id = organisation and {where} order by id desc limit ${len(values) + 2}) each_one"
        )
        given.append(organisation_ids)  # type: ignore[arg-type]
        where = "true"
    return (
        f"select {_COLUMNS} from {sources} where {where} order by id desc limit ${len(given) + 1}",  # noqa: S608
        list(given),
    )


def _shorten(values: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """Return the values with long texts cut: the log states what changed, and keeps no copy of it."""
    if values is None:
        return None
    return {name: _shorten_value(value) for name, value in values.items()}


def _shorten_value(value: Any) -> Any:
    """Return the value as the log stores it: texts of 300 characters, lists of 50 items at most, times in ISO 8601."""
    if isinstance(value, str) and len(value) > _LONGEST_TEXT:
        return f"{value[:_LONGEST_TEXT]}… ({len(value)} characters)"
    if isinstance(value, list | tuple) and len(value) > 50:
        return [*(_shorten_value(each) for each in value[:50]), f"… ({len(value)} in all)"]
    if isinstance(value, list | tuple):
        return [_shorten_value(each) for each in value]
    if isinstance(value, datetime):
        return value.isoformat()
    return value
