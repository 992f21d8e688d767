"""``python -m bench.due_lists``: what is due is found as quickly among millions of rows as in an empty database.

Two embedded servers, one of them empty, the other with ``--rows`` of each table (`bench.rows`), of 20,000 applications,
none of them due. Measured in turns, one here and one there, all on one core, so that other work meets both: from the
beginning of an enrolment to its live certificate, and from a recorded event to its noted delivery, by the monitor's own
runners, without the network; the transaction of an enrolment; and the next due time and the claim of each kind of work,
with nothing due. Two figures each: the time, and the blocks that one transaction asks for, which do not depend on the
machine. Indexes of millions of rows have two or three levels more than an empty one's, so that the goal of 1.5 × the
empty database's is the time's.

A million rows take about five minutes and 6 GB of disk (in ``--directory``). The table is also written to
``bench/output/due_lists.json``.
"""

from __future__ import annotations

import argparse
import asyncio
import itertools
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence, Sized
from contextlib import AbstractAsyncContextManager, AsyncExitStack, ExitStack, asynccontextmanager, suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from pathlib import Path
from random import Random

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from api.cli.database import prepare
from bench import output, rows
from bench.application import make_application
from bench.blocks import count_blocks
from bench.following_edge import following_edge
from bench.private_stage import private_environment
from bench.process_tree import pin_all
from common import logs
from common.clock import SystemClock
from common.db import batches, certificates, checks, deliveries, domains, events, order_queue, revocations
from common.db.ca_ledger import Limits
from common.db.order_queue import Order
from common.db.pool import Connection, Database, open_pool
from common.domain_settings import DomainSettings
from common.errors import FrontageError
from common.postgres import EmbeddedPostgres, running_dsn
from common.processes import loop_factory, settle_garbage_collector
from common.secrets import Keyring
from common.settings import load
from monitor.certificates.dns_moved_away import Lead
from monitor.certificates.internal import open_internal
from monitor.certificates.issuance import Issuance
from monitor.certificates.queue import make_runner
from monitor.claims import Runner

ROWS = 1_000_000
_TIMES = 200
_WARM = 10
"""Not counted: Postgres plans a prepared statement anew five times, then keeps a plan."""

_GOAL = 1.5
_LIVE_SECONDS = 30.0
_POOL = 4


@dataclass(frozen=True, slots=True)
class DueListWorld:
    """One of the two databases; `name` is part of the names that are enrolled in it."""

    name: str
    database: Database
    keyring: Keyring
    state_dir: Path
    application_id: str


@dataclass(slots=True)
class DueListCost:
    """Single measurements. `blocks` stays empty where more than one transaction is measured."""

    seconds: list[float] = field(default_factory=list)
    blocks: list[int] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class DueListFigure:
    """The costs of one case in both databases."""

    name: str
    empty: DueListCost
    full: DueListCost

    @property
    def ratio(self) -> float:
        """Return the median time in the full database divided by that in the empty one."""
        return statistics.median(self.full.seconds) / statistics.median(self.empty.seconds)


Measure = Callable[[DueListCost], Awaitable[None]]
"""Makes one measurement."""


@dataclass(frozen=True, slots=True)
class DueListCase:
    """A case: its name, and how to open its measurement in one of the databases."""

    name: str
    open: Callable[[DueListWorld], AbstractAsyncContextManager[Measure]]


