"""Fair queue: bounds concurrent work and shares it evenly between tenants.

Self-clocked fair queueing (Golestani, "A self-clocked fair queueing scheme for broadband applications", 1994). A
request that must wait gets a finish tag: its size added to the tenant's previous tag, or to the tag served last if
the tenant has nothing waiting. The lowest tag is served first. So tenants that wait get equal shares whatever their
number of requests, and a small request of an idle tenant overtakes the backlog of a busy one.

Rules
    the sizes of the requests that hold a slot never exceed the capacity, unless a hold outlasts `longest_hold_seconds`:
        its capacity then goes to the next request, while its holder works on. A slot is for work, not for waiting
    a request at the head of the queue is not overtaken, however large it is
    a tenant with `most_waiting_per_tenant` requests in the queue is refused another
    a waiter that is cancelled leaves the queue at once
Each operation takes O(log n) of the requests that wait.
"""

from __future__ import annotations

import asyncio
import heapq
import itertools
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from common.errors import FrontageError


class TooManyWaiting(FrontageError):
    """The tenant has as many requests in the queue as it may."""


@dataclass(order=True, slots=True)
class _Waiter:
    finish_tag: int
    arrival: int
    tenant: str = field(compare=False)
    size: int = field(compare=False)
    admitted: asyncio.Future[None] = field(compare=False)


class FairQueue:
    """Admits requests up to a capacity, in fair order. Used by the tasks of one event loop.

    Mutable state: the free capacity; the waiters, as a heap, which may still contain cancelled ones, and how many
    of them are live; and, for tenants with live waiters only, their number and their last finish tag.
    """

    def __init__(
        self,
        capacity: int,
        *,
        longest_hold_seconds: float | None = None,
        most_waiting_per_tenant: int | None = None,
    ) -> None:
        self._capacity = capacity
        self._free = capacity
        self._longest_hold_seconds = longest_hold_seconds
        self._most_waiting_per_tenant = most_waiting_per_tenant
        self._heap: list[_Waiter] = []
        self._live = 0
        self._waiting: Counter[str] = Counter()
        self._last_tags: dict[str, int] = {}
        self._served_tag = 0
        self._arrivals = itertools.count()

    def __repr__(self) -> str:
        return f"<FairQueue {self._free} of {self._capacity} free, {self._live} waiting>"

    @asynccontextmanager
    async def slot(self, tenant: str, size: int = 1) -> AsyncIterator[None]:
        """Hold capacity of `size` for the block; wait for it first if need be.

        Raises: `TooManyWaiting`; `ValueError` for a size beyond the capacity.
        """
        if size > self._capacity:
            raise ValueError(f"size {size} exceeds the capacity {self._capacity}")
        if self._live or size > self._free:
            await self._wait(tenant, size)
        else:
            self._free -= size
        held = [size]

        def release() -> None:
            while held:
                self._release(held.pop())

        timer = None
        if self._longest_hold_seconds is not None:
            timer = asyncio.get_running_loop().call_later(self._longest_hold_seconds, release)
        try:
            yield
        finally:
            if timer is not None:
                timer.cancel()
            release()

    async def _wait(self, tenant: str, size: int) -> None:
        waiter = self._enqueue(tenant, size)
        try:
            await waiter.admitted
        except asyncio.CancelledError:
            if waiter.admitted.cancelled():
                self._forget(waiter)
                self._discard_cancelled()
                self._admit()
            else:  # admitted and cancelled in the same iteration of the loop
                self._release(size)
            raise

    def _enqueue(self, tenant: str, size: int) -> _Waiter:
        if self._most_waiting_per_tenant is not None and self._waiting[tenant] >= self._most_waiting_per_tenant:
            raise TooManyWaiting(f"{tenant} has {self._most_waiting_per_tenant} requests waiting already")
        tag = max(self._served_tag, self._last_tags.get(tenant, 0)) + size
        waiter = _Waiter(tag, next(self._arrivals), tenant, size, asyncio.get_running_loop().create_future())
        heapq.heappush(self._heap, waiter)
        self._last_tags[tenant] = tag
        self._waiting[tenant] += 1
        self._live += 1
        return waiter

    def _forget(self, waiter: _Waiter) -> None:
        """Take a waiter out of the queue's counts.

        Without another waiter its tenant's last tag is of no use: it is served already, or was never paid for.
        """
        self._live -= 1
        self._waiting[waiter.tenant] -= 1
        if not self._waiting[waiter.tenant]:
            del self._waiting[waiter.tenant], self._last_tags[waiter.tenant]

    def _discard_cancelled(self) -> None:
        """Keep the heap within twice the number of live waiters, at O(1) a cancellation on average."""
        if len(self._heap) > 2 * self._live:
            self._heap = [waiter for waiter in self._heap if not waiter.admitted.cancelled()]
            heapq.heapify(self._heap)

    def _release(self, size: int) -> None:
        self._free += size
        self._admit()

    def _admit(self) -> None:
        """Serve the lowest tags for as long as they find room."""
        while self._heap and (self._heap[0].admitted.cancelled() or self._heap[0].size <= self._free):
            waiter = heapq.heappop(self._heap)
            if not waiter.admitted.cancelled():
                self._served_tag = waiter.finish_tag
                self._free -= waiter.size
                self._forget(waiter)
                waiter.admitted.set_result(None)
