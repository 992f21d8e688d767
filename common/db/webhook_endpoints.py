"""Webhook endpoints as rows: how an application's webhook fares, all its deliveries taken together.

Owns the SQL of ``webhook_endpoints``; the URL itself and its secrets are the application's
(`common.db.applications`).

Rules
    The row's lock comes before those of the application's deliveries.
    It fails without interruption while failures follow each other within `GAP_HOURS`; what was wrong last month says
    nothing of today.
    A disabled endpoint keeps its deliveries pending: enabled again, it gets them.
    A URL that is set, even the same one, is a word of the operator's that all is well: the endpoint begins anew.
"""

# ruff: noqa: S608 - what is formatted into SQL here are constants of this module

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from common.db.session import Connection

GAP_HOURS = 36
"""Longer than any pause between the attempts of one delivery, so that one event that fails is no interruption."""

MOST_HURRIED = 5_000

_COLUMNS = "failing_since, warned_at, disabled_at, last_error"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """`failing_since`: the first failure after the last success. `last_error` is the latest failure's."""

    failing_since: datetime | None = None
    warned_at: datetime | None = None
    disabled_at: datetime | None = None
    last_error: str | None = None


async def get_endpoint(connection: Connection, application_id: str) -> Endpoint:
    """One without a word against it, as long as nothing was ever sent."""
    row = await connection.fetchrow(
        f"select {_COLUMNS} from webhook_endpoints where application_id = $1",
        application_id,
    )
    return Endpoint(**row) if row else Endpoint()


async def list_endpoints(connection: Connection) -> dict[str, Endpoint]:
    """By application; those that were never sent anything are not in it."""
    rows = await connection.fetch(f"select application_id, {_COLUMNS} from webhook_endpoints")
    return {row["application_id"]: Endpoint(*list(row)[1:]) for row in rows}


async def note_success(connection: Connection, application_id: str) -> None:
    await connection.execute(
        "update webhook_endpoints set failing_since = null, warned_at = null, last_error = null"
        " where application_id = $1 and failing_since is not null",
        application_id,
    )


async def note_failure(connection: Connection, application_id: str, error: str) -> Endpoint:
    """Returns the endpoint as it now is, locked."""
    row = await connection.fetchrow(
        f"""
        update webhook_endpoints set last_error = $2, last_failed_at = clock_timestamp(),
            failing_since = case when goes_on then failing_since else clock_timestamp() end,
            warned_at = case when goes_on then warned_at end
        from (select application_id, last_failed_at > now() - make_interval(hours => {GAP_HOURS})
                and failing_since is not null as goes_on
            from webhook_endpoints where application_id = $1 for update) before
        where webhook_endpoints.application_id = before.application_id returning {_COLUMNS}
        """,
        application_id,
        error,
    )
    return Endpoint(**row) if row else Endpoint()


async def warn(connection: Connection, application_id: str) -> None:
    """Note that it will be disabled if this goes on."""
    await connection.execute(
        "update webhook_endpoints set warned_at = clock_timestamp() where application_id = $1", application_id
    )


async def disable(connection: Connection, application_id: str) -> None:
    """Send nothing more until `begin_anew`."""
    await connection.execute(
        "update webhook_endpoints set disabled_at = clock_timestamp() where application_id = $1", application_id
    )


async def begin_anew(connection: Connection, application_id: str) -> None:
    """Forget the failures, and send what is pending at once, with all its retries before it. (Of a backlog beyond
    `MOST_HURRIED`, the rest keeps its own times: one statement must not take too long.)"""
    await connection.execute(
        "update webhook_endpoints set failing_since = null, warned_at = null, disabled_at = null, last_error = null"
        " where application_id = $1",
        application_id,
    )
    await connection.execute(
        """
        update deliveries set due_at = now(), failures = 0 where event_id in (
            select event_id from deliveries
            where application_id = $1 and status = 'pending' and (due_at > now() or failures > 0)
            order by due_at limit $2)
        """,
        application_id,
        MOST_HURRIED,
    )
