"""``python -m bench.compare``: CPU time per request, ours beside nginx's, in one run.

wrk and an nginx origin on core 1, one proxy at a time loaded on core 0, alternating; a proxy's cost is user and
system time of its whole process tree divided by the requests completed. Machines drift: only the ratios of one
run count. The table is also written to ``bench/output/compare.json``.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import statistics
import sys
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from bench import output, wrk
from bench.peers import HOST, LOAD_CORE, PROXY_CORE, Peer, Serving, missing
from bench.peers.frontage_edge import Frontage
from bench.peers.nginx_proxy import Nginx, nginx_origin
from bench.process_tree import cpu_seconds
from common.errors import OperatorError

PEERS: tuple[Peer, ...] = (Nginx(), Frontage())
REFERENCE = Nginx.name
_PROGRAMS = ("wrk", "taskset", "nginx")
_WARM_UP_SECONDS = 1.0


@dataclass(frozen=True, slots=True)
class Case:
    """`goal` is the most our cost may be, as a multiple of the reference's."""

    name: str
    scheme: str
    varied: bool
    goal: float
    body_bytes: int = 1024


CASES = (
    Case("http, 1 KB, same headers", "http", varied=False, goal=1.5),
    Case("http, 1 KB, varied headers", "http", varied=True, goal=1.5),
    Case("https, 1 KB, keep-alive", "https", varied=False, goal=1.5),
)

Costs = dict[tuple[str, str], list[float]]
"""(case, peer) -> microseconds of CPU a request, one a round."""


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.compare", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="runs of each case and proxy; medians count")
    parser.add_argument("--seconds", type=float, default=4, help="length of one run")
    parser.add_argument("--peer", action="append", choices=[peer.name for peer in PEERS], help="only these")
    arguments = parser.parse_args()
    peers = [peer for peer in PEERS if not arguments.peer or peer.name in arguments.peer]
    console = Console(soft_wrap=True)
    try:
        costs = asyncio.run(_compare(peers, console, rounds=arguments.rounds, seconds=arguments.seconds))
    except (OperatorError, wrk.WrkFailed) as error:
        sys.exit(f"bench.compare: {error}")
    except KeyboardInterrupt:
        sys.exit(1)
    console.print(_table(costs, peers))
    path = output.write("compare", {"cpu_us_per_request": _medians(costs, peers), "rounds": arguments.rounds})
    console.print(f"written to {path}")


async def _compare(peers: Sequence[Peer], console: Console, *, rounds: int, seconds: float) -> Costs:
    programs = _PROGRAMS + tuple(program for peer in peers for program in peer.needs)
    if absent := sorted(set(missing(programs))):
        raise OperatorError(
            f"{', '.join(absent)} not found: on Debian and Ubuntu, `apt-get install wrk nginx-light util-linux`"
        )
    if not {PROXY_CORE, LOAD_CORE} <= os.sched_getaffinity(0):
        raise OperatorError("two cores are needed: one for the proxy alone, one for everything else")
    os.sched_setaffinity(0, {LOAD_CORE})  # and whatever we start, unless it is pinned to the proxy's
    costs: Costs = defaultdict(list)
    async with contextlib.AsyncExitStack() as stack:
        with Progress(console=console, transient=True) as progress:
            task = progress.add_task("starting", total=rounds * len(CASES) * len(peers))
            started: dict[int, dict[str, Serving]] = {}
            for body_bytes in {case.body_bytes for case in CASES}:
                origin_port = await stack.enter_async_context(nginx_origin(body_bytes))
                started[body_bytes] = {
                    peer.name: await stack.enter_async_context(peer.serve(origin_port)) for peer in peers
                }
            for _ in range(rounds):
                for case in CASES:
                    for name, serving in started[case.body_bytes].items():
                        progress.update(task, description=f"{name}: {case.name}")
                        costs[case.name, name].append(await _cost_us(case, serving, seconds))
                        progress.advance(task)
    return costs


async def _cost_us(case: Case, serving: Serving, seconds: float) -> float:
    port = serving.https_port if case.scheme == "https" else serving.http_port
    url = f"{case.scheme}://{HOST}:{port}/"
    await wrk.run(url, connect_to="127.0.0.1", varied=case.varied, seconds=_WARM_UP_SECONDS, core=LOAD_CORE)
    before = cpu_seconds(serving.pid)
    run = await wrk.run(url, connect_to="127.0.0.1", varied=case.varied, seconds=seconds, core=LOAD_CORE)
    return (cpu_seconds(serving.pid) - before) / run.requests * 1e6


def _medians(costs: Costs, peers: Sequence[Peer]) -> dict[str, Any]:
    return {case.name: {peer.name: statistics.median(costs[case.name, peer.name]) for peer in peers} for case in CASES}


def _table(costs: Costs, peers: Sequence[Peer]) -> Table:
    table = Table(title="CPU time per request (user and system, median; × is the ratio to nginx)")
    table.add_column("case")
    for peer in peers:
        table.add_column(peer.name, justify="right")
    table.add_column("goal", justify="right")
    for case, medians in zip(CASES, _medians(costs, peers).values(), strict=True):
        reference = medians.get(REFERENCE)
        cells = [
            f"{cost:.1f} µs" + (f"  {cost / reference:.2f} ×" if reference and name != REFERENCE else "")
            for name, cost in medians.items()
        ]
        table.add_row(case.name, *cells, f"≤ {case.goal:.2f} ×")
    return table


if __name__ == "__main__":
    main()
