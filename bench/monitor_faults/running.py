"""One fault run from its beginning to its counts."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable

from bench.monitor_faults.breaking import inject_faults
from bench.monitor_faults.counts import MonitorCounts
from bench.monitor_faults.notifications import Notifications, audit, settle
from bench.monitor_faults.partners import Partners
from bench.monitor_faults.world import MonitorWorld, open_world, watch

_ENOUGH_SECONDS = 0.2


async def run(
    *,
    seconds: float,
    domains: int,
    changing: int,
    partners: int,
    seed: int,
    is_enough: Callable[[MonitorCounts], bool] | None = None,
) -> MonitorCounts:
    """Run the faults, and return the counts.

    `changing` of the `domains` lose a record and get it back; `partners` more are changed through the API. Parts are
    broken for so many seconds, and longer until what was counted `is_enough`: a slow machine does less in a second.
    """
    counts, began = MonitorCounts(), time.monotonic()
    async with open_world(seed, counts) as world:
        names = [f"c{number}.example" for number in range(domains)]
        await watch(world, names)
        sent, at_work = Notifications(world), Partners(world, partners)
        async with asyncio.TaskGroup() as tasks:
            listening = tasks.create_task(sent.follow_for_ever(), name="faults: follow events")
            breaking = tasks.create_task(inject_faults(world), name="faults: break things")
            changes = [
                tasks.create_task(_change(world, sent, name), name=f"faults: {name}") for name in names[:changing]
            ]
            working = tasks.create_task(at_work.run(), name="faults: partners")
            await asyncio.sleep(seconds)
            while is_enough and not is_enough(_count_answers(world)):  # noqa: ASYNC110 - counted in many places
                await asyncio.sleep(_ENOUGH_SECONDS)
            world.quiet.set()
            world.receiver.has_faults = False
            await asyncio.gather(working, *changes)
            await breaking  # what it broke, it mends
            await at_work.verify()
            await settle(world.database)
            listening.cancel()
        await audit(world, sent)
        at_work.audit(sent)
        _count_answers(world)
        counts.faulty_receptions = world.receiver.faulty
    counts.seconds = time.monotonic() - began
    return counts


def _count_answers(world: MonitorWorld) -> MonitorCounts:
    servers = (*world.resolvers, world.authority)
    world.counts.answers = sum(server.answered for server in servers)
    world.counts.faulty_answers = sum(server.faulty for server in servers)
    return world.counts


async def _change(world: MonitorWorld, sent: Notifications, domain: str) -> None:
    """Remove one domain's ``www`` and bring it back, each notified before the next."""
    name = f"www.{domain}"
    await asyncio.sleep(world.random.uniform(5, 10))  # it was there at first
    while not world.quiet.is_set():
        world.lose(name)
        world.counts.losses += 1
        if not await sent.wait_for(domain, "domain.record_missing"):
            world.counts.missed_transitions += 1
            world.counts.add_detail(f"{name} was lost, without an event")
        await asyncio.sleep(world.random.uniform(0, 3))
        world.bring_back(name)
        world.counts.returns += 1
        if not await sent.wait_for(domain, "domain.record_restored"):
            world.counts.missed_transitions += 1
            world.counts.add_detail(f"{name} came back, without an event")
        await asyncio.sleep(world.random.uniform(0, 5))
