"""``python -m bench.workers``: whether two workers serve twice what one serves, and how evenly they share.

The machine may have too few cores for two workers beside the load and the origin. So each worker is held to a share of
one core (Linux's CPU controller; needs root), the load is not, and the requests that are answered in a second through
one and through two workers are compared, in turn, several rounds. Then thousands of connections are opened, and it is
counted which worker has how many. Goals: throughput at least 1.8 times, shares within 10 % of the half.

Not varied: plain HTTP, 1 KB, one domain and origin; heads and responses differ. Workers that share a core share its
caches, which two cores do not. Also written as JSON (``workers.json`` in ``bench/output``).
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import socket
import statistics
import sys
import tempfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from bench import cases, heads, output, wrk
from bench.compare import origins
from bench.peers import HOST, LOAD_CORE, RunningProxy
from bench.peers.frontage_edge import Frontage
from bench.process_tree import descendants
from common.errors import FrontageError, OperatorError

_QUOTA = 0.2  # of a core, a worker
_PERIOD_US = 20_000
_CONNECTIONS = 4000
_TREES = (Path("/sys/fs/cgroup/cpu"), Path("/sys/fs/cgroup"))  # of version 1, and of version 2


def main() -> None:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(prog="python -m bench.workers", description=__doc__)
    parser.add_argument("--rounds", type=int, default=5, help="runs with one and with two workers; medians count (5)")
    parser.add_argument("--seconds", type=int, default=4, help="length of one run (4)")
    arguments = parser.parse_args()
    os.environ["PATH"] = f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin"
    try:
        asyncio.run(_measure(arguments.rounds, arguments.seconds, Console()))
    except (FrontageError, OSError) as error:
        sys.exit(f"bench.workers: {error}")


async def _measure(rounds: int, seconds: int, console: Console) -> None:
    rates: dict[int, list[float]] = {1: [], 2: []}
    async with _edges() as edges:
        shares = await asyncio.to_thread(_count_connections, edges[2])
        with contextlib.ExitStack() as stack, Progress(console=console, transient=True) as progress:
            for edge in edges.values():
                for worker in _workers(edge):
                    stack.enter_context(_held_to_quota(worker))
            for _ in progress.track(range(rounds), description="one worker, two workers"):
                for count, edge in edges.items():
                    url = f"http://{HOST}:{edge.http_port}{cases.DIFFERENT}"
                    run = await wrk.run(url, heads.varied(HOST, cases.DIFFERENT), seconds=seconds, core=LOAD_CORE)
                    rates[count].append(run.requests / run.seconds)
    one, two = (statistics.median(rates[count]) for count in (1, 2))
    largest = max(shares) / sum(shares)
    table = Table("workers", "requests a second", "× one", title=f"each worker has {_QUOTA:.0%} of a core")
    table.add_row("1", f"{one:,.0f}", "1.00")
    table.add_row("2", f"{two:,.0f}", f"{two / one:.2f}")
    console.print(table)
    console.print(f"{sum(shares):,} connections: {' and '.join(map(str, shares))}, at most {largest:.1%} to one")
    figures = {"requests_per_second": rates, "times": two / one, "connections": shares}
    console.print(f"written to {output.write('workers', figures)}")


@contextlib.asynccontextmanager
async def _edges() -> AsyncIterator[dict[int, RunningProxy]]:
    """Run an edge of one worker and one of two for the block, by their number."""
    os.sched_setaffinity(0, {LOAD_CORE})
    with tempfile.TemporaryDirectory(prefix="frontage-workers-", ignore_cleanup_errors=True) as name:
        async with contextlib.AsyncExitStack() as stack:
            sites = await stack.enter_async_context(origins(Path(name)))
            yield {
                count: await stack.enter_async_context(Frontage(EDGE_WORKERS=str(count)).serve(sites))
                for count in (1, 2)
            }


def _workers(edge: RunningProxy) -> list[int]:
    """Return the processes that take connections: those which a hundred new ones reach."""
    before = {process: _sockets(process) for process in descendants(edge.pid)}
    with _connected(edge.http_port, 100):
        return [process for process, count in before.items() if _sockets(process) > count + 1]


def _count_connections(edge: RunningProxy) -> list[int]:
    """Return how many of many connections each worker holds."""
    before = {process: _sockets(process) for process in _workers(edge)}
    with _connected(edge.http_port, _CONNECTIONS):
        return [_sockets(process) - count for process, count in before.items()]


@contextlib.contextmanager
def _connected(port: int, count: int) -> Iterator[None]:
    """Hold this many connections open for the block, each of which was answered once."""
    request = heads.same(HOST, cases.KB)[0]
    with contextlib.ExitStack() as stack:
        for number in range(count):
            client = (f"127.0.1.{1 + number % 200}", 0)
            connection = stack.enter_context(socket.create_connection(("127.0.0.1", port), source_address=client))
            connection.sendall(request)
            if not connection.recv(65536):
                raise OperatorError("the edge closed a connection")
        yield


def _sockets(process: int) -> int:
    links = Path(f"/proc/{process}/fd").iterdir()
    return sum(_target(link).startswith("socket:") for link in links)


def _target(link: Path) -> str:
    with contextlib.suppress(OSError):
        return os.readlink(link)
    return ""


@contextlib.contextmanager
def _held_to_quota(process: int) -> Iterator[None]:
    """Hold a process to its share of a core for the block. Raises: `OperatorError`."""
    tree = next((tree for tree in _TREES if tree.is_dir()), None)
    group = tree / f"frontage-bench-{process}" if tree else None
    if group is None:
        raise OperatorError("there is no CPU controller")
    group.mkdir()
    try:
        quota = int(_PERIOD_US * _QUOTA)
        if (group / "cpu.cfs_quota_us").exists():
            (group / "cpu.cfs_period_us").write_text(str(_PERIOD_US))
            (group / "cpu.cfs_quota_us").write_text(str(quota))
        else:
            (group / "cpu.max").write_text(f"{quota} {_PERIOD_US}")
        (group / "cgroup.procs").write_text(str(process))
        yield
    finally:
        with contextlib.suppress(OSError):  # it has ended
            (group.parent / "cgroup.procs").write_text(str(process))
        group.rmdir()


if __name__ == "__main__":
    main()
