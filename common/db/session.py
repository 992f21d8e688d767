"""One session with Postgres: opened with every time-out set, its failures classified.

Owns the connect parameters, the JSON codecs and the border at which the driver's errors become
`DatabaseUnavailable`. The pool, the listener and the change feed all open their connections here. A
session ends with ``terminate()``, never with a bare ``close()``, which waits for ever for a frozen server.
"""

from __future__ import annotations

import asyncio
import os
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Final, TypeAlias

import asyncpg
import orjson
from asyncpg.transaction import Transaction

from common.db import outages
from common.db.hosts import reach_first, split_hosts
from common.errors import DatabaseBusy, DatabaseForbidden, DatabaseUnavailable, OperatorError, ReadOnlyDatabase

Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record]"

OLDEST_VERSION = 140_000

UNAWAITED: Final = "set_config('synchronous_commit', 'off', true)"
"""Returned by a statement that notes something beside what is read: the answer waits neither for the disk nor for a
synchronous standby, and a server that crashes forgets the last notes. It holds for the whole transaction, so that the
statement must be one by itself."""

# Parameters of an address, as psql takes them, that are no settings of the server.
_LIBPQ_DEADLINES = frozenset(
    ("connect_timeout", "tcp_user_timeout", "keepalives", "keepalives_idle", "keepalives_interval", "keepalives_count")
)


@dataclass(frozen=True, slots=True)
class SessionTimeouts:
    """The time-outs of a session, in seconds. A server that works gives up a little before the client does."""

    connect_seconds: float = 3.0
    acquire_seconds: float = 4.0
    query_seconds: float = 5.0
    statement_seconds: float = 4.0
    lock_seconds: float = 3.0
    idle_in_transaction_seconds: float = 10.0


DEFAULT_TIMEOUTS = SessionTimeouts()


class CommitUnanswered(TimeoutError):
    """A commit got no answer in time: whether it took effect, or will, is unknown."""


# A server's machine is gone when it acknowledges nothing for two and a half seconds, idle ones for three.
_DEAD_PEER_OPTIONS = (
    (socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1),
    (socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, 2),
    (socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, 1),
    (socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, 2500),
)

# Failures of the moment: the same work may succeed later, on another connection.
_TRANSIENT = (
    asyncpg.PostgresConnectionError,
    asyncpg.ConnectionDoesNotExistError,
    asyncpg.OperatorInterventionError,  # shutting down, crashed, cancelled by statement_timeout, terminated
    asyncpg.InsufficientResourcesError,  # too many connections, disk full, out of memory
    asyncpg.TransactionRollbackError,  # deadlock, serialization
    asyncpg.LockNotAvailableError,
    asyncpg.IdleInTransactionSessionTimeoutError,
    asyncpg.ReadOnlySQLTransactionError,  # a standby after a fail-over
    asyncpg.InternalClientError,  # the stream of messages made no sense: the connection is gone
)

# Of these, what a running server says of work that it gave up (`DatabaseBusy`).
_GIVEN_UP = (
    asyncpg.QueryCanceledError,
    asyncpg.InsufficientResourcesError,
    asyncpg.TransactionRollbackError,
    asyncpg.LockNotAvailableError,
    asyncpg.IdleInTransactionSessionTimeoutError,
)

# What a pooler in transaction mode makes of prepared statements: they are on another server connection.
_LOST_STATEMENTS = (asyncpg.InvalidSQLStatementNameError, asyncpg.DuplicatePreparedStatementError)
_STANDBY = "this database is a read-only standby"
_NO_ADDRESS = "FRONTAGE_DATABASE_URL is no address of a database: expected postgresql://user:password@host:port/name"
_LOGINS = (
    "commands need the login that owns the tables, a role one of its own group (`frontage migrate --roles` makes them)"
)
TRANSACTION_POOLER = (
    "FRONTAGE_DATABASE_URL leads to a pooler in transaction mode, which loses LISTEN and session settings: "
    "point it at Postgres itself, or at a pool in session mode"
)


def is_transient(error: BaseException, connection: Connection | None = None) -> bool:
    """Return whether `error` means that Postgres is absent or too slow, rather than that the statement is wrong."""
    if isinstance(error, asyncpg.InterfaceError):
        return connection is not None and is_gone(connection)
    return isinstance(error, (*_TRANSIENT, TimeoutError, OSError))


