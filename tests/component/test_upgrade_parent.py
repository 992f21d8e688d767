"""The upgrade parent with generations that say what they like."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from common.clock import SystemClock
from edge.process.generation import Generation
from edge.process.generation_messages import Begin
from edge.process.upgrade_parent import UpgradeParent
from tests.children import clean_environment
from tests.component.edge_process import is_alive
from tests.waiting import until

NO_SOCKETS = Begin([], [], 0)


class Puppets:
    """The generations a upgrade parent started, in command."""

    def __init__(self, silence: Path) -> None:
        self.all: list[Generation] = []
        self._env = clean_environment(PUPPET_SILENCE=str(silence))

    def start(self) -> Generation:
        self.all.append(Generation("tests.component.puppet_generation", NO_SOCKETS, self._env))
        return self.all[-1]


@asynccontextmanager
async def kept(puppets: Puppets, *, upgrade_seconds: float) -> AsyncIterator[UpgradeParent]:
    ready, stop = asyncio.Event(), asyncio.Event()
    parent = UpgradeParent(puppets.start, ready.set, SystemClock(), upgrade_seconds=upgrade_seconds)
    running = asyncio.create_task(parent.run(stop, stop_seconds=10))
    try:
        await asyncio.wait_for(ready.wait(), 30)
        yield parent
    finally:
        stop.set()
        assert await asyncio.wait_for(running, 30) == 0
    assert not any(is_alive(puppet.pid) for puppet in puppets.all)


async def test_new_generation_that_says_nothing_is_ended_in_time(tmp_path: Path) -> None:
    silence = tmp_path / "silence"
    puppets = Puppets(silence)
    async with kept(puppets, upgrade_seconds=1.0) as parent:
        silence.touch()
        parent.upgrade()
        await until(lambda: len(puppets.all) == 2)
        await until(puppets.all[1].life.done)
        assert is_alive(puppets.all[0].pid)


async def test_generations_follow_one_another(tmp_path: Path) -> None:
    puppets = Puppets(tmp_path / "silence")
    async with kept(puppets, upgrade_seconds=30) as parent:
        for _ in range(2):
            old = puppets.all[-1]
            parent.upgrade()
            await until(old.life.done)
            assert old.life.result() == 0
        assert is_alive(puppets.all[-1].pid)
