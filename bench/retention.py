"""``python -m bench.retention``: what a batch of each step of retention costs, in an empty and in a large database.

Two servers: each table of the large one has ``--rows`` more rows, which have not expired; expired rows are the same in
both. Batches are erased in turns, one here and one there, so that other work on the machine meets both. Three figures
each: the blocks that a batch asks for (they do not depend on the machine), the CPU time of its backend, and the time
until it is committed, with fsync on. The goal is 1.5 × the empty database's blocks and CPU time.

``--steps`` measures these only. The table is also written to ``bench/output/retention.json``. A million rows take
about 8 GB of disk.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from bench import output
from bench.blocks import count_blocks
from bench.bulk import bulk_load
from common.db.migrate import migrate
from common.db.retention import STEPS, RetentionStep
from common.db.session import Connection, SessionTimeouts, open_session, transaction
from common.errors import FrontageError
from common.postgres import EmbeddedPostgres

_GOAL = 1.5
_WARM_BATCHES = 6
"""Postgres plans a prepared statement anew five times, then keeps a plan."""

_COUNTED_BATCHES = 3
_TIMED_BATCHES = 9
_BATCHES = _WARM_BATCHES + _COUNTED_BATCHES + _TIMED_BATCHES
_FILL_ROWS = 500_000
_TIMEOUTS = SessionTimeouts(query_seconds=3600, statement_seconds=3600)

_EXPIRED = "now() - interval '400 days' + n * interval '1 millisecond'"
_KEPT = "now() + interval '1 day' + n * interval '1 millisecond'"

SMALL_TABLES = frozenset({"edge_nodes", "monitor_nodes"})
"""A row for each process of the last day: swept without an index, and not measured."""

_ITEMS_OF_BATCH = 100

# By step. $1 and $2 are the first and the last number; {at} is the time by which
# the row expires.
FILL = {
    "enrolments": (
        "insert into enrolments (domain, product, application_id, enrolled_at) select 'd' || n, 'power', 'bench', {at}",
    ),
    "former_holders": (
        "insert into former_holders (domain, application_id, released_at) select 'd' || n, 'bench', {at}",
    ),
    "certificate_requests": (
        "insert into certificate_requests (domain, application_id, private_key, request, requested_at)"
        " select 'd' || n, 'bench', '', '', {at}",
    ),
    "certificates": (
        "insert into certificates"
        " (domain, application_id, issuer, chain, private_key, not_before, not_after, released_at)"
        " select 'd' || n, 'bench', 'bench', 'x', '', now(), now(), {at}",
    ),
    "events": (
        "insert into events (id, application_id, type, domain, fields, created_at)"
        " select 'evt_' || lpad(n::text, 34, '0'), 'bench', 'webhook.test', 'd' || n, '{{}}', {at}",
        "insert into deliveries (event_id, application_id, status, settled_at)"
        " select 'evt_' || lpad(n::text, 34, '0'), 'bench', 'delivered', {at}",
    ),
    "event_sequences": (
        "insert into event_sequences (application_id, domain, review_at) select 'bench', 'd' || n, {at}",
        # Rows of other names, among which the step looks for one of the name.
        "insert into events (id, application_id, type, domain, fields)"
        " select 'evt_other' || lpad(n::text, 29, '0'), 'bench', 'webhook.test', 'other' || n, '{{}}'",
        "insert into domains (domain, product, application_id, application_url)"
        " select 'other' || n, 'power', 'bench', 'https://origin.example'",
        "insert into monitored_domains (id, application_id, domain, dns_records)"
        " select 'mon_' || n, 'bench', 'other' || n, '[]'",
    ),
    "acme_delegations": (
        "insert into acme_delegations (label, application_id, domain, review_at)"
        " select lpad(translate(n::text, '0189', 'abcd'), 26, 'z'), 'bench', 'd' || n, {at}",
    ),
    "batches": (
        "insert into batches (id, application_id, kind, submitted_at) select 'b' || n, 'bench', 'create', {at}",
        "insert into batch_items (batch_id, number, domain, request)"
        f" select 'b' || n, generate_series(1, {_ITEMS_OF_BATCH}), 'd' || n, '{{{{}}}}'",
    ),
    "shares": (
        "insert into shares (id, application_id, domain, records, expires_at)"
        " select lpad(n::text, 22, '0'), 'bench', 'd', '[]', {at}",
    ),
    "status_links": (
        "insert into status_links (id, application_id, domain, expires_at)"
        " select lpad(n::text, 32, '0'), 'bench', 'd' || n, {at}",
    ),
    "connect_configurations": (
        "insert into connect_configurations (id, application_id, digest, config, expires_at)"
        " select 'cfg_' || lpad(n::text, 32, '0'), 'bench', sha256(n::text::bytea), '{{}}', {at}",
    ),
    "preparations": (
        "insert into preparations (domain, application_id, product, expires_at, due_at)"
        " select 'd' || n, 'bench', 'power', {at}, null",
    ),
    "target_sightings": ("insert into target_sightings (target, due_at) select 't' || n, {at}",),
    "idempotent_requests": (
        "insert into idempotent_requests (application_id, key, request, status, body, started_at)"
        " select 'bench', sha256(n::text::bytea), '', 200, '{{}}', {at}",
    ),
    "connect_flows": (
        "insert into connect_flows (id, application_id, job_id, state, config, due_at, erase_at)"
        " select 'flow_' || lpad(n::text, 22, '0'), 'bench', 'bench', 'done', '{{}}', null, {at}",
    ),
    "audit": (
        "insert into audit (id, at, way, actor, application_id, action, subject)"
        " select 'aud_' || lpad(n::text, 34, '0'), {at}, 'api', 'bench', 'bench', 'power.put', 'd' || n",
    ),
    "sessions": (
        "insert into sessions (token_hash, user_id, address, user_agent, expires_at)"
        " select sha256(n::text::bytea), 'usr_' || n % 1000, '192.0.2.1', 'bench', {at}",
    ),
    "answered_challenges": (
        "insert into answered_challenges (challenge_hash, answered_at) select sha256(n::text::bytea), {at}",
    ),
    "sign_in_links": (
        "insert into sign_in_links (token_hash, user_id, expires_at)"
        " select sha256(n::text::bytea), 'usr_' || n % 1000, {at}",
    ),
    "user_keys": (
        "insert into user_keys (id, token_hash, user_id, name, permission, expires_at)"
        " select 'key_' || n, sha256(n::text::bytea), 'usr_' || n % 1000, 'bench', 'view', {at}",
    ),
    "ca_ledger": (
        "insert into ca_ledger (issuer, kind, domain, registered_domain, taken_at)"
        " select 'bench', 'order', 'd' || n, 'd' || n, {at}",
    ),
    "revocations": (
        "insert into revocations (domain, application_id, issuer, chain, reason, revoked_at)"
        " select 'd' || n, 'bench', 'bench', 'x', 0, {at}",
    ),
    "traffic": (
        "insert into traffic (application_id, domain, minutes, at, login, counts, erase_at)"
        " select 'bench', 'd' || n % 2000, 5, now() + n * interval '1 second', 'bench', '{{1,2,3,4,5,6,7,8}}', {at}",
    ),
    "traffic_reports": (
        "insert into traffic_reports (login, minutes, at, erase_at)"
        " select 'bench', 5, now() + n * interval '1 second', {at}",
    ),
    "tombstones": (
        "insert into changes (kind, key, shard, version, deleted, digest, changed_at)"
        " select 'route', 'power/d' || n, n % 64, n, true, 0, {at}",
    ),
}


@dataclass(frozen=True, slots=True)
class Cost:
    """The costs of a batch: medians of single batches."""

    blocks: float
    cpu_seconds: float
    seconds: float


@dataclass(frozen=True, slots=True)
class RetentionFigure:
    """The costs of one step's batch in both databases."""

    step: str
    batch_rows: int
    empty: Cost
    large: Cost

    @property
    def is_met(self) -> bool:
        """Return whether blocks and CPU time meet the goal."""
        return max(self.ratio("blocks"), self.ratio("cpu_seconds")) <= _GOAL

    def ratio(self, cost: str) -> float:
        """Return the named cost in the large database divided by that in the empty one."""
        ratio: float = getattr(self.large, cost) / getattr(self.empty, cost)
        return ratio


