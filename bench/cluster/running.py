"""One run, from its beginning to its verdict."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

from bench.cluster.checker import Verdict, judge_reads, judge_visits, judge_writes
from bench.cluster.clients import Clients
from bench.cluster.ending import come_to_rest, judge_ending
from bench.cluster.history import History
from bench.cluster.nemesis import LOSING, Nemesis
from bench.cluster.world import READY_MAX_AGE_SECONDS, cluster_world


async def run(
    directory: Path,
    *,
    seed: int,
    seconds: float,
    has_namespaces: bool,
    is_synchronous: bool,
    only: Sequence[str] = (),
    on_step: Callable[[str, float], None],
) -> tuple[History, Verdict]:
    """Run for so many seconds of faults. `on_step` is called with what happens, and the seconds of them that are over.

    Raises: `OperatorError` when something does not recover.
    """
    random, verdict = Random(seed), Verdict()
    is_lossless = is_synchronous and not set(only) & set(LOSING)
    on_step("everything starts", 0.0)
    async with cluster_world(directory, has_namespaces=has_namespaces, is_synchronous=is_synchronous) as world:
        history = History()
        clients = Clients(world, history, Random(random.random()))
        await clients.enrol()
        until = history.now + seconds
        nemesis = Nemesis(
            world, history, Random(random.random()), lambda what: on_step(what, seconds - until + history.now), only
        )
        working = asyncio.create_task(clients.work(), name="clients")
        try:
            await nemesis.work(until)
            on_step("everything comes to rest", seconds)
        finally:
            clients.quiet.set()
            await working
        await come_to_rest(world, history, verdict, is_lossless=is_lossless)
        await judge_ending(clients, verdict, is_lossless=is_lossless)
    judge_writes(history, verdict, is_lossless=is_lossless)
    judge_reads(history, verdict, is_lossless=is_lossless)
    judge_visits(history, verdict, clients.steady, max_age_seconds=READY_MAX_AGE_SECONDS, is_lossless=is_lossless)
    verdict.figures["faults"] = ", ".join(f"{count} {name}" for name, count in sorted(nemesis.done.items()))
    return history, verdict
