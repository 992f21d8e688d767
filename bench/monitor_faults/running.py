"""One fault run from its beginning to its counts."""

from __future__ import annotations

import asyncio
import time

from bench.monitor_faults.breaking import break_things
from bench.monitor_faults.counts import Counts
from bench.monitor_faults.notifications import Notifications, audit, settle
from bench.monitor_faults.partners import Partners
from bench.monitor_faults.world import World, open_world, watch


async def run(*, seconds: float, domains: int, changing: int, partners: int, seed: int) -> Counts:
    """`changing` of the `domains` lose a record and get it back; `partners` more are changed through the API."""
    counts, began = Counts(), time.monotonic()
    async with open_world(seed, counts) as world:
        names = [f"c{number}.example" for number in range(domains)]
        await watch(world, names)
        sent, at_work = Notifications(world.database), Partners(world, partners)
        async with asyncio.TaskGroup() as tasks:
            listening = tasks.create_task(sent.follow_for_ever(), name="faults: follow events")
            breaking = tasks.create_task(break_things(world), name="faults: break things")
            ends_at = time.monotonic() + seconds
            changes = [_change(world, sent, name, ends_at) for name in names[:changing]]
            await asyncio.gather(*changes, at_work.run(ends_at))
            world.quiet.set()
            world.receiver.has_faults = False
            await breaking  # what it broke, it mends
            await at_work.verify()
            await settle(world.database)
            listening.cancel()
        await audit(world, sent)
        at_work.audit(sent)
        for server in (*world.resolvers, world.authority):
            counts.answers += server.answered
            counts.faulty_answers += server.faulty
        counts.faulty_receptions = world.receiver.faulty
    counts.seconds = time.monotonic() - began
    return counts


async def _change(world: World, sent: Notifications, domain: str, ends_at: float) -> None:
    """One domain's ``www`` goes and comes back, each notified before the next."""
    name = f"www.{domain}"
    await asyncio.sleep(world.random.uniform(5, 10))  # it was there at first
    while time.monotonic() < ends_at:
        world.lose(name)
        world.counts.losses += 1
        if not await sent.wait_for(domain, "domain.record_missing"):
            world.counts.missed_transitions += 1
            world.counts.say(f"{name} was lost, without an event")
        await asyncio.sleep(world.random.uniform(0, 3))
        world.bring_back(name)
        world.counts.returns += 1
        if not await sent.wait_for(domain, "domain.record_restored"):
            world.counts.missed_transitions += 1
            world.counts.say(f"{name} came back, without an event")
        await asyncio.sleep(world.random.uniform(0, 5))
