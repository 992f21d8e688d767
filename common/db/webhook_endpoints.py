"""Webhook endpoints as rows: how an application's webhook fares, and when it is served next.

Owns the SQL of ``webhook_endpoints``; the URL itself and its secrets are the application's
(`common.db.applications`), the deliveries are `common.db.deliveries`.

Rules
    An endpoint fails without interruption while failures follow each other within `GAP_HOURS`; what was wrong last
    month means nothing today.
    A failing endpoint rests before its next attempt (`_MOST_RESTS`), and gets one delivery at a time, as does one that
    has not answered yet. A slow endpoint is one whose latest attempt failed or took longer than the caller calls quick.
    A disabled endpoint keeps its deliveries pending: enabled again, it gets them.
    A URL that is set, even the same one, is a word of the operator's that all is well: the endpoint begins anew.

The due list
    ``due_at`` is never later than the moment at which a delivery of the endpoint can next be claimed; so the due list
    of all deliveries is as long as there are endpoints to serve. It may be too early: the claim that finds nothing
    moves it.
    Whatever makes a delivery claimable earlier calls `wake` in the same transaction. It keeps a KEY SHARE lock on the
    row, so that `common.db.deliveries.claim`, which moves ``due_at`` later only under FOR UPDATE, cannot overlook
    a delivery that is not committed yet.
    The row's lock comes before those of the application's deliveries.
"""

# ruff: noqa: S608 - what is formatted into SQL here are constants of this module

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from common.db.session import Connection

GAP_HOURS = 36
"""Longer than any pause between the attempts of one delivery, so that one event that fails is no interruption."""

MOST_MADE_DUE = 5_000

_MOST_RESTS = 4
"""A failing endpoint rests as long as the attempt took, times the failures in a row up to this: one that hangs keeps a
slot for a fifth of the time, one that refuses at once hardly rests."""

_COLUMNS = "failing_since, warned_at, disabled_at, last_error"


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The health of an application's webhook.

    `failing_since`: the first failure after the last success. `last_error` is the latest failure's.
    """

    failing_since: datetime | None = None
    warned_at: datetime | None = None
    disabled_at: datetime | None = None
    last_error: str | None = None


async def get_endpoint(connection: Connection, application_id: str) -> Endpoint:
    """Return the application's endpoint: a healthy one, as long as nothing was ever sent."""
    row = await connection.fetchrow(
        f"select {_COLUMNS} from webhook_endpoints where application_id = $1",
        application_id,
    )
    return Endpoint(**row) if row else Endpoint()


async def list_endpoints(connection: Connection) -> dict[str, Endpoint]:
    """Return the endpoints by application, of those to which something was sent."""
    rows = await connection.fetch(f"select application_id, {_COLUMNS} from webhook_endpoints")
    return {row["application_id"]: Endpoint(*list(row)[1:]) for row in rows}


async def wake(connection: Connection, application_id: str) -> None:
    """Make the endpoint due, because a delivery becomes claimable with this transaction.

    For deliveries that are added, a trigger of the table does it.
    """
    await connection.execute("select wake_endpoint($1)", application_id)


async def note_success(connection: Connection, application_id: str, *, is_slow: bool = False) -> None:
    """Record that the endpoint took a delivery. Call it before the delivery is settled."""
    if await connection.fetchval(
        "select failing_since is not null or answered_at is null or is_slow <> $2 or due_at is null"
        " or due_at > clock_timestamp() from webhook_endpoints where application_id = $1 for key share",
        application_id,
        is_slow,
    ):
        await connection.execute(
            "update webhook_endpoints set failing_since = null, warned_at = null, last_error = null, failures = 0,"
            " resumes_at = null, answered_at = clock_timestamp(), is_slow = $2,"
            " due_at = least(due_at, clock_timestamp()) where application_id = $1",
            application_id,
            is_slow,
        )


async def note_failure(connection: Connection, application_id: str, error: str, *, seconds: float = 0.0) -> Endpoint:
    """Record a failed attempt that took `seconds`, and return the endpoint as it now is, locked."""
    row = await connection.fetchrow(
        f"""
        update webhook_endpoints set last_error = $2, last_failed_at = clock_timestamp(), is_slow = true,
            failing_since = case when goes_on then failing_since else clock_timestamp() end,
            warned_at = case when goes_on then warned_at end,
            failures = before.failures + 1,
            resumes_at = clock_timestamp() + make_interval(secs => $3 * least(before.failures + 1, {_MOST_RESTS})),
            due_at = least(due_at, clock_timestamp())
        from (select application_id, last_failed_at > now() - make_interval(hours => {GAP_HOURS})
                and failing_since is not null as goes_on, failures
            from webhook_endpoints where application_id = $1 for no key update) before
        where webhook_endpoints.application_id = before.application_id returning {_COLUMNS}
        """,
        application_id,
        error,
        seconds,
    )
    return Endpoint(**row) if row else Endpoint()


async def warn(connection: Connection, application_id: str) -> None:
    """Note that the owner was warned: the endpoint will be disabled if it goes on to fail."""
    await connection.execute(
        "update webhook_endpoints set warned_at = clock_timestamp() where application_id = $1", application_id
    )


async def disable(connection: Connection, application_id: str) -> None:
    """Send nothing more until `reset`."""
    await connection.execute(
        "update webhook_endpoints set disabled_at = clock_timestamp(), due_at = null where application_id = $1",
        application_id,
    )


async def reset(connection: Connection, application_id: str) -> int:
    """Forget the endpoint's failures, and send what is pending at once, with all its retries before it.

    Of a backlog beyond `MOST_MADE_DUE`, the rest keeps its own times: one statement must not take too long. Returns how
    many deliveries had waited.
    """
    await connection.execute(
        "update webhook_endpoints set failing_since = null, warned_at = null, disabled_at = null, last_error = null,"
        " failures = 0, resumes_at = null, answered_at = null, is_slow = false, due_at = clock_timestamp()"
        " where application_id = $1",
        application_id,
    )
    rows = await connection.fetch(
        """
        update deliveries set due_at = now(), failures = 0 where event_id in (
            select event_id from deliveries
            where application_id = $1 and status = 'pending' and (due_at > now() or failures > 0)
            order by due_at limit $2) returning event_id
        """,
        application_id,
        MOST_MADE_DUE,
    )
    return len(rows)
