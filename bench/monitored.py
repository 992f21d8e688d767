"""``python -m bench.monitored``: the monitoring of 1,000,000 domains of one application.

They are written into an embedded Postgres (`bench.monitored_rows`). Then, over HTTP to a real API: pages of the list,
from its beginning, from anywhere, from its end and by dates, and single domains. Then the claiming of what is due,
as monitors do it, while a tenth is overdue. Last, with a monitor and a name server beside it, the time from sending
POST /monitor/domains to the first check's result in GET. It takes about three minutes and 4 GB of disk (in
``--directory``). The table is also written to ``bench/output/monitored.json``.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from random import Random
from typing import Any

import aiohttp
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from api.cli.database import prepare
from api.rules import application_tokens as minting
from bench import monitored_rows, output
from bench.application import make_application
from bench.figures import Figure
from bench.lab.server import NameServer
from bench.lab.zone import Zone
from bench.private_stage import private_environment
from common.db import checks
from common.db.pool import Database, open_pool
from common.errors import FrontageError, OperatorError
from common.postgres import EmbeddedPostgres
from common.processes import loop_factory, role_argv, settle_garbage_collector, spawn
from common.settings import Settings, load

DOMAINS = 1_000_000
_REQUESTS = 1000
_CLAIMS = 500
_CLAIMED_AT_ONCE = 150
_FIRST_CHECKS = 100
_READY_SECONDS = 30
_CHECKED_SECONDS = 10
_POLL_SECONDS = 0.005
_PAGE_COLUMNS = 120  # where there is no terminal to ask
_QUICK = 0.02
_GOAL = "p99 ≤ 20 ms"


@dataclass(frozen=True, slots=True)
class MonitoredWorld:
    """A Postgres with the domains, the application that has them, and a name server that knows nothing yet."""

    dsn: str
    environ: dict[str, str]
    settings: Settings
    log: Path
    zone: Zone
    application_id: str
    client_secret: str
    count: int

    @contextlib.contextmanager
    def role(self, name: str) -> Iterator[None]:
        """Run a role as a process for the block; its output is in the log."""
        with self.log.open("ab") as log:
            process = spawn(role_argv(name), env=self.environ, stdout=log, stderr=log)
        try:
            yield
        finally:
            process.send_signal(signal.SIGTERM)
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(10)
            process.kill()
            process.wait()


def main() -> None:
    """Run the bench and print its figures."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.monitored", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--domains", type=int, default=DOMAINS, help="how many are monitored (1,000,000)")
    parser.add_argument("--directory", type=Path, help="where the database is made (TMPDIR)")
    arguments = parser.parse_args()
    if arguments.domains < 1000:
        parser.error("--domains must be at least 1000")
    console = Console(soft_wrap=True, width=None if sys.stdout.isatty() else _PAGE_COLUMNS)
    try:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            figures = runner.run(_measure(console, arguments.domains, arguments.directory))
    except FrontageError as error:
        sys.exit(f"bench.monitored: {error}")
    except KeyboardInterrupt:
        sys.exit(1)
    console.print(_table(figures, arguments.domains))
    rows = [_as_json(figure) for figure in figures]
    console.print(f"written to {output.write('monitored', {'domains': arguments.domains, 'figures': rows})}")


# The world ------------------------------------------------------------------------------------------------


@contextlib.asynccontextmanager
async def _world(count: int, directory: Path | None) -> AsyncIterator[MonitoredWorld]:
    with tempfile.TemporaryDirectory(prefix="frontage-monitored-", dir=directory, ignore_cleanup_errors=True) as name:
        state_dir = Path(name)
        async with NameServer.serve(Zone()) as server:
            environ = private_environment(state_dir, ALLOW_PRIVATE_ADDRESSES="127.0.0.0/8", DNS_SERVERS=server.address)
            settings = load(environ)
            postgres = EmbeddedPostgres(state_dir)
            try:
                dsn = postgres.start()  # from this thread: the server ends with it
                keyring = await prepare(settings)
                async with open_pool(dsn, size=1, application_name="frontage bench") as database:
                    application_id, secret = await make_application(
                        database, keyring, name="Monitored", cname_target="apps.monitored.localhost"
                    )
                log = state_dir / "roles.log"
                yield MonitoredWorld(dsn, environ, settings, log, server.zone, application_id, secret, count)
            finally:
                postgres.stop()


