"""``python -m bench.scale``: the edge with 1,000,000 enrolled domains, each with its certificate.

In order: the domains are written into an embedded Postgres (`bench.enrolment`); an edge of one worker makes its first
full copy of them; it is started again, and again, with Postgres down; visitors come to random domains for the first
time (cold: the certificate is read, opened and made into a context) and a second time (warm); 4,096 certificates are
made hot, then 70,000 domains asked for, and what the worker holds is read from /proc; a flood of TLS hellos asks for
names that are not enrolled. With ``--soak MINUTES``, visitors and unknown names go on for that long, while
Postgres is back and routes change. Without it a million takes about three minutes, and 5 GB of disk (in
``--directory``).

All domains share one wildcard certificate and key, so that a million need not be signed: each has its own row, its own
sealed copy of the key and its own context, of the usual size. While visitors come, the edge has core 0 and everything
else core 1. The table is also written to ``bench/output/scale.json``, the soak's memory drawn to ``scale.png``.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Iterator
from dataclasses import asdict, dataclass
from pathlib import Path

from rich import box
from rich.console import Console
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from api.cli.database import prepare
from api.rules import application_tokens as minting
from bench import output, scale_picture
from bench.enrolment import BulkEnrolment, EnrolledDomain, enrol
from bench.hello_flood import Flood
from bench.lab.ports import free_ports
from bench.lone_edge import LoneEdge
from bench.memory import Memory
from bench.peers import LOAD_CORE, PROXY_CORE
from bench.peers.certificates import make_certificate
from bench.pinned import last_line, module, server
from bench.private_stage import private_environment
from bench.visitors import Visitors, VisitTimes
from common.db import applications, domains
from common.db.address import resolve_dsn
from common.db.application_secrets import client_secret_identity, webhook_secret_identity
from common.db.pool import Database, open_pool
from common.domain_settings import DomainSettings
from common.errors import FrontageError, OperatorError
from common.postgres import EmbeddedPostgres
from common.processes import loop_factory
from common.secrets import Keyring
from edge.replica.directory import replica_path

DOMAINS = 1_000_000
HOT = 4096
KNOWN_ROUTES = 70_000
_ZONE = "scale.localhost"
_COPY_SECONDS = 900
_START_SECONDS = 30
_STARTS = 5
_COLD_VISITS = 500
_VISITORS = 16
_SPARE_SECONDS = 20
_FLOOD_SECONDS = 10
_SAMPLE_SECONDS = 2
_CHANGE_SECONDS = 1
_PAGE_COLUMNS = 132  # where there is no terminal to ask
_MB = 1_000_000


@dataclass(frozen=True, slots=True)
class ScaleFigure:
    """One line of the table; `met` is None where there is no goal."""

    name: str
    value: str
    goal: str = ""
    met: bool | None = None


@dataclass(frozen=True, slots=True)
class FloodCounts:
    """The counts of hellos of `bench.hello_flood`."""

    refused: int
    answered: int
    failed: int


@dataclass(frozen=True, slots=True)
class Sample:
    """The private memory of the worker at that minute of the soak."""

    minute: float
    private_bytes: int


def main() -> None:
    """Run the bench and print its figures."""
    arguments = _parse()
    console = Console(soft_wrap=True, width=None if sys.stdout.isatty() else _PAGE_COLUMNS)
    figures: list[ScaleFigure] = []
    samples: list[Sample] = []
    try:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            runner.run(_measure(console, arguments, figures, samples))
        console.print(_table(figures, arguments.domains))
        _write(console, arguments, figures, samples)
    except FrontageError as error:
        sys.exit(f"bench.scale: {error}")
    except KeyboardInterrupt:
        sys.exit(1)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.scale", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--domains", type=int, default=DOMAINS, help="how many are enrolled (1,000,000)")
    parser.add_argument("--soak", type=float, default=0, metavar="MINUTES", help="go on under load for so long (0)")
    parser.add_argument("--directory", type=Path, help="where the database and the replica are made (TMPDIR)")
    arguments = parser.parse_args()
    if arguments.domains < 1:
        parser.error("--domains must be at least 1")
    return arguments


# The world -------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class ScaleWorld:
    """A Postgres that can be stopped, an edge of one worker, an origin, and the application that has the domains."""

    state_dir: Path
    postgres: EmbeddedPostgres
    edge: LoneEdge
    keyring: Keyring
    origin_port: int
    application_id: str
    certificate: tuple[str, str]
    count: int

    @property
    def ca_file(self) -> Path:
        """Return the file of the certificate that visitors trust."""
        return self.state_dir / "wildcard.pem"

    def domain(self, number: int) -> str:
        """Return the name of the domain with that number."""
        return f"d{number:07d}.{_ZONE}"

    def random_domains(self, count: int, *, seed: int) -> list[str]:
        """Choose different domains at random; the same for the same seed."""
        numbers = random.Random(seed).sample(range(self.count), min(count, self.count))
        return [self.domain(number) for number in numbers]

    def enrolments(self, progress: Progress) -> Iterator[EnrolledDomain]:
        """Yield the enrolment of each domain."""
        key, chain = self.certificate
        url = f"http://127.0.0.1:{self.origin_port}/"
        for number in progress.track(range(self.count), description="writing domains"):
            yield EnrolledDomain(self.domain(number), self.application_id, url, chain, key)


@contextlib.asynccontextmanager
async def _world(count: int, directory: Path | None) -> AsyncIterator[ScaleWorld]:
    with tempfile.TemporaryDirectory(prefix="frontage-scale-", dir=directory, ignore_cleanup_errors=True) as name:
        state_dir = Path(name)
        environ = private_environment(state_dir, EDGE_WORKERS="1", ALLOW_PRIVATE_ADDRESSES="127.0.0.0/8")
        certificate = make_certificate(f"*.{_ZONE}")
        (origin_port,) = free_ports(1)
        argv = module("bench.quick_origin", str(origin_port))
        postgres, edge = EmbeddedPostgres(state_dir), LoneEdge(environ, state_dir / "edge.log")
        async with server(argv, core=LOAD_CORE, log=state_dir / "quick_origin.log", port=origin_port):
            try:
                dsn = postgres.start()  # from this thread: the server ends with it
                keyring = await prepare(edge.settings)
                application_id = await _make_application(dsn, keyring)
                world = ScaleWorld(state_dir, postgres, edge, keyring, origin_port, application_id, certificate, count)
                world.ca_file.write_text(certificate[1])
                yield world
            finally:
                await edge.stop()
                postgres.stop()


async def _make_application(dsn: str, keyring: Keyring) -> str:
    new_id = minting.mint_id()
    client_secret, webhook_secret = minting.mint_client_secret(), minting.mint_webhook_secret()
    async with open_pool(dsn, size=1, application_name="frontage bench") as database, database.transaction() as session:
        await applications.create_application(
            session,
            applications.NewApplication(
                id=new_id,
                name="Scale",
                cname_target=f"apps.{_ZONE}",
                client_secret=keyring.seal(client_secret.encode(), client_secret_identity(new_id)),
                webhook_secret=keyring.seal(webhook_secret.encode(), webhook_secret_identity(new_id)),
            ),
        )
    return new_id


# Measuring -------------------------------------------------------------------------------------------------


async def _measure(
    console: Console, arguments: argparse.Namespace, figures: list[ScaleFigure], samples: list[Sample]
) -> None:
    if not {PROXY_CORE, LOAD_CORE} <= os.sched_getaffinity(0):
        raise OperatorError("two cores are needed: one for the edge, one for everything else")
    columns = (SpinnerColumn(), TextColumn("{task.description}"), TimeElapsedColumn())
    with Progress(*columns, console=console, transient=True) as progress:
        step = progress.add_task("starting")
        async with _world(arguments.domains, arguments.directory) as world:
            enrolled = await enrol(resolve_dsn(world.edge.settings), world.keyring, world.enrolments(progress))
            figures += _written(enrolled)
            progress.update(step, description="the edge copies everything")
            figures.append(await _first_copy(world))
            progress.update(step, description="starting without Postgres")
            world.postgres.stop()
            figures.append(await _starts(world))
            _pin(world)
            visitors = Visitors(world.edge.https, world.ca_file)
            progress.update(step, description="cold and warm visits")
            figures += await _first_bytes(world, visitors)
            progress.update(step, description=f"making {HOT} certificates hot")
            figures += await _make_hot(world, visitors)
            progress.update(step, description=f"asking for {KNOWN_ROUTES} domains")
            figures.append(await _meet_domains(world, visitors))
            progress.update(step, description="a flood of unknown names")
            figures += await _flood(world, visitors)
            if arguments.soak:
                progress.update(step, description=f"soaking for {arguments.soak:g} minutes")
                figures += await _soak(world, visitors, arguments.soak, samples)


def _pin(world: ScaleWorld) -> None:
    os.sched_setaffinity(0, {LOAD_CORE})
    world.edge.pin(PROXY_CORE)


def _written(enrolled: BulkEnrolment) -> list[ScaleFigure]:
    return [
        ScaleFigure("domains and certificates written to Postgres", f"{enrolled.rows_seconds:.1f} s"),
        ScaleFigure("… and their entries in the change feed", f"{enrolled.feed_seconds:.1f} s"),
    ]


async def _first_copy(world: ScaleWorld) -> ScaleFigure:
    seconds = await world.edge.start(within_seconds=_COPY_SECONDS)
    size = sum(file.stat().st_blocks * 512 for file in replica_path(world.state_dir).iterdir())
    others = await world.edge.private_bytes_of_others()
    await world.edge.stop()
    return ScaleFigure(
        "edge start with an empty replica: first full copy",
        f"{seconds:.1f} s ({size / 1e9:.2f} GB on disk, {others / _MB:.0f} MB beside the worker)",
    )


async def _starts(world: ScaleWorld) -> ScaleFigure:
    """Start the edge several times without Postgres, and leave the last one running."""
    seconds = []
    for _ in range(_STARTS):
        await world.edge.stop()
        seconds.append(await world.edge.start(within_seconds=_START_SECONDS))
    median = statistics.median(seconds)
    return ScaleFigure(
        "edge start, Postgres down",
        f"median {median:.2f} s (of {_STARTS}, {min(seconds):.2f}–{max(seconds):.2f})",
        "≤ 1 s",
        median <= 1,
    )


async def _first_bytes(world: ScaleWorld, visitors: Visitors) -> list[ScaleFigure]:
    fresh = await world.edge.worker_memory()
    some = world.random_domains(_COLD_VISITS, seed=10)
    cold = await visitors.visit_each(some, at_once=1)
    warm = await visitors.visit_each(some, at_once=1)
    return [
        ScaleFigure("worker's memory after the start", _memory(fresh)),
        _first_byte("first byte over HTTPS, cold (a domain's first visitor)", cold),
        _first_byte("first byte over HTTPS, warm (a new connection again)", warm),
    ]


async def _make_hot(world: ScaleWorld, visitors: Visitors) -> list[ScaleFigure]:
    hot = world.random_domains(HOT, seed=11)
    begun_at = time.perf_counter()
    seen = await visitors.visit_each(hot, at_once=_VISITORS)
    _require_success(seen, "making certificates hot")
    seconds = time.perf_counter() - begun_at
    memory = await world.edge.worker_memory()
    return [
        ScaleFigure(f"first visits to {len(hot)} domains, {_VISITORS} at once", f"{len(hot) / seconds:.0f} a second"),
        ScaleFigure(
            f"worker's memory with {len(hot)} certificates hot",
            _memory(memory),
            "≤ 200 MB private",
            memory.private_bytes <= 200 * _MB,
        ),
    ]


async def _meet_domains(world: ScaleWorld, visitors: Visitors) -> ScaleFigure:
    """Fill what else a worker keeps of domains it has met; from here on its memory ought to stay as it is."""
    some = world.random_domains(KNOWN_ROUTES, seed=14)
    led = await visitors.ask_each(world.edge.settings.edge_http, some, at_once=_VISITORS)
    if led != len(some):
        raise OperatorError(f"of {len(some)} plain requests {led} were led to HTTPS")
    memory = await world.edge.worker_memory()
    return ScaleFigure(
        f"… and {len(some)} domains met",
        _memory(memory),
        "≤ 200 MB private",
        memory.private_bytes <= 200 * _MB,
    )


async def _flood(world: ScaleWorld, visitors: Visitors) -> list[ScaleFigure]:
    real = world.random_domains(HOT, seed=11)
    before = await world.edge.worker_memory()
    quiet = await visitors.probe(real, until=time.perf_counter() + 3)
    begun_at, cpu_begun = time.perf_counter(), world.edge.cpu_seconds()
    until = begun_at + _FLOOD_SECONDS
    flood, seen = await asyncio.gather(_run_flood(world.edge, _FLOOD_SECONDS), visitors.probe(real, until=until))
    _require_success(seen, "real domains during the flood")
    cpu = world.edge.cpu_seconds() - cpu_begun
    after = await world.edge.worker_memory()
    return [
        ScaleFigure(
            "flood of unknown names",
            f"{flood.refused / _FLOOD_SECONDS:,.0f} refused a second, {flood.answered + flood.failed} not,"
            f" {cpu / max(1, flood.refused) * 1e6:.0f} µs of CPU each",
            "all refused",
            flood.refused > 0 and not flood.answered + flood.failed,
        ),
        ScaleFigure("… worker's memory before and after it", f"{before.private_bytes / _MB:.0f} → {_memory(after)}"),
        _first_byte("… real domains meanwhile, first byte", seen),
        _first_byte("… and without it", quiet),
    ]


async def _run_flood(edge: LoneEdge, seconds: float) -> FloodCounts:
    argv = module("bench.hello_flood", edge.https.host, str(edge.https.port), "--seconds", str(seconds))
    return FloodCounts(**json.loads(await last_line(argv, core=LOAD_CORE, seconds=seconds + _SPARE_SECONDS)))


async def _soak(world: ScaleWorld, visitors: Visitors, minutes: float, samples: list[Sample]) -> list[ScaleFigure]:
    """Load the edge for so many minutes, and measure the growth of its memory.

    Three visits in four go to hot domains, the fourth to any; beside them a few unknown names, and a route changed each
    second.
    """
    dsn = world.postgres.start()
    hot, chance = world.random_domains(HOT, seed=11), random.Random(12)

    def pick() -> str:
        return chance.choice(hot) if chance.random() < 0.75 else world.domain(chance.randrange(world.count))

    until = time.perf_counter() + minutes * 60
    async with open_pool(dsn, size=1, application_name="frontage bench") as database:
        seen, *_ = await asyncio.gather(
            visitors.visit_repeatedly(pick, at_once=_VISITORS, until=until),
            Flood(world.edge.https).run(at_once=1, until=until),
            _change_routes(world, database, until),
            _sample(world.edge, until, samples),
        )
    _require_success(seen, "the soak")
    growth = growth_bytes(samples)
    return [
        ScaleFigure(
            f"soak of {minutes:g} minutes",
            f"{seen.requests:,} requests on {len(seen.seconds):,} connections, {seen.errors} failed",
            "none failed",
            not seen.errors,
        ),
        ScaleFigure(
            "… growth of private memory, its second quarter to its last",
            f"{growth / _MB:+.1f} MB (ends at {samples[-1].private_bytes / _MB:.0f} MB)",
            "flat: ≤ 2 %",
            growth <= 0.02 * samples[-1].private_bytes,
        ),
    ]


def growth_bytes(samples: list[Sample]) -> float:
    """Return the growth from the median of the second quarter to that of the last: the first is still warming up."""
    quarter = max(1, len(samples) // 4)
    second = samples[quarter : 2 * quarter] or samples
    return statistics.median(each.private_bytes for each in samples[-quarter:]) - statistics.median(
        each.private_bytes for each in second
    )


async def _change_routes(world: ScaleWorld, database: Database, until: float) -> None:
    chance, number = random.Random(13), 0
    while time.perf_counter() < until:
        number += 1
        url = f"http://127.0.0.1:{world.origin_port}/{'ab'[number % 2]}"
        domain = world.domain(chance.randrange(world.count))
        async with database.transaction() as session:
            await domains.update(session, domain, "power", world.application_id, DomainSettings(url))
        await asyncio.sleep(_CHANGE_SECONDS)


async def _sample(edge: LoneEdge, until: float, samples: list[Sample]) -> None:
    begun_at = time.perf_counter()
    while (now := time.perf_counter()) < until:
        samples.append(Sample((now - begun_at) / 60, (await edge.worker_memory()).private_bytes))
        await asyncio.sleep(_SAMPLE_SECONDS)


def _require_success(seen: VisitTimes, what: str) -> None:
    if not seen.seconds:
        raise OperatorError(f"{what}: no visitor was served: {seen.last_error}")


# Showing ---------------------------------------------------------------------------------------------------


def _first_byte(name: str, seen: VisitTimes) -> ScaleFigure:
    _require_success(seen, name)
    median, p99 = seen.at_most(0.5) * 1000, seen.at_most(0.99) * 1000
    failed = f", {seen.errors} of {len(seen.seconds) + seen.errors} failed" if seen.errors else ""
    return ScaleFigure(name, f"median {median:.1f} ms, p99 {p99:.1f} ms{failed}", "none failed", not seen.errors)


def _memory(memory: Memory) -> str:
    return (
        f"{memory.private_bytes / _MB:.0f} MB private, {memory.pss_bytes / _MB:.0f} MB proportional"
        f" (replica's pages in the file cache: {memory.replica_bytes / _MB:.0f} MB)"
    )


def _table(figures: list[ScaleFigure], count: int) -> Table:
    table = Table(title=f"The edge with {count:,} domains", box=box.SIMPLE_HEAD)
    for title in ("", "measured", "goal", ""):
        table.add_column(title)
    for figure in figures:
        met = "" if figure.met is None else "[green]met[/]" if figure.met else "[red]missed[/]"
        table.add_row(figure.name, figure.value, figure.goal, met)
    return table


def _write(console: Console, arguments: argparse.Namespace, figures: list[ScaleFigure], samples: list[Sample]) -> None:
    written = {
        "domains": arguments.domains,
        "figures": [asdict(figure) for figure in figures],
        "soak": [asdict(sample) for sample in samples],
    }
    path = output.write("scale", written)
    console.print(f"written to {path}")
    if samples:
        picture = path.with_suffix(".png")
        points = [(sample.minute, sample.private_bytes / _MB) for sample in samples]
        if scale_picture.draw(picture, points, domains=arguments.domains):
            console.print(f"drawn to {picture}")
        else:
            console.print("not drawn: `pip install matplotlib`, or Frontage with its extra `bench`")


if __name__ == "__main__":
    main()
