"""Bringing the schema up. The steps are ``migrations/versions``; Alembic keeps which of them were taken.

An advisory lock lets one of several migrations work that are started together; the others then find nothing to do.
Each step is one transaction, so a failed one leaves nothing behind; the steps before it stay, and the next run goes on
from there. The lock is taken before Alembic is entered, because Alembic's context is one a process.

The roles go on working meanwhile. How a step is written so that they do is described in `common.db.migrations.scripts`.
"""

from __future__ import annotations

import asyncio
from pathlib import Path

import asyncpg
from alembic import command
from alembic.config import Config
from sqlalchemy import Connection as SyncConnection
from sqlalchemy import text
from sqlalchemy.exc import DBAPIError
from sqlalchemy.ext.asyncio import AsyncConnection, create_async_engine
from sqlalchemy.pool import NullPool

from common.db.pool import refuse_transaction_pooler
from common.db.schema import REVISION, check_schema
from common.db.session import Connection, Patience, is_passing, open_session, unavailable
from common.errors import OperatorError

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


async def migrate(dsn: str) -> None:
    """Take every step that is missing.

    Raises: `OperatorError`, `DatabaseUnavailable`.
    """
    await refuse_transaction_pooler(dsn, _NAME)

    async def connect() -> Connection:
        return await open_session(dsn, _NAME, _PATIENCE)

    engine = create_async_engine("postgresql+asyncpg://", async_creator=connect, poolclass=NullPool)
    try:
        async with asyncio.timeout(_LONGEST_SECONDS), engine.connect() as connection:
            await _lock(connection)
            await _take_steps(connection)
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


async def _lock(connection: AsyncConnection) -> None:
    """Until the session ends. A session that waits inside the statement would keep a snapshot, which CREATE INDEX
    CONCURRENTLY in the session that holds the lock waits for."""
    while not await connection.scalar(text("select pg_try_advisory_lock(:lock)"), {"lock": _LOCK}):
        await connection.rollback()
        await asyncio.sleep(_LOCK_PAUSE_SECONDS)
    await connection.commit()


async def _take_steps(connection: AsyncConnection) -> None:
    """A step gives up rather than queue for a table's lock, and everything else behind it; it is then tried again."""
    while True:
        try:
            await connection.run_sync(_upgrade)
        except asyncpg.LockNotAvailableError:
            await connection.rollback()
            await asyncio.sleep(_LOCK_PAUSE_SECONDS)
        else:
            return


def _upgrade(connection: SyncConnection) -> None:
    command.upgrade(alembic_config(connection), REVISION)
