"""Whether Postgres answers commits: writes are refused at once while it answers none.

A commit that waits for a synchronous standby keeps a session of the server for as long, and must not be cancelled
(`common.db.session`). If each refused request left one behind, a minute without a standby would use up
``max_connections`` and take reading with it. So the first unanswered commit shuts the gate, and one session of our own
tries until a commit is answered.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress

import asyncpg

from common.db.session import Connection, SessionTimeouts
from common.errors import DatabaseBusy, DatabaseUnavailable, OperatorError
from common.logs import get_logger

_log = get_logger("common.db.commits")


class Commits:
    """The gate before the transactions of a pool. `open_session` opens a session of its own for the trials."""

    def __init__(self, open_session: Callable[[], Awaitable[Connection]], timeouts: SessionTimeouts) -> None:
        self._open_session = open_session
        self._timeouts = timeouts
        self._trying: asyncio.Task[None] | None = None

    def require_answers(self) -> None:
        """Refuse a transaction while the server answers no commit.

        Raises: `DatabaseBusy`.
        """
        if self._trying is not None:
            raise DatabaseBusy("the database answers no commit: it may be waiting for a standby")

    def note_unanswered(self) -> None:
        """Shut the gate until a trial is answered."""
        if self._trying is None:
            _log.warning("the database answers no commit; writes are refused until it does")
            self._trying = asyncio.create_task(self._try_until_answered())
            self._trying.add_done_callback(self._open_again)

    def close(self) -> None:
        """End the trials."""
        if self._trying is not None:
            self._trying.cancel()

    def _open_again(self, _: asyncio.Task[None]) -> None:
        self._trying = None

    async def _try_until_answered(self) -> None:
        """Commit until it is answered, or the server cannot be reached, where no session waits either."""
        while await self._is_unanswered():
            pass
        _log.info("writes are accepted again")

    async def _is_unanswered(self) -> bool:
        """Return whether a commit of our own, of something written to the log of the server, got no answer.

        It shows nothing to anybody, so that the driver may cancel it at its deadline (the statement is its own
        transaction): else each trial would leave one more session of the server waiting.
        """
        try:
            session = await self._open_session()
        except (DatabaseUnavailable, OperatorError):
            return False
        try:
            await session.execute("select pg_logical_emit_message(true, 'frontage', 'trial')")
        except TimeoutError:
            with suppress(asyncpg.PostgresError, asyncpg.InterfaceError, OSError):
                await session.close(timeout=self._timeouts.query_seconds)  # once it is cancelled
            return True
        except (asyncpg.PostgresError, asyncpg.InterfaceError, OSError) as error:
            _log.warning("it cannot be tried whether the database answers commits", error=str(error))
            return False
        finally:
            session.terminate()
        return False
