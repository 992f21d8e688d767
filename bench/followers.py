"""``python -m bench.followers``: what edges that follow the change feed cost Postgres, and how soon each has a change.

The followers are edges' replicators, each with a replica and a lease of its own, many in a process; with
``--standby`` they read the feed of a streaming standby. A writer changes routes at a steady rate, then commits as
fast as one session can.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from bench import output
from bench.lab.postgres import PostgresServer
from bench.process_tree import cpu_seconds
from common.clock import SystemClock
from common.db.migrate import migrate
from common.db.session import Connection, open_session
from common.errors import FrontageError
from common.processes import loop_factory
from common.settings import load
from edge.replica.replicator import Replicator

_ROUTES = 2000
_FOLLOWERS_A_PROCESS = 125
_CHANGES_A_SECOND = 5
_START_SECONDS = 300.0
_SETTLE_SECONDS = 3.0
_HEADING = (
    "                    │ idle            │ 5 changes a second                      │ one writer\n"
    "followers  sessions │ commits/s cores │ commits/s cores │ p50, p99, worst in ms │ commits/s"
)
_LINE = (
    "{followers:>9} {sessions:>9} │ {idle_commits:>9.1f} {idle_cores:>5.2f} │ {commits:>9.1f} {cores:>5.2f} │"
    " {p50_ms:>6.0f} {p99_ms:>6.0f} {worst_ms:>6.0f}  │ {writer:>9.0f}"
)
_COUNT = (
    "select sum(xact_commit + xact_rollback)::bigint as commits,"
    " (select count(*) from pg_stat_activity where application_name like 'frontage edge%') as sessions"
    " from pg_stat_database"
)


def main() -> None:
    """Measure, and print a table."""
    parser = argparse.ArgumentParser(prog="python -m bench.followers", description=__doc__)
    parser.add_argument("--followers", type=int, nargs="+", default=[0, 1, 10, 100])
    parser.add_argument("--standby", action="store_true", help="follow a standby; leases go to the primary")
    parser.add_argument("--seconds", type=float, default=8.0, help="for each of the three phases")
    parser.add_argument("--follow", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        if arguments.follow:
            dsn, feed, count, directory = arguments.follow
            runner.run(_follow(dsn, feed, int(count), Path(directory)))
            return
        try:
            with tempfile.TemporaryDirectory(prefix="frontage-followers-", ignore_cleanup_errors=True) as name:
                Path(name).chmod(0o755)  # Postgres is another user when we are root
                rows = runner.run(_measure(Path(name), arguments))
        except FrontageError as error:
            sys.exit(f"bench.followers: {error}")
    print(f"written to {output.write('followers' + ('_of_a_standby' * arguments.standby), {'rows': rows})}")


async def _measure(directory: Path, arguments: argparse.Namespace) -> list[dict[str, Any]]:
    most = 50 + 4 * max(arguments.followers)
    primary = PostgresServer(directory / "primary", max_connections=most)
    standby = PostgresServer(directory / "standby", max_connections=most)
    try:
        primary.create()
        await _start(primary)
        await migrate(primary.dsn)
        session = await open_session(primary.dsn, "bench")
        await session.execute(
            "insert into applications (id, name, cname_target, client_secret, webhook_secret)"
            " values ('app', 'app', 'apps.example', '', '')"
        )
        await session.execute(
            "insert into domains (domain, product, application_id, application_url)"
            " select 'd' || n || '.example', 'power', 'app', 'https://origin.example/' from generate_series(1, $1) n",
            _ROUTES,
        )
        if arguments.standby:
            standby.copy_from(primary)
            await _start(standby)
        feed = standby if arguments.standby else None
        print(_HEADING)
        rows = []
        for count in arguments.followers:
            rows.append(await _measure_one(directory / str(count), session, primary, feed, count, arguments))
            print(_LINE.format(**rows[-1]), flush=True)
        session.terminate()
        return rows
    finally:
        standby.stop()
        primary.stop()


async def _start(server: PostgresServer) -> None:
    server.start()
    while not server.is_ready():  # noqa: ASYNC110 - another process
        await asyncio.sleep(0.02)


async def _measure_one(
    directory: Path,
    session: Connection,
    primary: PostgresServer,
    standby: PostgresServer | None,
    count: int,
    arguments: argparse.Namespace,
) -> dict[str, Any]:
    """Measure with so many followers. `cores` are of the primary."""
    shares = [min(_FOLLOWERS_A_PROCESS, count - first) for first in range(0, count, _FOLLOWERS_A_PROCESS)]
    feed = standby.dsn if standby else ""
    processes = [
        await asyncio.create_subprocess_exec(
            *[
                sys.executable,
                "-m",
                "bench.followers",
                "--follow",
                primary.dsn,
                feed,
                str(share),
                f"{directory}-{number}",
            ],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            limit=1 << 24,
        )
        for number, share in enumerate(shares)
    ]
    try:
        for process in processes:
            assert process.stdout is not None
            if await process.stdout.readline() != b"ready\n":
                raise FrontageError("the followers did not start")
        await asyncio.sleep(_SETTLE_SECONDS)
        idle = await _count(session, primary, asyncio.sleep(arguments.seconds))
        changes: list[tuple[int, float]] = []
        busy = await _count(session, primary, _change(session, arguments.seconds, changes))
        await asyncio.sleep(_SETTLE_SECONDS)
        delays = []
        for process in processes:
            assert process.stdin is not None
            assert process.stdout is not None
            process.stdin.write(json.dumps(changes).encode() + b"\n")
            await process.stdin.drain()
            delays += json.loads(await process.stdout.readline())
        written = await _write(session, arguments.seconds)
    finally:
        for process in processes:
            process.kill()
            await process.wait()
    await session.execute("delete from edge_nodes")
    delays.sort()
    return {
        "followers": count,
        "sessions": idle["sessions"],
        "idle_commits": idle["commits"],
        "idle_cores": idle["cores"],
        "commits": busy["commits"],
        "cores": busy["cores"],
        "p50_ms": 1000 * statistics.median(delays) if delays else 0.0,
        "p99_ms": 1000 * delays[int(len(delays) * 0.99)] if delays else 0.0,
        "worst_ms": 1000 * delays[-1] if delays else 0.0,
        "writer": written,
    }


async def _count(session: Connection, primary: PostgresServer, work: Any) -> dict[str, float]:
    """Return commits and cores a second of the primary while `work` runs."""
    before, cpu, began = await session.fetchrow(_COUNT), cpu_seconds(primary.pid), time.monotonic()
    await work
    lasted = time.monotonic() - began
    after = await session.fetchrow(_COUNT)
    assert before is not None
    assert after is not None
    return {
        "commits": (after["commits"] - before["commits"]) / lasted,
        "cores": (cpu_seconds(primary.pid) - cpu) / lasted,
        "sessions": after["sessions"],
    }


async def _change(session: Connection, seconds: float, changes: list[tuple[int, float]]) -> None:
    for number in range(round(seconds * _CHANGES_A_SECOND)):
        await _write_one(session, number)
        at = time.time()
        changes.append((await session.fetchval("select version from feed"), at))
        await asyncio.sleep(1 / _CHANGES_A_SECOND)


async def _write(session: Connection, seconds: float) -> float:
    """Return how many commits a second one session makes."""
    number, began = 0, time.monotonic()
    while time.monotonic() - began < seconds:
        number += 1
        await _write_one(session, number)
    return number / (time.monotonic() - began)


async def _write_one(session: Connection, number: int) -> None:
    await session.execute(
        "update domains set application_url = 'https://origin.example/' || clock_timestamp()"
        " where domain = 'd' || $1::int || '.example'",
        1 + number % _ROUTES,
    )


async def _follow(dsn: str, feed: str, count: int, directory: Path) -> None:
    """Run followers; answer on standard output how late each applied each change that standard input names."""
    applied: list[list[tuple[int, float]]] = [[] for _ in range(count)]
    replicators = []
    for number, seen in enumerate(applied):
        settings = load(
            {"FRONTAGE_STATE_DIR": str(directory / str(number))} | ({"FRONTAGE_FEED_URL": feed} if feed else {})
        )
        replicators.append(
            Replicator(
                settings,
                lambda: dsn,
                lambda version, seen=seen: seen.append((version, time.time())),  # type: ignore[misc]
                SystemClock(),
            )
        )
    tasks = []
    async with asyncio.timeout(_START_SECONDS):
        for replicator in replicators:
            tasks.append(asyncio.create_task(replicator.run()))
            while not replicator.connected:  # noqa: ASYNC110 - it tells nobody
                await asyncio.sleep(0.002)
    print("ready", flush=True)
    changes = json.loads(await asyncio.to_thread(sys.stdin.readline))
    delays = []
    for seen in applied:
        following = iter(seen)
        version, applied_at = next(following)
        for wanted, at in changes:
            with contextlib.suppress(StopIteration):
                while version < wanted:
                    version, applied_at = next(following)
            delays.append(max(0.0, applied_at - at) if version >= wanted else 99.0)
    print(json.dumps(delays), flush=True)
    await asyncio.gather(*tasks)


if __name__ == "__main__":
    main()
