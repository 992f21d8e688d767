"""The active role: what exactly one generation of the edge does at a time, for all of them.

The active generation writes the replica, keeps the node lease and serves the admin port and EDGE_DNS. The upgrade
parent decides which generation is active; workers serve in either case. This module must not decide when, nor know
workers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, closing
from functools import partial
from typing import Any, Protocol

from common.db.edge_nodes import Condition, EdgeTraffic, FailedUpgrade
from common.errors import OperatorError
from common.logs import get_logger
from common.origin_faults import FailingOrigin
from edge.dns.service import DnsService
from edge.process.health import View
from edge.replica.certificate_keys import CertificateUse
from edge.replica.challenges import FollowingReader

PAUSE_SECONDS = 1.0

log = get_logger("edge.process.active_role")


class Replica(Protocol):
    """The writer's side of the replica, `edge.replica.replicator.Replicator`. There can be one on a node."""

    @property
    def version(self) -> int | None:
        """Return the version of the copy, None while nothing was ever loaded."""

    @property
    def reader(self) -> FollowingReader:
        """Return a reader of the replica, for this process."""

    @property
    def connected(self) -> bool:
        """Return whether the feed is being followed."""

    @property
    def age_seconds(self) -> float | None:
        """Return how long ago the copy was last seen to equal the database, None if it never was."""

    @property
    def held_copy(self) -> Any:
        """Return the copy that waits for the operator, if there is one."""

    @property
    def damages(self) -> int:
        """Return how often what was stored was not what was written."""

    @property
    def proof_age_seconds(self) -> float | None:
        """Return how long ago all that is stored was found to be what was written, None if it was not yet."""

    @property
    def condition(self) -> Condition:
        """Return whether this edge can serve and follows the feed."""

    async def run(self) -> None:
        """Follow the feed and keep the node lease until cancelled."""

    def report_failing(self, origins: tuple[FailingOrigin, ...]) -> None:
        """Show in the node lease, from its next renewal on, that this edge cannot reach these origins."""

    def report_failed_upgrade(self, failure: FailedUpgrade | None) -> None:
        """Show in the node lease, from its next renewal on, that the last upgrade failed; None: it did not."""

    def report_traffic(self, traffic: EdgeTraffic) -> None:
        """Show this in the node lease, from its next renewal on, as the traffic of the last minute."""

    def report_certificates(self, use: CertificateUse) -> None:
        """Show in the condition and the node lease what the workers make of the certificates."""

    def accept_held_copy(self) -> bool:
        """Accept the copy that is held. Return False when none is."""

    def keep_lease(self) -> None:
        """Keep the node lease when `run` ends: another writer follows at once, and the node serves on."""

    def close(self) -> None:
        """Close the replica's files."""


class ActiveRole:
    """Takes and gives up the active role. Owned by the supervisor.

    `replica` is there from the moment that workers may read it, until the role is given up; `is_complete` once the
    admin port answers too.
    """

    def __init__(self, make_replica: Callable[[], Replica], view: View, descriptor: int, dns: DnsService) -> None:
        """Prepare to take the role. `descriptor` is the admin port's listening socket, `view` what it shows."""
        self.replica: Replica | None = None
        self.is_complete = False
        self.is_established = False
        self._make_replica = make_replica
        self._view = view
        self._descriptor = descriptor
        self._dns = dns
        self._task: asyncio.Task[None] | None = None

    def take(self, on_news: Callable[[], None]) -> None:
        """Take the role, unless it is taken already.

        `on_news` is called when it is taken, and when `check` has something to raise.
        """
        if self._task is None:
            self._task = asyncio.create_task(self._do(on_news), name="active role")
            self._task.add_done_callback(lambda _: on_news())

    async def release(self, *, is_handed_over: bool) -> None:
        """Give up the role, if it is taken. Unless it is handed over, the node lease is ended."""
        task, self._task = self._task, None
        if task is None:
            return
        if self.replica and is_handed_over:
            self.replica.keep_lease()
        task.cancel()
        await asyncio.wait({task})

    def check(self) -> None:
        """Raise what ended the role.

        Once `is_established`, nothing does: what was stored is then served on.
        """
        if self._task and self._task.done():
            self._task.result()

    async def _do(self, on_news: Callable[[], None]) -> None:
        while True:
            try:
                with closing(self._make_replica()) as replica:
                    self.replica = replica
                    on_news()
                    listening = await asyncio.to_thread(_load_admin)
                    has_copy = partial(_has_copy, replica)
                    async with listening(self._descriptor, self._view), self._dns.serving(replica.reader, has_copy):
                        self.is_complete = True
                        on_news()
                        await self._replicate(replica)
            except Exception:
                if not self.is_established:
                    raise
                log.exception("cannot take the active role")
            finally:
                self.replica, self.is_complete = None, False
            await asyncio.sleep(PAUSE_SECONDS)

    async def _replicate(self, replica: Replica) -> None:
        """Replicate, and start again after a failure: what was stored is served meanwhile.

        Raises: `OperatorError`, which is for the operator, but only before anything was served.
        """
        while True:
            try:
                await replica.run()
            except OperatorError as error:
                if not self.is_established:
                    raise
                log.error("replication stopped", error=str(error))
            except Exception:
                log.exception("replication failed")
            await asyncio.sleep(PAUSE_SECONDS)


def _has_copy(replica: Replica) -> bool:
    return replica.version is not None


def _load_admin() -> Callable[[int, View], AbstractAsyncContextManager[None]]:
    """Import the admin port while the workers start: its libraries take a tenth of a second to load."""
    from edge.process.admin import listening  # noqa: PLC0415

    return listening
