"""Postgres frozen (SIGSTOP) in the middle of an answer: every wait ends in time, and all heals when it thaws."""

from __future__ import annotations

import asyncio
import shutil
import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from pathlib import Path

import pytest

from common.db.migrate import migrate
from common.db.pool import Database, SessionTimeouts, open_pool
from common.db.session import open_session
from common.errors import DatabaseUnavailable
from common.postgres import EmbeddedPostgres
from tests import rows
from tests.integration.postgres.running import frozen
from tests.integration.replica import parts
from tests.waiting import until

HASTY = SessionTimeouts(connect_seconds=0.4, acquire_seconds=0.6, query_seconds=0.5)
BOUND_SECONDS = 4.0  # acquire, query, and room for a busy machine


class Server:
    def __init__(self, server: EmbeddedPostgres, dsn: str) -> None:
        self.dsn = dsn
        self._server = server

    def frozen(self) -> AbstractContextManager[None]:
        assert self._server.pid is not None
        return frozen(self._server.pid)


@pytest.fixture
def server() -> Iterator[Server]:
    state_dir = Path(tempfile.mkdtemp(prefix="frontage-tests-", dir="/var/tmp"))
    embedded = EmbeddedPostgres(state_dir)
    try:
        dsn = embedded.start()
        asyncio.run(migrate(dsn))
        yield Server(embedded, dsn)
    finally:
        embedded.stop()
        shutil.rmtree(state_dir, ignore_errors=True)


async def test_query_in_the_middle_of_an_answer_ends_and_the_pool_heals(server: Server) -> None:
    async with open_pool(server.dsn, size=2, application_name="test", timeouts=HASTY) as database:
        with in_time(), pytest.raises(DatabaseUnavailable):  # noqa: PT012
            async with database.transaction() as connection:
                cursor = await connection.cursor("select generate_series(1, 1000000), repeat('x', 1000)")
                await cursor.fetch(10)
                with server.frozen():
                    await cursor.fetch(100_000)
        await until_it_answers(database)


async def test_commit_and_new_connections_end_and_the_pool_heals(server: Server) -> None:
    async with open_pool(server.dsn, size=2, application_name="test", timeouts=HASTY) as database:
        with ExitStack() as freezing:
            with in_time(), pytest.raises(DatabaseUnavailable):  # noqa: PT012
                async with database.transaction() as connection:
                    await connection.execute("create table made ()")
                    freezing.enter_context(server.frozen())
            with in_time(), pytest.raises(DatabaseUnavailable):
                async with database.connection():
                    pass
        await until_it_answers(database)


async def test_closing_a_pool_does_not_wait_for_a_frozen_server(server: Server) -> None:
    with ExitStack() as freezing, in_time():
        async with open_pool(server.dsn, size=2, application_name="test", timeouts=HASTY) as database:
            async with database.connection() as connection:
                await connection.fetchval("select 1")
            freezing.enter_context(server.frozen())


async def test_replica_serves_through_a_frozen_postgres_and_follows_on(server: Server, tmp_path: Path) -> None:
    writer = await open_session(server.dsn, "writer")
    try:
        await rows.add_application(writer)
        await parts.add_routes(writer, ["before.example"])
        replicator = parts.make_replicator(server.dsn, tmp_path, timeouts=HASTY)
        async with parts.running(replicator):
            await until(lambda: replicator.version == 2 and replicator.connected, "the first copy")
            with server.frozen():
                await until(lambda: not replicator.connected, "noticing")
                assert replicator.store.reader().get("route", "power/before.example") is not None
            await parts.add_routes(writer, ["after.example"])
            await until(lambda: replicator.version == 3 and replicator.connected, "following on")
            await parts.assert_equal(replicator, writer)
    finally:
        writer.terminate()


@contextmanager
def in_time() -> Iterator[None]:
    began = time.monotonic()
    yield
    assert time.monotonic() - began < BOUND_SECONDS


async def until_it_answers(database: Database) -> None:
    deadline = time.monotonic() + 10
    while True:
        try:
            async with database.connection() as connection:
                assert await connection.fetchval("select 1") == 1
                return
        except DatabaseUnavailable:
            assert time.monotonic() < deadline
