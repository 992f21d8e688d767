"""Enrolments and requested renewals as rows, which the limits of 24 hours count. Owns the SQL of ``enrolments``.

A row outlives its domain: a domain that is deleted and enrolled again meets the same limits.
"""

# ruff: noqa: S608 - what is formatted into SQL here is a constant of this module

from __future__ import annotations

from typing import Literal, TypeAlias

from common.db.session import Connection

Action: TypeAlias = Literal["power", "secure", "renewal"]


# An application's repetitions of an action in 24 hours: its first time is none.
_REPEATED = (
    "from enrolments e where domain = $1 and product = $2 and application_id = $3"
    " and enrolled_at > now() - interval '24 hours' and exists (select from enrolments earlier"
    "  where earlier.domain = $1 and earlier.product = $2 and earlier.application_id = $3"
    "  and earlier.enrolled_at < e.enrolled_at)"
)


async def record_again(connection: Connection, domain: str, action: Action, application_id: str, *, most: int) -> bool:
    """Record the action, unless the application has repeated it `most` times in 24 hours.

    Its first time is not counted. Returns whether it is recorded.
    """
    status = await connection.execute(
        "insert into enrolments (domain, product, application_id, enrolled_at) select $1, $2, $3, clock_timestamp()"
        f" where (select count(*) {_REPEATED}) < $4",
        domain,
        action,
        application_id,
        most,
    )
    return status == "INSERT 0 1"


async def seconds_until_again(
    connection: Connection, domain: str, action: Action, application_id: str, *, most: int
) -> float:
    """Return after how many seconds the application may repeat the action, of which it has done `most` already."""
    seconds: float | None = await connection.fetchval(
        "select extract(epoch from enrolled_at + interval '24 hours' - now())::float8"
        f" {_REPEATED} order by enrolled_at desc offset $4 - 1 limit 1",
        domain,
        action,
        application_id,
        most,
    )
    return seconds or 0.0


async def count(connection: Connection, domain: str, action: Action, application_id: str) -> int:
    """Return how often the application took the action in 24 hours."""
    count: int = await connection.fetchval(
        "select count(*) from enrolments where domain = $1 and product = $2 and application_id = $3"
        " and enrolled_at > now() - interval '24 hours'",
        domain,
        action,
        application_id,
    )
    return count


async def record(connection: Connection, domain: str, action: Action, application_id: str) -> None:
    """Record the action, whatever the limit."""
    await connection.execute(
        "insert into enrolments (domain, product, application_id, enrolled_at) values ($1, $2, $3, clock_timestamp())",
        domain,
        action,
        application_id,
    )
