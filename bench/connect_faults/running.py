"""One fault run of flows, from its beginning to its counts."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from random import Random
from typing import Final

from bench.connect_faults import zones
from bench.connect_faults.counts import FlowCounts
from bench.connect_faults.faults import draw
from bench.connect_faults.person import Person, Stuck
from bench.connect_faults.world import FlowWorld, Way, open_world

_WAYS: Final[tuple[Way, ...]] = ("dynamic_update", "provider_api")
_AT_ONCE = 3  # as many as an application may write by provider APIs at once
_EVENTS: Final = ("domain.added", "domain.flow.completed")


async def run(*, flows: int, seed: int, on_end: Callable[[], None] = lambda: None) -> FlowCounts:
    """Run the flows, half of them by each way, and return the counts. `on_end` is called after each flow.

    Raises: `OperatorError`.
    """
    counts, random = FlowCounts(), Random(seed)
    for way in _WAYS:
        names = [f"c{number}.test" for number in range(flows // 2)]
        async with open_world(way, names, counts) as world:
            people = []
            for name in names:
                drawn = draw(random)
                world.drawn[name] = [drawn.writes.get(number) for number in range(1 + max(drawn.writes, default=0))]
                people.append(Person(world, name, drawn))
            room = asyncio.Semaphore(_AT_ONCE)
            async with asyncio.TaskGroup() as tasks:
                for person in people:
                    tasks.create_task(_run_flow(person, room, on_end), name=f"faults: {person.zone}")
            await _count_effects(world, people)
    return counts


async def _run_flow(person: Person, room: asyncio.Semaphore, on_end: Callable[[], None]) -> None:
    """Connect and take back one name, and compare its zone after each."""
    counts = person.world.counts
    async with room:
        try:
            await person.connect()
            await _compare(person, zones.AFTER, "finished")
            await person.take_back()
            await _compare(person, zones.BEFORE, "undone")
            counts.done["flows finished and undone"] += 1
        except Stuck as error:
            counts.flows_stuck += 1
            counts.details.append(str(error))
        on_end()


async def _compare(person: Person, wanted: zones.Content, when: str) -> None:
    """Count the records that are missing from the zone, and those beyond what is wanted."""
    world = person.world
    foreign = frozenset(world.foreign.get(person.zone, ()))
    missing, beyond = zones.compared(await zones.read(world.server, person.zone), wanted | foreign)
    world.counts.foreign_records_touched += len(missing & foreign)
    world.counts.records_lost += len(missing - foreign)
    world.counts.records_doubled += len(beyond)
    for what, records in (("lost", missing), ("doubled", beyond)):
        for host, kind, value in sorted(records):
            world.counts.details.append(f"{person.zone} by {world.way}, {when}: {what} {host} {kind} {value}")


async def _count_effects(world: FlowWorld, people: list[Person]) -> None:
    """Count the flows whose events or enrolment did not happen exactly once."""
    async with world.database.connection() as connection:
        rows = await connection.fetch(
            "select type, fields ->> 'job_id' as job, count(*) as n from events group by 1, 2"
        )
        powered = {row["domain"] for row in await connection.fetch("select domain from domains")}
        owed = await connection.fetchval(
            "select count(*) from connect_flows"
            " where state in ('applying', 'undoing', 'enrolling') or (due_at <= now() and lease_until is not null)"
        )
    world.counts.flows_stuck += owed
    seen = {(row["type"], row["job"]): row["n"] for row in rows}
    for person in people:
        if person.flow.get("state") != "undone":
            continue
        wrong = [kind for kind in _EVENTS if seen.get((kind, person.flow["job_id"])) != 1]
        wrong += [] if person.host in powered else ["enrolment"]
        world.counts.effects_doubled += len(wrong)
        world.counts.details += [f"{person.host} by {world.way}: not once: {each}" for each in wrong]
