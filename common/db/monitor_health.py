"""The health of the checks as they report it. Owns the SQL of ``monitor_health``, a table of one row."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, timedelta

from common.db.session import Connection

STALE_AFTER = timedelta(seconds=60)
"""A monitor that checks records its health several times within this; longer silence means that none checks."""


@dataclass(frozen=True, slots=True)
class MonitorHealth:
    """The health of the checks. `executed_at` is None before the first check."""

    is_healthy: bool
    reason: str | None
    executed_at: datetime | None


async def record(connection: Connection, *, is_healthy: bool, reason: str | None = None) -> None:
    """Record the health that a monitor has just measured; the last one counts."""
    await connection.execute(
        "update monitor_health set is_healthy = $1, reason = $2, executed_at = clock_timestamp()", is_healthy, reason
    )


async def read(connection: Connection) -> MonitorHealth:
    """Return the health of the checks as last recorded; unhealthy when no monitor has recorded it for `STALE_AFTER`."""
    row = await connection.fetchrow(
        "select is_healthy, reason, executed_at, coalesce(executed_at < now() - $1::interval, true) as is_stale"
        " from monitor_health",
        STALE_AFTER,
    )
    assert row is not None, "the table has its one row from its migration on"
    if row["is_stale"] and row["executed_at"] is not None:
        return MonitorHealth(False, "no monitor has looked lately", row["executed_at"])
    return MonitorHealth(row["is_healthy"] and not row["is_stale"], row["reason"], row["executed_at"])
