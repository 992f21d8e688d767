"""``python -m bench.migrations``: how long the steps of the schema keep writers waiting, over a large database.

A database of the schema before the online steps is filled, writers go on changing its tables, and the remaining steps
are taken. A writer gives up a lock that it has waited for longer than a second (counted), and a watcher asks Postgres
all the while how long writers have waited for locks, and for what. The goal is no wait over a second.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import count
from pathlib import Path

import asyncpg

from common.db import migrate as migrations
from common.db.session import Connection, Patience, open_session, transaction
from common.errors import FrontageError
from common.postgres import EmbeddedPostgres

BEFORE = "0007"
"""The last step that may keep writers waiting."""

_LOCK_SECONDS = 1.0
_WATCH_SECONDS = 0.02
_WRITER = "frontage bench writer"
_FILL_ROWS = 250_000
_APPLICATIONS = 20_000
_PATIENCE = Patience(query_seconds=3600, statement_seconds=3600)

_FILL = (
    "insert into domains (domain, product, application_id, application_url)"
    " select 'd' || n, 'power', 'bench', 'https://origin.example/'",
    "insert into certificates (domain, application_id, issuer, chain, private_key, not_before, not_after, live_at)"
    " select 'd' || n, 'bench', 'bench', repeat('x', 500), '', now(), now() + interval '30 days', now()",
    "insert into orders (domain, application_id, state, hold_until, due_at)"
    " select 'd' || n, 'bench', 'issued', now(), now() + interval '30 days'",
    "insert into changes (kind, key, version, deleted, digest) select 'route', 'power/d' || n, n + 1, false, n",
    "insert into enrolments (domain, product) select 'd' || n, 'power'",
    "insert into monitored_domains (id, application_id, domain, dns_records) select 'm' || n, 'bench', 'd' || n, '[]'",
    "insert into event_sequences (application_id, domain) select 'bench', 'd' || n",
    "insert into events (id, application_id, type, fields)"
    " select 'evt_' || lpad(n::text, 34, '0'), 'bench', 'webhook.test', '{}'",
    "insert into shares (id, application_id, domain, records, expires_at)"
    " select lpad(n::text, 22, '0'), 'bench', 'd', '[]', now() + interval '30 days'",
    "insert into batches (id, application_id, kind) select 'b' || n, 'bench', 'create'",
)

# What the roles do to large tables; $1 is a number of a row.
_WRITE = (
    "update domains set redirect_to = 'https://' || $1::bigint where domain = 'd' || $1::bigint and product = 'power'",
    "update certificates set revoke_reason = null where domain = 'd' || $1::bigint",
    "update orders set attempts = attempts + 1 where domain = 'd' || $1::bigint",
    "update monitored_domains set user_id = $1::bigint::text where id = 'm' || $1::bigint",
    "insert into enrolments (domain, product) values ('new' || $1::bigint, 'power')",
    "insert into events (application_id, type, fields, domain)"
    " values ('bench', 'webhook.test', '{}', $1::bigint::text)",
    "update event_sequences set last = last + 1 where domain = 'd' || $1::bigint",
    "update batches set attempts = attempts + 1 where id = 'b' || $1::bigint",
    f"update applications set maintenance = not maintenance where id = 'a' || $1::bigint % {_APPLICATIONS}",
)


@dataclass(slots=True)
class Stalls:
    """What writers met while the steps were taken."""

    writes: int = 0
    given_up: int = 0
    longest_wait_seconds: float = 0.0
    waited_for: str = ""
    migration_seconds: float = 0.0


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.migrations", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of each large table (1,000,000)")
    parser.add_argument("--directory", type=Path, default=Path("/var/tmp"), help="a directory on a disk (/var/tmp)")
    arguments = parser.parse_args()
    try:
        stalls = asyncio.run(_measure(arguments))
    except FrontageError as error:
        sys.exit(f"bench.migrations: {error}")
    except KeyboardInterrupt:
        sys.exit(1)
    print(
        f"{arguments.rows:,} rows a table: steps after {BEFORE} took {stalls.migration_seconds:.1f} s beside"
        f" {stalls.writes:,} writes; longest wait for a lock {stalls.longest_wait_seconds * 1000:.0f} ms (goal ≤ 1000),"
        f" {stalls.given_up} given up after {_LOCK_SECONDS:g} s (goal 0)"
        f"\nthe longest wait was for: {' '.join(stalls.waited_for.split())}"
    )


async def _measure(arguments: argparse.Namespace) -> Stalls:
    with tempfile.TemporaryDirectory(
        prefix="frontage-bench-", dir=arguments.directory, ignore_cleanup_errors=True
    ) as directory:
        server = EmbeddedPostgres(Path(directory))
        dsn = await asyncio.to_thread(server.start)
        try:
            return await measure(dsn, arguments.rows)
        finally:
            await asyncio.to_thread(server.stop)


async def measure(dsn: str, rows: int, *, lock_seconds: float = _LOCK_SECONDS) -> Stalls:
    """Fill the empty database with so many rows a table, and take the steps beside writers, which give up a lock after
    `lock_seconds`."""
    with _until(BEFORE):
        await migrations.migrate(dsn)
    await _fill(dsn, rows)
    stalls = Stalls()
    tasks = [asyncio.create_task(_write(dsn, statement, rows, stalls, lock_seconds)) for statement in _WRITE]
    tasks.append(asyncio.create_task(_watch(dsn, stalls)))
    try:
        began_at = time.perf_counter()
        await migrations.migrate(dsn)
        stalls.migration_seconds = time.perf_counter() - began_at
    finally:
        for task in tasks:
            task.cancel()
        outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    for outcome in outcomes:
        if isinstance(outcome, Exception):
            raise outcome
    return stalls


@contextmanager
def _until(revision: str) -> Iterator[None]:
    """Steps are taken until that one."""
    newest = migrations.REVISION
    migrations.REVISION = revision
    try:
        yield
    finally:
        migrations.REVISION = newest


async def _fill(dsn: str, rows: int) -> None:
    connection = await open_session(dsn, "frontage bench", _PATIENCE)
    try:
        await connection.execute(
            "insert into applications (id, name, cname_target, client_secret, webhook_secret)"
            " values ('bench', 'bench', 'bench', '', '')"
        )
        async with transaction(connection):
            await connection.execute("set local session_replication_role = replica")
            await connection.execute(
                "insert into applications (id, name, cname_target, client_secret, webhook_secret)"
                f" select 'a' || n, 'bench', 'a' || n, '', '' from generate_series(0, {_APPLICATIONS - 1}) n"
            )
        for statement in _FILL:
            for first in range(1, rows + 1, _FILL_ROWS):
                async with transaction(connection):
                    await connection.execute("set local session_replication_role = replica")
                    last = min(first + _FILL_ROWS - 1, rows)
                    await connection.execute(f"{statement} from generate_series($1::bigint, $2) n", first, last)
        await connection.execute("update feed set version = $1", rows + 1)
        await connection.execute("vacuum analyze")
    finally:
        connection.terminate()


async def _write(dsn: str, statement: str, rows: int, stalls: Stalls, lock_seconds: float) -> None:
    """One statement after the other, until cancelled."""
    patience = Patience(query_seconds=60, statement_seconds=30, lock_seconds=lock_seconds)
    connection = await open_session(dsn, _WRITER, patience)
    try:
        for number in count():
            try:
                await connection.execute(statement, number * 7919 % rows + 1)
                stalls.writes += 1
            except asyncpg.LockNotAvailableError:
                stalls.given_up += 1
            await asyncio.sleep(0.002)
    finally:
        connection.terminate()


async def _watch(dsn: str, stalls: Stalls) -> None:
    """Ask how long each writer has waited for its lock, until cancelled."""
    connection: Connection = await open_session(dsn, "frontage bench watcher")
    try:
        while True:
            longest = await connection.fetchrow(
                "select extract(epoch from clock_timestamp() - waitstart)::float8 as seconds, (select left(query, 200)"
                " from pg_stat_activity where pid = any(pg_blocking_pids(l.pid)) limit 1) as blocker"
                " from pg_locks l join pg_stat_activity using (pid) where not granted and application_name = $1"
                " order by waitstart limit 1",
                _WRITER,
            )
            if longest and (longest["seconds"] or 0.0) > stalls.longest_wait_seconds:
                stalls.longest_wait_seconds, stalls.waited_for = longest["seconds"], longest["blocker"] or ""
            await asyncio.sleep(_WATCH_SECONDS)
    finally:
        connection.terminate()


if __name__ == "__main__":
    main()
