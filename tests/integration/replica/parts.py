"""What the replica's tests are made of: writers of routed rows, a replicator, and the two contents to compare."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

from common.clock import SystemClock
from common.db.edge_nodes import LEASE_SECONDS
from common.db.feed import Head, digest, read_head
from common.db.session import DEFAULT_TIMEOUTS, Connection, SessionTimeouts
from common.settings import load
from edge.replica.replicator import Replicator
from tests.beside import beside

Contents = dict[str, str]
"""``<kind>/<key>`` to JSON text."""


def make_replicator(
    dsn: str | Callable[[], str],
    state_dir: Path,
    *,
    poll_seconds: float = 60.0,
    applied: list[int] | None = None,
    timeouts: SessionTimeouts = DEFAULT_TIMEOUTS,
    feed_url: str | None = None,
    proof_seconds: float = 1.0,
    lease_seconds: float = LEASE_SECONDS,
    lag_seconds: float = 5.0,
) -> Replicator:
    """One that does not poll, unless told to."""
    return Replicator(
        load({"FRONTAGE_STATE_DIR": str(state_dir)} | ({"FRONTAGE_FEED_URL": feed_url} if feed_url else {})),
        dsn if callable(dsn) else lambda: dsn,
        (applied if applied is not None else []).append,
        SystemClock(),
        poll_seconds=poll_seconds,
        timeouts=timeouts,
        proof_seconds=proof_seconds,
        lease_seconds=lease_seconds,
        lag_seconds=lag_seconds,
    )


@asynccontextmanager
async def running(replicator: Replicator) -> AsyncIterator[Replicator]:
    try:
        async with beside(replicator.run()):
            yield replicator
    finally:
        replicator.close()


def replica_contents(replicator: Replicator) -> Contents:
    store = replicator.store
    with store.environment.begin(db=store.copies[store.state.serving]) as transaction:
        return {bytes(name).decode(): bytes(content).decode() for name, content in transaction.cursor()}


async def feed_contents(connection: Connection) -> Contents:
    rows = await connection.fetch("select kind, key, content::text as content from feed_entries")
    return {f"{row['kind']}/{row['key']}": row["content"] for row in rows}


def checksum(contents: Contents) -> int:
    total = 0
    for name, content in contents.items():
        kind, _, key = name.partition("/")
        total ^= digest(kind, key, content)
    return total


async def assert_equal(replicator: Replicator, connection: Connection) -> Head:
    """The replica is what Postgres is, and both sums say so."""
    head = await read_head(connection)
    contents = await feed_contents(connection)
    assert replica_contents(replicator) == contents
    state = replicator.store.state
    assert (state.identity, state.version, state.skew) == (head.identity, head.version, 0)
    assert state.positions == head.positions
    assert state.checksum == head.checksum == checksum(contents)
    assert state.routes == sum(name.startswith("route/") for name in contents)
    return head


async def add_routes(connection: Connection, domains: list[str], application_id: str = "app") -> None:
    await connection.execute(
        "insert into domains (domain, product, application_id, application_url)"
        " select unnest($1::text[]), 'power', $2, 'https://origin.example/'",
        domains,
        application_id,
    )
