"""Traffic of domains in intervals of 5 and 60 minutes, as edges report it. Owns the SQL of ``traffic``.

An edge writes through a function that runs with its owner's rights, and bounds how many rows a login adds to an
interval: a stolen login of an edge can make figures wrong, and cannot fill the database.
"""

from __future__ import annotations

from datetime import datetime, timedelta
from typing import Literal, NamedTuple, TypeAlias

import asyncpg

from common.db.session import Connection
from common.logs import get_logger
from common.traffic import TrafficReport, add_up

Minutes: TypeAlias = Literal[5, 60]

_LONGEST_REPORT_SECONDS = 5.0
"""How long a report may take, before its connection is given up."""

_log = get_logger("common.db.traffic")


class Point(NamedTuple):
    """The traffic of an interval that begins at `at`; `counts` as in `common.traffic`."""

    at: datetime
    counts: list[int]


async def write_report(connection: Connection, at: datetime, report: TrafficReport) -> None:
    """Add the report of an edge to the interval in which `at` lies.

    A report that this database does not take is dropped, and one whose answer is lost may be added twice: figures for
    charts are not worth a record of what was added.
    """
    try:
        await connection.execute(
            "select report_traffic($1, $2)", at, report.to_plain(), timeout=_LONGEST_REPORT_SECONDS
        )
    except (asyncpg.IntegrityConstraintViolationError, asyncpg.SyntaxOrAccessError, asyncpg.DataError) as error:
        _log.warning("traffic is not counted", error=str(error))


async def list_points(
    connection: Connection, application_id: str, domain: str, minutes: Minutes, since: timedelta
) -> list[Point]:
    """Return the intervals of the last `since` in which there was traffic, oldest first.

    `domain` is empty for all domains of the application.
    """
    rows = await connection.fetch(
        "select at, counts || http2_requests as counts from traffic"
        " where application_id = $1 and domain = $2 and minutes = $3 and at > now() - $4::interval order by at",
        application_id,
        domain,
        minutes,
        since,
    )
    by_time: dict[datetime, list[list[int]]] = {}
    for row in rows:
        by_time.setdefault(row["at"], []).append(row["counts"])
    return [Point(at, add_up(counts)) for at, counts in by_time.items()]
