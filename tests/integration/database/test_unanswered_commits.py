"""A primary whose synchronous standby is away: a commit that waits for it is neither shown to anybody nor repeated."""

from __future__ import annotations

import asyncio
import gc
import tempfile
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from bench.lab.postgres import PostgresServer
from common.accounts import Permission, hash_token
from common.db import domain_list, domain_pages, preparations, sessions, user_keys, users
from common.db.migrate import migrate
from common.db.pool import Connection, Database, SessionTimeouts, open_pool
from common.db.session import open_session
from common.domain_settings import DomainSettings
from common.errors import DatabaseBusy, DatabaseUnavailable
from tests.rows import power
from tests.waiting import until, until_equal

HASTY = SessionTimeouts(query_seconds=0.5, statement_seconds=0.3)
SIZE = 4


@pytest.fixture
async def server() -> AsyncIterator[PostgresServer]:
    """A primary, which may have standbys."""
    with tempfile.TemporaryDirectory(prefix="frontage-commits-", dir="/tmp", ignore_cleanup_errors=True) as name:
        Path(name).chmod(0o755)  # Postgres' user walks to it
        running = PostgresServer(Path(name) / "primary")
        running.create()
        running.start()
        try:
            await until(running.is_ready, "the primary")
            yield running
        finally:
            running.stop()


@pytest.fixture
async def looking(server: PostgresServer) -> AsyncIterator[Connection]:
    """A session beside the pool, which only reads."""
    session = await open_session(server.dsn, "looking")
    await session.execute("create table made (name text)")
    yield session
    session.terminate()


@pytest.fixture
async def database(server: PostgresServer) -> AsyncIterator[Database]:
    async with open_pool(server.dsn, size=SIZE, application_name="test", timeouts=HASTY) as pool:
        yield pool


async def set_standby(looking: Connection, name: str) -> None:
    """Have commits wait for a standby of this name, or for none."""
    await looking.execute(f"alter system set synchronous_standby_names = '{name}'")
    await looking.execute("select pg_reload_conf()")

    await until_equal(lambda: looking.fetchval("show synchronous_standby_names"), name)
    await asyncio.sleep(0.3)  # the checkpointer tells the sessions; nothing shows when it has


async def write(database: Database, name: str) -> None:
    async with database.transaction() as connection:
        await connection.execute("insert into made values ($1)", name)


async def names(looking: Connection) -> list[str]:
    return [row["name"] for row in await looking.fetch("select name from made order by name")]


async def count_waiting(looking: Connection) -> int:
    """Return how many sessions wait for the standby."""
    waiting: int = await looking.fetchval("select count(*) from pg_stat_activity where wait_event = 'SyncRep'")
    return waiting


async def lapse(connection: Connection) -> None:
    """Have the domains' status be what it was before their certificates lapsed, as time alone does."""
    async with connection.transaction():
        await connection.execute("set local synchronous_commit = off")
        await connection.execute("set local session_replication_role = replica")  # no trigger
        await connection.execute("update domains set is_active = true, active_until = now() - interval '1 second'")


async def test_it_is_not_shown_until_it_is_answered(looking: Connection, database: Database) -> None:
    await set_standby(looking, "nobody")
    with pytest.raises(DatabaseUnavailable, match="did not answer in time"):
        await write(database, "first")
    assert await names(looking) == []
    await set_standby(looking, "")
    assert await names(looking) == ["first"]


async def test_it_is_not_shown_where_nobody_waits_for_the_answer_any_more(
    looking: Connection, database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    await set_standby(looking, "nobody")
    writing = asyncio.create_task(write(database, "first"))
    await until_equal(lambda: count_waiting(looking), 1)
    writing.cancel()
    with pytest.raises(asyncio.CancelledError):
        await writing
    async with database.connection() as connection:
        assert await connection.fetchval("select count(*) from made") == 0
    gc.collect()
    assert [each.getMessage() for each in caplog.records if each.name == "asyncio"] == []


async def test_writes_are_refused_at_once_meanwhile_and_reading_goes_on(
    looking: Connection, database: Database
) -> None:
    await set_standby(looking, "nobody")
    answers = await asyncio.gather(*(write(database, f"early {n}") for n in range(SIZE)), return_exceptions=True)
    assert all(isinstance(each, DatabaseUnavailable) for each in answers)
    for n in range(20):
        with pytest.raises(DatabaseBusy, match="answers no commit"):
            await write(database, f"late {n}")
        async with database.connection() as connection:
            assert await connection.fetchval("select count(*) from made") == 0
    await asyncio.sleep(5 * HASTY.query_seconds)  # some trials
    assert SIZE <= await count_waiting(looking) <= SIZE + 1  # those above, and one trial

    await set_standby(looking, "")

    async def is_written() -> bool:
        await write(database, "afterwards")
        return True

    await until(is_written)
    assert await names(looking) == ["afterwards", *(f"early {n}" for n in range(SIZE))]


async def test_what_reading_notes_does_not_wait_for_the_standby(
    server: PostgresServer, looking: Connection, database: Database
) -> None:
    """When a key, a session or a preparation was last used, and which certificates have lapsed since."""
    token = hash_token("secret")
    await migrate(server.dsn)
    async with database.transaction() as connection:
        user = await users.create_user(connection, "a@example.com")
        await user_keys.add(connection, user, token, "a key", Permission.VIEW, 1)
        await sessions.start(connection, token, user, "192.0.2.1", "curl")
        await power(connection, "shop.customer.test", "https://origin.example.com")
        wanted = preparations.Wanted("new.customer.test", "power", DomainSettings())
        await preparations.request(connection, "app", wanted)
        await connection.execute("update sessions set seen_at = now() - interval '1 hour'")
        await connection.execute("update preparations set asked_at = now() - interval '1 hour'")
    await set_standby(looking, "nobody")
    async with database.connection() as connection:
        assert await user_keys.find(connection, token)
        assert await sessions.find(connection, token)
        await preparations.note_question(connection, wanted.domain, "app", pause_seconds=1)
        await lapse(connection)
        await domain_list.settle_lapsed(connection)
        assert await looking.fetchval("select coalesce(active_until, 'infinity') > now() from domains")
        await lapse(connection)
        await domain_pages.settle_lapsed(connection, "app")
        assert await looking.fetchval("select coalesce(active_until, 'infinity') > now() from domains")
    assert await looking.fetchval("select used_at > now() - interval '1 minute' from user_keys")
    assert await looking.fetchval("select seen_at > now() - interval '1 minute' from sessions")
    assert await looking.fetchval("select asked_at > now() - interval '1 minute' from preparations")


async def test_writes_are_accepted_again_where_a_trial_is_not_allowed(
    looking: Connection, database: Database, caplog: pytest.LogCaptureFixture
) -> None:
    """Whether the server answers is then found out by the next write."""
    emit = "(select oid from pg_proc where proname = 'pg_logical_emit_message' and prosrc like '%text')"
    for signature in await looking.fetch(f"select {emit}::regprocedure::text as name"):
        await looking.execute(f"alter function {signature['name']} rename to not_allowed")
    await set_standby(looking, "nobody")
    with pytest.raises(DatabaseUnavailable):
        await write(database, "first")
    await set_standby(looking, "")

    async def is_written() -> bool:
        await write(database, "second")
        return True

    await until(is_written)
    gc.collect()
    assert [each.getMessage() for each in caplog.records if each.name == "asyncio"] == []
