"""``python -m bench.deletion``: an application with many domains is deleted, beside another one's enrolments.

An embedded Postgres with fsync on; both applications' domains have certificates. Measured: how long the deletion takes,
how long its batches keep their locks, and an enrolment of the other application alone and beside the deletion, from
its transaction's beginning to its commit. The goals: a batch within 100 ms on a quiet machine, and the enrolment within
2 × alone. 100,000 domains take a few minutes. The table is also written to ``bench/output/deletion.json``.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Callable
from itertools import count
from pathlib import Path

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from api.cli.database import prepare
from bench import output
from bench.application import make_application
from bench.enrolment import EnrolledDomain, enrol
from bench.figures import Figure
from bench.private_stage import private_environment
from common.db import application_removal, certificates, domains
from common.db.application_removal import RemovalStage
from common.db.pool import Database, open_pool
from common.domain_settings import DomainSettings
from common.errors import FrontageError
from common.postgres import EmbeddedPostgres
from common.processes import loop_factory
from common.settings import load

_ALONE_TIMES = 200
_PAUSE_SECONDS = 0.02
_FIRST_BATCHES = 20


def main() -> None:
    """Run the bench and print its figures."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.deletion", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--domains", type=int, default=100_000, help="of the application that is deleted (100,000)")
    parser.add_argument("--directory", type=Path, default=Path("/var/tmp"), help="a directory on a disk (/var/tmp)")
    arguments = parser.parse_args()
    console = Console(soft_wrap=True, width=None if sys.stdout.isatty() else 120)
    try:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            figures = runner.run(_measure(console, arguments.domains, arguments.directory))
    except FrontageError as error:
        sys.exit(f"bench.deletion: {error}")
    except KeyboardInterrupt:
        sys.exit(1)
    console.print(_table(figures, arguments.domains))
    written = {"domains": arguments.domains, "figures": {each.name: list(each.seconds) for each in figures}}
    console.print(f"written to {output.write('deletion', written)}")


async def _measure(console: Console, count: int, directory: Path) -> list[Figure]:
    with (
        tempfile.TemporaryDirectory(prefix="frontage-bench-", dir=directory, ignore_cleanup_errors=True) as name,
        Progress(console=console, transient=True) as progress,
    ):
        settings = load(private_environment(Path(name)))
        postgres = EmbeddedPostgres(Path(name))
        try:
            dsn = postgres.start()
            keyring = await prepare(settings)
            async with open_pool(dsn, size=3, application_name="frontage bench") as database:
                large, _ = await make_application(database, keyring, name="Large", cname_target="large.localhost")
                other, _ = await make_application(database, keyring, name="Other", cname_target="other.localhost")
                rows = (EnrolledDomain(f"d{n}.example", large, "https://origin.example/", "", "") for n in range(count))
                await enrol(dsn, keyring, progress.track(rows, total=count, description="enrolling"))
                return await _delete_beside(database, large, other, count, progress)
        finally:
            postgres.stop()


async def _delete_beside(database: Database, large: str, other: str, total: int, progress: Progress) -> list[Figure]:
    """Delete the large application, and measure the other's enrolments alone and beside it."""
    alone = await _enrol_repeatedly(database, other, "alone", lambda times: times >= _ALONE_TIMES)
    task = progress.add_task("deleting", total=total)
    batches: list[float] = []
    ended_at = time.perf_counter()

    def note(stage: RemovalStage, removed: int) -> None:
        nonlocal ended_at
        if stage.words == "domains":
            batches.append(time.perf_counter() - ended_at)
            progress.update(task, completed=removed)
        ended_at = time.perf_counter()

    async with database.transaction() as connection:
        await application_removal.begin(connection, large)
    began_at = time.perf_counter()
    deletion = asyncio.create_task(application_removal.remove_all(database, large, note), name="bench: deletion")
    beside = await _enrol_repeatedly(database, other, "beside", lambda _: deletion.done())
    await deletion
    return [
        Figure("the deletion", "", [time.perf_counter() - began_at]),
        Figure("a batch of it, the first ones", "", batches[:_FIRST_BATCHES]),
        Figure("a batch of it, the last ones", "", batches[-1 - _FIRST_BATCHES : -1]),
        Figure("another's enrolment, alone", "", alone),
        Figure("another's enrolment, beside it", "≤ 2 × alone", beside),
    ]


async def _enrol_repeatedly(
    database: Database, application_id: str, prefix: str, is_over: Callable[[int], bool]
) -> list[float]:
    """Enrol domains until `is_over` of their number, and return the seconds of each enrolment."""
    seconds: list[float] = []
    for number in count():
        if is_over(number):
            return seconds
        name, began_at = f"{prefix}-{number}.example", time.perf_counter()
        async with database.transaction() as connection:
            await certificates.lock_domain(connection, name)
            await domains.power(connection, name, application_id, DomainSettings("https://origin.example"))
        seconds.append(time.perf_counter() - began_at)
        await asyncio.sleep(_PAUSE_SECONDS)
    raise AssertionError("count() does not end")


def _table(figures: list[Figure], domains: int) -> Table:
    table = Table(title=f"Deleting an application of {domains:,} domains")
    for column in ("", "times", "median", "p99", "goal"):
        table.add_column(column, justify="left" if not column else "right")
    for figure in figures:
        median, p99 = f"{figure.median * 1000:,.1f} ms", f"{figure.p99 * 1000:,.1f} ms"
        table.add_row(figure.name, f"{len(figure.seconds):,}", median, p99, figure.goal)
    return table


if __name__ == "__main__":
    main()
