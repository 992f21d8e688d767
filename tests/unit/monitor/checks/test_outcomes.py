"""Which outcomes are written together: not more than Postgres writes in time, and nobody behind the large ones."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import Any, cast

import pytest

from monitor.checks.outcomes import MOST_AT_ONCE, MOST_RECORDS_AT_ONCE, Finished, Outcomes
from tests.waiting import let_run


@dataclass(frozen=True)
class Check:
    id: str
    records: range
    domain: str = "shop.example"


@dataclass(frozen=True)
class Transition:
    may_alarm: bool = False
    is_restored: bool = False


class Recording(Outcomes):
    """Notes what would be one transaction. While `is_held`, none ends."""

    def __init__(self) -> None:
        super().__init__(cast("Any", None), "", lambda: None)
        self.batches: list[list[str]] = []
        self.go_on = asyncio.Event()

    async def _record(self, batch: Sequence[Finished]) -> set[str]:
        ids = [each.check.id for each in batch]
        self.batches.append(ids)
        await self.go_on.wait()
        return set(ids)

    def hand_in(self, name: str, records: int, **transition: bool) -> asyncio.Task[None]:
        finished = Finished(
            cast("Any", Check(name, range(records))), cast("Any", Transition(**transition)), [], cast("Any", None)
        )
        return asyncio.create_task(self.write(finished))


@asynccontextmanager
async def running(outcomes: Recording):  # type: ignore[no-untyped-def]
    task = asyncio.create_task(outcomes.run())
    try:
        yield
    finally:
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task


async def test_a_transaction_has_its_bounds_in_outcomes_and_in_records() -> None:
    outcomes = Recording()
    outcomes.go_on.set()
    small = [outcomes.hand_in(f"small{number}", 2) for number in range(1000)]
    large = [outcomes.hand_in(f"large{number}", 480) for number in range(50)]
    huge = outcomes.hand_in("huge", 2 * MOST_RECORDS_AT_ONCE)
    await let_run()
    async with running(outcomes):
        await asyncio.gather(*small, *large, huge)
    assert max(map(len, outcomes.batches)) == MOST_AT_ONCE
    assert all(2 * len(batch) <= MOST_RECORDS_AT_ONCE for batch in outcomes.batches)
    assert max(sum(name.startswith("large") for name in batch) for batch in outcomes.batches) <= 8
    assert outcomes.batches[-1] == ["huge"]


async def test_small_outcomes_go_before_large_ones_and_wait_for_no_alarm() -> None:
    outcomes = Recording()
    alarms = [outcomes.hand_in(f"alarm{number}", 480, may_alarm=True) for number in range(50)]
    async with running(outcomes):
        await let_run()
        await let_run()
        assert [batch[0] for batch in outcomes.batches] == ["alarm0"]
        tasks = [outcomes.hand_in("large", 480), outcomes.hand_in("small", 1)]
        await let_run(5)
        assert outcomes.batches[1:] == [["small", "large"]]
        tasks.append(outcomes.hand_in("small alarm", 1, is_restored=True))
        outcomes.go_on.set()
        await asyncio.gather(*alarms, *tasks)
    assert outcomes.batches[2][0] == "small alarm"
