"""The node's lease: reports to Postgres that this edge lives, its version, and its condition.

Owns what the lease shows beside these, and when Postgres was last reached. It neither reads the feed nor writes
the replica (`edge.replica.replicator`).
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

from common.clock import Clock
from common.db import edge_nodes, monitor_nodes
from common.db.edge_nodes import (
    NONE_UNUSABLE,
    Condition,
    EdgeDescription,
    EdgeTraffic,
    FailedUpgrade,
    UnusableCertificates,
)
from common.db.session import Connection, Patience, border, open_session
from common.errors import DatabaseUnavailable, OperatorError
from common.origin_faults import FailingOrigin
from edge.replica.store import Store

_NAME = "frontage edge lease"
_RENEWAL_SECONDS = 1.0
_RETRY_SECONDS = 0.25
_FAREWELL_SECONDS = 1.0


class EdgeLease:
    """One a replicator, which runs it as a task. Sessions of its own, so that a long copy does not let it lapse."""

    def __init__(
        self,
        store: Store,
        dsn_provider: Callable[[], str],
        clock: Clock,
        patience: Patience,
        read_state: Callable[[], tuple[Condition, datetime | None]],
        software_version: str,
    ) -> None:
        """`read_state`: the edge's condition, and since when a copy has been held back."""
        self.failing_origins: tuple[FailingOrigin, ...] = ()
        self.traffic: EdgeTraffic | None = None
        self.unusable = NONE_UNUSABLE
        self.failed_upgrade: FailedUpgrade | None = None
        self.is_kept = False  # at the end of `run`: another writer of this node follows at once
        self.reached_at = clock.monotonic()  # Postgres, by this lease or by its replicator
        self.attended_at = clock.monotonic()  # when a monitor that obtains certificates was last seen
        self._store = store
        self._dsn_provider = dsn_provider
        self._clock = clock
        self._patience = patience
        self._read_state = read_state
        self._software_version = software_version
        self._due = asyncio.Event()
        self._looked_at = -_RENEWAL_SECONDS

    def note_reached(self) -> None:
        """Postgres has answered."""
        self.reached_at = self._clock.monotonic()

    def report_soon(self) -> None:
        """The version or the condition has changed."""
        self._due.set()

    async def run(self) -> None:
        """Report each second, and at once when asked, for ever; at the end, end the lease."""
        try:
            while True:
                with suppress(DatabaseUnavailable, OperatorError):
                    await self._report_on_one_session()
                await asyncio.sleep(_RETRY_SECONDS)
        finally:
            if not self.is_kept:
                await self._end()

    async def _report_on_one_session(self) -> None:
        if self._store.state.identity is None:  # there is no version yet
            await self._due.wait()
        host = socket.gethostname()
        session = await open_session(self._dsn_provider(), _NAME, self._patience)
        try:
            with border(session):
                await edge_nodes.flush_lazily(session)
                # In this session: another database may follow.
                reported: tuple[FailingOrigin, ...] | None = None
                described: EdgeDescription | None = None
                counted: EdgeTraffic | None = None
                unusable: UnusableCertificates | None = None
                while True:
                    self._due.clear()
                    state, failing = self._store.state, self.failing_origins
                    condition, held_at = self._read_state()
                    await edge_nodes.report(
                        session,
                        self._store.node_id,
                        state.identity or "",
                        state.version,
                        condition,
                        host=host,
                        failing=failing if failing != reported else None,
                    )
                    reported = failing
                    description = EdgeDescription(self._software_version, held_at, self.failed_upgrade)
                    if description != described:
                        await edge_nodes.describe(session, self._store.node_id, description)
                        described = description
                    if (traffic := self.traffic) is not None and traffic != counted:
                        await edge_nodes.report_traffic(session, self._store.node_id, traffic)
                        counted = traffic
                    if self.unusable != unusable:
                        unusable = self.unusable
                        await edge_nodes.report_unusable(session, self._store.node_id, unusable)
                    self.note_reached()
                    await self._look_for_monitors(session)
                    with suppress(TimeoutError):
                        async with asyncio.timeout(_RENEWAL_SECONDS):
                            await self._due.wait()
        finally:
            session.terminate()

    async def _look_for_monitors(self, session: Connection) -> None:
        """At most once every `_RENEWAL_SECONDS`, however fast versions move."""
        now = self._clock.monotonic()
        if now - self._looked_at < _RENEWAL_SECONDS / 2:
            return
        self._looked_at = now
        if await monitor_nodes.is_issuing(session):
            self.attended_at = now

    async def _end(self) -> None:
        with suppress(DatabaseUnavailable, OperatorError, TimeoutError):
            async with asyncio.timeout(_FAREWELL_SECONDS):
                session = await open_session(self._dsn_provider(), _NAME, self._patience)
                try:
                    with border(session):
                        await edge_nodes.end_lease(session, self._store.node_id)
                finally:
                    session.terminate()