def main() -> None:
    """Run the bench and print its table."""
    parser = argparse.ArgumentParser(prog="python -m bench.retention", description=__doc__)
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of each table that have not expired")
    parser.add_argument("--steps", nargs="+", choices=sorted(FILL), default=sorted(FILL), help="all of them")
    parser.add_argument("--directory", type=Path, default=Path("/var/tmp"), help="a directory on a disk (/var/tmp)")
    arguments = parser.parse_args()
    console = Console(soft_wrap=True, width=None if sys.stdout.isatty() else 140)
    try:
        figures = asyncio.run(_measure(console, arguments))
    except FrontageError as error:
        sys.exit(f"bench.retention: {error}")
    except KeyboardInterrupt:
        sys.exit(1)
    console.print(_table(figures, arguments.rows))
    path = output.write("retention", {"rows": arguments.rows, "figures": [asdict(figure) for figure in figures]})
    console.print(f"written to {path}")


async def _measure(console: Console, arguments: argparse.Namespace) -> list[RetentionFigure]:
    steps = [step for step in STEPS if step.name in arguments.steps]
    async with AsyncExitStack() as stack:
        empty = await stack.enter_async_context(_server(arguments.directory))
        large = await stack.enter_async_context(_server(arguments.directory))
        with Progress(console=console, transient=True) as progress:
            await _fill_large(large, steps, arguments.rows, progress)
            return [await _compare(step, empty, large, arguments.rows) for step in progress.track(steps)]


