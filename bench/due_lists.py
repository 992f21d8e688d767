"""``python -m bench.due_lists``: what is due is found as quickly among millions of rows as in an empty database.

An embedded Postgres, empty at first: from a committed enrolment to its live certificate, and from a recorded event to
its noted delivery, by the monitor's own runners, without the network; and the claims and the next due time of each kind
of work, with nothing due and with one row due. Then so many rows of each table are written (`bench.rows`), of 20,000
applications, none of them due, and all of it is measured once more. A million takes about five minutes and 4 GB of disk
(in ``--directory``). The table is also written to ``bench/output/due_lists.json``.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from random import Random

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from bench import output, rows
from bench.application import make_application
from bench.figures import Figure
from bench.following_edge import following_edge
from bench.private_stage import private_environment
from common import logs
from common.claims import Runner
from common.cli.database import prepare
from common.clock import SystemClock
from common.db import batches, certificates, checks, deliveries, domains, events, order_queue, revocations
from common.db.ca_ledger import Limits
from common.db.order_queue import Order
from common.db.pool import Connection, Database, open_pool
from common.errors import FrontageError
from common.postgres import EmbeddedPostgres
from common.processes import loop_factory, settle_garbage_collector
from common.secrets import Keyring
from common.settings import load
from monitor.certificates.internal import open_internal
from monitor.certificates.issuance import Issuance
from monitor.certificates.queue import make_runner

ROWS = 1_000_000
_TIMES = 200
_GOAL = 1.5
_LIVE_SECONDS = 30.0
_POOL = 4


@dataclass(frozen=True, slots=True)
class DueListWorld:
    database: Database
    keyring: Keyring
    state_dir: Path
    application_id: str


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.due_lists", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=ROWS, help="rows of each table (1,000,000)")
    parser.add_argument("--directory", type=Path, help="where the database is made (TMPDIR)")
    arguments = parser.parse_args()
    console = Console(soft_wrap=True, width=None if sys.stdout.isatty() else 120)
    logs.configure("bench", level="warning")
    try:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            empty, full = runner.run(_measure(console, arguments.rows, arguments.directory))
    except FrontageError as error:
        sys.exit(f"bench.due_lists: {error}")
    except KeyboardInterrupt:
        sys.exit(1)
    console.print(_table(empty, full, arguments.rows))
    figures = [
        {"name": before.name, "empty_seconds": before.median, "full_seconds": after.median}
        for before, after in zip(empty, full, strict=True)
    ]
    console.print(f"written to {output.write('due_lists', {'rows': arguments.rows, 'figures': figures})}")


async def _measure(console: Console, count: int, directory: Path | None) -> tuple[list[Figure], list[Figure]]:
    settle_garbage_collector()  # as the monitor does
    with (
        tempfile.TemporaryDirectory(prefix="frontage-due-lists-", dir=directory, ignore_cleanup_errors=True) as name,
        Progress(console=console, transient=True) as progress,
    ):
        settings = load(private_environment(Path(name)))
        postgres = EmbeddedPostgres(Path(name))
        try:
            dsn = postgres.start()
            keyring = await prepare(settings)
            async with open_pool(dsn, size=_POOL, application_name="frontage bench") as database:
                application_id, _ = await make_application(
                    database, keyring, name="Due", cname_target="due.localhost", webhook_url="http://127.0.0.1:9/"
                )
                world = DueListWorld(database, keyring, settings.state_dir, application_id)
                empty = await _all_figures(world, "empty", progress)
                numbers = progress.track(rows.chunks(count), description=f"writing {count:,} rows of each table")
                await rows.fill(dsn, count, iter(numbers), console.log)
                return empty, await _all_figures(world, "full", progress)
        finally:
            postgres.stop()


async def _all_figures(world: DueListWorld, run: str, progress: Progress) -> list[Figure]:
    task = progress.add_task(f"measuring, {run}", total=None)
    figures = [await _live(world, run), await _delivered(world)]
    for name, queue in (
        ("awaited orders", order_queue.AWAITED),
        ("routine orders", order_queue.ROUTINE),
        ("checks", _Checks()),
        ("deliveries", deliveries),
        ("batches", batches),
        ("revocations", revocations),
    ):
        figures.append(await _time(world, f"{name}: next due", queue.next_due_seconds))

        async def claim(connection: Connection, queue: object = queue) -> object:
            return await queue.claim(connection, most=100, lease_seconds=10)  # type: ignore[attr-defined]

        figures.append(await _time(world, f"{name}: claim, none due", claim))
    progress.remove_task(task)
    return figures


class _Checks:
    """As the monitor claims them, without its shares."""

    next_due_seconds = staticmethod(checks.next_due_seconds)

    async def claim(self, connection: Connection, *, most: int, lease_seconds: float) -> object:
        due = await checks.find_due(connection, most=most)
        return await checks.claim(connection, due, lease_seconds=lease_seconds) if due else []


async def _time(world: DueListWorld, name: str, work: Callable[[Connection], Awaitable[object]]) -> Figure:
    seconds = []
    for _ in range(_TIMES):
        async with world.database.transaction() as connection:
            began = time.perf_counter()
            await work(connection)
            seconds.append(time.perf_counter() - began)
    return Figure(name, "", seconds)


async def _live(world: DueListWorld, run: str) -> Figure:
    """Enrolments one after the other, each from the commit of what POST /power writes."""
    is_live = asyncio.Event()
    issuer = open_internal(world.state_dir, world.keyring, SystemClock())
    issuance = Issuance(
        world.database,
        issuer,
        world.keyring,
        SystemClock(),
        Random(1),
        leads_to_us=_leads_to_us,
        limits=Limits(),
        on_event=is_live.set,
    )
    runner = make_runner(world.database, order_queue.AWAITED, issuance.perform, Random(1), concurrency=4)
    seconds = []
    async with following_edge(world.database), _running(runner):
        for number in range(_TIMES // 2):
            is_live.clear()
            name = f"{run}-{number}.customer.example"
            async with world.database.transaction() as connection:
                await certificates.lock_domain(connection, name)
                await domains.power(connection, name, world.application_id, "https://origin.example", None)
            began = time.perf_counter()
            runner.wake()
            async with asyncio.timeout(_LIVE_SECONDS):
                await is_live.wait()
            seconds.append(time.perf_counter() - began)
    return Figure("enrolment to live certificate", "", seconds)


async def _delivered(world: DueListWorld) -> Figure:
    """Events recorded, claimed and noted as delivered, without the attempt itself."""
    seconds = []
    async with world.database.transaction() as connection:
        await connection.execute(
            "update deliveries set status = 'delivered', due_at = null, settled_at = now() where status = 'pending'"
        )
    for _ in range(_TIMES):
        began = time.perf_counter()
        async with world.database.transaction() as connection:
            await events.record(connection, events.NewEvent(world.application_id, events.TEST, None, None, {}))
        async with world.database.transaction() as connection:
            [claimed] = await deliveries.claim(connection, most=10, lease_seconds=10)
        async with world.database.transaction() as connection:
            await deliveries.record_delivered(connection, claimed, {"at": "", "status": 204, "error": None})
        seconds.append(time.perf_counter() - began)
    return Figure("event to delivery", "", seconds)


async def _leads_to_us(_domain: str, _application_id: str) -> bool:
    return True


@contextlib.asynccontextmanager
async def _running(runner: Runner[Order]) -> AsyncIterator[None]:
    task = asyncio.create_task(runner.run(), name="bench: runner")
    try:
        yield
    finally:
        task.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await task


def _table(empty: Sequence[Figure], full: Sequence[Figure], count: int) -> Table:
    table = Table(title=f"Due lists, empty and among {count:,} rows of each table (median of {_TIMES})")
    for column in ("", "empty", f"{count:,} rows", "ratio", f"goal ≤ {_GOAL:g}"):
        table.add_column(column, justify="left" if not column else "right")
    for before, after in zip(empty, full, strict=True):
        ratio = after.median / before.median
        verdict = "met" if ratio <= _GOAL else "missed"
        table.add_row(
            before.name, f"{before.median * 1000:.2f} ms", f"{after.median * 1000:.2f} ms", f"{ratio:.2f}", verdict
        )
    return table


if __name__ == "__main__":
    main()
