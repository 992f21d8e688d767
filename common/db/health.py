"""Whether Postgres can write, what time it has, and how its records stand to the time. For `frontage doctor`."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

import asyncpg

from common.db.session import Connection

_TRIAL_BYTES = 2 * 1024**2


async def data_directory(connection: Connection) -> str | None:
    """Return where Postgres keeps its data, if it runs on this machine and allows the question."""
    found: str | None = await connection.fetchval(
        "select setting from pg_settings where name = 'data_directory'"
        " and (inet_server_addr() is null or inet_server_addr() = inet_client_addr())"
    )
    return found


async def try_writing(connection: Connection) -> None:
    """Fill a temporary table with some megabytes, and roll back.

    Raises: `DatabaseUnavailable` when there is no room.
    """
    trial = connection.transaction()
    await trial.start()
    try:
        await connection.execute("create temporary table frontage_doctor (content text)")
        await connection.execute("alter table frontage_doctor alter content set storage external")
        await connection.execute("insert into frontage_doctor select repeat('x', $1)", _TRIAL_BYTES)
    except asyncpg.InsufficientPrivilegeError:
        return  # a role that may make no temporary tables
    finally:
        if not connection.is_closed():
            await trial.rollback()


@dataclass(frozen=True, slots=True)
class SessionUse:
    """The server's sessions: how many clients `may` have, and how many each application has, most first."""

    may: int
    used: dict[str, int]

    @property
    def total(self) -> int:
        """Return how many are used."""
        return sum(self.used.values())


async def read_sessions(connection: Connection) -> SessionUse:
    """Return how many sessions clients have on the server, and may have beside those reserved for superusers."""
    may: int = await connection.fetchval(
        "select current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int"
    )
    rows = await connection.fetch(
        "select coalesce(nullif(application_name, ''), usename::text) as name, count(*) as used from pg_stat_activity"
        " where usesysid is not null and coalesce(backend_type, 'client backend') = 'client backend'"
        " group by 1 order by 2 desc, 1"
    )
    return SessionUse(may, {row["name"]: row["used"] for row in rows})


async def read_clock(connection: Connection) -> datetime:
    """Return the time of the database server."""
    now: datetime = await connection.fetchval("select clock_timestamp()")
    return now


async def latest_record_at(connection: Connection) -> datetime | None:
    """Return the latest time at which something was recorded: no clock that is right shows an earlier one."""
    found: datetime | None = await connection.fetchval(
        "select greatest((select max(enrolled_at) from enrolments), (select max(created_at) from events))"
    )
    return found


async def has_domains(connection: Connection) -> bool:
    """Return whether there is a domain to serve, for which edges and monitors have to run."""
    found: bool = await connection.fetchval("select exists (select from domains)")
    return found
