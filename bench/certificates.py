"""``python -m bench.certificates``: how soon a domain has its certificate, how many a minute, what many cost an edge.

Against Pebble without validation sleep, through the API and two edges, everything real and on this machine:

- from sending POST /ssl to the first valid HTTPS response, one domain after another, by the order's phases too;
- the same through a proxy that measures how long Pebble takes over its answers: what is left is ours (what Pebble does
  between its answers, fetching the challenge and signing, counts as ours here);
- a crowd: that many domains secured at once by two monitors, and whether one was ordered twice;
- an edge with that many certificates: its start, and a domain's first visitor.

The table is also written to ``bench/output/certificates.json``. Needs Debian's ``pebble``.
"""

from __future__ import annotations

import argparse
import asyncio
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from api.cli.database import prepare
from bench import output
from bench.certificate_world import CertificateWorld, certificate_world
from bench.demo.walk_clients import NoAnswer
from bench.enrolment import EnrolledDomain, enrol
from bench.lab.pebble import is_installed
from bench.lab.ports import free_ports
from bench.lone_edge import LoneEdge
from bench.peers.certificates import make_certificate
from bench.pinned import module, server
from bench.private_stage import private_environment
from bench.visitors import Visitors, VisitTimes
from common.db.pool import open_pool
from common.errors import FrontageError, OperatorError
from common.postgres import EmbeddedPostgres
from common.processes import loop_factory

_ZONE = "scale.localhost"
_AT_ONCE = 32
_STARTS = 5
_COLD_VISITS = 300
_ONE_SECONDS = 60.0
_CROWD_SECONDS = 300.0
_PHASES = ("wait", "key", "checks", "order", "challenge", "validation", "finalize", "download", "store", "live")
_PAGE_COLUMNS = 132  # where there is no terminal to ask


@dataclass(frozen=True, slots=True)
class CertificateFigure:
    """One line of the table; `met` is None where there is no goal."""

    name: str
    value: str
    goal: str = ""
    met: bool | None = None


def main() -> None:
    """Run the bench and print its figures."""
    arguments = _parse()
    console = Console(soft_wrap=True, width=None if sys.stdout.isatty() else _PAGE_COLUMNS)
    if not is_installed():
        sys.exit("bench.certificates: pebble is not installed: `apt-get install pebble`")
    figures: list[CertificateFigure] = []
    try:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            runner.run(_measure(console, arguments, figures))
    except FrontageError as error:
        sys.exit(f"bench.certificates: {error}")
    except KeyboardInterrupt:
        sys.exit(1)
    console.print(figures_table("Certificates", figures))
    path = output.write("certificates", {"figures": [asdict(figure) for figure in figures]})
    console.print(f"written to {path}")


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.certificates", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--domains", type=int, default=50, help="secured one after another (50)")
    parser.add_argument("--crowd", type=int, default=1000, help="secured at once; 0 leaves it out (1000)")
    parser.add_argument("--certificates", type=int, default=100_000, help="of an edge; 0 leaves it out (100,000)")
    parser.add_argument("--directory", type=Path, default=Path("/var/tmp"), help="where databases are made (/var/tmp)")
    arguments = parser.parse_args()
    if arguments.domains < 1:
        parser.error("--domains must be at least 1")
    return arguments


async def _measure(console: Console, arguments: argparse.Namespace, figures: list[CertificateFigure]) -> None:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        with _directory(arguments.directory) as directory:
            async with certificate_world(directory, through_faulty_ca=False) as world:
                figures += await _one_after_another(world, progress, arguments.domains)
                if arguments.crowd:
                    figures += await _crowd(world, progress, arguments.crowd)
        with _directory(arguments.directory) as directory:
            async with certificate_world(directory) as world:
                figures.append(await _above_the_authority(world, progress, arguments.domains))
        if arguments.certificates:
            with _directory(arguments.directory) as directory:
                figures += await _edge_with_many(directory, progress, arguments.certificates)


@contextmanager
def _directory(within: Path) -> Iterator[Path]:
    """Create a directory for the block that Postgres' own user can enter."""
    with tempfile.TemporaryDirectory(prefix="frontage-certificates-", dir=within, ignore_cleanup_errors=True) as name:
        yield Path(name)


# One after another -----------------------------------------------------------------------------------------


