"""Edges that run, each under a short lease of its own: the version that each has applied, and whether it can serve.

Writing here moves no version of the feed, and is not worth a disk flush: a lease that is lost in a crash would have
ended by then. Owns the SQL of ``edge_nodes``.

A lease belongs to the database login that reported it, and no other login can change or end it. A node that reports
under another login has another lease, and the one before lapses.

States
    serving     serves, and applies each change
    held        serves what it last knew: a copy that removes many routes waits for the operator
    stuck       serves what it last knew: it cannot write its replica, for instance because its disk is full
    unusable    cannot serve: its master key does not open this database's certificates
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal, TypeAlias, get_args

from asyncpg import Record

from common.db import monitor_nodes
from common.db.session import Connection
from common.origin_faults import FailingOrigin, OriginFault, OriginIdentity

LEASE_SECONDS = 3.0
DEPARTED_DAYS = 1
"""A lapsed lease counts nowhere; for a day, or until it is forgotten, an operator sees which edge has gone."""
LOST_SECONDS = 3600.0
"""For so long after its lease has lapsed, an edge counts as lost: an alert fires, and what it serves is unknown. After
that an operator knows, and where edges come and go by themselves, another has taken its place."""

COPY_REMEDY: Final = "stop one of them, remove the directory `replica` in its state directory, and start it again"
"""What an operator does about edges with one node id."""

EdgeState: TypeAlias = Literal["serving", "held", "stuck", "unusable"]


@dataclass(frozen=True, slots=True)
class Condition:
    """The state an edge reports. `reason` is for the operator: what is wrong, and what to do."""

    state: EdgeState = "serving"
    reason: str | None = None


SERVING = Condition()


@dataclass(frozen=True, slots=True)
class FailedUpgrade:
    """The last upgrade of an edge, which failed: the version before serves on."""

    at: datetime
    reason: str


@dataclass(frozen=True, slots=True)
class EdgeDescription:
    """The facts that an edge reports beside its condition, for the operator.

    `software_version` is empty for an edge that does not report it; `held_copy_at`: since when a copy waits for the
    operator.
    """

    software_version: str = ""
    held_copy_at: datetime | None = None
    failed_upgrade: FailedUpgrade | None = None


UNDESCRIBED = EdgeDescription()


@dataclass(frozen=True, slots=True)
class EdgeTraffic:
    """The requests that an edge served in the last minute, of its 1,000 busiest applications.

    `failed`: requests of these that were answered with a status from 500 on.
    """

    requests: int
    failed: int


@dataclass(frozen=True, slots=True)
class UnusableCertificates:
    """The number of certificates that clients asked an edge for and it cannot use, and the domain of one of them."""

    count: int = 0
    example: str | None = None


NONE_UNUSABLE = UnusableCertificates()


@dataclass(frozen=True, slots=True)
class EdgeNode:
    """An edge with its lease.

    `version` is the last one of the feed that it has applied; `traffic` is None for an edge that does not report it.
    """

    node_id: str
    host: str
    version: int
    condition: Condition
    lease_until: datetime
    description: EdgeDescription = UNDESCRIBED
    traffic: EdgeTraffic | None = None
    unusable: UnusableCertificates = NONE_UNUSABLE
    shares_id_of: str | None = None
    """The node id that it should report under, where another edge reports under that one."""

    @property
    def label(self) -> str:
        """Return the name by which partners, who are not shown its host, know the edge."""
        return self.node_id[:8]

    @property
    def follows(self) -> bool:
        """Whether it applies changes by itself, so that waiting for it makes sense."""
        return self.condition.state == "serving"


@dataclass(frozen=True, slots=True)
class UnreachedOrigin:
    """An edge that could not connect to an origin, and why."""

    edge: EdgeNode
    fault: OriginFault


@dataclass(frozen=True, slots=True)
class OldCertificates:
    """An edge that serves old certificates: how many, at least, and the domain of one of them."""

    edge: EdgeNode
    count: int
    example: str


OLD_SECONDS: Final = 60.0
"""An edge applies a change in a fraction of a second; one that lacks it after so long serves an old certificate."""
_MOST_OLD = 20  # counted of each shard
_HAS_POSITIONS = "version = (select sum(each) from unnest(positions) as each)"
"""Not those which a newer program left before an edge went back to one that does not report them."""

_COLUMNS = (
    "node_id, host, version, state, reason, lease_until, software_version, held_copy_at, failed_upgrade_at,"
    " failed_upgrade_reason, requests_last_minute, failed_last_minute, unusable_certificates, unusable_example,"
    " shares_id_of"
)


@dataclass(frozen=True, slots=True)
class Renewal:
    """What the renewal of a lease brings back.

    `is_held`: the lease is the holder's; if not, nothing was reported. The rest is None unless it was asked for: the
    `edges` with a lease, the `feed_version` of the primary, and whether a monitor `is_issuing` certificates.
    """

    is_held: bool
    edges: int | None = None
    feed_version: int | None = None
    is_issuing: bool | None = None


async def report(
    connection: Connection,
    node_id: str,
    identity: str,
    version: int,
    condition: Condition = SERVING,
    *,
    host: str = "",
    positions: Sequence[int] | None = None,
    failing: Sequence[FailingOrigin] | None = None,
    description: EdgeDescription = UNDESCRIBED,
    traffic: EdgeTraffic | None = None,
    unusable: UnusableCertificates = NONE_UNUSABLE,
    shares_id_of: str | None = None,
    holder: str = "",
    takes: bool = True,
    looks: bool = False,
    lease_seconds: float = LEASE_SECONDS,
) -> Renewal:
    """Report, for `lease_seconds`, that this node has applied the feed of that identity up to `version`.

    One statement, and so one commit. `positions`: the version of each shard of the feed, whose sum is `version`;
    without them, it is not known which of its certificates are old. `failing`: the origins that it cannot reach; None
    leaves those reported before. Without `takes`, a lease that another holder has stays that one's. With `looks`, also
    look at the installation.
    """
    upgrade = description.failed_upgrade
    row = await connection.fetchrow(
        "select lease.*, case when $6 then exists (select from monitor_nodes"
        "  where lease_until > clock_timestamp() and not $5 = any(stopped)) end as is_issuing"
        " from renew_edge_lease($1, $2, $3, $4, $6) as lease",
        node_id,
        holder,
        takes,
        {
            "identity": identity,
            "version": version,
            "seconds": lease_seconds,
            "state": condition.state,
            "reason": condition.reason,
            "host": host,
            "failing_origins": failing,
            "software_version": description.software_version,
            "held_copy_at": description.held_copy_at,
            "failed_upgrade_at": upgrade and upgrade.at,
            "failed_upgrade_reason": upgrade and upgrade.reason,
            "requests": traffic and traffic.requests,
            "failed": traffic and traffic.failed,
            "unusable": unusable.count,
            "example": unusable.example,
            "shares_id_of": shares_id_of,
            "positions": positions,
        },
        monitor_nodes.ISSUING,
        looks,
    )
    assert row is not None, "a function with OUT parameters has one row"
    return Renewal(row["is_held"], row["edges"], row["feed_version"], row["is_issuing"])


async def end_lease(connection: Connection, node_id: str, holder: str = "") -> None:
    """End the lease of a node that serves no more; a lease that another holder has taken stays."""
    await connection.execute("select end_edge_lease($1, $2)", node_id, holder)


async def find(connection: Connection, prefix: str, *, most: int = 10) -> list[tuple[EdgeNode, bool]]:
    """Return the edges whose node id begins so, and whether each one's lease lasts."""
    rows = await connection.fetch(
        f"select {_COLUMNS}, lease_until > clock_timestamp() as is_alive"  # noqa: S608 - a constant
        " from edge_nodes where starts_with(node_id, $1) order by node_id limit $2",
        prefix,
        most,
    )
    return [(_node(row), row["is_alive"]) for row in rows]


