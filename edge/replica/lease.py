"""The node's lease: reports to Postgres that this edge lives, its version, and its condition.

Each lease object makes a name for itself, its holder. A process that follows another one takes the lease, and the one
before is gone; so a lease that is taken away twice belongs to another edge, whose state directory is a copy of this one
or its origin. From then on, this one reports under a node id of its own.

Owns what the lease shows beside these, and when Postgres was last reached. It neither reads the feed nor writes
the replica (`edge.replica.replicator`).
"""

from __future__ import annotations

import asyncio
import secrets
import socket
from collections.abc import Callable
from contextlib import suppress
from datetime import datetime

from common.clock import Clock
from common.db import edge_nodes
from common.db.edge_nodes import (
    COPY_REMEDY,
    NONE_UNUSABLE,
    Condition,
    EdgeDescription,
    EdgeTraffic,
    FailedUpgrade,
    Renewal,
)
from common.db.session import Connection, SessionTimeouts, open_session, translate_errors
from common.errors import DatabaseUnavailable, OperatorError
from common.logs import get_logger
from common.origin_faults import FailingOrigin
from edge.replica.store import Store

_NAME = "frontage edge lease"
_RENEWAL_SECONDS = 1.0
_RETRY_SECONDS = 0.25
_RELEASE_SECONDS = 1.0
_PACE_SECONDS = 0.0005
"""For each edge of the installation: so all together report and read at most 2,000 versions a second."""
_LOSSES_OF_A_COPY = 2  # one may be a database that has lost the latest seconds

_log = get_logger("edge.replica.lease")


class EdgeLease:
    """Renews the lease.

    Run by a replicator as a task, on sessions of its own, so that a long copy does not let it lapse.
    """

    def __init__(
        self,
        store: Store,
        dsn_provider: Callable[[], str],
        clock: Clock,
        timeouts: SessionTimeouts,
        read_state: Callable[[], tuple[Condition, datetime | None]],
        software_version: str,
        *,
        seconds: float = edge_nodes.LEASE_SECONDS,
    ) -> None:
        """Prepare to run. `read_state`: the edge's condition, and since when a copy has been held back."""
        self.failing_origins: tuple[FailingOrigin, ...] = ()
        self.traffic: EdgeTraffic | None = None
        self.unusable = NONE_UNUSABLE
        self.failed_upgrade: FailedUpgrade | None = None
        self.is_kept = False  # at the end of `run`: another writer of this node follows at once
        self.reached_at = clock.monotonic()  # Postgres, by this lease or by its replicator
        self.attended_at = clock.monotonic()  # when a monitor that obtains certificates was last seen
        self.lagging_since: float | None = None  # not yet at a version that the primary had a renewal ago
        self.current_at: float | None = None  # when the replica was last at the version of the primary
        self.pace_seconds = 0.0  # the least time between two versions that are read or reported
        self._store = store
        self._dsn_provider = dsn_provider
        self._clock = clock
        self._timeouts = timeouts
        self._read_state = read_state
        self._software_version = software_version
        self.seconds = seconds  # how long each renewal is good for
        self._due = asyncio.Event()
        self._looked_at = -_RENEWAL_SECONDS
        self._feed_version = 0  # of the primary, at the last look
        self._holder = secrets.token_hex(8)
        self._is_begun = False
        self._shares_id = False
        self._losses = 0

    def note_reached(self) -> None:
        """Note that Postgres has answered."""
        self.reached_at = self._clock.monotonic()

    def report_soon(self) -> None:
        """Renew soon: the version or the condition has changed."""
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

    @property
    def _node_id(self) -> str:
        node_id = self._store.node_id
        return self._holder[:8] + node_id[8:] if self._shares_id else node_id

    async def _report_on_one_session(self) -> None:
        if self._store.state.identity is None:  # there is no version yet
            await self._due.wait()
        session = await open_session(self._dsn_provider(), _NAME, self._timeouts)
        try:
            with translate_errors(session):
                await edge_nodes.commit_without_flush(session)
                reported: tuple[FailingOrigin, ...] | None = None  # in this session: another database may follow
                while True:
                    self._due.clear()
                    failing = self.failing_origins
                    if not await self._renew(session, failing if failing != reported else None):
                        return
                    reported = failing
                    await asyncio.sleep(self.pace_seconds)
                    with suppress(TimeoutError):
                        async with asyncio.timeout(_RENEWAL_SECONDS - self.pace_seconds):
                            await self._due.wait()
        finally:
            session.terminate()

    async def _renew(self, session: Connection, failing: tuple[FailingOrigin, ...] | None) -> bool:
        """Renew the lease, and return whether it is ours; it is taken at the first call."""
        if (await self._report(session, failing, takes=not self._is_begun)).is_held:
            self._is_begun = True
            return True
        self._losses += 1
        if self._losses < _LOSSES_OF_A_COPY:
            _log.warning("another process has reported under this node id: taking the lease back", node=self._node_id)
            return (await self._report(session, self.failing_origins, takes=True)).is_held
        _log.error("another edge has this node id", node=self._node_id, remedy=COPY_REMEDY)
        self._shares_id, self._losses = True, 0
        return False

    async def _report(self, session: Connection, failing: tuple[FailingOrigin, ...] | None, *, takes: bool) -> Renewal:
        """Report the present state.

        Monitors and other edges are looked at at most once every `_RENEWAL_SECONDS`, however fast versions move.
        """
        state, (condition, held_at) = self._store.state, self._read_state()
        now = self._clock.monotonic()
        looks = now - self._looked_at >= _RENEWAL_SECONDS / 2
        renewal = await edge_nodes.report(
            session,
            self._node_id,
            state.identity or "",
            state.version,
            condition,
            host=socket.gethostname(),
            positions=state.positions,
            failing=failing,
            description=EdgeDescription(self._software_version, held_at, self.failed_upgrade),
            traffic=self.traffic,
            unusable=self.unusable,
            shares_id_of=self._store.node_id if self._shares_id else None,
            holder=self._holder,
            takes=takes,
            looks=looks,
            lease_seconds=self.seconds,
        )
        self.note_reached()
        if renewal.is_held and looks:
            self._note_installation(renewal, state.version)
            self._looked_at = now
        return renewal

    def _note_installation(self, renewal: Renewal, version: int) -> None:
        """Note what a look at the installation showed. `version`: the one that was reported."""
        now = self._clock.monotonic()
        if renewal.is_issuing:
            self.attended_at = now
        self.pace_seconds = min((renewal.edges or 0) * _PACE_SECONDS, _RENEWAL_SECONDS / 2)
        feed_version = renewal.feed_version or 0
        lags = version < min(self._feed_version, feed_version)  # less than before, after a failover
        self._feed_version = feed_version
        if not lags:
            self.current_at = now if version >= feed_version else self._looked_at
        self.lagging_since = (self.lagging_since or now) if lags else None

    async def _end(self) -> None:
        with suppress(DatabaseUnavailable, OperatorError, TimeoutError):
            async with asyncio.timeout(_RELEASE_SECONDS):
                session = await open_session(self._dsn_provider(), _NAME, self._timeouts)
                try:
                    with translate_errors(session):
                        await edge_nodes.end_lease(session, self._node_id, self._holder)
                finally:
                    session.terminate()
