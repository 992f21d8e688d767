"""The fair queue: the bound holds, shares are even, and a small request does not wait behind a large backlog."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from common.fair_queue import FairQueue, TooManyWaiting
from tests.waiting import let_run


class Crowd:
    """Requests that hold their slot for one iteration of the loop. `served` are their tenants, in order."""

    def __init__(self, capacity: int) -> None:
        self.queue = FairQueue(capacity, longest_hold_seconds=60)
        self.served: list[str] = []
        self.in_use = 0
        self.most_in_use = 0
        self._tasks: list[asyncio.Task[None]] = []

    def request(self, tenant: str, size: int) -> asyncio.Task[None]:
        task = asyncio.create_task(self._hold(tenant, size))
        self._tasks.append(task)
        return task

    async def _hold(self, tenant: str, size: int) -> None:
        async with self.queue.slot(tenant, size):
            self.served.append(tenant)
            self.in_use += size
            self.most_in_use = max(self.in_use, self.most_in_use)
            try:
                await let_run()
            finally:
                self.in_use -= size

    async def finished(self) -> None:
        for task in self._tasks:
            with suppress(asyncio.CancelledError, TooManyWaiting):
                await task
        assert not self.in_use


async def test_capacity_is_never_exceeded() -> None:
    crowd = Crowd(10)
    for number in range(100):
        crowd.request(f"t{number % 7}", 1 + number % 10)
    await crowd.finished()
    assert crowd.most_in_use == 10
    assert len(crowd.served) == 100


async def test_small_request_does_not_wait_behind_a_large_backlog() -> None:
    crowd = Crowd(50)
    for _ in range(100):
        crowd.request("large", 50)
    await let_run()
    crowd.request("small", 2)
    await crowd.finished()
    assert crowd.served.index("small") <= 2


async def test_tenants_share_evenly_whatever_their_order() -> None:
    crowd = Crowd(10)
    for tenant in ("a", "b", "c"):
        for _ in range(30):
            crowd.request(tenant, 10)
    await crowd.finished()
    for first in range(3, 80):
        window = crowd.served[first : first + 9]
        assert all(window.count(tenant) >= 2 for tenant in "abc"), (first, window)


async def test_large_request_is_not_overtaken_for_ever() -> None:
    crowd = Crowd(10)
    crowd.request("first", 10)
    crowd.request("large", 10)
    for _ in range(100):
        crowd.request("small", 1)
    await crowd.finished()
    assert crowd.served.index("large") <= 12


async def test_cancelled_waiters_leave_no_gap() -> None:
    crowd = Crowd(10)
    waiting = [crowd.request(f"t{number}", 10) for number in range(10)]
    await let_run()
    for task in waiting[::2]:
        task.cancel()
    await crowd.finished()
    assert crowd.served == ["t0", "t1", "t3", "t5", "t7", "t9"]
    crowd.request("after", 10)
    await crowd.finished()
    assert crowd.served[-1] == "after"


async def test_waiters_behind_a_cancelled_one_do_not_wait_for_a_release() -> None:
    queue = FairQueue(10)
    crowd = Crowd(10)
    crowd.queue = queue
    async with queue.slot("holder", 5):
        large = crowd.request("large", 10)
        await let_run()
        small = crowd.request("small", 5)
        await let_run()
        large.cancel()
        async with asyncio.timeout(5):
            await small
    assert crowd.served == ["small"]


async def test_request_cancelled_as_it_is_admitted_gives_its_slot_back() -> None:
    queue = FairQueue(1)
    crowd = Crowd(1)
    crowd.queue = queue
    async with queue.slot("holder"):
        admitted = crowd.request("admitted", 1)
        await let_run()
    admitted.cancel()
    await crowd.finished()
    assert not crowd.served
    assert repr(queue) == "<FairQueue 1 of 1 free, 0 waiting>"


async def test_hold_that_outlasts_its_limit_lets_the_next_requests_in() -> None:
    queue, over = FairQueue(10, longest_hold_seconds=0), asyncio.Event()

    async def hold() -> None:
        async with queue.slot("slow", 10):
            await over.wait()

    slow = [asyncio.create_task(hold()) for _ in range(5)]
    async with asyncio.timeout(5), queue.slot("quick", 10):
        assert not any(task.done() for task in slow)
    over.set()
    await asyncio.gather(*slow)
    async with asyncio.timeout(5), queue.slot("after", 10):
        pass
    assert repr(queue) == "<FairQueue 10 of 10 free, 0 waiting>"


async def test_tenant_with_too_many_waiting_is_refused_and_others_are_not() -> None:
    crowd = Crowd(1)
    crowd.queue = FairQueue(1, most_waiting_per_tenant=2)
    async with crowd.queue.slot("holder"):
        for _ in range(2):
            crowd.request("busy", 1)
        await let_run()
        with pytest.raises(TooManyWaiting):
            await crowd.request("busy", 1)
        crowd.request("other", 1)
        await let_run()
    await crowd.finished()
    assert crowd.served == ["busy", "other", "busy"]


async def test_cancelled_waiters_do_not_count_and_are_not_kept() -> None:
    crowd = Crowd(1)
    crowd.queue = FairQueue(1, most_waiting_per_tenant=1)
    async with crowd.queue.slot("holder"):
        for _ in range(1000):
            waiting = crowd.request("impatient", 1)
            await let_run()
            waiting.cancel()
            with suppress(asyncio.CancelledError):
                await waiting
        assert len(crowd.queue._heap) <= 1
        assert not crowd.queue._waiting
        assert not crowd.queue._last_tags
    assert not crowd.served


async def test_request_larger_than_the_capacity_is_refused() -> None:
    with pytest.raises(ValueError, match="exceeds the capacity"):
        async with FairQueue(2).slot("tenant", 3):
            pass


@given(
    st.lists(st.tuples(st.sampled_from("abc"), st.integers(1, 5), st.booleans()), max_size=40),
    st.integers(0, 3),
)
async def test_whatever_is_cancelled_the_rest_is_served(
    requests: list[tuple[str, int, bool]], iterations_before: int
) -> None:
    crowd = Crowd(5)
    tasks = [(crowd.request(tenant, size), is_cancelled) for tenant, size, is_cancelled in requests]
    await let_run(iterations_before)
    for task, is_cancelled in tasks:
        if is_cancelled:
            task.cancel()
    async with asyncio.timeout(10):
        await crowd.finished()
    assert len(crowd.served) >= sum(not is_cancelled for _, _, is_cancelled in requests)
    assert crowd.most_in_use <= 5
    assert repr(crowd.queue) == "<FairQueue 5 of 5 free, 0 waiting>"
