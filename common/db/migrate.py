"""Bring the schema up: take the steps of `common.db.migrations` that are missing.

An advisory lock lets one of several migrations work that are started together; the others then find nothing to do.
A script is one transaction, so a failed one leaves nothing behind; the steps before it stay, and the next run goes on
from there. What other sessions hold is waited for, but not for ever (`common.db.migration_blockers`).

The roles go on working meanwhile. How a step is written so that they do is described in `common.db.migrations.scripts`.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager

import asyncpg

from common.db.migration_blockers import GIVE_UP_SECONDS, Blockers, OnWait, find_lock_holders, watch
from common.db.migrations.steps import Step, find_steps, read_step
from common.db.pool import refuse_transaction_pooler
from common.db.schema import REVISION, check_schema, compatibility_statement
from common.db.session import DEFAULT_TIMEOUTS, Connection, SessionTimeouts, is_transient, open_session, to_unavailable
from common.errors import DatabaseForbidden, DatabaseUnavailable, OperatorError

__all__ = ["REVISION", "check_schema", "migrate"]

_NAME = "frontage migrate"
_LOCK = 0x46524F4E54414745  # "FRONTAGE"
_LOCK_PAUSE_SECONDS = 0.1
_LONGEST_SECONDS = 4 * 3600.0
_TIMEOUTS = SessionTimeouts(
    query_seconds=_LONGEST_SECONDS,
    statement_seconds=_LONGEST_SECONDS,
    lock_seconds=_LONGEST_SECONDS,
    idle_in_transaction_seconds=60.0,
)


async def migrate(
    dsn: str,
    *,
    on_wait: OnWait = lambda _words: None,
    give_up_seconds: float = GIVE_UP_SECONDS,
    steps: Sequence[Step] | None = None,
) -> None:
    """Take every one of `steps` (those of this program) that is missing.

    `on_wait` is called with which session keeps it waiting.

    Raises: `OperatorError`, also when a session kept it waiting for `give_up_seconds`; `DatabaseUnavailable`.
    """
    await refuse_transaction_pooler(dsn, _NAME)
    blockers = Blockers(on_wait, give_up_seconds)
    try:
        await _migrate(dsn, find_steps() if steps is None else steps, blockers)
    except (OperatorError, DatabaseUnavailable) as error:
        if blockers.gave_up_for is None:
            raise
        raise OperatorError(blockers.advice) from error


async def _migrate(dsn: str, steps: Sequence[Step], blockers: Blockers) -> None:
    """Take the steps in one session, while another watches what blocks it.

    Raises: `OperatorError`, `DatabaseUnavailable`.
    """
    try:
        async with asyncio.timeout(_LONGEST_SECONDS), _session(dsn, _TIMEOUTS) as connection, _session(dsn) as watcher:
            await _lock(connection, watcher, blockers)
            watching = asyncio.create_task(
                watch(watcher, connection.get_server_pid(), blockers), name="migrate: watch blockers"
            )
            try:
                await _take_steps(connection, steps, blockers)
            finally:
                watching.cancel()
    except TimeoutError as error:
        raise to_unavailable(error) from error
    except asyncpg.InsufficientPrivilegeError as error:
        raise DatabaseForbidden(
            f"this login may not bring the schema up ({error}): migrate with the login that owns the tables"
        ) from error
    except (asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        if is_transient(error):
            raise to_unavailable(error) from error
        raise OperatorError(f"the schema could not be brought up: {error}") from error


@asynccontextmanager
async def _session(dsn: str, timeouts: SessionTimeouts = DEFAULT_TIMEOUTS) -> AsyncIterator[Connection]:
    """Open a session of the migration's own, and end it with the block."""
    connection = await open_session(dsn, _NAME, timeouts)
    try:
        yield connection
    finally:
        connection.terminate()


async def _lock(connection: Connection, watcher: Connection, blockers: Blockers) -> None:
    """Take the lock of migrations until the session ends.

    A session that waits inside the statement would keep a snapshot, which CREATE INDEX CONCURRENTLY in the session that
    holds the lock waits for.

    Raises: `OperatorError` when a session of another login holds it for long.
    """
    loop = asyncio.get_running_loop()
    while not await connection.fetchval("select pg_try_advisory_lock($1)", _LOCK):
        if blockers.observe(await find_lock_holders(watcher, _LOCK), loop.time()):
            raise OperatorError(blockers.advice)
        await asyncio.sleep(_LOCK_PAUSE_SECONDS)


async def _take_steps(connection: Connection, steps: Sequence[Step], blockers: Blockers) -> None:
    """Take the steps after the database's; none where the schema is newer than this program and works with it.

    Which programs the schema works with is stated before the first step, too: they must know it while it is taken.

    Raises: `OperatorError` when a session keeps a step waiting for long, or the schema is older than the first step.
    """
    found = await read_step(connection)
    if found is not None:
        if found > steps[-1].number:
            return
        if found < steps[0].number:
            raise OperatorError(
                f"the database has schema {found}, from before the first release: this version takes over"
                f" {steps[0].number} and later"
            )
        await connection.execute(compatibility_statement())
    for step in steps:
        if found is None or step.number > found:
            await _take(connection, step, blockers)
    await connection.execute(compatibility_statement())


async def _take(connection: Connection, step: Step, blockers: Blockers) -> None:
    """Take one step, again and again until no other session keeps it waiting.

    It gives up rather than queue for a table's lock, and everything else behind it, and is then tried again.

    Raises: `OperatorError` when a session keeps it waiting for long.
    """
    while True:
        try:
            return await step.take(connection)
        except asyncpg.LockNotAvailableError:
            if blockers.gave_up_for is not None:
                raise OperatorError(blockers.advice) from None
            await asyncio.sleep(_LOCK_PAUSE_SECONDS)
