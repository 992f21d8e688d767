"""``python -m bench.feed``: how many routed commits a second the change feed carries, with fsync on.

Concurrent writers (pgbench) commit one change each, to the order of a random domain: one that edges must know (routed),
and one that they need not know (unrouted). A reader follows the feed all the while as an edge does, and at the end its
copy must equal the tables. The table is also written to ``bench/output/feed.json``.
"""

from __future__ import annotations

import argparse
import asyncio
import math
import re
import statistics
import sys
import tempfile
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench import output
from common.db import feed
from common.db.migrate import migrate
from common.db.session import Connection, open_session
from common.errors import FrontageError
from common.postgres import EmbeddedPostgres, binaries

_GOAL = 2000
_DOMAINS = 10_000
_POLL_SECONDS = 0.05
_SPARE_SECONDS = 30
_CONNECTIONS_A_SECOND = 10

_UPDATE = {
    "unrouted": "update orders set attempts = attempts + 1 where domain = 'd' || :number",
    "routed": "update orders set hold_until = clock_timestamp() where domain = 'd' || :number",
}


@dataclass(frozen=True, slots=True)
class FeedFigure:
    """Commits a second of each run, and the milliseconds that a commit took in the median run."""

    change: str
    writers: int
    commits_per_second: Sequence[float]
    milliseconds: float

    @property
    def median(self) -> float:
        return statistics.median(self.commits_per_second)


class FeedReader:
    """Follows the feed from its beginning, and keeps the checksum of what it was given."""

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        self._digests: dict[tuple[str, str], int] = {}
        self._checksum = 0
        self._positions: tuple[int, ...] = ()

    async def follow(self, is_over: asyncio.Event) -> None:
        """Until `is_over`, and once more.

        Raises: `FrontageError` when what was read is not what the tables hold.
        """
        while True:
            last = is_over.is_set()
            await self._catch_up()
            if last:
                return
            await asyncio.sleep(_POLL_SECONDS)

    async def _catch_up(self) -> None:
        async with feed.open_snapshot(self._connection) as snapshot:
            async for entries in snapshot.changes(self._positions):
                for kind, key, content, _ in entries:
                    digest = 0 if content is None else feed.digest(kind, key, content)
                    self._checksum ^= self._digests.get((kind, key), 0) ^ digest
                    self._digests[kind, key] = digest
            self._positions = snapshot.head.positions
        if self._checksum != snapshot.head.checksum:
            raise FrontageError("the reader has missed a change")


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.feed", description=__doc__)
    parser.add_argument("--writers", type=int, nargs="+", default=[1, 4, 16], help="concurrent writers (1 4 16)")
    parser.add_argument("--seconds", type=int, default=5, help="length of a run (5)")
    parser.add_argument("--runs", type=int, default=3, help="runs of each kind (3)")
    parser.add_argument("--directory", type=Path, default=Path("/var/tmp"), help="a directory on a disk (/var/tmp)")
    arguments = parser.parse_args()
    try:
        figures = asyncio.run(_measure(arguments))
    except FrontageError as error:
        sys.exit(f"bench.feed: {error}")
    except ExceptionGroup as group:
        sys.exit(f"bench.feed: {group.exceptions[0]}")
    except KeyboardInterrupt:
        sys.exit(1)
    console = Console(soft_wrap=True)
    console.print(_table(figures))
    path = output.write("feed", {"figures": [asdict(figure) for figure in figures]})
    console.print(f"written to {path}")


async def _measure(arguments: argparse.Namespace) -> list[FeedFigure]:
    with tempfile.TemporaryDirectory(
        prefix="frontage-bench-", dir=arguments.directory, ignore_cleanup_errors=True
    ) as directory:
        server = EmbeddedPostgres(Path(directory))
        dsn = await asyncio.to_thread(server.start)
        try:
            await migrate(dsn)
            await _fill(dsn)
            return [
                await _run_all(arguments, Path(directory), dsn, change, writers)
                for change in _UPDATE
                for writers in arguments.writers
            ]
        finally:
            await asyncio.to_thread(server.stop)


async def _fill(dsn: str) -> None:
    connection = await open_session(dsn, "frontage bench")
    try:
        await connection.execute(
            "insert into applications (id, name, cname_target, client_secret, webhook_secret)"
            " values ('bench', 'bench', 'bench', '', '')"
        )
        for start in range(0, _DOMAINS, 100):
            await connection.execute(
                "insert into orders (domain, application_id, hold_until)"
                " select 'd' || n, 'bench', now() from generate_series($1::int, $2) n",
                start,
                start + 99,
            )
        await connection.execute("vacuum analyze")
    finally:
        connection.terminate()


async def _run_all(arguments: argparse.Namespace, directory: Path, dsn: str, change: str, writers: int) -> FeedFigure:
    script = directory / f"{change}.sql"
    script.write_text(f"\\set number random(0, {_DOMAINS - 1})\n{_UPDATE[change]};\n")
    connection = await open_session(dsn, "frontage bench reader")
    try:
        is_over = asyncio.Event()
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(FeedReader(connection).follow(is_over))
            try:
                runs = [await run_pgbench(dsn, script, writers, arguments.seconds) for _ in range(arguments.runs)]
            finally:
                is_over.set()
    finally:
        connection.terminate()
    return FeedFigure(
        change, writers, [commits for commits, _ in runs], statistics.median(latency for _, latency in runs)
    )


async def run_pgbench(dsn: str, script: Path, writers: int, seconds: int) -> tuple[float, float]:
    """Commits a second, and milliseconds a commit, by writers that run for `seconds` or more.

    pgbench's time begins before its clients connect; its figures begin afterwards.

    Raises: `FrontageError`.
    """
    seconds += math.ceil(writers / _CONNECTIONS_A_SECOND)
    process = await asyncio.create_subprocess_exec(
        str(binaries.find(None).postgres.with_name("pgbench")),
        *("--no-vacuum", "--protocol", "prepared", "--client", str(writers), "--jobs", str(min(writers, 2))),
        *("--time", str(seconds), "--file", str(script), dsn),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(seconds + _SPARE_SECONDS):
        out, err = await process.communicate()
    commits, latency = re.search(rb"tps = ([\d.]+)", out), re.search(rb"latency average = ([\d.]+) ms", out)
    if process.returncode != 0 or commits is None or latency is None:
        raise FrontageError(f"pgbench failed: {(err + out).decode(errors='replace').strip()}")
    return float(commits[1]), float(latency[1])


def _table(figures: Sequence[FeedFigure]) -> Table:
    table = Table(title="The change feed, fsync on")
    for title in ("change", "writers", "commits/s", "lowest", "highest", "ms a commit", "goal"):
        table.add_column(title, justify="left" if title == "change" else "right")
    most = max(figure.writers for figure in figures)
    for figure in figures:
        goal = f"≥ {_GOAL:,}" if (figure.change, figure.writers) == ("routed", most) else ""
        table.add_row(
            *(figure.change, str(figure.writers), f"{figure.median:,.0f}"),
            *(f"{min(figure.commits_per_second):,.0f}", f"{max(figure.commits_per_second):,.0f}"),
            *(f"{figure.milliseconds:.2f}", goal),
        )
    return table


if __name__ == "__main__":
    main()
