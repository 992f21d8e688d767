"""Breaks parts of the world again and again, until it is to be quiet, and mends them each time."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
from collections.abc import Awaitable, Callable

from bench.monitor_faults.world import MonitorWorld
from bench.process_tree import descendants
from common.errors import OperatorError
from common.processes import exited

_MONITOR_SECONDS = (1.0, 6.0)
_API_SECONDS = (3.0, 12.0)
_POSTGRES_SECONDS = (5.0, 15.0)
_RESOLVER_SECONDS = (8.0, 20.0)
_OUTAGE_SECONDS = 4.0
_POLL_SECONDS = 0.05


async def inject_faults(world: MonitorWorld) -> None:
    """Break things until the world is quiet, and return when everything runs again."""
    async with asyncio.TaskGroup() as tasks:
        for pauses, act in (
            (_MONITOR_SECONDS, _kill_monitor),
            (_API_SECONDS, _kill_api),
            (_POSTGRES_SECONDS, _kill_postgres),
            (_RESOLVER_SECONDS, _lose_resolver),
        ):
            tasks.create_task(_again(world, pauses, act), name=f"faults: {act.__name__}")


async def _again(
    world: MonitorWorld, pauses: tuple[float, float], act: Callable[[MonitorWorld], Awaitable[None]]
) -> None:
    """Act after a random pause, and again, until the world is quiet."""
    while True:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(world.random.uniform(*pauses)):
                await world.quiet.wait()
        if world.quiet.is_set():
            return
        await act(world)


async def _kill_monitor(world: MonitorWorld) -> None:
    """Kill a monitor and start another."""
    number = world.random.randrange(len(world.monitors))
    process = world.monitors[number]
    process.kill()
    await exited(process)
    world.counts.monitors_killed += 1
    world.monitors[number] = world.start_monitor()


async def _kill_api(world: MonitorWorld) -> None:
    """Kill the API and start it again."""
    await world.api.kill()
    world.counts.apis_killed += 1
    while True:
        try:
            await world.api.start()
            return
        except OperatorError:  # Postgres may be away just then
            await world.api.kill()
            await asyncio.sleep(_POLL_SECONDS)


async def _kill_postgres(world: MonitorWorld) -> None:
    """Kill all of Postgres, or one of its children, which has it end all sessions and recover by itself."""
    postmaster = world.postgres.process
    children = list(descendants(postmaster.pid))[1:]
    if children and world.random.random() < 0.5:
        with contextlib.suppress(ProcessLookupError):
            os.kill(world.random.choice(children), signal.SIGKILL)
            world.counts.database_children_killed += 1
    else:
        postmaster.kill()
        await exited(postmaster)
        world.counts.databases_killed += 1
    await _revive_postgres(world)


async def _revive_postgres(world: MonitorWorld) -> None:
    """Start Postgres if it has ended, and wait until it is ready."""
    while True:
        try:
            if world.postgres.is_ready():
                return
        except OperatorError:  # it has ended
            world.postgres.launch()
        await asyncio.sleep(_POLL_SECONDS)


async def _lose_resolver(world: MonitorWorld) -> None:
    """Take a resolver away for some seconds."""
    server = world.random.choice(world.resolvers)
    server.is_out = True
    world.counts.resolver_outages += 1
    await asyncio.sleep(_OUTAGE_SECONDS)
    server.is_out = False
