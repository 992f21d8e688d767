"""The edges that serve, each under a short lease of its own: which version has reached whom.

Writing here moves no version of the feed, and is not worth a disk flush: a lease that is lost in a crash would have
ended by then.
"""

from __future__ import annotations

from common.db.session import Connection

LEASE_SECONDS = 3.0
DEPARTED_DAYS = 1
"""A lapsed lease counts nowhere; for a day, an operator sees who has gone."""


async def report(connection: Connection, node_id: str, identity: str, version: int) -> None:
    """This node serves what the feed of that identity said up to `version`; true for `LEASE_SECONDS`."""
    await connection.execute(
        "insert into edge_nodes (node_id, feed_identity, version, lease_until)"
        " values ($1, $2, $3, clock_timestamp() + make_interval(secs => $4))"
        " on conflict (node_id) do update set feed_identity = excluded.feed_identity, version = excluded.version,"
        " lease_until = excluded.lease_until",
        node_id,
        identity,
        version,
        LEASE_SECONDS,
    )


async def end_lease(connection: Connection, node_id: str) -> None:
    """This node serves no more."""
    await connection.execute("delete from edge_nodes where node_id = $1", node_id)


async def nodes_behind(connection: Connection, identity: str, version: int) -> list[str]:
    """Serving nodes that have not applied that version of the feed of that identity (`feed.read_head`). A version is
    live when there are none. A node ahead of the feed serves a history that was rolled back, and counts as behind."""
    rows = await connection.fetch(
        "select node_id from edge_nodes where lease_until > clock_timestamp()"
        " and (feed_identity <> $1 or version < $2 or version > (select version from feed)) order by node_id",
        identity,
        version,
    )
    return [row["node_id"] for row in rows]


async def flush_lazily(connection: Connection) -> None:
    """Let this session's commits return before they are on disk."""
    await connection.execute("set synchronous_commit = off")