# Measuring ------------------------------------------------------------------------------------------------


async def _measure(console: Console, count: int, directory: Path | None) -> list[Figure]:
    settle_garbage_collector()  # as the monitor does, whose claims are timed here
    with Progress(console=console, transient=True) as progress:
        async with _world(count, directory) as world:
            numbers = iter(progress.track(monitored_rows.chunks(count), description=f"writing {count:,} domains"))
            await monitored_rows.write(world.dsn, world.application_id, count, numbers)
            with world.role("api"):
                async with _partner(world) as partner:
                    figures = await _read(world, partner, progress)
                    async with open_pool(world.dsn, size=2, application_name="frontage bench") as database:
                        figures += await _claim(database, progress)
                    await monitored_rows.postpone_checks(world.dsn)
                    with world.role("monitor"):
                        figures.append(await _first_checks(world, partner, progress))
            return figures


@contextlib.asynccontextmanager
async def _partner(world: MonitoredWorld) -> AsyncIterator[aiohttp.ClientSession]:
    """Open a client of the API with a token, once the API answers."""
    token = minting.mint_api_token(world.application_id, world.client_secret, datetime.now(UTC))
    headers = {"applicationId": world.application_id, "Authorization": f"Bearer {token}"}
    async with aiohttp.ClientSession(world.settings.base_url, headers=headers) as session:
        deadline = time.monotonic() + _READY_SECONDS
        while True:
            with contextlib.suppress(aiohttp.ClientConnectionError):
                async with session.get("/readyz") as response:
                    if response.status == 200:
                        break
            if time.monotonic() > deadline:
                raise OperatorError(f"the API did not start: {world.log.read_text()[-500:]}")
            await asyncio.sleep(_POLL_SECONDS)
        yield session


async def _read(world: MonitoredWorld, partner: aiohttp.ClientSession, progress: Progress) -> list[Figure]:
    chance = Random(1)
    last_day = datetime.now(UTC).date()

    def anywhere(limit: int) -> Callable[[], dict[str, Any]]:
        return lambda: {"offset": chance.randrange(world.count), "limit": limit}

    def by_dates() -> dict[str, Any]:
        first = last_day - timedelta(days=chance.randrange(1, 700))
        days = {"from_date": first.isoformat(), "to_date": (first + timedelta(days=30)).isoformat()}
        return days | {"offset": chance.randrange(10_000)}

    def one() -> dict[str, Any]:
        return {"domain": f"d{chance.randrange(1, world.count + 1):07d}.example"}

    queries: list[tuple[str, Callable[[], dict[str, Any]]]] = [
        ("list: the first ten", dict),
        ("list: ten from anywhere", anywhere(10)),
        ("list: two hundred from anywhere", anywhere(200)),
        ("list: the last ten", lambda: {"offset": world.count - 10}),
        ("list: ten of a month", by_dates),
        ("list: one domain", one),
    ]
    figures = []
    for name, query in queries:
        numbers = progress.track(range(_REQUESTS), description=name)
        figures.append(Figure(name, _GOAL, [await _time_get(partner, query()) for _ in numbers]))
    return figures


async def _time_get(partner: aiohttp.ClientSession, query: dict[str, Any]) -> float:
    begun_at = time.perf_counter()
    async with partner.get("/monitor/domains", params=query) as response:
        await response.read()
        if response.status != 200:
            raise OperatorError(f"GET /monitor/domains answered {response.status}")
    return time.perf_counter() - begun_at


