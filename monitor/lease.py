"""The monitor's lease: reports once a second that this process runs, under which issuer, and which work has stopped.

It has a database session of its own, so that busy work does not let the lease lapse.
"""

from __future__ import annotations

import asyncio
import secrets
import socket
import time
from collections.abc import Callable, Collection
from contextlib import suppress

from common.db import monitor_nodes
from common.db.outages import level_of
from common.db.pool import Database
from common.db.session import DEFAULT_TIMEOUTS, Connection, SessionTimeouts, open_session, translate_errors
from common.errors import DatabaseUnavailable
from common.logs import get_logger

_log = get_logger("monitor.lease")

_NAME = "frontage monitor lease"
_END_SECONDS = 1.0
_RETRY_SECONDS = 0.25


class Lease:
    """The lease of this monitor. Created by the monitor's ``__main__``, which runs `run` as a task.

    `run` ends the lease when it is cancelled.
    """

    def __init__(
        self,
        dsn: str,
        issuer: str,
        stopped: Callable[[], Collection[str]],
        software_version: str,
        *,
        timeouts: SessionTimeouts = DEFAULT_TIMEOUTS,
    ) -> None:
        """Create a lease; `issuer`, `stopped` and `software_version` as in `common.db.monitor_nodes.MonitorNode`."""
        self.node_id = secrets.token_hex(16)
        self._dsn = dsn
        self._host = socket.gethostname()
        self._issuer = issuer
        self._stopped = stopped
        self._software_version = software_version
        self._timeouts = timeouts
        self._renewed_at = time.monotonic()

    @property
    def age_seconds(self) -> float:
        """Return the seconds since the lease was last renewed, or this object created."""
        return time.monotonic() - self._renewed_at

    async def report(self, database: Database) -> None:
        """Renew the lease once, over a connection of the pool.

        Raises: `DatabaseUnavailable`.
        """
        async with database.connection() as connection:
            await self._report(connection)

    async def run(self) -> None:
        """Renew the lease until cancelled, through outages of the database; then end it."""
        try:
            while True:
                try:
                    await self._report_on_one_session()
                except DatabaseUnavailable as error:
                    _log.log(level_of(error), "lease not renewed", error=str(error))
                await asyncio.sleep(_RETRY_SECONDS)
        finally:
            await self._end()

    async def _report_on_one_session(self) -> None:
        """Renew the lease once a second on one session until that fails.

        Raises: `DatabaseUnavailable`.
        """
        session = await open_session(self._dsn, _NAME, self._timeouts)
        try:
            with translate_errors(session):
                await session.execute("set synchronous_commit = off")  # a lease lost in a crash has lapsed anyway
                while True:
                    await self._report(session)
                    await asyncio.sleep(monitor_nodes.RENEWAL_SECONDS)
        finally:
            session.terminate()

    async def _report(self, connection: Connection) -> None:
        await monitor_nodes.report(
            connection, self.node_id, self._host, self._issuer, self._stopped(), self._software_version
        )
        self._renewed_at = time.monotonic()

    async def _end(self) -> None:
        """End the lease, if the database answers in time."""
        with suppress(DatabaseUnavailable, TimeoutError):
            async with asyncio.timeout(_END_SECONDS):
                session = await open_session(self._dsn, _NAME, self._timeouts)
                try:
                    with translate_errors(session):
                        await monitor_nodes.end_lease(session, self.node_id)
                finally:
                    session.terminate()
