"""``python -m bench.domain_files``: a file of a million domains is imported and exported, beside another application.

Everything of `frontage up` runs (an embedded Postgres with fsync on, API, monitor, edge, the lab). A dry run, an import
that is killed when a third is done and run again, an export, and an import of what was exported; two rows of the file
are bad. Beside the import another application enrols domains: from POST /power to the first valid HTTPS response, alone
and beside it, goal 2 × alone; its POSTs and first responses that failed, with what they answered, goal none; and its
webhooks, from the event to the delivery. The names of the file lead elsewhere, so no certificate may be ordered for
them.
The table is also written to ``bench/output/domain_files.json``.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import os
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench import output
from bench.application import make_application
from bench.demo.stage import CUSTOMER, Stage, set_up
from bench.demo.walk_clients import PartnerClient, UnexpectedStatus, VisitorClient, WalkFailed
from bench.figures import Figure
from bench.memory import peak_resident_bytes
from bench.private_stage import private_environment
from common.db.address import resolve_dsn
from common.db.pool import Database, open_pool
from common.errors import FrontageError
from common.secrets import load_keyring

_ALONE_TIMES = 60
_PAUSE_SECONDS = 0.2
_POLL_SECONDS = 0.2
_GIVE_UP_SECONDS = 120.0
_BAD_ROW = "power,no..name.example,https://origin.example/\n"
_MOST_FAILURES = 10
"""Different ones that the table shows."""


@dataclass(slots=True)
class CommandRun:
    """A command: how long it ran, the most memory it held, what it printed."""

    name: str
    seconds: float = 0.0
    peak_bytes: int = 0
    printed: str = ""


@dataclass(slots=True)
class Enrolments:
    """Another application's: `seconds` of each from its first POST to HTTPS; `failures` are what failed attempts
    answered, and how often."""

    seconds: list[float] = field(default_factory=list)
    failures: Counter[str] = field(default_factory=Counter)


@dataclass(slots=True)
class Result:
    runs: list[CommandRun] = field(default_factory=list)
    figures: list[Figure] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)
    failures: dict[str, Counter[str]] = field(default_factory=dict)
    """Of the other application, alone and beside the import."""


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.domain_files", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--domains", type=int, default=1_000_000, help="of the file (1,000,000)")
    parser.add_argument("--directory", type=Path, default=Path("/var/tmp"), help="a directory on a disk (/var/tmp)")
    arguments = parser.parse_args()
    console = Console(soft_wrap=True, width=None if sys.stdout.isatty() else 120)
    try:
        result = asyncio.run(_measure(console, arguments.domains, arguments.directory))
    except FrontageError as error:
        sys.exit(f"bench.domain_files: {error}")
    except KeyboardInterrupt:
        sys.exit(1)
    console.print(_table(result, arguments.domains))
    console.print(f"written to {output.write('domain_files', _as_json(result, arguments.domains))}")


async def _measure(console: Console, count: int, directory: Path) -> Result:
    with tempfile.TemporaryDirectory(prefix="frontage-bench-", dir=directory, ignore_cleanup_errors=True) as name:
        os.chmod(name, 0o755)  # Postgres is another user when we are root
        state_dir = Path(name) / "state"
        environ = private_environment(state_dir)
        source, exported = Path(name) / "domains.csv", Path(name) / "exported.csv"
        _write(source, count)
        async with set_up(environ, state_dir) as stage:
            dsn = resolve_dsn(stage.settings)
            environ["FRONTAGE_DATABASE_URL"] = dsn
            async with open_pool(dsn, size=2, application_name="frontage bench") as database:
                keyring = load_keyring(stage.settings.key_file)
                large, _ = await make_application(database, keyring, name="Large", cname_target="large.localhost")
                commands = _OperatorCommands(environ, database, large, console)
                return await _all(commands, stage, source, exported, count)


async def _all(commands: _OperatorCommands, stage: Stage, source: Path, exported: Path, count: int) -> Result:
    result = Result()
    target, as_large = str(source), ("--application", commands.application_id)
    result.runs.append(await commands.run("export, no domains", "export", str(exported), *as_large))
    alone, beside = Enrolments(), Enrolments()
    await _enrol(stage, "alone", alone, lambda: len(alone.seconds) >= _ALONE_TIMES)
    result.runs.append(await commands.run("dry run", "import", target, *as_large, "--dry-run", "--json"))
    async with _enrolling(stage, beside):
        first = await commands.run("import, killed", "import", target, *as_large, kill_at=count // 3)
        there = await commands.count_domains()
        again = await commands.run("import, the rest", "import", target, *as_large, "--json")
    result.runs += [first, again]
    result.runs.append(await commands.run("export", "export", str(exported), *as_large))
    result.runs.append(await commands.run("import again", "import", str(exported), *as_large, "--json"))
    result.figures = [
        Figure("another's POST to HTTPS, alone", "", alone.seconds),
        Figure("another's POST to HTTPS, beside the import", "≤ 2 × alone", beside.seconds),
        Figure("another's event to delivery", "", await commands.delivery_seconds(stage.application_id)),
    ]
    result.failures = {"alone": alone.failures, "beside the import": beside.failures}
    result.counts = {
        "domains when killed": there,
        "domains": await commands.count_domains(),
        "rows exported": sum(1 for _ in exported.open()) - 1,
        "certificates of names that lead elsewhere": await commands.count("certificates"),
    }
    return result


def _write(path: Path, count: int) -> None:
    with path.open("w") as file:
        file.write("product,domain,applicationUrl\n")
        for number in range(count):
            if number in (count // 4, count // 2):
                file.write(_BAD_ROW)
            file.write(f"power,shop.customer-{number}.example,https://origin.example/{number % 7}\n")


class _OperatorCommands:
    """Runs the command line on the stage, as an operator does."""

    def __init__(self, environ: Mapping[str, str], database: Database, application_id: str, console: Console) -> None:
        self.application_id = application_id
        self._environ = environ
        self._database = database
        self._console = console

    async def run(self, name: str, *arguments: str, kill_at: int | None = None) -> CommandRun:
        """Until it ends, or until so many domains are there: then it is killed with -9."""
        run, begun_at = CommandRun(name), time.perf_counter()
        process = await asyncio.create_subprocess_exec(
            *(sys.executable, "-m", "api.cli", *arguments),
            env=self._environ,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        reading = asyncio.create_task(process.communicate(), name="bench: output")
        while not reading.done():
            run.peak_bytes = max(run.peak_bytes, peak_resident_bytes(process.pid))
            if kill_at is not None and await self.count_domains() >= kill_at:
                process.kill()
            await asyncio.wait({reading}, timeout=_POLL_SECONDS)
        printed, complaints = (text.decode(errors="replace") for text in await reading)
        run.seconds, run.printed = time.perf_counter() - begun_at, (printed or complaints).strip()[-2000:]
        self._console.log(f"{name}: {run.seconds:.1f} s, {run.peak_bytes / 1e6:.0f} MB, {run.printed[-300:]}")
        return run

    async def count_domains(self) -> int:
        return await self.count("domains")

    async def count(self, table: str) -> int:
        async with self._database.connection() as connection:
            found: int = await connection.fetchval(
                f"select count(*) from {table} where application_id = $1",
                self.application_id,
            )
        return found

    async def delivery_seconds(self, application_id: str) -> list[float]:
        async with self._database.connection() as connection:
            rows = await connection.fetch(
                "select extract(epoch from settled_at - created_at)::float8 as seconds"
                " from deliveries join events on events.id = event_id"
                " where events.application_id = $1 and status = 'delivered'",
                application_id,
            )
        return [row["seconds"] for row in rows]


async def _enrol(stage: Stage, prefix: str, measured: Enrolments, is_over: Callable[[], bool]) -> None:
    while not is_over():
        domain = f"{prefix}-{len(measured.seconds)}.{CUSTOMER}"
        measured.seconds.append(await _time_to_https(stage, domain, measured.failures))
        await asyncio.sleep(_PAUSE_SECONDS)


async def _time_to_https(stage: Stage, domain: str, failures: Counter[str]) -> float:
    """Seconds from the first POST /power to the first valid HTTPS response, failed attempts included.

    Raises: `WalkFailed` when attempts fail for two minutes.
    """
    visitor = VisitorClient(stage.edge_https_host, stage.settings.edge_https.port, stage.ca_file)

    async def power() -> None:
        try:
            await partner.power(domain, f"{stage.lab.origin}/a")
        except UnexpectedStatus as error:
            if error.code != "enrolled":  # as a POST is answered whose first answer was lost
                raise

    async def retry(attempt: Callable[[], Awaitable[object]]) -> None:
        deadline = time.monotonic() + _GIVE_UP_SECONDS
        while True:
            try:
                await attempt()
                return
            except WalkFailed as error:
                failures[str(error).replace(domain, "DOMAIN")] += 1
                if time.monotonic() > deadline:
                    raise
                await asyncio.sleep(_PAUSE_SECONDS)

    async with PartnerClient.at(stage.settings.base_url, stage.application_id) as partner:
        await retry(lambda: partner.sign_in(stage.client_secret))
        begun_at = time.perf_counter()
        await retry(power)
        await retry(lambda: visitor.get_when(domain, "Version A"))
        return time.perf_counter() - begun_at


@contextlib.asynccontextmanager
async def _enrolling(stage: Stage, measured: Enrolments) -> AsyncIterator[None]:
    """Enrol domains until the block ends; the last one is waited for."""
    stop = asyncio.Event()
    task = asyncio.create_task(_enrol(stage, "beside", measured, stop.is_set), name="bench: enrolments")
    try:
        yield
    finally:
        stop.set()
        await task


def _table(result: Result, count: int) -> Table:
    table = Table(title=f"A file of {count:,} domains")
    for column in ("", "times", "median", "p99", "memory", "goal"):
        table.add_column(column, justify="left" if not column else "right")
    for run in result.runs:
        table.add_row(run.name, "1", f"{run.seconds:,.1f} s", "", f"{run.peak_bytes / 1e6:,.0f} MB", "")
    for figure in result.figures:
        median, p99 = (f"{seconds * 1000:,.0f} ms" for seconds in (figure.median, figure.p99))
        table.add_row(figure.name, f"{len(figure.seconds):,}", median, p99, "", figure.goal)
    for name, number in result.counts.items():
        table.add_row(name, f"{number:,}", "", "", "", "")
    for when, failures in result.failures.items():
        table.add_row(f"another's attempts that failed, {when}", f"{failures.total():,}", "", "", "", "0")
        for words, times in failures.most_common(_MOST_FAILURES):
            table.add_row(f"  {words}", f"{times:,}", "", "", "", "")
    return table


def _as_json(result: Result, count: int) -> dict[str, Any]:
    return {
        "domains": count,
        "runs": [
            {"name": run.name, "seconds": run.seconds, "peak_bytes": run.peak_bytes, "printed": run.printed}
            for run in result.runs
        ],
        "figures": [
            {"name": each.name, "median_seconds": each.median, "p99_seconds": each.p99} for each in result.figures
        ],
        "counts": result.counts,
        "failures": result.failures,
    }


if __name__ == "__main__":
    main()
