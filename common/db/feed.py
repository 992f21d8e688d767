"""The change feed, read: everything an edge must know, in the order it became true.

One `Snapshot` is one transaction that sees one moment, REPEATABLE READ and READ ONLY; whatever is read through it
belongs together with its `Head`. Contents are Postgres' own JSON text, byte for byte what the digests were made
from (`digest`). The feed is written by triggers alone (the .sql files in migrations/versions), in shards, so that
commits do not wait for each other: 0020_feed_shards.sql and 0043_feed_versions.sql show that a reader misses nothing.
"""

from __future__ import annotations

import hashlib
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import NamedTuple

from asyncpg import Record

from common.actors import current_request_id
from common.db.session import Connection, transaction

_BATCH_ROWS = 2000
TOMBSTONES_KEPT = timedelta(days=7)
"""An edge that was away for longer makes a full copy."""
_IDENTITY = """
    (select system_identifier from pg_control_system()) as system,
    case when pg_is_in_recovery() then (select timeline from feed_timeline)
        else left(pg_walfile_name(pg_current_wal_lsn()), 8) end as timeline,
    oid as database, datname as name
"""
"""The timeline is the one now written to; on a standby, the one noted with the primary's leases: what a standby itself
knows is as old as its last checkpoint."""
_NAMES = "pg_database where datname = current_database()"


@dataclass(frozen=True, slots=True)
class Head:
    """The version of the feed at one moment. `identity` tells one history of one database from every other.

    `positions` are the versions of its shards, and `version` is their sum; it grows with every commit that publishes.
    `purged` are the versions up to which the shards' tombstones may be gone.
    """

    identity: str
    version: int
    checksum: int
    positions: tuple[int, ...] = ()
    purged: tuple[int, ...] = ()


class FeedEntry(NamedTuple):
    """An entry of the feed: a thing that edges must know, by its kind and key."""

    kind: str
    key: str
    content: str | None
    """None: there is no such thing any more."""
    request_id: str | None = None
    """The id of the request that published it, in `Snapshot.changes`."""


def digest(kind: str, key: str, content: str) -> int:
    """Return what an entry adds (XOR) to the feed's checksum: a signed 64-bit number, as SQL's ``feed_digest``."""
    text = f"{kind}\n{key}\n{content}".encode()
    return int.from_bytes(hashlib.sha256(text).digest()[:8], "big", signed=True)


class Snapshot:
    """The feed at one moment. Created by `open_snapshot`; useless after its block."""

    def __init__(self, connection: Connection, head: Head) -> None:
        self._connection = connection
        self.head = head

    async def changes(self, after: Sequence[int]) -> AsyncIterator[list[FeedEntry]]:
        """Yield what changed after these positions, in batches; each key once.

        A shard without a position begins at 0.
        """
        cursor = await self._connection.cursor(
            """
            select kind, key, request_id, case when not deleted then feed_content(kind, key)::text end as content
            from (select shard, coalesce(($1::bigint[])[shard + 1], 0) as known, version from feed_shards) moved
                cross join lateral (select kind, key, deleted, request_id from changes
                    where changes.shard = moved.shard and changes.version > known order by changes.version) changed
            where moved.version > known
            """,
            after,
        )
        while rows := await cursor.fetch(_BATCH_ROWS):
            yield [FeedEntry(row["kind"], row["key"], row["content"], row["request_id"]) for row in rows]

    async def everything(self) -> AsyncIterator[list[FeedEntry]]:
        """Yield all entries in no order, in batches; streamed, however many."""
        cursor = await self._connection.cursor("select kind, key, content::text as content from feed_entries")
        while rows := await cursor.fetch(_BATCH_ROWS):
            yield [FeedEntry(row["kind"], row["key"], row["content"]) for row in rows]


@asynccontextmanager
async def open_snapshot(connection: Connection) -> AsyncIterator[Snapshot]:
    """Open a snapshot of the feed as of now, for the block."""
    async with transaction(connection, is_snapshot=True):
        yield Snapshot(connection, await read_head(connection))


async def read_head(connection: Connection, *, timeout_seconds: float | None = None) -> Head:
    """Return the feed's version, with the positions of its shards."""
    query = f"select version, checksum, positions, purged, {_IDENTITY} from feed, {_NAMES}"  # noqa: S608 - constants
    row = await connection.fetchrow(query, timeout=timeout_seconds)
    assert row is not None, "the feed has its one row from the first migration on"
    return Head(_identity(row), row["version"], row["checksum"], tuple(row["positions"]), tuple(row["purged"]))


async def read_version(connection: Connection) -> tuple[str, int]:
    """Return the feed's identity and version.

    Without positions: for arrays, the driver asks the catalogue in each session.
    """
    row = await connection.fetchrow(f"select version, {_IDENTITY} from feed, {_NAMES}")  # noqa: S608 - constants
    assert row is not None, "the feed has its one row from the first migration on"
    return _identity(row), row["version"]


def _identity(row: Record) -> str:
    """Return the text that no other history of the database has: server, timeline and database."""
    return f"{row['system']}/{row['timeline']}/{row['database']}/{row['name']}"


def is_same_database(identity: str, other: str) -> bool:
    """Return whether two identities are of one database, which may have failed over between them."""
    return _without_timeline(identity) == _without_timeline(other)


def _without_timeline(identity: str) -> list[str]:
    system, _, rest = identity.partition("/")
    return [system, rest.partition("/")[2]]


async def set_request_id(connection: Connection) -> None:
    """Make what the caller's transaction publishes name the request that caused it.

    An entry of the audit log does so itself (`common.db.audit`): this is for work that has none.
    """
    request_id = current_request_id()
    if request_id is not None:
        await connection.execute("select set_config('frontage.request_id', $1, true)", request_id)


async def wake_listeners(connection: Connection) -> None:
    """Wake all that listen for changes.

    A commit that publishes does so itself, unless another does at that moment.
    """
    await connection.execute("select wake_listeners('frontage_changes')")


async def purge_tombstones(connection: Connection, *, older_than: timedelta = TOMBSTONES_KEPT, most: int = 1000) -> int:
    """Erase at most so many tombstones that every edge has applied long ago, in the caller's transaction.

    Waits for no commit: shards that are locked are left to the next batch. Returns how many.
    """
    shards = await connection.fetch("select shard from feed_shards for update skip locked")
    row = await connection.fetchrow(
        """
        with purged as (
            delete from changes where ctid = any(array(
                select ctid from changes where deleted and changed_at < clock_timestamp() - $1::interval
                    and shard = any($3) order by changed_at limit $2 for update skip locked))
            returning shard, version
        ), remembered as (
            update feed_shards set purged_version = greatest(purged_version, last)
            from (select shard, max(version) as last from purged group by shard) latest
            where feed_shards.shard = latest.shard
        )
        select count(*) as purged from purged
        """,
        older_than,
        most,
        [shard["shard"] for shard in shards],
    )
    assert row is not None, "an aggregate has one row"
    purged: int = row["purged"]
    return purged