async def _one_after_another(world: CertificateWorld, progress: Progress, count: int) -> list[CertificateFigure]:
    domains = [f"shop.customer{number}.example" for number in range(count)]
    await secured(world, "shop.first.example")  # the account, the first connections
    seconds = [await secured(world, each) for each in progress.track(domains, description="one after another")]
    median = statistics.median(seconds)
    async with world.database.connection() as connection:
        rows = await connection.fetch("select phases from orders where domain = any($1)", domains)
    return [
        CertificateFigure(
            "POST /ssl → first valid HTTPS response",
            f"median {median:.3f} s, p99 {_p99(seconds):.3f} s, longest {max(seconds):.3f} s (of {count})",
            "median ≤ 0.5 s",
            median <= 0.5,
        ),
        *(_phase(phase, [row["phases"].get(phase, 0.0) for row in rows]) for phase in _PHASES),
    ]


async def secured(world: CertificateWorld, domain: str) -> float:
    """Return the seconds from sending POST /ssl until a visitor has a valid answer.

    Raises: `OperatorError` when there is none for long.
    """
    begun_at = time.perf_counter()
    await world.partner.secure(domain)
    while time.perf_counter() - begun_at < _ONE_SECONDS:
        try:
            answer = await world.visitor().get(domain)
        except NoAnswer:  # the edge has not applied the change yet; afterwards it holds the handshake
            await asyncio.sleep(0.005)
            continue
        if answer.status != 200:
            raise OperatorError(f"{domain} answered {answer.status}")
        return time.perf_counter() - begun_at
    raise OperatorError(f"{domain} was not served within {_ONE_SECONDS:g} seconds")


def _phase(phase: str, seconds: list[float]) -> CertificateFigure:
    return CertificateFigure(f"… {phase}", f"median {statistics.median(seconds) * 1000:.1f} ms")


async def _above_the_authority(world: CertificateWorld, progress: Progress, count: int) -> CertificateFigure:
    await secured(world, "shop.first.example")
    above, own = [], []
    for number in progress.track(range(count), description="with the authority's time taken"):
        before = world.ca.busy_seconds
        total = await secured(world, f"shop.customer{number}.example")
        own.append(world.ca.busy_seconds - before)
        above.append(total - own[-1])
    return CertificateFigure(
        "… above the authority's own time",
        f"median {statistics.median(above):.3f} s, longest {max(above):.3f} s"
        f" (the authority's own: median {statistics.median(own):.3f} s)",
        "never > 0.25 s",
        max(above) <= 0.25,
    )


# A crowd ---------------------------------------------------------------------------------------------------


async def _crowd(world: CertificateWorld, progress: Progress, count: int) -> list[CertificateFigure]:
    domains = [f"shop.crowd{number}.example" for number in range(count)]
    orders_before = pebble_orders(world)
    task = progress.add_task("a crowd", total=count)
    begun_at = time.perf_counter()
    await secure_all(world, domains, on_live=lambda live: progress.update(task, completed=live))
    seconds = time.perf_counter() - begun_at
    progress.remove_task(task)
    ordered = pebble_orders(world) - orders_before
    async with world.database.connection() as connection:
        counted = await connection.fetchval("select count(*) from ca_ledger where domain = any($1)", domains)
        by = await connection.fetchval(
            "select count(distinct chain) from certificates where domain = any($1) and released_at is null", domains
        )
    return [
        CertificateFigure(
            f"{count:,} domains at once, two monitors",
            f"{seconds:.1f} s, {count / seconds:.0f} a second ({count / seconds * 60:,.0f} a minute)",
        ),
        CertificateFigure(
            "… orders that Pebble made, and the ledger counted",
            f"{ordered:,} and {counted:,} for {by:,} certificates",
            "none twice",
            ordered == counted == by == count,
        ),
    ]


async def secure_all(
    world: CertificateWorld, domains: list[str], *, on_live: Callable[[int], None] = lambda _: None
) -> None:
    """Secure the domains at once, and wait until their certificates are live; `on_live` is called with their number.

    Raises: `OperatorError` when they are not in time.
    """
    left = iter(domains)

    async def secure() -> None:
        for domain in left:
            await world.partner.secure(domain)

    async with asyncio.TaskGroup() as posting:
        for _ in range(_AT_ONCE):
            posting.create_task(secure())
        await _until_live(world, domains, on_live)


async def _until_live(world: CertificateWorld, domains: list[str], on_live: Callable[[int], None]) -> None:
    deadline = time.monotonic() + _CROWD_SECONDS
    while True:
        async with world.database.connection() as connection:
            live = await connection.fetchval(
                "select count(*) from certificates where domain = any($1) and live_at >= issued_at", domains
            )
        on_live(live)
        if live == len(domains):
            return
        if time.monotonic() > deadline:
            raise OperatorError(f"of {len(domains)} domains {live} were live after {_CROWD_SECONDS:g} seconds")
        await asyncio.sleep(0.1)


