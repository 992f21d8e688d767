"""Bringing the schema up. The steps are ``migrations/versions``; Alembic keeps which of them were taken.

An advisory lock lets one of several migrations work that are started together; the others then find nothing to do.
Each step is one transaction, so a failed one leaves nothing behind; the steps before it stay, and the next run goes on
from there. The lock is taken before Alembic is entered, because Alembic's context is one a process. What other sessions
hold is waited for, but not for ever (`common.db.migration_blockers`).

The roles go on working meanwhile. How a step is written so that they do is described in `common.db.migrations.scripts`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import asyncpg
from alembic import command
from alembic.config import Config
from sqlalchemy import Connection as SyncConnection
from sqlalchemy import inspect, text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine
from sqlalchemy.pool import NullPool

from common.db.migration_blockers import GIVE_UP_SECONDS, Blockers, OnWait, find_lock_holders, watch
from common.db.pool import refuse_transaction_pooler
from common.db.schema import REVISION, check_schema, compatibility_statement
from common.db.session import Connection, Patience, is_passing, open_session, unavailable
from common.errors import DatabaseUnavailable, OperatorError

__all__ = ["REVISION", "alembic_config", "check_schema", "migrate"]

_NAME = "frontage migrate"
_LOCK = 0x46524F4E54414745  # "FRONTAGE"
_LOCK_PAUSE_SECONDS = 0.1
_LONGEST_SECONDS = 4 * 3600.0
_PATIENCE = Patience(
    query_seconds=_LONGEST_SECONDS,
    statement_seconds=_LONGEST_SECONDS,
    lock_seconds=_LONGEST_SECONDS,
    idle_in_transaction_seconds=60.0,
)


def alembic_config(connection: SyncConnection | None = None) -> Config:
    """Alembic's settings, without a file: the steps lie in this package, wherever it is installed."""
    config = Config()
    config.set_main_option("script_location", str(Path(__file__).with_name("migrations")).replace("%", "%%"))
    config.attributes["connection"] = connection
    return config


async def migrate(dsn: str, *, on_wait: OnWait = lambda _words: None, give_up_seconds: float = GIVE_UP_SECONDS) -> None:
    """Take every step that is missing. `on_wait` is called with which session keeps it waiting.

    Raises: `OperatorError`, also when a session kept it waiting for `give_up_seconds`; `DatabaseUnavailable`.
    """
    await refuse_transaction_pooler(dsn, _NAME)
    blockers = Blockers(on_wait, give_up_seconds)
    try:
        await _migrate(dsn, blockers)
    except (OperatorError, DatabaseUnavailable) as error:
        if blockers.gave_up_for is None:
            raise
        raise OperatorError(blockers.advice) from error


async def _migrate(dsn: str, blockers: Blockers) -> None:
    """Raises: `OperatorError`, `DatabaseUnavailable`."""

    async def connect() -> Connection:
        return await open_session(dsn, _NAME, _PATIENCE)

    engine = create_async_engine("postgresql+asyncpg://", async_creator=connect, poolclass=NullPool)
    try:
        async with asyncio.timeout(_LONGEST_SECONDS), engine.connect() as connection, _watching(dsn) as watcher:
            await _lock(connection, watcher, blockers)
            migrating_pid = await connection.scalar(text("select pg_backend_pid()"))
            await connection.commit()
            watching = asyncio.create_task(watch(watcher, migrating_pid, blockers), name="migrate: watch blockers")
            try:
                await _take_steps(connection, blockers)
            finally:
                watching.cancel()
    except DBAPIError as error:
        cause = error.driver_exception
        if cause is not None and is_passing(cause):
            raise unavailable(cause) from error
        raise OperatorError(f"the schema could not be brought up: {cause or error.orig}") from error
    except TimeoutError as error:
        raise unavailable(error) from error
    except asyncpg.PostgresError as error:
        if is_passing(error):
            raise unavailable(error) from error
        raise OperatorError(f"the schema could not be brought up: {error}") from error
    finally:
        await engine.dispose()


@asynccontextmanager
async def _watching(dsn: str) -> AsyncIterator[Connection]:
    """A session beside the one that migrates."""
    connection = await open_session(dsn, _NAME)
    try:
        yield connection
    finally:
        connection.terminate()


async def _lock(connection: AsyncConnection, watcher: Connection, blockers: Blockers) -> None:
    """Until the session ends. A session that waits inside the statement would keep a snapshot, which CREATE INDEX
    CONCURRENTLY in the session that holds the lock waits for.

    Raises: `OperatorError` when a session of another login holds it for long.
    """
    loop = asyncio.get_running_loop()
    while not await connection.scalar(text("select pg_try_advisory_lock(:lock)"), {"lock": _LOCK}):
        await connection.rollback()
        if blockers.observe(await find_lock_holders(watcher, _LOCK), loop.time()):
            raise OperatorError(blockers.advice)
        await asyncio.sleep(_LOCK_PAUSE_SECONDS)
    await connection.commit()


async def _take_steps(connection: AsyncConnection, blockers: Blockers) -> None:
    """A step gives up rather than queue for a table's lock, and everything else behind it; it is then tried again.

    Raises: `OperatorError` when a session keeps it waiting for long.
    """
    while True:
        try:
            await connection.run_sync(_upgrade)
        except asyncpg.LockNotAvailableError:
            await connection.rollback()
            if blockers.gave_up_for is not None:
                raise OperatorError(blockers.advice) from None
            await asyncio.sleep(_LOCK_PAUSE_SECONDS)
        else:
            return


def _upgrade(connection: SyncConnection) -> None:
    """Take the steps; nothing where the schema is newer than this program and works with it.

    Which programs the schema works with is stated before the first step, too: they must know it while it is taken.
    """
    inspector = inspect(connection)
    found = None
    if inspector.has_table("alembic_version"):
        found = connection.scalar(text("select version_num from alembic_version"))
        if found is None or found <= REVISION:
            connection.execute(text(compatibility_statement()))
    connection.commit()
    if found is not None and found > REVISION:
        return
    command.upgrade(alembic_config(connection), REVISION)
    connection.execute(text(compatibility_statement()))
    connection.commit()
