"""Answers of requests with an ``Idempotency-Key``: owns the SQL of ``idempotent_requests``.

Rules
    the first request under a key runs; one that comes while it runs is refused, one that comes later gets its answer
    a key holds for `KEPT_HOURS`, and a request whose process died stops running after `LONGEST_SECONDS`: another one
        may run then, and what the first one still writes is written nowhere
    a request that was refused leaves nothing; one that failed for a reason of ours leaves no answer, and may be sent
        again: its id stays, since the database may have committed what it did (`common.actors.earlier_request_ids`)
    ``application_id`` holds the id of the application that the request is about; of a request that is about none, the
        id of the user whose API key opened it
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime
from enum import Enum

from common.db.session import Connection

KEPT_HOURS = 24
LONGEST_SECONDS = 120
_MOST_ATTEMPTS = 50  # whose ids are kept: the newest


class KeyConflict(Enum):
    """The reason why a request under a key is not to run."""

    RUNNING = "running"  # another request under this key runs
    OTHER = "other"  # the key was used for another body


@dataclass(frozen=True, slots=True)
class KeyHold:
    """The right of a request to run: it holds its key from `started_at`.

    `earlier`: the ids of the requests before it that had the same key and body, and left no answer.
    """

    tenant: str
    key: bytes
    started_at: datetime
    earlier: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """The answer of a request that has run, for each repetition."""

    status: int
    body: bytes


async def begin(
    connection: Connection, application_id: str, key: bytes, request: bytes, request_id: str
) -> KeyHold | KeyConflict | KeptAnswer:
    """Start a request under `key`, or return why it is not to run, or the answer that it had.

    `request` is a digest of its body.
    """
    begun = await connection.fetchrow(
        "insert into idempotent_requests as kept (application_id, key, request, request_ids)"
        " values ($1, $2, $5, array[$6])"
        " on conflict (application_id, key) do update set started_at = now(), request = $5, status = null, body = null,"
        " request_ids = array[$6] || case when kept.status is null and kept.request = $5"
        " and kept.started_at > now() - make_interval(hours => $3) then kept.request_ids[:$7 - 1] else '{}' end"
        " where kept.started_at < now() - make_interval(hours => $3)"
        " or kept.status is null and kept.started_at < now() - make_interval(secs => $4)"
        " returning started_at, request_ids",
        application_id,
        key,
        KEPT_HOURS,
        LONGEST_SECONDS,
        request,
        request_id,
        _MOST_ATTEMPTS,
    )
    if begun is not None:
        return KeyHold(application_id, key, begun["started_at"], tuple(begun["request_ids"][1:]))
    row = await connection.fetchrow(
        "select request, status, body from idempotent_requests where application_id = $1 and key = $2",
        application_id,
        key,
    )
    if row is not None and row["request"] != request:
        return KeyConflict.OTHER
    if row is None or row["status"] is None:
        return KeyConflict.RUNNING
    return KeptAnswer(row["status"], row["body"])


async def finish(connection: Connection, hold: KeyHold, answer: KeptAnswer) -> None:
    """Keep the answer for those who send the request again."""
    await connection.execute(
        "update idempotent_requests set status = $4, body = $5"
        " where application_id = $1 and key = $2 and started_at = $3",
        hold.tenant,
        hold.key,
        hold.started_at,
        answer.status,
        answer.body,
    )


async def free(connection: Connection, hold: KeyHold) -> None:
    """Free the key of a request whose end is not known, so that it may run again."""
    await connection.execute(
        "update idempotent_requests set started_at = now() - make_interval(secs => $4)"
        " where application_id = $1 and key = $2 and started_at = $3",
        hold.tenant,
        hold.key,
        hold.started_at,
        LONGEST_SECONDS + 1,
    )


async def forget(connection: Connection, hold: KeyHold) -> None:
    """Free the key of a request that did nothing."""
    await connection.execute(
        "delete from idempotent_requests where application_id = $1 and key = $2 and started_at = $3",
        hold.tenant,
        hold.key,
        hold.started_at,
    )
