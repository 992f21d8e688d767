"""The active role: what exactly one generation of the edge does at a time, for all of them.

The active generation writes the replica, keeps the node lease and serves the admin port. The upgrade parent decides
which generation is active; workers serve in either case. This module must not decide when, nor know workers.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, closing
from typing import Any, Protocol

from common.db.edge_nodes import Condition, EdgeTraffic, FailedUpgrade
from common.errors import OperatorError
from common.logs import get_logger
from common.origin_faults import FailingOrigin
from edge.process.health import View
from edge.replica.certificate_keys import CertificateUse

PAUSE_SECONDS = 1.0

log = get_logger("edge.process.active_role")


class Replica(Protocol):
    """The writer's side of the replica: `edge.replica.replicator.Replicator`. There can be one on a node."""

    @property
    def version(self) -> int | None:
        """None while nothing was ever loaded."""

    @property
    def connected(self) -> bool: ...

    @property
    def age_seconds(self) -> float | None: ...

    @property
    def held_copy(self) -> Any: ...

    @property
    def condition(self) -> Condition:
        """Whether this edge can serve and follows the feed."""

    async def run(self) -> None: ...

    def report_failing(self, origins: tuple[FailingOrigin, ...]) -> None:
        """From the next renewal on, the node lease shows that this edge cannot reach these origins."""

    def report_failed_upgrade(self, failure: FailedUpgrade | None) -> None:
        """From the next renewal on, the node lease shows that the last upgrade failed; None: it did not."""

    def report_traffic(self, traffic: EdgeTraffic) -> None:
        """From the next renewal on, the node lease shows this as the traffic of the last minute."""

    def report_certificates(self, use: CertificateUse) -> None:
        """From now on, the condition and the node lease show what the workers make of the certificates."""

    def accept_held_copy(self) -> bool: ...

    def keep_lease(self) -> None:
        """When `run` ends, another writer follows at once: the node serves on."""

    def close(self) -> None: ...


class ActiveRole:
    """Owned by the supervisor. `replica` is there from the moment that workers may read it, until the role is given
    up; `is_complete` once the admin port answers too."""

    def __init__(self, make_replica: Callable[[], Replica], view: View, descriptor: int) -> None:
        """`descriptor` is the admin port's listening socket, `view` what is seen there."""
        self.replica: Replica | None = None
        self.is_complete = False
        self.is_established = False
        self._make_replica = make_replica
        self._view = view
        self._descriptor = descriptor
        self._task: asyncio.Task[None] | None = None

    def take(self, on_news: Callable[[], None]) -> None:
        """Harmless when taken; `on_news` is called when it is, and when `check` has something to raise."""
        if self._task is None:
            self._task = asyncio.create_task(self._do(on_news), name="active role")
            self._task.add_done_callback(lambda _: on_news())

    async def release(self, *, is_handed_over: bool) -> None:
        """Harmless when not taken. Unless it is handed over, the node lease is ended."""
        task, self._task = self._task, None
        if task is None:
            return
        if self.replica and is_handed_over:
            self.replica.keep_lease()
        task.cancel()
        await asyncio.wait({task})

    def check(self) -> None:
        """Raises: whatever ended it; never once `is_established`: what was stored is then served on."""
        if self._task and self._task.done():
            self._task.result()

    async def _do(self, on_news: Callable[[], None]) -> None:
        while True:
            try:
                with closing(self._make_replica()) as replica:
                    self.replica = replica
                    on_news()
                    listening = await asyncio.to_thread(_load_admin)
                    async with listening(self._descriptor, self._view):
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


def _load_admin() -> Callable[[int, View], AbstractAsyncContextManager[None]]:
    """While the workers start: the libraries behind the admin port take a tenth of a second to load."""
    from edge.process.admin import listening  # noqa: PLC0415

    return listening
