"""``python -m bench.retention``: how long a batch of each step of retention takes, in an empty and in a large database.

Expired rows are the same in both; the large database has ``--rows`` more rows in each table, which have not expired. A
batch is one transaction with fsync on. The goal is 1.5 × the empty database's time. The table is also written to
``bench/output/retention.json``. Ten million rows take about 15 GB of disk.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.table import Table

from bench import output
from common.db.migrate import migrate
from common.db.retention import STEPS, Step
from common.db.session import Connection, Patience, open_session, transaction
from common.errors import FrontageError
from common.postgres import EmbeddedPostgres

_GOAL = 1.5
_BATCHES = 7
_FILL_ROWS = 500_000
_PATIENCE = Patience(query_seconds=3600, statement_seconds=3600)

_EXPIRED = "now() - interval '400 days' + n * interval '1 millisecond'"
_KEPT = "now() + interval '1 day' + n * interval '1 millisecond'"

# $1 and $2 are the first and the last number; {at} is the time by which the row expires.
_FILL = {
    "enrolments": "insert into enrolments (domain, product, enrolled_at) select 'd' || n, 'power', {at}",
    "former_holders": "insert into former_holders (domain, application_id, released_at) select 'd' || n, 'bench', {at}",
    "certificates": "insert into certificates"
    " (domain, application_id, issuer, chain, private_key, not_before, not_after, released_at)"
    " select 'd' || n, 'bench', 'bench', 'x', '', now(), now(), {at}",
    "events": "insert into events (id, application_id, type, fields, created_at)"
    " select 'evt_' || lpad(n::text, 34, '0'), 'bench', 'webhook.test', '{{}}', {at}",
    "event_sequences": "insert into event_sequences (application_id, domain, review_at) select 'bench', 'd' || n, {at}",
    "batches": "insert into batches (id, application_id, kind, submitted_at) select 'b' || n, 'bench', 'create', {at}",
    "shares": "insert into shares (id, application_id, domain, records, expires_at)"
    " select lpad(n::text, 22, '0'), 'bench', 'd', '[]', {at}",
    "ca_ledger": "insert into ca_ledger (issuer, kind, domain, registered_domain, taken_at)"
    " select 'bench', 'order', 'd' || n, 'd' || n, {at}",
    "revocations": "insert into revocations (domain, application_id, issuer, chain, reason, revoked_at)"
    " select 'd' || n, 'bench', 'bench', 'x', 0, {at}",
    "tombstones": "insert into changes (kind, key, shard, version, deleted, digest, changed_at)"
    " select 'route', 'power/d' || n, n % 64, n, true, 0, {at}",
}


@dataclass(frozen=True, slots=True)
class Figure:
    """Seconds of single batches."""

    step: str
    batch_rows: int
    empty: Sequence[float]
    large: Sequence[float]

    @property
    def ratio(self) -> float:
        return statistics.median(self.large) / statistics.median(self.empty)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.retention", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of each table that have not expired")
    parser.add_argument("--directory", type=Path, default=Path("/var/tmp"), help="a directory on a disk (/var/tmp)")
    arguments = parser.parse_args()
    console = Console(soft_wrap=True)
    try:
        figures = asyncio.run(_measure(console, arguments))
    except FrontageError as error:
        sys.exit(f"bench.retention: {error}")
    except KeyboardInterrupt:
        sys.exit(1)
    console.print(_table(figures, arguments.rows))
    path = output.write("retention", {"rows": arguments.rows, "figures": [asdict(figure) for figure in figures]})
    console.print(f"written to {path}")


async def _measure(console: Console, arguments: argparse.Namespace) -> list[Figure]:
    with tempfile.TemporaryDirectory(
        prefix="frontage-bench-", dir=arguments.directory, ignore_cleanup_errors=True
    ) as directory:
        server = EmbeddedPostgres(Path(directory))
        dsn = await asyncio.to_thread(server.start)
        try:
            await migrate(dsn)
            connection = await open_session(dsn, "frontage bench", _PATIENCE)
            try:
                return await _measure_steps(console, connection, arguments.rows)
            finally:
                connection.terminate()
        finally:
            await asyncio.to_thread(server.stop)


async def _measure_steps(console: Console, connection: Connection, rows: int) -> list[Figure]:
    await connection.execute(
        "insert into applications (id, name, cname_target, client_secret, webhook_secret)"
        " values ('bench', 'bench', 'bench', '', '')"
    )
    steps = [step for step in STEPS if step.name in _FILL]
    empty = [await _time_batches(connection, step, 1) for step in steps]
    for step in steps:
        console.print(f"filling {step.name}")
        for first in range(1, rows + 1, _FILL_ROWS):
            await _fill(connection, step, _KEPT, first, min(first + _FILL_ROWS - 1, rows))
    large = [await _time_batches(connection, step, rows + 1) for step in steps]
    return [
        Figure(step.name, step.batch_rows, before, after)
        for step, before, after in zip(steps, empty, large, strict=True)
    ]


async def _fill(connection: Connection, step: Step, at: str, first: int, last: int) -> None:
    """Without triggers, which count and publish row by row."""
    async with transaction(connection):
        await connection.execute("set local session_replication_role = replica; set local synchronous_commit = off")
        statement = _FILL[step.name].format(at=at)
        await connection.execute(f"{statement} from generate_series($1::bigint, $2) n", first, last)


async def _time_batches(connection: Connection, step: Step, first: int) -> list[float]:
    """Seconds of each batch; the first one, which plans, is not counted."""
    await _fill(connection, step, _EXPIRED, first, first + (_BATCHES + 1) * step.batch_rows - 1)
    await connection.execute(f"vacuum analyze {'changes' if step.name == 'tombstones' else step.name}")
    await connection.execute("checkpoint")  # the first change of a page after it writes the whole page to the WAL
    seconds = []
    for _ in range(_BATCHES + 1):
        began_at = time.perf_counter()
        async with transaction(connection):
            batch = await step.erase(connection, step.batch_rows)
        seconds.append(time.perf_counter() - began_at)
        if batch.erased != step.batch_rows:
            raise FrontageError(f"a batch of {step.name} erased {batch.erased} rows of {step.batch_rows}")
    return seconds[1:]


def _table(figures: Sequence[Figure], rows: int) -> Table:
    table = Table(title=f"Retention: milliseconds a batch, median of {_BATCHES}")
    for title in ("step", "rows erased", "empty", f"{rows:,} rows", "ratio", "goal"):
        table.add_column(title, justify="left" if title == "step" else "right")
    for figure in figures:
        empty, large = statistics.median(figure.empty), statistics.median(figure.large)
        table.add_row(
            *(figure.step, str(figure.batch_rows), f"{empty * 1000:.1f}", f"{large * 1000:.1f}"),
            *(f"{figure.ratio:.2f}", f"≤ {_GOAL}"),
        )
    return table


if __name__ == "__main__":
    main()