def main() -> None:
    """Run the bench and print its table."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.due_lists", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=ROWS, help="rows of each table (1,000,000)")
    parser.add_argument("--directory", type=Path, help="where the databases are made (TMPDIR)")
    arguments = parser.parse_args()
    console = Console(soft_wrap=True, width=None if sys.stdout.isatty() else 120)
    logs.configure("bench", level="warning")
    try:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            figures = runner.run(_measure(console, arguments.rows, arguments.directory))
    except FrontageError as error:
        sys.exit(f"bench.due_lists: {error}")
    except KeyboardInterrupt:
        sys.exit(1)
    report(console, figures, arguments.rows)


def report(console: Console, figures: Sequence[DueListFigure], count: int) -> None:
    """Print the table, and write it as JSON."""
    console.print(_table(figures, count))
    written = {"rows": count, "figures": [asdict(each) for each in figures]}
    console.print(f"written to {output.write('due_lists', written)}")


async def _measure(console: Console, count: int, directory: Path | None) -> list[DueListFigure]:
    with ExitStack() as directories, Progress(console=console, transient=True) as progress:
        async with AsyncExitStack() as worlds:
            opened = []
            for name in ("empty", "full"):
                state_dir = tempfile.TemporaryDirectory(
                    prefix="frontage-due-lists-", dir=directory, ignore_cleanup_errors=True
                )
                path = Path(directories.enter_context(state_dir))
                opened.append(await worlds.enter_async_context(open_world(path, name)))
            numbers = progress.track(rows.chunks(count), description=f"writing {count:,} rows of each table")
            dsn = running_dsn(opened[1].state_dir)
            assert dsn is not None, "the server runs"
            await rows.fill(dsn, count, iter(numbers), console.log)
            return await compare(opened, progress)


@asynccontextmanager
async def open_world(state_dir: Path, name: str) -> AsyncIterator[DueListWorld]:
    """Run a server of its own for the block, with one application that has a webhook."""
    settings = load(private_environment(state_dir))
    postgres = EmbeddedPostgres(state_dir)
    try:
        dsn = postgres.start()
        keyring = await prepare(settings)
        async with open_pool(dsn, size=_POOL, application_name="frontage bench") as database:
            application_id, _ = await make_application(
                database, keyring, name="Due", cname_target="due.localhost", webhook_url="http://127.0.0.1:9/"
            )
            yield DueListWorld(name, database, keyring, state_dir, application_id)
    finally:
        postgres.stop()


async def compare(worlds: Sequence[DueListWorld], progress: Progress) -> list[DueListFigure]:
    """Measure each case in both databases, in turns; the empty one comes first."""
    settle_garbage_collector()  # as the monitor does
    pin_all()
    for world in worlds:
        async with world.database.transaction() as connection:
            await connection.execute(
                "update deliveries set status = 'delivered', due_at = null, settled_at = now() where status = 'pending'"
            )
    return [await _compare(case, worlds) for case in progress.track(_cases(), description="measuring")]


async def _compare(case: DueListCase, worlds: Sequence[DueListWorld]) -> DueListFigure:
    costs = (DueListCost(), DueListCost())
    async with AsyncExitStack() as stack:
        measures = [await stack.enter_async_context(case.open(world)) for world in worlds]
        for turn in range(_WARM + _TIMES):
            for measure, cost in zip(measures, costs, strict=True):
                await measure(cost if turn >= _WARM else DueListCost())
    return DueListFigure(case.name, *costs)


# What is measured -------------------------------------------------------------------------------------------------


def _cases() -> list[DueListCase]:
    cases = [
        DueListCase("enrolment to live certificate", _open_live),
        DueListCase("event to delivery", _open_delivered),
        DueListCase("transaction of an enrolment", _open_enrolment),
    ]
    for name, queue in (
        ("awaited orders", order_queue.AWAITED),
        ("routine orders", order_queue.ROUTINE),
        ("checks", _Checks()),
        ("deliveries", deliveries),
        ("batches", batches),
        ("revocations", revocations),
    ):
        cases.append(DueListCase(f"{name}: next due", partial(_open_work, queue.next_due_seconds)))
        claim = partial(claim_none, partial(queue.claim, most=100, lease_seconds=10))
        cases.append(DueListCase(f"{name}: claim, none due", partial(_open_work, claim)))
    return cases


class _Checks:
    """Claims checks as the monitor does, without its shares."""

    next_due_seconds = staticmethod(checks.next_due_seconds)

    async def claim(self, connection: Connection, *, most: int, lease_seconds: float) -> Sized:
        """Claim due checks."""
        due = await checks.find_due(connection, most=most)
        return await checks.claim(connection, due, lease_seconds=lease_seconds) if due else []


async def claim_none(claim: Callable[[Connection], Awaitable[Sized]], connection: Connection) -> None:
    """Claim what is due, which must be nothing.

    Raises: `FrontageError` when there was something to claim, which takes longer.
    """
    if claimed := await claim(connection):
        raise FrontageError(f"{len(claimed)} rows are due: what a claim costs when nothing is due cannot be measured")


@asynccontextmanager
async def _open_work(work: Callable[[Connection], Awaitable[object]], world: DueListWorld) -> AsyncIterator[Measure]:
    async def measure(cost: DueListCost) -> None:
        async with world.database.transaction() as connection, count_blocks(connection, cost.blocks):
            began = time.perf_counter()
            await work(connection)
            cost.seconds.append(time.perf_counter() - began)

    yield measure


@asynccontextmanager
async def _open_enrolment(world: DueListWorld) -> AsyncIterator[Measure]:
    """Measure the transaction of an enrolment, rolled back so that none of it becomes due."""
    numbers = itertools.count()

    async def enrol(connection: Connection) -> None:
        transaction = connection.transaction()
        await transaction.start()
        try:
            await _enrol(connection, world, f"rolled-back-{next(numbers)}")
            await connection.execute("set constraints all immediate")  # as a commit
        finally:
            await transaction.rollback()

    async with _open_work(enrol, world) as measure:
        yield measure


@asynccontextmanager
async def _open_live(world: DueListWorld) -> AsyncIterator[Measure]:
    """Measure enrolments one after the other, each from the beginning of what POST /power writes until it is live."""
    is_live = asyncio.Event()
    issuance = Issuance(
        world.database,
        open_internal(world.state_dir, world.keyring, SystemClock()),
        world.keyring,
        SystemClock(),
        Random(1),
        find_lead=_leads_here,
        limits=Limits(),
        on_event=is_live.set,
    )
    runner = make_runner(world.database, order_queue.AWAITED, issuance.perform, Random(1), concurrency=4)
    numbers = itertools.count()

    async def measure(cost: DueListCost) -> None:
        is_live.clear()
        began = time.perf_counter()
        async with world.database.transaction() as connection:
            await _enrol(connection, world, f"live-{next(numbers)}")
        runner.wake()
        async with asyncio.timeout(_LIVE_SECONDS):
            await is_live.wait()
        cost.seconds.append(time.perf_counter() - began)

    async with following_edge(world.database), _running(runner):
        yield measure


async def _enrol(connection: Connection, world: DueListWorld, label: str) -> None:
    name = f"{label}.{world.name}.customer.example"
    await certificates.lock_domain(connection, name)
    await domains.power(connection, name, world.application_id, DomainSettings("https://origin.example"))


@asynccontextmanager
async def _open_delivered(world: DueListWorld) -> AsyncIterator[Measure]:
    """Measure events that are recorded, claimed and noted as delivered, without the attempt itself."""

    async def measure(cost: DueListCost) -> None:
        began = time.perf_counter()
        async with world.database.transaction() as connection:
            await events.record(connection, events.NewEvent(world.application_id, events.TEST, None, None, {}))
        async with world.database.transaction() as connection:
            [claimed] = await deliveries.claim(connection, most=10, lease_seconds=10)
        async with world.database.transaction() as connection:
            await deliveries.record_delivered(connection, claimed, {"at": "", "status": 204, "error": None})
        cost.seconds.append(time.perf_counter() - began)

    async with world.database.transaction() as connection:  # of the certificates that went live before
        await connection.execute(
            "update deliveries set status = 'delivered', due_at = null, settled_at = now() where status = 'pending'"
        )
    yield measure


async def _leads_here(_domain: str, _application_id: str) -> Lead:
    return "here"


@asynccontextmanager
async def _running(runner: Runner[Order]) -> AsyncIterator[None]:
    task = asyncio.create_task(runner.run(), name="bench: runner")
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def _table(figures: Sequence[DueListFigure], count: int) -> Table:
    table = Table(title=f"Due lists, empty and among {count:,} rows of each table (median of {_TIMES})")
    for column in ("", "blocks", "empty ms", f"{count:,} rows", "ratio", f"goal ≤ {_GOAL:g}"):
        table.add_column(column, justify="left" if not column else "right")
    for each in figures:
        blocks = [statistics.median(cost.blocks) for cost in (each.empty, each.full) if cost.blocks]
        table.add_row(
            each.name,
            " → ".join(f"{each_one:,.0f}" for each_one in blocks),
            *(f"{statistics.median(cost.seconds) * 1000:.2f}" for cost in (each.empty, each.full)),
            f"{each.ratio:.2f}",
            "met" if each.ratio <= _GOAL else "missed",
        )
    return table


if __name__ == "__main__":
    main()