@asynccontextmanager
async def _server(directory: Path) -> AsyncIterator[str]:
    """Run a server of its own for the block, with the schema and an application."""
    with tempfile.TemporaryDirectory(prefix="frontage-bench-", dir=directory, ignore_cleanup_errors=True) as state_dir:
        server = EmbeddedPostgres(Path(state_dir))
        dsn = await asyncio.to_thread(server.start)
        try:
            await migrate(dsn)
            async with _session(dsn) as connection:
                await connection.execute(
                    "insert into applications (id, name, cname_target, client_secret, webhook_secret)"
                    " values ('bench', 'bench', 'bench', '', '')"
                )
                await connection.execute("alter system set autovacuum = off")  # it would come between some batches
                await connection.execute("select pg_reload_conf()")
            yield dsn
        finally:
            await asyncio.to_thread(server.stop)


@asynccontextmanager
async def _session(dsn: str) -> AsyncIterator[Connection]:
    connection = await open_session(dsn, "frontage bench", _TIMEOUTS)
    try:
        yield connection
    finally:
        connection.terminate()


async def _fill_large(dsn: str, steps: Sequence[RetentionStep], rows: int, progress: Progress) -> None:
    task = progress.add_task("", total=None)
    async with bulk_load(dsn, lambda words: progress.update(task, description=words)) as connection:
        for step in steps:
            progress.update(task, description=f"writing {step.name}")
            kept = rows // _ITEMS_OF_BATCH if step.name == "batches" else rows
            for first in range(1, kept + 1, _FILL_ROWS):
                await _fill(connection, step, _KEPT, first, min(first + _FILL_ROWS - 1, kept))
    progress.remove_task(task)


async def _fill(connection: Connection, step: RetentionStep, at: str, first: int, last: int) -> None:
    """Write the rows of a step. Triggers, which count and publish row by row, are off in the session."""
    for statement in FILL[step.name]:
        await connection.execute(f"{statement.format(at=at)} from generate_series($1::bigint, $2) n", first, last)


