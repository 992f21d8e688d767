"""``python -m bench.figures``: how long the main job takes, on this machine, with everything real.

Three figures: from sending POST /power to the first valid HTTPS response; from a committed change to every worker
serving it; from nothing to a demo that is ready. The table is also written to ``bench/output/figures.json``.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import signal
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from bench import output
from bench.demo.stage import CUSTOMER, Stage
from bench.demo.walk_clients import PartnerClient, VisitorClient
from bench.private_stage import private_environment, private_stage
from bench.process_tree import find_child
from bench.worker_connections import WorkerConnection, one_to_each_worker
from common.db import domains
from common.db.address import resolve_dsn
from common.db.pool import Database, open_pool
from common.domain_settings import DomainSettings
from common.errors import FrontageError

_DEMO_STARTS = 3
_DEMO_SECONDS = 60
_SERVED_SECONDS = 10


@dataclass(frozen=True, slots=True)
class Figure:
    """One figure. `seconds` are the single measurements."""

    name: str
    goal: str
    seconds: Sequence[float]

    @property
    def median(self) -> float:
        """Return the median in seconds."""
        return statistics.median(self.seconds)

    @property
    def p99(self) -> float:
        """Return the smallest measurement that 99 of 100 do not exceed."""
        ordered = sorted(self.seconds)
        return ordered[-(-len(ordered) * 99 // 100) - 1]


def main() -> None:
    """Run the bench and print its figures."""
    parser = argparse.ArgumentParser(prog="python -m bench.figures", description=__doc__)
    parser.add_argument("--domains", type=int, default=60, help="domains to power")
    parser.add_argument("--changes", type=int, default=500, help="changes to commit")
    arguments = parser.parse_args()
    console = Console(soft_wrap=True)
    try:
        figures = asyncio.run(_measure(console, arguments.domains, arguments.changes))
    except FrontageError as error:
        sys.exit(f"bench.figures: {error}")
    except KeyboardInterrupt:
        sys.exit(1)
    console.print(_table(figures))
    path = output.write("figures", {"figures": [_as_json(figure) for figure in figures]})
    console.print(f"written to {path}")


async def _measure(console: Console, domain_count: int, change_count: int) -> list[Figure]:
    with Progress(console=console, transient=True) as progress:
        starts = [await _time_to_demo() for _ in progress.track(range(_DEMO_STARTS), description="starting the demo")]
        async with private_stage() as stage:
            numbers = progress.track(range(domain_count), description="powering domains")
            powered = [await time_to_https(stage, f"shop-{number}.{CUSTOMER}") for number in numbers]
            async with _changing(stage, f"shop-0.{CUSTOMER}") as changing:
                numbers = progress.track(range(change_count), description=f"changes, {changing.worker_count} workers")
                changed = [await changing.time_to_every_worker(number) for number in numbers]
    return [
        Figure("POST /power → first valid HTTPS", "median ≤ 0.5 s", powered),
        Figure("change → served by every worker", "p99 ≤ 20 ms", changed),
        Figure("installed → demo ready", "≤ 5 s", starts),
    ]


async def time_to_https(stage: Stage, domain: str) -> float:
    """Return the seconds from sending POST /power to the first valid HTTPS response."""
    visitor = VisitorClient(stage.edge_https_host, stage.settings.edge_https.port, stage.ca_file)
    async with PartnerClient.at(stage.settings.base_url, stage.application_id) as partner:
        await partner.sign_in(stage.client_secret)
        start = time.perf_counter()
        await partner.power(domain, f"{stage.lab.origin}/a")
        await visitor.get_when(domain, "Version A")
        return time.perf_counter() - start


# A change, seen by every worker ----------------------------------------------------------------------------


class _Changing:
    """Moves one domain to and fro between two base paths, straight in the database. Created by `_changing`."""

    def __init__(self, stage: Stage, domain: str, database: Database, workers: Sequence[WorkerConnection]) -> None:
        self._stage = stage
        self._domain = domain
        self._database = database
        self._workers = workers

    @property
    def worker_count(self) -> int:
        """Return the number of workers."""
        return len(self._workers)

    async def time_to_every_worker(self, number: int) -> float:
        """Commit a change, and return the seconds until every worker serves it."""
        base = ("/b", "/a")[number % 2]
        async with self._database.transaction() as connection:
            await domains.update(
                connection,
                self._domain,
                "power",
                self._stage.application_id,
                DomainSettings(f"{self._stage.lab.origin}{base}"),
            )
        committed = time.perf_counter()
        async with asyncio.timeout(_SERVED_SECONDS):
            await asyncio.gather(*(self._sees(worker, f"{base}/echo") for worker in self._workers))
        return time.perf_counter() - committed

    async def _sees(self, worker: WorkerConnection, path: str) -> None:
        while (await worker.get_json(self._domain, "/echo"))["path"] != path:
            pass


@contextlib.asynccontextmanager
async def _changing(stage: Stage, domain: str) -> AsyncIterator[_Changing]:
    edge = find_child(os.getpid(), "-m", "edge")
    dsn = resolve_dsn(stage.settings)
    async with (
        open_pool(dsn, size=1, application_name="frontage bench") as database,
        one_to_each_worker(edge, stage, domain) as workers,
    ):
        yield _Changing(stage, domain, database, workers)


# The demo, from nothing ------------------------------------------------------------------------------------


async def _time_to_demo() -> float:
    """Return the seconds from starting `frontage demo` until it is ready."""
    with tempfile.TemporaryDirectory(prefix="frontage-bench-", ignore_cleanup_errors=True) as directory:
        start = time.perf_counter()
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "api.cli", "demo"),
            env=private_environment(Path(directory) / "state"),
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdout is not None
        try:
            async with asyncio.timeout(_DEMO_SECONDS):
                async for line in process.stdout:
                    if line.startswith(b"Ready"):
                        return time.perf_counter() - start
            raise FrontageError("the demo did not start")
        finally:
            with contextlib.suppress(ProcessLookupError):
                process.send_signal(signal.SIGTERM)
            await process.communicate()


# The table -------------------------------------------------------------------------------------------------


def _table(figures: Sequence[Figure]) -> Table:
    table = Table(title="The main job, timed")
    for title in ("figure", "n", "median", "p99", "goal"):
        table.add_column(title, justify="left" if title == "figure" else "right")
    for figure in figures:
        table.add_row(
            figure.name, str(len(figure.seconds)), _duration(figure.median), _duration(figure.p99), figure.goal
        )
    return table


def _as_json(figure: Figure) -> dict[str, object]:
    return {
        "name": figure.name,
        "goal": figure.goal,
        "count": len(figure.seconds),
        "median_seconds": figure.median,
        "p99_seconds": figure.p99,
    }


def _duration(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds >= 1 else f"{seconds * 1000:.1f} ms"


if __name__ == "__main__":
    main()
