"""The pool: how a role's requests and jobs reach Postgres.

Everything that waits has a deadline on our side, because a frozen server keeps none: a connection that missed
one is thrown away, and the next caller opens another. So the pool can be made while Postgres is down and
heals by itself. At the first connection it is tried out whether sessions stay whole (`refuse_transaction_pooler`).

Query modules take the connection as their first argument; SQL lives in ``common.db`` only.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from typing import Any, cast

import asyncpg
from asyncpg.pool import PoolConnectionProxy

from common.db.commits import Commits
from common.db.session import (
    DEFAULT_TIMEOUTS,
    TRANSACTION_POOLER,
    CommitUnanswered,
    Connection,
    SessionTimeouts,
    is_transient,
    open_session,
    to_unavailable,
    transaction,
    translate_errors,
)
from common.errors import DatabaseUnavailable, OperatorError
from common.metrics import Family

__all__ = ["Connection", "Database", "SessionTimeouts", "open_pool", "refuse_transaction_pooler"]

_IDLE_SECONDS = 60.0
_CLOSE_SECONDS = 2.0
_PROBE_SECONDS = 2.0


class Database:
    """A role's way to Postgres. Made and closed by `open_pool`; safe to share among tasks."""

    def __init__(self, dsn: str, *, size: int, application_name: str, timeouts: SessionTimeouts) -> None:
        self._dsn = dsn
        self._application_name = application_name
        self._timeouts = timeouts
        self._is_probed = False
        self._waiting = 0
        self._probing = asyncio.Lock()
        self._commits = Commits(lambda: open_session(dsn, application_name, timeouts), timeouts)
        self._pool = asyncpg.Pool(
            dsn,
            min_size=0,
            max_size=size,
            max_queries=50_000,
            max_inactive_connection_lifetime=_IDLE_SECONDS,
            connect=cast("Any", self._open),
            reset=_keep_session,
            loop=None,
            connection_class=asyncpg.Connection,
            record_class=asyncpg.Record,
        )

    @asynccontextmanager
    async def connection(self) -> AsyncIterator[Connection]:
        """Lend a connection outside a transaction for the block, for single statements.

        Raises: `DatabaseUnavailable`.
        """
        borrowed = await self._acquire()
        connection = cast("Connection", borrowed)
        try:
            with translate_errors(connection):
                yield connection
        except DatabaseUnavailable as error:
            if isinstance(error.__cause__, TimeoutError):  # the server keeps silent: on the idle connections, too
                await self._pool.expire_connections()
            raise
        finally:
            await self._pool.release(borrowed, timeout=self._timeouts.query_seconds)

    @asynccontextmanager
    async def transaction(self) -> AsyncIterator[Connection]:
        """Lend a connection in a READ COMMITTED transaction: committed at the block's end, rolled back if it raises.

        Raises: `DatabaseUnavailable`; if it comes from the commit, whether it took effect is unknown. `DatabaseBusy` at
        once while the server answers no commit.
        """
        self._commits.require_answers()
        async with self.connection() as connection:
            try:
                async with transaction(connection, commit_seconds=self._timeouts.query_seconds):
                    yield connection
            except CommitUnanswered:
                self._commits.note_unanswered()
                raise

    async def open(self) -> None:
        """Probe the server now if it answers; if it does not, the first connection will.

        Raises: `OperatorError` for a server Frontage cannot work with.
        """
        await self._pool
        with suppress(DatabaseUnavailable):
            async with self.connection():
                pass

    async def close(self) -> None:
        """Wait a moment for borrowed connections, then drop all."""
        self._commits.close()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._drain(), _CLOSE_SECONDS)

    async def _drain(self) -> None:
        await self._pool.close()

    def families(self) -> list[Family]:
        """Return measurements: how many connections there may be, are in use, and are waited for."""
        in_use = self._pool.get_size() - self._pool.get_idle_size()
        return [
            Family.of("frontage_pool_size", "Most connections to Postgres.", "gauge", self._pool.get_max_size()),
            Family.of("frontage_pool_in_use", "Connections to Postgres in use.", "gauge", in_use),
            Family.of("frontage_pool_waiting", "Tasks that wait for a connection.", "gauge", self._waiting),
        ]

    async def _acquire(self) -> PoolConnectionProxy[asyncpg.Record]:
        self._waiting += 1
        try:
            return await self._acquire_now()
        finally:
            self._waiting -= 1

    async def _acquire_now(self) -> PoolConnectionProxy[asyncpg.Record]:
        try:
            return await self._pool.acquire(timeout=self._timeouts.acquire_seconds)
        except (DatabaseUnavailable, OperatorError):
            raise
        except Exception as error:
            if is_transient(error) or isinstance(error, asyncpg.InterfaceError):  # the latter: the pool is closing
                raise to_unavailable(error) from error
            raise

    async def _open(self, dsn: str, **_: Any) -> Connection:
        """Open a connection for the pool; the first one probes the server."""
        if not self._is_probed:
            async with self._probing:
                if not self._is_probed:
                    await refuse_transaction_pooler(dsn, self._application_name, self._timeouts)
                    self._is_probed = True
        return await open_session(dsn, self._application_name, self._timeouts)


@asynccontextmanager
async def open_pool(
    dsn: str, *, size: int, application_name: str, timeouts: SessionTimeouts = DEFAULT_TIMEOUTS
) -> AsyncIterator[Database]:
    """Open a pool of at most `size` connections, opened when needed and dropped after a minute without use.

    Raises: `OperatorError` for a server that is there but that Frontage cannot work with.
    """
    database = Database(dsn, size=size, application_name=application_name, timeouts=timeouts)
    try:
        await database.open()
        yield database
    finally:
        await database.close()


async def _keep_session(_: Connection) -> None:
    """Reset nothing: sessions are left as they were configured (no code changes them), which saves a round trip."""


async def refuse_transaction_pooler(
    dsn: str, application_name: str, timeouts: SessionTimeouts = DEFAULT_TIMEOUTS
) -> None:
    """Refuse a server behind a transaction-mode pooler, where what a session sets and LISTENs to does not stay with it.

    Raises: `OperatorError`, `DatabaseUnavailable`.
    """
    mine = await open_session(dsn, application_name, timeouts)
    try:
        theirs = await open_session(dsn, application_name, timeouts)
        try:
            with translate_errors(mine), translate_errors(theirs):
                is_whole = await _is_session_whole(mine, theirs)
        finally:
            theirs.terminate()
    finally:
        mine.terminate()
    if not is_whole:
        raise OperatorError(TRANSACTION_POOLER)


async def _is_session_whole(mine: Connection, theirs: Connection) -> bool:
    """Return whether a session keeps its settings, and gets the notifications that it LISTENs for.

    While `theirs` holds a transaction open, a pooler must serve `mine` by another server connection; and a notification
    reaches the client that LISTENs only if its server connection is still its own.
    """
    token = secrets.token_hex(8)
    channel = f"frontage_probe_{token}"
    received = asyncio.Event()
    await mine.execute(f"set frontage.probe = '{token}'")
    await mine.add_listener(channel, lambda *_: received.set())
    async with theirs.transaction():
        await theirs.execute(f"notify {channel}")
        if await mine.fetchval("select current_setting('frontage.probe', true)") != token:
            return False
    try:
        await asyncio.wait_for(received.wait(), _PROBE_SECONDS)
    except TimeoutError:
        return False
    return True