def _tables(step: RetentionStep) -> list[str]:
    return [statement.split()[2] for statement in FILL[step.name]]


async def _compare(step: RetentionStep, empty: str, large: str, rows: int) -> RetentionFigure:
    """Erase the same expired rows in both databases, in turns."""
    async with _session(empty) as one, _session(large) as other:
        runs = [_Run(one, step), _Run(other, step)]
        for run in runs:
            await run.prepare(rows + 1)
        for measure, batches in (
            (_Run.erase, _WARM_BATCHES),
            (_Run.count_blocks, _COUNTED_BATCHES),
            (_Run.time, _TIMED_BATCHES),
        ):
            for _ in range(batches):
                for run in runs:
                    await measure(run)
        return RetentionFigure(step.name, step.batch_rows, *(run.cost() for run in runs))


class _Run:
    """A step in one of the databases, on a session of its own."""

    def __init__(self, connection: Connection, step: RetentionStep) -> None:
        self._connection = connection
        self._step = step
        self._pid = connection.get_server_pid()
        self._blocks: list[int] = []
        self._cpu_seconds: list[float] = []
        self._seconds: list[float] = []

    async def prepare(self, first: int) -> None:
        """Write the rows that expire, and leave a table as vacuum and a checkpoint do."""
        connection, step = self._connection, self._step
        async with transaction(connection):
            await connection.execute("set local session_replication_role = replica")
            await _fill(connection, step, _EXPIRED, first, first + _BATCHES * step.batch_rows - 1)
        await connection.execute(f"vacuum analyze {', '.join(_tables(step))}")
        await connection.execute("checkpoint")  # the first change of a page after it writes the whole page to the WAL

    async def erase(self) -> None:
        """Erase one batch.

        Raises: `FrontageError` when it erased fewer rows.
        """
        batch = await self._step.erase(self._connection, self._step.batch_rows)
        if batch.erased != self._step.batch_rows:
            raise FrontageError(f"a batch of {self._step.name} erased {batch.erased} rows of {self._step.batch_rows}")

    async def count_blocks(self) -> None:
        """Erase one batch and count its blocks."""
        async with transaction(self._connection), count_blocks(self._connection, self._blocks):
            await self.erase()

    async def time(self) -> None:
        """Erase one batch and time it."""
        cpu, began_at = self._cpu(), time.perf_counter()
        async with transaction(self._connection):
            await self.erase()
        self._seconds.append(time.perf_counter() - began_at)
        self._cpu_seconds.append(self._cpu() - cpu)

    def cost(self) -> Cost:
        """Return the medians."""
        return Cost(*(statistics.median(each) for each in (self._blocks, self._cpu_seconds, self._seconds)))

    def _cpu(self) -> float:
        """Return the CPU seconds that the session's backend has used.

        The first field of the file is nanoseconds on a core.
        """
        return int(Path(f"/proc/{self._pid}/schedstat").read_text().split()[0]) / 1e9


def _table(figures: Sequence[RetentionFigure], rows: int) -> Table:
    table = Table(title=f"Retention: a batch in an empty database → among {rows:,} rows, medians")
    for title in ("step", "rows erased", "blocks", "ratio", "CPU ms", "ratio", "ms", "ratio", f"goal ≤ {_GOAL}"):
        table.add_column(title, justify="left" if title == "step" else "right")
    for figure in figures:
        empty, large = figure.empty, figure.large
        table.add_row(
            *(figure.step, str(figure.batch_rows)),
            *(f"{empty.blocks:,.0f} → {large.blocks:,.0f}", f"{figure.ratio('blocks'):.2f}"),
            *(f"{empty.cpu_seconds * 1000:.1f} → {large.cpu_seconds * 1000:.1f}", f"{figure.ratio('cpu_seconds'):.2f}"),
            *(f"{empty.seconds * 1000:.1f} → {large.seconds * 1000:.1f}", f"{figure.ratio('seconds'):.2f}"),
            "met" if figure.is_met else "missed",
        )
    return table


if __name__ == "__main__":
    main()
