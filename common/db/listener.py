"""The listener: a session of its own that waits for notifications.

A notification carries no data: it only wakes the owner. The connection may break unnoticed, so a heartbeat with a
deadline runs on it. Notifications sent meanwhile are lost, so each new connection first executes LISTEN and then wakes
the owner. Owners also poll slowly: correctness never depends on a notification.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from common.db.outages import level_of
from common.db.session import DEFAULT_TIMEOUTS, Connection, SessionTimeouts, open_session, translate_errors
from common.errors import DatabaseUnavailable, OperatorError
from common.logs import get_logger
from common.retry_pauses import RetryPauses

CHANNEL = "frontage_changes"

_HEARTBEAT_SECONDS = 2.0
_FIRST_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 3.0

_log = get_logger("common.db.listener")

Source = str | Callable[[], str]
"""A DSN, or a function that returns it: the DSN of an embedded server changes with each start."""


class Listener:
    """A session that listens on a channel and wakes its owner.

    Created by a role, which runs `run` as a task and cancels it; the connection lives within `run`.
    """

    def __init__(
        self,
        source: Source,
        on_wake: Callable[[], None],
        *,
        channel: str = CHANNEL,
        application_name: str = "frontage listener",
        timeouts: SessionTimeouts = DEFAULT_TIMEOUTS,
        heartbeat_seconds: float = _HEARTBEAT_SECONDS,
    ) -> None:
        """Prepare the listener; `run` connects.

        `on_wake` is called in the loop, once LISTEN stands on a new connection and at each notification.
        """
        self._source = source
        self._on_wake = on_wake
        self._channel = channel
        self._application_name = application_name
        self._timeouts = timeouts
        self._heartbeat_seconds = heartbeat_seconds
        self.is_listening = False

    async def run(self) -> None:
        """Listen until cancelled, reconnecting as often as necessary."""
        pauses = RetryPauses(first=_FIRST_PAUSE_SECONDS, longest=_LONGEST_PAUSE_SECONDS)
        while True:
            try:
                await self._listen()
            except (DatabaseUnavailable, OperatorError) as error:
                if self.is_listening:
                    pauses.reset()
                    _log.log(level_of(error), "listening interrupted", error=str(error))
            finally:
                self.is_listening = False
            await asyncio.sleep(pauses.next_seconds())

    async def _listen(self) -> None:
        """Open one connection and listen on it.

        Raises: `DatabaseUnavailable` when it ends; `OperatorError` when there is no address.
        """
        dsn = self._source() if callable(self._source) else self._source
        connection = await open_session(dsn, self._application_name, self._timeouts)
        try:
            with translate_errors(connection):
                await self._listen_until_closed(connection)
        finally:
            connection.terminate()

    async def _listen_until_closed(self, connection: Connection) -> None:
        """Listen on the connection and wake the owner, with heartbeats, until the connection ends.

        Raises: `DatabaseUnavailable`.
        """
        ended = asyncio.Event()
        connection.add_termination_listener(lambda _: ended.set())
        await connection.add_listener(self._channel, self._on_notification)
        self.is_listening = True
        self._on_wake()
        while True:
            try:
                await asyncio.wait_for(ended.wait(), self._heartbeat_seconds)
            except TimeoutError:
                await connection.execute("select", timeout=self._heartbeat_seconds)
            else:
                raise DatabaseUnavailable("the listening connection was closed")

    def _on_notification(self, *_: Any) -> None:
        self._on_wake()