async def _claim(database: Database, progress: Progress) -> list[Figure]:
    """Time claims as a monitor makes them; what was claimed is postponed as its outcome would do it, untimed."""
    found, committed, looked = [], [], []
    for _ in progress.track(range(_CLAIMS), description="claiming what is due"):
        begun_at = time.perf_counter()
        async with database.transaction() as connection:
            due = await checks.find_due(connection, most=_CLAIMED_AT_ONCE)
            found.append(time.perf_counter() - begun_at)
            claimed = await checks.claim(connection, due[:_CLAIMED_AT_ONCE], lease_seconds=30)
        committed.append(time.perf_counter() - begun_at)
        async with database.transaction() as connection:
            await connection.execute(
                "update checks set due_at = now() + interval '1 hour', lease_until = null, attempts = 0"
                " where id = any($1)",
                [check.id for check in claimed],
            )
        begun_at = time.perf_counter()
        async with database.connection() as connection:
            await checks.next_due_seconds(connection)
        looked.append(time.perf_counter() - begun_at)
    return [
        Figure(f"due list: {_CLAIMED_AT_ONCE} found", _GOAL, found),
        Figure("… claimed, their records read, committed", _GOAL, committed),
        Figure("due list: when is the next due?", _GOAL, looked),
    ]


async def _first_checks(world: MonitoredWorld, partner: aiohttp.ClientSession, progress: Progress) -> Figure:
    await _first_check(world, partner, "warm-up.test")  # the monitor may still be starting
    numbers = progress.track(range(_FIRST_CHECKS), description="POST → first check")
    seconds = [await _first_check(world, partner, f"new-{number}.test") for number in numbers]
    return Figure("POST → result of the first check", "p99 ≤ 1 s", seconds)


async def _first_check(world: MonitoredWorld, partner: aiohttp.ClientSession, domain: str) -> float:
    """Return the seconds from POST to the result of the first check."""
    world.zone.add(domain, "A", "192.0.2.10")
    world.zone.add(f"www.{domain}", "CNAME", "apps.partner.example")
    records = [
        {"type": "A", "host": "@", "value": "192.0.2.10", "ttl": 300},
        {"type": "CNAME", "host": "www", "value": "apps.partner.example", "ttl": 300},
    ]
    begun_at = time.perf_counter()
    async with partner.post("/monitor/domains", json={"domain": domain, "dnsRecords": records}) as response:
        if response.status != 201:
            raise OperatorError(f"POST /monitor/domains answered {response.status}")
    return await _until(lambda: _is_checked(partner, domain), begun_at)


async def _is_checked(partner: aiohttp.ClientSession, domain: str) -> bool:
    async with partner.get(f"/monitor/domains/{domain}") as response:
        found = await response.json()
    if found["records_missing"]:
        raise OperatorError(f"{domain} was checked and found missing, which it is not")
    return found["last_checked_at"] is not None


async def _until(holds: Callable[[], Awaitable[bool]], begun_at: float) -> float:
    """Return the seconds from `begun_at` until it holds.

    Raises: `OperatorError` when that takes too long.
    """
    while not await holds():
        if time.perf_counter() - begun_at > _CHECKED_SECONDS:
            raise OperatorError(f"a new domain was not checked within {_CHECKED_SECONDS} seconds")
        await asyncio.sleep(_POLL_SECONDS)
    return time.perf_counter() - begun_at


# The table ------------------------------------------------------------------------------------------------


def _is_met(figure: Figure) -> bool | None:
    """Return whether the figure meets its goal; None where there is none."""
    return figure.p99 <= (_QUICK if figure.goal == _GOAL else 1) if figure.goal else None


def _table(figures: list[Figure], count: int) -> Table:
    table = Table(title=f"{count:,} monitored domains of one application")
    for title in ("figure", "n", "median", "p99", "goal", ""):
        table.add_column(title, justify="left" if title == "figure" else "right")
    for figure in figures:
        times = (f"{figure.median * 1000:.1f} ms", f"{figure.p99 * 1000:.1f} ms")
        mark = {True: "[green]✓[/]", False: "[red]✗[/]", None: ""}[_is_met(figure)]
        table.add_row(figure.name, str(len(figure.seconds)), *times, figure.goal, mark)
    return table


def _as_json(figure: Figure) -> dict[str, object]:
    return {
        "name": figure.name,
        "goal": figure.goal,
        "met": _is_met(figure),
        "count": len(figure.seconds),
        "median_seconds": figure.median,
        "p99_seconds": figure.p99,
    }


if __name__ == "__main__":
    main()
