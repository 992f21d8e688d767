"""A primary and a streaming standby: edges that follow the standby, and a failover under all that reaches Postgres."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from bench.lab.postgres import PostgresServer
from common.db import edge_nodes
from common.db.feed import read_version
from common.db.listener import Listener
from common.db.migrate import migrate
from common.db.pool import Database, open_pool
from common.db.session import open_session
from common.errors import OperatorError
from edge.replica.replicator import Replicator
from tests.integration.replica.parts import add_routes, assert_equal, make_replicator, running
from tests.rows import add_application
from tests.timeouts import UNHURRIED
from tests.waiting import until


@pytest.fixture
def directory() -> Iterator[Path]:
    """One that Postgres' user can walk to."""
    with tempfile.TemporaryDirectory(prefix="frontage-standby-", dir="/tmp", ignore_cleanup_errors=True) as name:
        Path(name).chmod(0o755)
        yield Path(name)


@pytest.fixture
async def primary(directory: Path) -> AsyncIterator[PostgresServer]:
    server = PostgresServer(directory / "primary")
    server.create()
    server.start()
    try:
        await until(server.is_ready, "the primary")
        await migrate(server.dsn)
        session = await open_session(server.dsn, "tests", UNHURRIED)
        await add_application(session)
        await add_routes(session, [f"d{number}.example" for number in range(20)])
        session.terminate()
        yield server
    finally:
        server.stop()


@pytest.fixture
async def standby(directory: Path, primary: PostgresServer) -> AsyncIterator[PostgresServer]:
    server = PostgresServer(directory / "standby")
    await asyncio.to_thread(server.copy_from, primary)
    server.start()
    try:
        await until(server.is_ready, "the standby")
        yield server
    finally:
        server.stop()


@pytest.fixture
async def database(primary: PostgresServer, standby: PostgresServer) -> AsyncIterator[Database]:
    """At whichever of the two is the primary."""
    async with open_pool(either(primary, standby), size=2, application_name="test") as database:
        yield database


def either(*servers: PostgresServer) -> str:
    hosts = ",".join(str(server.address) for server in servers)
    return servers[0].dsn.replace(str(servers[0].address), hosts)


async def write(database: Database, domain: str) -> None:
    """Try until a primary takes it, as the clients of the API do."""

    async def is_written() -> bool:
        async with database.transaction() as connection:
            await add_routes(connection, [domain])
        return True

    await until(is_written, "a primary")


async def is_live(database: Database) -> bool:
    """Whether an edge has a lease, and none of them is behind the primary."""
    async with database.connection() as connection:
        behind = await edge_nodes.nodes_behind(connection, *await read_version(connection))
        return not behind and await edge_nodes.count_alive(connection) > 0


async def until_equal(replicator: Replicator, database: Database) -> None:
    async with database.connection() as connection:
        _, version = await read_version(connection)
        await until(lambda: replicator.version == version, "the version")
        await assert_equal(replicator, connection)


async def test_an_edge_follows_a_standby_and_reports_to_the_primary(
    primary: PostgresServer, standby: PostgresServer, database: Database, tmp_path: Path
) -> None:
    replicator = make_replicator(primary.dsn, tmp_path, feed_url=standby.dsn)
    async with running(replicator):
        await until(lambda: replicator.version is not None, "the first copy")
        await write(database, "new.example")
        await until_equal(replicator, database)
        await until(lambda: is_live(database), "the lease")
        async with database.connection() as connection:
            sessions = await connection.fetch(
                "select application_name from pg_stat_activity where application_name like 'frontage edge%'"
            )
        assert [row["application_name"] for row in sessions] == ["frontage edge lease"]


async def test_an_edge_reports_that_its_standby_lags_until_it_has_caught_up(
    primary: PostgresServer, standby: PostgresServer, database: Database, tmp_path: Path
) -> None:
    replicator = make_replicator(primary.dsn, tmp_path, feed_url=standby.dsn, lag_seconds=0.1)
    reader = replicator.store.reader()

    async def is_reported() -> bool:
        async with database.connection() as connection:
            ((node, _),) = await edge_nodes.list_nodes(connection)
        return node.condition.state == "stuck" and "FRONTAGE_FEED_URL" in (node.condition.reason or "")

    async with running(replicator):
        await until(lambda: is_live(database), "the lease")
        await until(lambda: not reader.is_cut_off(), "following")
        control = await open_session(standby.dsn, "tests", UNHURRIED)
        await control.execute("select pg_wal_replay_pause()")
        await write(database, "new.example")
        await until(is_reported, "the report")
        await until(reader.is_cut_off, "readers know")
        await until(lambda: (replicator.age_seconds or 0) > 3, "the age, though the standby answers each second")
        await control.execute("select pg_wal_replay_resume()")
        control.terminate()
        await until(lambda: is_live(database), "the standby has caught up")
        await until(lambda: (replicator.age_seconds or 9) < 3, "the copy is current")
        await until(lambda: not reader.is_cut_off(), "readers know that, too")
        await until_equal(replicator, database)


async def test_a_failover_is_followed_by_all_without_a_fresh_copy(
    primary: PostgresServer,
    standby: PostgresServer,
    database: Database,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    dsn = either(primary, standby)
    direct = make_replicator(dsn, tmp_path / "direct", poll_seconds=1.0)
    follower = make_replicator(dsn, tmp_path / "follower", feed_url=either(standby, primary))
    listener = Listener(dsn, lambda: None)
    copies: list[Replicator] = []
    for replicator in (direct, follower):
        copy = replicator._copy

        async def count(*arguments: object, copy: object = copy, of: Replicator = replicator) -> bool:
            copies.append(of)
            return await copy(*arguments)  # type: ignore[operator,no-any-return]

        monkeypatch.setattr(replicator, "_copy", count)
    async with AsyncExitStack() as stack:
        for replicator in (direct, follower):
            await stack.enter_async_context(running(replicator))
        listening = asyncio.create_task(listener.run())
        try:
            await write(database, "before.example")
            await until(lambda: is_live(database), "the leases")
            await until_equal(follower, database)
            await until_equal(direct, database)
            before = direct.store.state.identity
            primary.stop()
            control = await open_session(standby.dsn, "tests", UNHURRIED)
            await control.execute("select pg_promote()")
            control.terminate()
            await write(database, "after.example")
            await until(lambda: is_live(database), "both edges serve the change")
            for replicator in (direct, follower):
                await until_equal(replicator, database)
            assert direct.store.state.identity != before
            await until(lambda: listener.is_listening, "the listener")
            assert sorted(map(id, copies)) == sorted(map(id, (direct, follower)))  # the first ones
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)


async def test_an_error_in_the_standbys_address_names_its_variable(tmp_path: Path) -> None:
    replicator = make_replicator("postgresql://127.0.0.1:1/none", tmp_path, feed_url="postgresql://h:port/x")
    try:
        with pytest.raises(OperatorError, match="FRONTAGE_FEED_URL is no address"):
            await replicator.run()
    finally:
        replicator.close()
