"""Which sessions keep a migration waiting, and for how long it puts up with that.

Any login can take an advisory lock, and can keep a table that it may read, or a snapshot, for as long as it likes: a
stolen login of an edge, a backup, a forgotten transaction. A migration waits for none of them for ever.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field

import asyncpg

from common.db.session import Connection

GIVE_UP_SECONDS = 300.0

_SHOWN_SECONDS = 5.0  # after which the operator is shown what is waited for
_GAP_SECONDS = 5.0  # without which a session counts as keeping the migration waiting all the time
_POLL_SECONDS = 0.2

_SESSIONS = (
    "select pid, coalesce(usename, '') as login, application_name, host(client_addr) as address from pg_stat_activity"
)
_HOLDERS = (
    "select pid from pg_locks where locktype = 'advisory' and granted and objsubid = 1"
    " and classid::bigint << 32 | objid::bigint = $1"
    " and database = (select oid from pg_database where datname = current_database())"
)

OnWait = Callable[[str], None]
"""Called once for each session that keeps a migration waiting, with a sentence."""


@dataclass(frozen=True, slots=True)
class BlockingSession:
    """A session of Postgres that keeps the migration waiting."""

    pid: int
    login: str
    application_name: str
    address: str | None

    def __str__(self) -> str:
        details = ", ".join(filter(None, (self.application_name, self.address)))
        return f"session {self.pid} of the login {self.login}{f' ({details})' if details else ''}"


@dataclass(slots=True)
class _WaitTimes:
    """The moments between which a session has kept the migration waiting, of the loop's clock."""

    first_at: float
    last_at: float
    is_shown: bool = False


@dataclass(slots=True)
class Blockers:
    """The sessions that keep one migration waiting.

    Mutable state: since when each session has kept it waiting, and for which it gave up.
    """

    on_wait: OnWait
    give_up_seconds: float = GIVE_UP_SECONDS
    gave_up_for: BlockingSession | None = None
    _seen: dict[int, _WaitTimes] = field(default_factory=dict)

    def observe(self, sessions: Sequence[BlockingSession], now: float) -> bool:
        """Note what blocks at this moment, and return whether to give up."""
        for session in sessions:
            seen = self._seen.get(session.pid)
            if seen is None or now - seen.last_at > _GAP_SECONDS:
                seen = self._seen[session.pid] = _WaitTimes(now, now)
            seen.last_at = now
            waited_seconds = now - seen.first_at
            if waited_seconds >= min(_SHOWN_SECONDS, self.give_up_seconds) and not seen.is_shown:
                seen.is_shown = True
                self.on_wait(f"waiting for {session}")
            if waited_seconds >= self.give_up_seconds:
                self.gave_up_for = session
        return self.gave_up_for is not None

    @property
    def advice(self) -> str:
        """Return what the operator can do, once the migration gave up."""
        session = self.gave_up_for
        assert session is not None, "there is advice only about a session"
        return (
            f"{session} has kept the migration waiting for {self.give_up_seconds:g} seconds: end it with"
            f" `select pg_terminate_backend({session.pid})` and run `frontage migrate` again. If it returns, stop its"
            f' program, or lock its login with `alter role "{session.login}" nologin`'
        )


async def find_lock_holders(connection: Connection, lock: int) -> list[BlockingSession]:
    """Return the sessions of other logins that hold this advisory lock. One of the own login is another migration."""
    return await _fetch(connection, f"usename is distinct from session_user and pid in ({_HOLDERS})", lock)


async def watch(connection: Connection, migrating_pid: int, blockers: Blockers) -> None:
    """Observe what blocks the session `migrating_pid`, until cancelled; cancel its statement once they give up."""
    loop = asyncio.get_running_loop()
    with suppress(asyncpg.PostgresError, asyncpg.InterfaceError, OSError):  # the migration goes on unwatched
        while True:
            sessions = await _fetch(connection, "pid = any(pg_blocking_pids($1))", migrating_pid)
            if blockers.observe(sessions, loop.time()):
                await connection.execute("select pg_cancel_backend($1)", migrating_pid)
            await asyncio.sleep(_POLL_SECONDS)


async def _fetch(connection: Connection, condition: str, argument: int) -> list[BlockingSession]:
    """Return the sessions that meet the condition."""
    return [BlockingSession(**row) for row in await connection.fetch(f"{_SESSIONS} where {condition}", argument)]
