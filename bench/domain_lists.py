"""``python -m bench.domain_lists``: every list that the API and the dashboard have, in a small and in a large database.

Two embedded servers: one with 10,000 rows of each table, one with ``--rows`` (`bench.rows`): half of them are one
application's, the rest 20,000 others'. Read are parts and pages of the lists, from the beginning and from random
places, in turns, one here and one there, each with a connection of a pool, without HTTP, all on one core. Three
figures each:

    blocks      that a part asks for: they do not depend on the machine. An index of millions of rows has three or four
                levels where a small one has one, so that the same rows take several times the blocks
    warm ms     the same parts again and again, in turns with the small database: goal 1.5 × its time where a list is
                no search
    p99 ms      of parts from places that were not read before: goal 100 ms

``--lists`` measures those whose name holds the text, ``--tables`` writes some tables only. A million rows of each take
about ten minutes and 7 GB of disk (in ``--directory``). The table is also written to
``bench/output/domain_lists.json``.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from random import Random

from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from api.cli.database import prepare
from bench import output, rows
from bench.blocks import count_blocks
from bench.private_stage import private_environment
from bench.process_tree import pin_all
from common import logs
from common.db import applications, audit, deliveries, domain_list, domain_pages, domains, events, monitored_domains
from common.db.domain_list import SORTS, STATUSES, ListKey, Product, Wanted
from common.db.pool import Connection, Database, open_pool
from common.errors import FrontageError
from common.postgres import EmbeddedPostgres
from common.processes import loop_factory
from common.settings import load

_SMALL_ROWS = 10_000  # the fewest of which each list shows whole parts
_TABLES = ("domains", "certificates", "monitored_domains", "events", "deliveries", "audit")
_GOAL_SECONDS = 0.1
_GOAL_RATIO = 1.5
_LIMIT = 50
_COUNTED = 12
_TIMED = 60
_REPEATED = 6

Read = Callable[["ListPlace"], Awaitable[ListKey | None]]


@dataclass(slots=True)
class ListPlace:
    """Where to read: a random place of the list, or after what was read last. `rows` are the table's."""

    connection: Connection
    random: Random
    rows: int
    after: ListKey | None

    def event_id(self) -> str:
        return f"evt_{self.random.randrange(1, self.rows + 1):034x}"

    def entry_id(self) -> str:
        return f"aud_{self.random.randrange(1, self.rows + 1):034x}"

    def offset(self) -> int:
        return self.random.randrange(self.rows // 2)


@dataclass(frozen=True, slots=True)
class ListCase:
    """`is_search`: that it reads more among more names is no fault, as long as it is bounded."""

    name: str
    read: Read
    is_search: bool = False


@dataclass(slots=True)
class ListCost:
    """`seconds` are of places that were not read before, `warm_seconds` of those whose `blocks` were counted."""

    blocks: list[int] = field(default_factory=list)
    warm_seconds: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    @property
    def p99(self) -> float:
        ordered = sorted(self.seconds)
        return ordered[-(-len(ordered) * 99 // 100) - 1]


@dataclass(frozen=True, slots=True)
class ListFigure:
    case: ListCase
    small: ListCost
    large: ListCost

    @property
    def blocks_ratio(self) -> float:
        return statistics.median(self.large.blocks) / max(1, statistics.median(self.small.blocks))

    @property
    def time_ratio(self) -> float:
        return statistics.median(self.large.warm_seconds) / statistics.median(self.small.warm_seconds)

    @property
    def is_met(self) -> bool:
        return self.large.p99 <= _GOAL_SECONDS and (self.case.is_search or self.time_ratio <= _GOAL_RATIO)


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.domain_lists", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1_000_000, help="rows of each table (1,000,000)")
    parser.add_argument("--lists", default="", help="measure those whose name holds this text (all)")
    parser.add_argument("--tables", nargs="+", choices=_TABLES, default=_TABLES, help="write these only (all)")
    parser.add_argument("--directory", type=Path, help="where the databases are made (TMPDIR)")
    arguments = parser.parse_args()
    console = Console(soft_wrap=True, width=None if sys.stdout.isatty() else 140)
    logs.configure("bench", level="warning")
    try:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            figures = runner.run(
                _measure(console, arguments.rows, arguments.lists, arguments.tables, arguments.directory)
            )
    except FrontageError as error:
        sys.exit(f"bench.domain_lists: {error}")
    except KeyboardInterrupt:
        sys.exit(1)
    console.print(table(figures, arguments.rows))
    written = [
        {"name": each.case.name, "small": asdict(each.small), "large": asdict(each.large), "met": each.is_met}
        for each in figures
    ]
    console.print(f"written to {output.write('domain_lists', {'rows': arguments.rows, 'figures': written})}")


async def _measure(
    console: Console, count: int, text: str, tables: Sequence[str], directory: Path | None
) -> list[ListFigure]:
    counts = (_SMALL_ROWS, count)
    with ExitStack() as servers, Progress(console=console, transient=True) as progress:
        dsns = []
        for each in counts:
            name = tempfile.TemporaryDirectory(prefix="frontage-bench-", dir=directory, ignore_cleanup_errors=True)
            state_dir = Path(servers.enter_context(name))
            postgres = EmbeddedPostgres(state_dir)
            servers.callback(postgres.stop)
            dsns.append(postgres.start())
            await prepare(load(private_environment(state_dir)))
            numbers = progress.track(rows.chunks(each, tables), description=f"writing {each:,} rows of each table")
            await rows.fill(dsns[-1], each, iter(numbers), console.log, tables)
        return await measure(dsns, counts, [case for case in cases() if text in case.name], progress)


async def measure(
    dsns: Sequence[str], counts: Sequence[int], chosen: Sequence[ListCase], progress: Progress
) -> list[ListFigure]:
    """Each case in both databases, in turns."""
    async with AsyncExitStack() as stack:
        pools = [
            await stack.enter_async_context(open_pool(dsn, size=2, application_name="frontage bench")) for dsn in dsns
        ]
        pin_all()
        tracked = progress.track(chosen, description="reading lists")
        return [await _compare(case, pools, counts) for case in tracked]


async def _compare(case: ListCase, pools: Sequence[Database], counts: Sequence[int]) -> ListFigure:
    costs = (ListCost(), ListCost())
    reading = [
        _read_on(case, pool, rows_there, cost) for pool, rows_there, cost in zip(pools, counts, costs, strict=True)
    ]
    for _ in range((1 + _REPEATED) * _COUNTED + _TIMED):
        for one in reading:
            await anext(one)
    return ListFigure(case, *costs)


async def _read_on(case: ListCase, database: Database, count: int, cost: ListCost) -> AsyncIterator[None]:
    """Some parts with their blocks counted, the same ones timed, several times, and then others timed. One part follows
    the other, each third is at a random place of the list."""
    for seed, parts, measure, measured in (
        (1, _COUNTED, count_blocks, cost.blocks),
        *[(1, _COUNTED, _time, cost.warm_seconds)] * _REPEATED,
        (2, _TIMED, _time, cost.seconds),
    ):
        random, following = Random(seed), None
        for number in range(parts):
            async with database.transaction() as connection:
                if number % 3 == 1:
                    following = await _any_key(connection, random)
                place = ListPlace(connection, random, count, following)
                async with measure(connection, measured):  # type: ignore[operator]
                    following = await case.read(place)
            yield


@asynccontextmanager
async def _time(_connection: Connection, seconds: list[float]) -> AsyncIterator[None]:
    began = time.perf_counter()
    yield
    seconds.append(time.perf_counter() - began)


async def _any_key(connection: Connection, random: Random) -> ListKey | None:
    row = await connection.fetchrow(
        "select domain, created_at, active_until, is_active from domains where application_id = $1"
        " and product = 'power' and domain > $2 order by domain limit 1",
        rows.LARGE,
        f"d{random.randrange(256):02x}",
    )
    if row is None:
        return None
    return ListKey(row["domain"], "power", rows.LARGE, row["created_at"], row["active_until"], row["is_active"])


# The lists --------------------------------------------------------------------------------------------------------


def cases() -> list[ListCase]:
    return [*_parts(), *_of_many_applications(), *_pages(), *_event_logs(), *_audit_logs(), *_totals()]


def _parts() -> Iterator[ListCase]:
    """Of one application as the API and the dashboard list it, and of all, as operators see them."""
    for shown, ids, product in (
        ("GET /power", [rows.LARGE], "power"),
        ("GET /ssl", [rows.LARGE], "secure"),
        ("GET /monitor/domains", [rows.LARGE], "monitor"),
        ("dashboard", [rows.LARGE], None),
        ("operators", None, None),
        ("operators, Secure", None, "secure"),
    ):
        every = Wanted(ids, product=_product(product), limit=_LIMIT)
        for sort in SORTS:
            if shown.startswith("GET") and "status" in sort:
                continue
            for status in (None, *STATUSES):
                name = f"{shown}, by {sort}" + (f", {status}" if status else "")
                yield ListCase(name, _part(replace(every, sort=sort, status=status)))
        for text in ("example", "shop", "rare", "absent"):
            for sort in ("name", "-added", "expiry", "status"):
                name = f"{shown}, search {text}, by {sort}"
                yield ListCase(name, _part(replace(every, text=text, sort=sort)), is_search=True)
        yield ListCase(
            f"{shown}, search shop, active", _part(replace(every, text="shop", status="active")), is_search=True
        )


def _of_many_applications() -> Iterator[ListCase]:
    """Of a partner with many applications, in the dashboard."""
    for most in (10, rows.PARTNERS):
        partner = f"partner of {most:,}"
        for sort in ("name", "-added", "expiry", "status"):
            wanted = Wanted([], sort=sort, limit=_LIMIT)
            yield ListCase(f"{partner}, by {sort}", _part_of_partner(wanted, most))
        for status in STATUSES:
            yield ListCase(f"{partner}, {status}", _part_of_partner(Wanted([], status=status, limit=_LIMIT), most))
        for text in ("shop", "rare", "absent"):
            wanted = Wanted([], text=text, limit=_LIMIT)
            yield ListCase(f"{partner}, search {text}", _part_of_partner(wanted, most), is_search=True)


def _part(wanted: Wanted) -> Read:
    async def read(place: ListPlace) -> ListKey | None:
        return (await domain_list.list_part(place.connection, replace(wanted, after=place.after))).next

    return read


def _part_of_partner(wanted: Wanted, most: int) -> Read:
    async def read(place: ListPlace) -> ListKey | None:
        ids = await applications.list_visible_ids(place.connection, [rows.ORGANISATION], most=most)
        wanted_now = replace(wanted, applications=ids, after=place.after)
        return (await domain_list.list_part(place.connection, wanted_now)).next

    return read


def _pages() -> Iterator[ListCase]:
    """By number, as the specification has them."""

    def of_product(product: domains.Product, status: domains.Status | None) -> Read:
        async def read(place: ListPlace) -> None:
            await domain_pages.list_page(
                place.connection, rows.LARGE, product, status, offset=place.offset(), limit=_LIMIT
            )

        return read

    async def of_monitor(place: ListPlace) -> None:
        await monitored_domains.list_page(place.connection, rows.LARGE, offset=place.offset(), limit=_LIMIT, dates=None)

    for path, product in (("GET /power", "power"), ("GET /ssl", "secure")):
        for status in (None, "active", "inactive"):
            name = f"{path}?page=N" + (f"&status={status}" if status else "")
            yield ListCase(name, of_product(product, status))  # type: ignore[arg-type]
    yield ListCase("GET /monitor/domains?offset=N", of_monitor)


def _event_logs() -> Iterator[ListCase]:
    """Events and deliveries, which go back in time."""

    def of_events(event_type: str | None, *, with_domain: bool = False) -> Read:
        async def read(place: ListPlace) -> None:
            key = await _any_key(place.connection, place.random) if with_domain else None
            await events.list_events(
                place.connection,
                rows.LARGE,
                before=place.event_id(),
                limit=_LIMIT,
                event_type=event_type,
                domain=key.name if key else None,
            )

        return read

    def of_deliveries(status: deliveries.Status | None) -> Read:
        async def read(place: ListPlace) -> None:
            await deliveries.list_deliveries(
                place.connection, rows.LARGE, before=place.event_id(), limit=_LIMIT, status=status
            )

        return read

    yield ListCase("GET /events", of_events(None))
    for event_type in ("domain.power", "domain.flow.completed", "webhook.test"):
        yield ListCase(f"GET /events?type={event_type}", of_events(event_type))
    yield ListCase("GET /events?domain=…", of_events(None, with_domain=True))
    for delivery in (None, "delivered", "failed", "pending"):
        suffix = f"?status={delivery}" if delivery else ""
        yield ListCase(f"GET /deliveries{suffix}", of_deliveries(delivery))


def _audit_logs() -> Iterator[ListCase]:
    def of_audit(application_id: str | None, organisations: list[str] | None, by: str = "") -> Read:
        async def read(place: ListPlace) -> None:
            key = await _any_key(place.connection, place.random) if by == "subject" else None
            await audit.list_entries(
                place.connection,
                before=place.entry_id(),
                limit=_LIMIT,
                application_id=application_id,
                organisation_ids=organisations,
                subject=key.name if key else None,
                request_id=place.entry_id().removeprefix("aud_")[2:] if by == "request" else None,
            )

        return read

    for who, application_id, organisations in (
        ("GET /audit", rows.LARGE, None),
        ("audit of a partner", None, [rows.ORGANISATION]),
        ("audit of all", None, None),
    ):
        for by in ("", "subject", "request"):
            yield ListCase(f"{who}, by {by}" if by else who, of_audit(application_id, organisations, by))


def _totals() -> Iterator[ListCase]:
    def of(ids: Sequence[str] | None) -> Read:
        async def read(place: ListPlace) -> None:
            await domain_list.count_domains(place.connection, ids)

        return read

    yield ListCase("totals of an application", of([rows.LARGE]))
    yield ListCase("totals of a partner of 1,000", of([f"bench-{n}" for n in range(1, rows.PARTNERS + 1)]))
    yield ListCase("totals of all", of(None))


def _product(text: str | None) -> Product | None:
    return next((each for each in domain_list.PRODUCTS if each == text), None)


def table(figures: Sequence[ListFigure], count: int) -> Table:
    shown = Table(title=f"Parts of {_LIMIT} in a database of {_SMALL_ROWS:,} → {count:,} rows of each table, medians")
    goal = f"≤ {_GOAL_SECONDS * 1000:.0f} ms, ≤ {_GOAL_RATIO} ×"
    for column in ("list", "blocks", "ratio", "warm ms", "ratio", "p99 ms", goal):
        shown.add_column(column, justify="left" if column == "list" else "right")
    for each in figures:
        small, large = each.small, each.large
        shown.add_row(
            each.case.name,
            f"{statistics.median(small.blocks):,.0f} → {statistics.median(large.blocks):,.0f}",
            f"{each.blocks_ratio:.2f}",
            f"{statistics.median(small.warm_seconds) * 1000:.1f} → {statistics.median(large.warm_seconds) * 1000:.1f}",
            f"{each.time_ratio:.2f}",
            f"{large.p99 * 1000:.1f}",
            "met" if each.is_met else "missed",
        )
    met = sum(each.is_met for each in figures)
    shown.caption = f"{met} of {len(figures)} met"
    return shown


if __name__ == "__main__":
    main()
