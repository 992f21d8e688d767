"""The pool against a server that is away, restarts, or says no."""

from __future__ import annotations

import asyncio

import asyncpg
import pytest

from api.cli.service import units
from common.db.pool import Database, SessionTimeouts, open_pool
from common.errors import DatabaseBusy, DatabaseUnavailable, OperatorError
from tests.conftest import in_database

HASTY = SessionTimeouts(
    connect_seconds=1.0,
    acquire_seconds=0.5,
    query_seconds=1.0,
    statement_seconds=0.3,
    lock_seconds=0.2,
)
NOWHERE = "postgresql://nobody@127.0.0.1:1/nothing"


async def test_pool_opens_while_postgres_is_away() -> None:
    async with open_pool(NOWHERE, size=2, application_name="test") as database:
        with pytest.raises(DatabaseUnavailable):
            async with database.connection():
                pass


async def test_missing_database_is_unavailable(dsn: str) -> None:
    async with open_pool(in_database(dsn, "no_such_database"), size=2, application_name="test") as database:
        with pytest.raises(DatabaseUnavailable, match="does not exist"):
            async with database.connection():
                pass


async def test_bad_address_is_for_the_operator_and_quotes_no_password() -> None:
    with pytest.raises(OperatorError, match="FRONTAGE_DATABASE_URL") as caught:
        async with open_pool("postgresql://me:s3cret@host:port/x", size=2, application_name="test"):
            pass
    assert "s3cret" not in str(caught.value)


async def test_transaction_commits_or_rolls_back(database: Database) -> None:
    async with database.transaction() as connection:
        await connection.execute("create table kept ()")
    with pytest.raises(asyncpg.DivisionByZeroError):  # noqa: PT012
        async with database.transaction() as connection:
            await connection.execute("create table dropped ()")
            await connection.fetchval("select 1 / 0")
    async with database.connection() as connection:
        assert await connection.fetchval("select to_regclass('kept') is not null")
        assert await connection.fetchval("select to_regclass('dropped') is null")


async def test_json_goes_both_ways(database: Database) -> None:
    async with database.connection() as connection:
        assert await connection.fetchval("select $1::jsonb", {"a": [1, "ü"]}) == {"a": [1, "ü"]}
        assert await connection.fetchval("select '{\"a\": null}'::json") == {"a": None}


async def test_killed_sessions_are_replaced(database: Database) -> None:
    async with database.connection() as one, database.connection() as other:
        victims = [await one.fetchval("select pg_backend_pid()"), await other.fetchval("select pg_backend_pid()")]
    async with database.connection() as connection:
        with pytest.raises(DatabaseUnavailable):  # noqa: PT012
            async with database.connection() as doomed:
                await connection.fetch("select pg_terminate_backend(pid) from unnest($1::int[]) as pid", victims)
                await doomed.fetchval("select 1")
                await connection.fetchval("select 1")
    async with database.transaction() as connection:
        assert await connection.fetchval("select 1") == 1


@pytest.mark.parametrize(
    "statement",
    ["select pg_sleep(30)", "lock table busy in exclusive mode"],
    ids=["statement", "lock"],
)
async def test_slow_work_ends_in_time_and_the_pool_goes_on(dsn: str, database: Database, statement: str) -> None:
    async with database.connection() as connection:
        await connection.execute("create table busy ()")
    async with (
        open_pool(dsn, size=1, application_name="test", timeouts=HASTY) as hasty,
        database.transaction() as holder,
    ):
        await holder.execute("lock table busy in exclusive mode")
        with pytest.raises(DatabaseBusy, match="the database gave up: canceling statement due to"):
            async with hasty.transaction() as connection:
                await connection.execute(statement)
        async with hasty.transaction() as connection:
            assert await connection.fetchval("select 1") == 1


async def test_exhausted_pool_answers_in_time(dsn: str) -> None:
    async with (
        open_pool(dsn, size=1, application_name="test", timeouts=HASTY) as database,
        database.connection(),
    ):
        with pytest.raises(DatabaseUnavailable, match="in time"):
            async with database.connection():
                pass


async def test_cancelled_work_leaves_the_pool_whole(dsn: str) -> None:
    async with open_pool(dsn, size=1, application_name="test") as database:
        begun = asyncio.Event()

        async def work() -> None:
            async with database.transaction() as connection:
                begun.set()
                await connection.execute("select pg_sleep(30)")

        task = asyncio.create_task(work())
        await begun.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        async with database.transaction() as connection:
            assert await connection.fetchval("select 1") == 1


async def test_an_address_may_have_what_psql_takes_and_the_server_does_not_know(dsn: str) -> None:
    """`frontage service` prints one; providers' addresses have others."""
    mark = "&" if "?" in dsn else "?"
    address = f"{dsn}{mark}connect_timeout=5&keepalives=1&keepalives_idle=30&tcp_user_timeout=5000"
    async with open_pool(address, size=1, application_name="test") as database, database.connection() as connection:
        assert await connection.fetchval("select 1") == 1


async def test_the_printed_environment_has_an_address_that_the_server_takes(dsn: str) -> None:
    [printed] = [line.strip("'") for line in units.environment().splitlines() if "DATABASE_URL" in line]
    parameters = printed.partition("?")[2].replace("sslmode=require", "sslmode=prefer")
    mark = "&" if "?" in dsn else "?"
    async with (
        open_pool(f"{dsn}{mark}{parameters}", size=1, application_name="test") as database,
        database.connection() as connection,
    ):
        assert await connection.fetchval("select 1") == 1