def is_gone(connection: Connection) -> bool:
    """Return whether the connection has ended; one borrowed from a pool then refuses even the question."""
    try:
        return connection.is_closed()
    except asyncpg.InterfaceError:
        return True


def to_unavailable(error: BaseException) -> DatabaseUnavailable:
    """Return `error` as `DatabaseUnavailable`, in one line; chain it with ``from``.

    An outage is logged once (`common.db.outages`).
    """
    translated = _translate(error)
    outages.note_failure(translated)
    return translated


def _translate(error: BaseException) -> DatabaseUnavailable:
    """Return the driver's error as ours, in words for the operator."""
    if isinstance(error, asyncpg.ReadOnlySQLTransactionError):
        return ReadOnlyDatabase(_STANDBY)
    if isinstance(error, TimeoutError):
        return DatabaseUnavailable("the database did not answer in time")
    if isinstance(error, _GIVEN_UP):
        return DatabaseBusy(f"the database gave up: {_first_line(error)}")
    return DatabaseUnavailable(f"the database cannot be reached: {_first_line(error)}")


def _first_line(error: BaseException) -> str:
    """Return the error's first line; of the system's errors its words, without the number."""
    if isinstance(error, OSError) and error.errno is not None:
        return os.strerror(error.errno) if error.errno > 0 else str(error.strerror)
    return str(error).partition("\n")[0] or type(error).__name__


@contextmanager
def translate_errors(connection: Connection) -> Iterator[None]:
    """Translate the driver's errors in a block that works on `connection`, and end the connection where it is broken.

    A connection that failed for the moment, or was left by cancellation in the middle of an answer, is thrown away at
    once (waiting for it to recover would take as long again).

    Raises: `DatabaseUnavailable`; `DatabaseForbidden`; `OperatorError` behind a pooler in transaction mode.
    """
    try:
        yield
    except asyncpg.InsufficientPrivilegeError as error:
        raise DatabaseForbidden(f"the database's login may not do this ({_first_line(error)}): {_LOGINS}") from error
    except _LOST_STATEMENTS as error:
        connection.terminate()
        raise OperatorError(TRANSACTION_POOLER) from error
    except BaseException as error:
        transient = is_transient(error, connection)
        if (transient or not isinstance(error, Exception)) and not is_gone(connection):
            connection.terminate()
        if transient:
            raise to_unavailable(error) from error
        raise


@asynccontextmanager
async def transaction(
    connection: Connection, *, is_snapshot: bool = False, commit_seconds: float = DEFAULT_TIMEOUTS.query_seconds
) -> AsyncIterator[None]:
    """Run the block in a transaction: committed at its end, rolled back if it raises.

    It is READ COMMITTED; a snapshot sees one moment only (REPEATABLE READ) and writes nothing. It is not rolled back if
    `translate_errors` is about to throw the connection away, since a frozen server would answer the rollback no sooner
    than what went before. `commit_seconds` is at most the session's time-out of a statement.

    Raises: `CommitUnanswered`.
    """
    block = connection.transaction(isolation="repeatable_read" if is_snapshot else None, readonly=is_snapshot)
    await block.start()
    try:
        yield
    except BaseException as error:
        if isinstance(error, Exception) and not is_transient(error, connection):
            await block.rollback()
        raise
    await _commit(block, connection, commit_seconds)


async def _commit(block: Transaction, connection: Connection, within_seconds: float) -> None:
    """Commit; if no answer comes in time, or nobody waits for it any more, end the connection without cancelling.

    A commit may wait for a synchronous standby. Postgres ends that wait when it is cancelled, by showing to all what
    the standby has not: edges would serve what the next failover takes back. The driver cancels a statement that missed
    its deadline, or whose task is cancelled; so the connection ends before it does.

    Raises: `CommitUnanswered`.
    """
    loop = asyncio.get_running_loop()
    deadline = loop.call_later(within_seconds, connection.terminate)
    committing = asyncio.ensure_future(block.commit())
    try:
        await asyncio.shield(committing)
    except asyncio.CancelledError:
        connection.terminate()
        await asyncio.wait((committing,))  # it has failed by now, or was answered
        if not committing.cancelled():
            committing.exception()  # else the loop logs it as never retrieved
        raise
    except (asyncpg.PostgresConnectionError, asyncpg.InterfaceError) as error:
        if loop.time() >= deadline.when():
            raise CommitUnanswered from error
        raise
    finally:
        deadline.cancel()


