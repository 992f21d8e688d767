"""Answers of requests with an ``Idempotency-Key``: owns the SQL of ``idempotent_requests``.

Rules
    the first request under a key runs; one that comes while it runs is refused, one that comes later gets its answer
    a key holds for `KEPT_HOURS`, and a request whose process died stops running after `LONGEST_SECONDS`: another one
        may run then, and what the first one still writes is written nowhere
    a request that failed for a reason of ours leaves no answer: it may be sent again
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


class KeyConflict(Enum):
    """The reason why a request under a key is not to run."""

    RUNNING = "running"  # another request under this key runs
    OTHER = "other"  # the key was used for another body


@dataclass(frozen=True, slots=True)
class KeyHold:
    """The right of a request to run: it holds its key from `started_at`."""

    tenant: str
    key: bytes
    started_at: datetime


@dataclass(frozen=True, slots=True)
class KeptAnswer:
    """The answer of a request that has run, for each repetition."""

    status: int
    body: bytes


async def begin(
    connection: Connection, application_id: str, key: bytes, request: bytes
) -> KeyHold | KeyConflict | KeptAnswer:
    """Start a request under `key`, or return why it is not to run, or the answer that it had.

    `request` is a digest of its body.
    """
    started_at = await connection.fetchval(
        "insert into idempotent_requests as kept (application_id, key, request) values ($1, $2, $5)"
        " on conflict (application_id, key) do update set started_at = now(), request = $5, status = null, body = null"
        " where kept.started_at < now() - make_interval(hours => $3)"
        " or kept.status is null and kept.started_at < now() - make_interval(secs => $4)"
        " returning started_at",
        application_id,
        key,
        KEPT_HOURS,
        LONGEST_SECONDS,
        request,
    )
    if started_at is not None:
        return KeyHold(application_id, key, started_at)
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


async def forget(connection: Connection, hold: KeyHold) -> None:
    """Free the key, so that the request may run again."""
    await connection.execute(
        "delete from idempotent_requests where application_id = $1 and key = $2 and started_at = $3",
        hold.tenant,
        hold.key,
        hold.started_at,
    )