def pebble_orders(world: CertificateWorld) -> int:
    """Return the number of orders that Pebble reports."""
    return max(map(int, re.findall(r"There are now (\d+) orders in the db", world.pebble.log())), default=0)


# An edge with many -----------------------------------------------------------------------------------------


async def _edge_with_many(directory: Path, progress: Progress, count: int) -> list[CertificateFigure]:
    """Measure an edge with many certificates: its start, and each domain's first visit.

    All are under one wildcard certificate, each with its own row, its own sealed key and its own context.
    """
    environ = private_environment(directory, EDGE_WORKERS="1", ALLOW_PRIVATE_ADDRESSES="127.0.0.0/8")
    edge, postgres = LoneEdge(environ, directory / "edge.log"), EmbeddedPostgres(directory)
    key, chain = make_certificate(f"*.{_ZONE}")
    (directory / "wildcard.pem").write_text(chain)
    (origin,) = free_ports(1)
    dsn = postgres.start()
    argv = module("bench.quick_origin", str(origin))
    try:
        async with server(argv, core=0, log=directory / "quick_origin.log", port=origin):
            keyring = await prepare(edge.settings)
            await _make_application(dsn)

            def enrolments() -> Iterator[EnrolledDomain]:
                for number in progress.track(range(count), description="writing certificates"):
                    yield EnrolledDomain(f"d{number:07d}.{_ZONE}", "many", f"http://127.0.0.1:{origin}/", chain, key)

            await enrol(dsn, keyring, enrolments())
            await edge.start(within_seconds=900)  # copies everything
            starts = []
            for _ in progress.track(range(_STARTS), description="starting the edge"):
                await edge.stop()
                starts.append(await edge.start(within_seconds=30))
            visitors = Visitors(edge.https, directory / "wildcard.pem")
            some = [f"d{number:07d}.{_ZONE}" for number in range(0, count, max(1, count // _COLD_VISITS))]
            await visitors.visit_each(some[:5], at_once=1)
            cold = await visitors.visit_each(some[5:], at_once=1)
            warm = await visitors.visit_each(some[5:], at_once=1)
    finally:
        await edge.stop()
        postgres.stop()
    if cold.errors or warm.errors:
        raise OperatorError(f"a visitor was not served: {cold.last_error or warm.last_error}")
    return _figures_of_many(count, starts, cold, warm)


def _figures_of_many(count: int, starts: list[float], cold: VisitTimes, warm: VisitTimes) -> list[CertificateFigure]:
    """Return the figures of an edge with many certificates.

    `starts` are in seconds; `cold` and `warm` are the first and the second visit of each certificate.
    """
    start, first, second = statistics.median(starts), cold.at_most(0.5) * 1000, warm.at_most(0.5) * 1000
    return [
        CertificateFigure(
            f"edge start with {count:,} certificates",
            f"median {start:.2f} s (of {_STARTS}, {min(starts):.2f}–{max(starts):.2f})",
            "≤ 1 s",
            start <= 1,
        ),
        CertificateFigure(
            "a certificate's first handshake: connecting to the first byte of the answer",
            f"median {first:.1f} ms, p99 {cold.at_most(0.99) * 1000:.1f} ms (its second: {second:.1f} ms)",
            "≤ 5 ms",
            first <= 5,
        ),
    ]


async def _make_application(dsn: str) -> None:
    async with open_pool(dsn, size=1, application_name="frontage bench") as database, database.transaction() as session:
        await session.execute(
            "insert into applications (id, name, cname_target, client_secret, webhook_secret)"
            f" values ('many', 'many', 'apps.{_ZONE}', '', '')"
        )


# Showing ---------------------------------------------------------------------------------------------------


def _p99(seconds: list[float]) -> float:
    """Return the smallest measurement that 99 of 100 do not exceed."""
    return sorted(seconds)[-(-len(seconds) * 99 // 100) - 1]


def figures_table(title: str, figures: list[CertificateFigure]) -> Table:
    """Return the table of the figures, each with its goal."""
    table = Table(title=title, box=box.SIMPLE_HEAD)
    for title in ("", "measured", "goal", ""):
        table.add_column(title)
    for figure in figures:
        met = "" if figure.met is None else "[green]met[/]" if figure.met else "[red]missed[/]"
        table.add_row(figure.name, figure.value, figure.goal, met)
    return table


if __name__ == "__main__":
    main()