async def forget(connection: Connection, node_id: str) -> bool:
    """Erase an edge whose lease has lapsed; False if it has a lease."""
    lapsed = "delete from edge_nodes where node_id = $1 and lease_until <= clock_timestamp() returning node_id"
    return bool(await connection.fetch(lapsed, node_id))


async def list_lapsed(connection: Connection, *, most: int = 10) -> list[tuple[EdgeNode, bool]]:
    """Return the edges whose lease has lapsed and which are not forgotten, the latest first, and whether each is lost.

    Lost: lapsed within `LOST_SECONDS`. An edge that is only cut off from the database serves on, from its copy of that
    time.
    """
    rows = await connection.fetch(
        f"select {_COLUMNS}, lease_until > clock_timestamp() - make_interval(secs => $2) as is_lost"  # noqa: S608
        " from edge_nodes where lease_until <= clock_timestamp() order by lease_until desc limit $1",
        most,
        LOST_SECONDS,
    )
    return [(_node(row), row["is_lost"]) for row in rows]


async def nodes_behind(connection: Connection, identity: str, version: int) -> list[EdgeNode]:
    """Return the edges with a lease that do not serve that version of the feed of that identity (`feed.read_head`).

    An edge ahead of the feed serves a history that was rolled back, and counts as behind; so does one that cannot serve
    or follow.
    """
    rows = await connection.fetch(
        f"select {_COLUMNS} from edge_nodes where lease_until > clock_timestamp() and (state <> 'serving'"  # noqa: S608
        " or feed_identity <> $1 or version < $2 or version > (select version from feed)) order by node_id",
        identity,
        version,
    )
    return [_node(row) for row in rows]


