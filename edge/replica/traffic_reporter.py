"""Writes what a generation's workers counted of domains to Postgres, every few seconds while there is something.

Every generation has one, whether or not it has the active role: one that drains still serves, and reports until it
ends. Nothing waits for it; the lease has a session of its own.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress

from common.clock import Clock
from common.db import traffic
from common.db.session import DEFAULT_TIMEOUTS, SessionTimeouts, open_session, translate_errors
from common.errors import DatabaseUnavailable, OperatorError
from common.logs import get_logger
from common.traffic import TrafficReport
from edge.replica.pending_traffic import PendingTraffic

_PERIOD_SECONDS = 10.0

log = get_logger("edge.replica")


class TrafficReporter:
    """Writes counts to Postgres. Created and run by the supervisor, as one task, which ends after `finish`."""

    def __init__(
        self,
        dsn_provider: Callable[[], str],
        clock: Clock,
        *,
        period_seconds: float = _PERIOD_SECONDS,
        timeouts: SessionTimeouts = DEFAULT_TIMEOUTS,
    ) -> None:
        self._dsn_provider = dsn_provider
        self._clock = clock
        self._period_seconds = period_seconds
        self._timeouts = timeouts
        self._pending = PendingTraffic()
        self._is_finishing = asyncio.Event()

    def add(self, report: TrafficReport) -> None:
        """Count this in the present interval."""
        self._pending.add(report, self._clock.now())

    def finish(self) -> None:
        """Write what was added so far, and end. A write under way is not interrupted: it would be repeated."""
        self._is_finishing.set()

    async def run(self) -> None:
        """Write every few seconds. Counts that cannot be written are written later, if that is soon."""
        while not self._is_finishing.is_set():
            with suppress(TimeoutError):
                async with asyncio.timeout(self._period_seconds):
                    await self._is_finishing.wait()
            try:
                await self._write()
            except (DatabaseUnavailable, OperatorError):
                pass  # the replicator meets it, too, and reports it
            except Exception:
                log.exception("traffic cannot be reported")

    async def _write(self) -> None:
        """Write the oldest interval.

        Raises: `DatabaseUnavailable`, `OperatorError`; then what was not written is pending again.
        """
        if (taken := self._pending.take()) is None:
            return
        try:
            session = await open_session(self._dsn_provider(), "frontage edge traffic", self._timeouts)
            try:
                with translate_errors(session):
                    while taken is not None:
                        await traffic.write_report(session, *taken)
                        taken = self._pending.take()
            finally:
                session.terminate()
        finally:
            if taken is not None:
                self._pending.put_back(*taken)
