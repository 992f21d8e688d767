"""The listener: one connection that only waits to be woken.

A notification says that something changed, never what. The connection may be lost without a word, so a heartbeat
with a deadline runs over it; and whatever happened while it was away was not heard, so each new connection LISTENs
first and then wakes its owner. Owners poll slowly besides: a wake-up is a courtesy.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from common.db.session import DEFAULT_PATIENCE, Connection, Patience, border, open_session
from common.errors import DatabaseUnavailable, OperatorError
from common.logs import get_logger

CHANNEL = "frontage_changes"

_HEARTBEAT_SECONDS = 2.0
_FIRST_PAUSE_SECONDS = 0.1
_LONGEST_PAUSE_SECONDS = 3.0

_log = get_logger("common.db.listener")

Source = str | Callable[[], str]
"""An address of Postgres, or who knows it: an embedded server has another after each start."""


class Listener:
    """Created by a role, which runs `run` as a task and cancels it; the connection lives within `run`."""

    def __init__(
        self,
        source: Source,
        on_wake: Callable[[], None],
        *,
        channel: str = CHANNEL,
        application_name: str = "frontage listener",
        patience: Patience = DEFAULT_PATIENCE,
        heartbeat_seconds: float = _HEARTBEAT_SECONDS,
    ) -> None:
        """`on_wake` is called in the loop, once LISTEN stands on a new connection and at each notification."""
        self._source = source
        self._on_wake = on_wake
        self._channel = channel
        self._application_name = application_name
        self._patience = patience
        self._heartbeat_seconds = heartbeat_seconds
        self.is_listening = False

    async def run(self) -> None:
        """Listen for ever, over however many connections it takes."""
        pause = _FIRST_PAUSE_SECONDS
        while True:
            try:
                await self._listen()
            except (DatabaseUnavailable, OperatorError) as error:
                if self.is_listening:
                    pause = _FIRST_PAUSE_SECONDS
                    _log.warning("listening interrupted", error=str(error))
            finally:
                self.is_listening = False
            await asyncio.sleep(pause)
            pause = min(2 * pause, _LONGEST_PAUSE_SECONDS)

    async def _listen(self) -> None:
        """One connection's life.

        Raises: `DatabaseUnavailable` when it ends; `OperatorError` when there is no address.
        """
        dsn = self._source() if callable(self._source) else self._source
        connection = await open_session(dsn, self._application_name, self._patience)
        try:
            with border(connection):
                await self._stay(connection)
        finally:
            connection.terminate()

    async def _stay(self, connection: Connection) -> None:
        ended = asyncio.Event()
        connection.add_termination_listener(lambda _: ended.set())
        await connection.add_listener(self._channel, self._on_notification)
        self.is_listening = True
        self._on_wake()
        while True:
            try:
                await asyncio.wait_for(ended.wait(), self._heartbeat_seconds)
            except TimeoutError:
                await connection.execute("select")
            else:
                raise DatabaseUnavailable("the listening connection was closed")

    def _on_notification(self, *_: Any) -> None:
        self._on_wake()