async def open_session(dsn: str, application_name: str, timeouts: SessionTimeouts = DEFAULT_TIMEOUTS) -> Connection:
    """Open a connection of the caller's own, with every time-out set.

    Raises: `DatabaseUnavailable`; `OperatorError` for an address that is none or a server too old.
    """
    connection = await _connect(dsn, application_name, timeouts)
    with translate_errors(connection):
        try:
            await _configure(connection, timeouts)
            outages.note_answer()
        except BaseException:
            connection.terminate()
            raise
    return connection


async def _connect(dsn: str, application_name: str, timeouts: SessionTimeouts) -> Connection:
    """Connect to the first server of the address that answers and writes.

    Raises: `DatabaseUnavailable`; `OperatorError` for an address that is none.
    """
    try:
        addresses = split_hosts(_without_deadlines(dsn))
    except ValueError as error:
        raise OperatorError(_NO_ADDRESS) from error
    try:
        return await reach_first(
            addresses,
            lambda address: _connect_to_one(address, application_name, timeouts),
            within_seconds=timeouts.connect_seconds,
        )
    except DatabaseUnavailable as error:
        outages.note_failure(error)
        raise


async def _connect_to_one(dsn: str, application_name: str, timeouts: SessionTimeouts) -> Connection:
    """Connect to one server.

    Raises: `DatabaseUnavailable`; `OperatorError` for an address that is none.
    """
    try:
        connection = await asyncpg.connect(
            dsn,
            timeout=timeouts.connect_seconds,
            command_timeout=timeouts.query_seconds,
            server_settings={"application_name": application_name},
        )
    except asyncpg.TargetServerAttributeNotMatched as error:
        raise ReadOnlyDatabase(_STANDBY) from error
    except (asyncpg.ClientConfigurationError, ValueError) as error:
        raise OperatorError(_NO_ADDRESS) from error  # not the driver's words, which may quote a password
    except (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError) as error:
        raise _translate(error) from error
    _end_when_peer_is_dead(connection)
    return connection


def _end_when_peer_is_dead(connection: Connection) -> None:
    """Have the kernel end the connection once the server's machine acknowledges nothing, sent or idle.

    A pool's idle connections to a server that is gone would otherwise each cost a caller its whole deadline.
    """
    transport: asyncio.BaseTransport = connection._transport  # type: ignore[attr-defined]  # there is no public way
    peer = transport.get_extra_info("socket")
    if peer is None or peer.family == socket.AF_UNIX:
        return
    for level, option, value in _DEAD_PEER_OPTIONS:
        peer.setsockopt(level, option, value)


def _without_deadlines(dsn: str) -> str:
    """Return `dsn` without libpq's deadlines, which the driver would pass on to the server, which refuses them.

    Ours hold instead: those of `SessionTimeouts`, and `_DEAD_PEER_OPTIONS`.
    """
    address, _, query = dsn.partition("?")
    kept = [parameter for parameter in query.split("&") if parameter.partition("=")[0] not in _LIBPQ_DEADLINES]
    return f"{address}?{'&'.join(kept)}" if query and kept else address


async def _configure(connection: Connection, timeouts: SessionTimeouts) -> None:
    """Set the session's time-outs and codecs, and refuse a server that is too old.

    Time-outs are set by a statement rather than as start-up parameters, which session poolers refuse. The keepalives
    let the server find out that we are gone; whether it is, our own deadlines tell.

    Raises: `OperatorError`.
    """
    version = await connection.fetchval(
        "select set_config('statement_timeout', $1, false), set_config('lock_timeout', $2, false),"
        " set_config('idle_in_transaction_session_timeout', $3, false), set_config('timezone', 'UTC', false),"
        " set_config('tcp_keepalives_idle', '30', false), set_config('tcp_keepalives_interval', '10', false),"
        " current_setting('server_version_num')::int",
        _milliseconds(timeouts.statement_seconds),
        _milliseconds(timeouts.lock_seconds),
        _milliseconds(timeouts.idle_in_transaction_seconds),
        column=6,
    )
    if version < OLDEST_VERSION:
        raise OperatorError(
            f"this Postgres is version {version // 10_000}: Frontage needs {OLDEST_VERSION // 10_000} or later"
        )
    for json_type in ("json", "jsonb"):
        await connection.set_type_codec(json_type, schema="pg_catalog", encoder=_dump, decoder=orjson.loads)


def _dump(value: object) -> str:
    return orjson.dumps(value).decode()


def _milliseconds(seconds: float) -> str:
    return f"{round(seconds * 1000)}ms"
