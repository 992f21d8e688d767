"""Flow watch: sees that flows have changed, for the requests that stream them.

One query a moment for all flows that are watched by this process, none while there are no watchers. So a stream costs a
socket and a dictionary entry, and no database session.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress

from api.errors import too_many_requests
from api.stream_slots import NoSlotFree, StreamSlots
from common.db import connect_flows
from common.db.connect_flows import Flow
from common.db.pool import Database
from common.errors import DatabaseUnavailable

MOST_STREAMS = 200
"""Of one application in this process."""
MOST_STREAMS_IN_ALL = 2000
_POLL_SECONDS = 0.25
_RETRY_SECONDS = 5.0


class Watcher:
    """One stream's view of its flow. Created by `FlowWatch.watching`."""

    def __init__(self, watch: FlowWatch, flow: Flow) -> None:
        self._watch = watch
        self.flow = flow
        self.changed = asyncio.Event()
        self._is_ended = False

    def end(self) -> None:
        """End the stream."""
        self._is_ended = True
        self.changed.set()

    @property
    def is_over(self) -> bool:
        """Return whether the stream is to end; its client connects again.

        It ends when this process does, or when another tenant has its slot.
        """
        return self._is_ended or self._watch.is_over

    async def next_change(self, *, within_seconds: float) -> Flow | None:
        """Return the flow once it has changed; None if it has not."""
        with suppress(TimeoutError):
            async with asyncio.timeout(within_seconds):
                await self.changed.wait()
                self.changed.clear()
                if self.is_over:
                    return None
                fresh = await self._watch.read(self.flow)
                if fresh is not None:
                    self.flow = fresh
                    return fresh
        return None


class FlowWatch:
    """Watches flows for the streams of this process. One instance per process.

    `build_app` makes and closes it. Mutable state: the watchers, their slots, and the task that polls while there
    are any.
    """

    def __init__(self, database: Database, draining: asyncio.Event) -> None:
        """Once `draining` is set, every stream is to end."""
        self._database = database
        self._draining = draining
        self._watchers: set[Watcher] = set()
        self._slots = StreamSlots(most=MOST_STREAMS_IN_ALL, most_of_tenant=MOST_STREAMS)
        self._polling: asyncio.Task[None] | None = None

    @contextmanager
    def watching(self, flow: Flow) -> Iterator[Watcher]:
        """Watch a flow in the block. Raises: `Refused` when too many streams are open."""
        watcher = Watcher(self, flow)
        try:
            with self._slots.taken(flow.application_id, watcher.end):
                self._watchers.add(watcher)
                if self._polling is None or self._polling.done():
                    self._polling = asyncio.create_task(self._poll(), name="flow watch: poll")
                try:
                    yield watcher
                finally:
                    self._watchers.discard(watcher)
        except NoSlotFree as error:
            raise too_many_requests(_RETRY_SECONDS, "too many event streams of this application") from error

    @property
    def is_over(self) -> bool:
        """Return whether the process ends."""
        return self._draining.is_set()

    async def close(self) -> None:
        """End the polling."""
        if self._polling is not None:
            self._polling.cancel()
            await asyncio.gather(self._polling, return_exceptions=True)

    async def read(self, flow: Flow) -> Flow | None:
        """Return the flow as it is now; None if that cannot be found out now, or if it is gone."""
        with suppress(DatabaseUnavailable):
            async with self._database.connection() as connection:
                return await connect_flows.find(connection, flow.id, flow.application_id)
        return None

    async def _poll(self) -> None:
        while self._watchers and not self.is_over:
            with suppress(DatabaseUnavailable):
                async with self._database.connection() as connection:
                    versions = await connect_flows.find_versions(
                        connection, {watcher.flow.id for watcher in self._watchers}
                    )
                for watcher in self._watchers:
                    if versions.get(watcher.flow.id, watcher.flow.version) != watcher.flow.version:
                        watcher.changed.set()
            with suppress(TimeoutError):
                async with asyncio.timeout(_POLL_SECONDS):
                    await self._draining.wait()
        for watcher in self._watchers:
            watcher.changed.set()
