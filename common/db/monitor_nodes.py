"""Monitors that run, each under a short lease of its own. Owns the SQL of ``monitor_nodes``.

A lease states that the process lives and which of its work has stopped. A monitor makes a new node id at each start.
Ended and lapsed leases stay for a day, so that an operator sees which monitor ended and when.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from datetime import datetime

from common.db.session import Connection

LEASE_SECONDS = 5.0
RENEWAL_SECONDS = 1.0
DEPARTED_DAYS = 1

ISSUING = "awaited orders"
"""The work that obtains certificates for new domains."""
CHECKING = "checks"
"""The work that checks monitored domains."""
DELIVERING = "deliveries"
"""The work that sends webhooks."""


@dataclass(frozen=True, slots=True)
class MonitorNode:
    """A monitor with its lease.

    `issuer` names the authority: ``internal`` and its root's fingerprint, or ``acme`` and its directories. `stopped`
    names the work that has failed and is not running. `software_version` is empty for a monitor that does not report
    it.
    """

    node_id: str
    host: str
    issuer: str
    stopped: tuple[str, ...]
    started_at: datetime
    lease_until: datetime
    is_alive: bool
    software_version: str = ""

    @property
    def is_issuing(self) -> bool:
        """Whether it runs and obtains certificates for new domains."""
        return self.is_alive and ISSUING not in self.stopped


async def report(
    connection: Connection,
    node_id: str,
    host: str,
    issuer: str,
    stopped: Collection[str],
    software_version: str = "",
) -> None:
    """Extend the node's lease to `LEASE_SECONDS` from now."""
    await connection.execute(
        "insert into monitor_nodes (node_id, host, issuer, stopped, lease_until, software_version)"
        " values ($1, $2, $3, $4, clock_timestamp() + make_interval(secs => $5), $6)"
        " on conflict (node_id) do update set stopped = excluded.stopped, lease_until = excluded.lease_until",
        node_id,
        host,
        issuer,
        sorted(stopped),
        LEASE_SECONDS,
        software_version,
    )


async def end_lease(connection: Connection, node_id: str) -> None:
    """End the node's lease now; its row stays for a day."""
    await connection.execute(
        "update monitor_nodes set lease_until = least(lease_until, clock_timestamp()) where node_id = $1", node_id
    )


async def is_issuing(connection: Connection) -> bool:
    """Return whether a monitor runs that obtains certificates for new domains."""
    return await _is_done(connection, ISSUING)


async def is_checking(connection: Connection) -> bool:
    """Return whether a monitor runs that checks monitored domains."""
    return await _is_done(connection, CHECKING)


async def is_delivering(connection: Connection) -> bool:
    """Return whether a monitor runs that sends webhooks."""
    return await _is_done(connection, DELIVERING)


async def _is_done(connection: Connection, work: str) -> bool:
    """Return whether a monitor with a lease does this work."""
    found: bool = await connection.fetchval(
        "select exists (select from monitor_nodes where lease_until > clock_timestamp() and not $1 = any(stopped))",
        work,
    )
    return found


async def list_nodes(connection: Connection, *, most: int = 100) -> list[MonitorNode]:
    """Return the monitors of the last day, those that run first."""
    rows = await connection.fetch(
        "select node_id, host, issuer, stopped, started_at, lease_until, lease_until > clock_timestamp() as is_alive,"
        " coalesce(software_version, '') as software_version"
        " from monitor_nodes order by lease_until desc limit $1",
        most,
    )
    return [MonitorNode(**{**row, "stopped": tuple(row["stopped"])}) for row in rows]