async def find_unreached(connection: Connection, origin: OriginIdentity) -> list[UnreachedOrigin]:
    """Return the edges with a lease that could not connect to the origin in the last minute, or had no valid answer."""
    rows = await connection.fetch(
        f"select {_COLUMNS}, failing ->> 'fault' as fault"  # noqa: S608 - a constant
        " from edge_nodes, jsonb_array_elements(failing_origins) as failing"
        " where lease_until > clock_timestamp() and failing -> 'origin' = $1::jsonb and failing ->> 'fault' = any($2)"
        " order by node_id",
        origin,
        get_args(OriginFault),
    )
    return [UnreachedOrigin(_node(row), row["fault"]) for row in rows]


async def find_certificate_reach(connection: Connection, domain: str, identity: str) -> list[tuple[EdgeNode, bool]]:
    """Return the edges that run or were lost lately, and whether each has the domain's present certificate.

    Those that follow another feed than that of the identity, or do not report how far they are, are not among them.
    """
    rows = await connection.fetch(
        f"select {_COLUMNS}, coalesce(positions[shard + 1], 0) >= changed as is_current"  # noqa: S608 - a constant
        " from edge_nodes, (select shard, version as changed from changes where kind = 'certificate' and key = $1) c"
        f" where feed_identity = $2 and {_HAS_POSITIONS}"
        " and lease_until > clock_timestamp() - make_interval(secs => $3) order by node_id",
        domain,
        identity,
        LOST_SECONDS,
    )
    return [(_node(row), row["is_current"]) for row in rows]


async def list_old_certificates(connection: Connection, identity: str) -> list[OldCertificates]:
    """Return the edges that run or were lost lately and lack certificates of `OLD_SECONDS` ago, with one's domain."""
    rows = await connection.fetch(
        f"""
        select {_COLUMNS}, old.count, old.example from edge_nodes cross join lateral (
            select count(*) as count, min(key) as example from feed_shards shards cross join lateral (
                select key from changes where changes.shard = shards.shard and kind = 'certificate'
                    and changes.version > coalesce(positions[shards.shard + 1], 0)
                    and changed_at < clock_timestamp() - make_interval(secs => $3)
                limit $4
            ) lacking
        ) old
        where old.count > 0 and {_HAS_POSITIONS} and feed_identity = $1
            and lease_until > clock_timestamp() - make_interval(secs => $2)
        order by node_id
        """,  # noqa: S608 - a constant
        identity,
        LOST_SECONDS,
        OLD_SECONDS,
        _MOST_OLD,
    )
    return [OldCertificates(_node(row), row["count"], row["example"]) for row in rows]


async def count_alive(connection: Connection) -> int:
    """Count the edges with a lease, in whatever condition."""
    count: int = await connection.fetchval("select count(*) from edge_nodes where lease_until > clock_timestamp()")
    return count


async def list_nodes(connection: Connection, *, most: int = 100) -> list[tuple[EdgeNode, bool]]:
    """Return the edges of the last day and whether each one's lease lasts, those that run first."""
    rows = await connection.fetch(
        f"select {_COLUMNS}, lease_until > clock_timestamp() as is_alive"  # noqa: S608 - a constant
        " from edge_nodes order by lease_until desc limit $1",
        most,
    )
    return [(_node(row), row["is_alive"]) for row in rows]


def _node(row: Record) -> EdgeNode:
    condition = Condition(row["state"], row["reason"])
    failed = FailedUpgrade(row["failed_upgrade_at"], row["failed_upgrade_reason"]) if row["failed_upgrade_at"] else None
    description = EdgeDescription(row["software_version"] or "", row["held_copy_at"], failed)
    requests, failures = row["requests_last_minute"], row["failed_last_minute"]
    traffic = None if requests is None else EdgeTraffic(requests, failures or 0)
    unusable = UnusableCertificates(row["unusable_certificates"], row["unusable_example"])
    return EdgeNode(
        row["node_id"],
        row["host"],
        row["version"],
        condition,
        row["lease_until"],
        description,
        traffic,
        unusable,
        row["shares_id_of"],
    )


async def commit_without_flush(connection: Connection) -> None:
    """Let this session's commits return before they are on disk."""
    await connection.execute("set synchronous_commit = off")
