"""``python -m bench.domain_lists``: every order, filter and search of the lists of domains among a million rows.

An embedded Postgres with one application that has so many powered domains, a tenth as many secured and a tenth as many
monitored ones; ``--others`` adds rows of 1,000 other applications. Measured are the parts that ``GET /power`` and the
dashboard read, from the beginning and from random places of the list, each with a connection of a pool, without HTTP.
A million rows take about three minutes and 3 GB of disk (``--directory`` says where). The table is also written to
``bench/output/domain_lists.json``.
"""

from __future__ import annotations

import argparse
import asyncio
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from random import Random

import asyncpg
from rich.console import Console
from rich.progress import Progress
from rich.table import Table

from bench import output
from bench.figures import Figure
from bench.private_stage import private_environment
from common import logs
from common.cli.database import prepare
from common.db import domain_list
from common.db.domain_list import SORTS, STATUSES, Key, Product, Wanted
from common.db.pool import Database, open_pool
from common.errors import FrontageError
from common.postgres import EmbeddedPostgres
from common.processes import loop_factory
from common.settings import load

_APPLICATION = "big"
_OTHERS = 1_000
_CHUNK = 50_000
_SECONDS = 900.0
_GOAL_SECONDS = 0.1
_TIMES = 60

_APPLICATIONS = """
    insert into applications (id, name, cname_target, client_secret, webhook_secret)
    select id, id, id || '.example', '', '' from (select $1 union all
        select 'other-' || n from generate_series(0, $2::int - 1) n) each_one (id)
"""
# One name in fifty holds "shop", one in 200,000 of the large application and one in ten of the others "rare".
_NAME = """case when n % 50 = 0 then 'shop-' when n % 200000 = 7 or application <> $1 and n % 10 = 3 then 'rare-'
    else 'd' end || md5(n::text) || '.' || application || '.example'"""
_OF_EACH = """
    generate_series($2::int, $3::int) n
    cross join lateral (select case when $4::int > 0 then 'other-' || n % $4::int else $1 end as application) owner
    cross join lateral (select now() - interval '730 days' * random() as added) age
"""
_DOMAINS = f"""
    insert into domains (domain, product, application_id, application_url, created_at, departed_at, active_until,
        is_active)
    select {_NAME}, product, application, 'https://origin.example', added, case when n % 30 = 0 then now() end,
        case when n % 30 = 0 then '-infinity' when n % 7 = 0 then 'infinity' else now() + n % 90 * interval '1 day'
            + interval '1 hour' end, n % 30 > 0
    from {_OF_EACH} cross join unnest(case n % 10 when 0 then array['power', 'secure'] else array['power'] end) product
"""
_CERTIFICATES = f"""
    insert into certificates (domain, application_id, issuer, chain, private_key, not_before, not_after, live_at)
    select {_NAME}, application, 'bench', '', '', now(), now() + n % 90 * interval '1 day' + interval '1 hour', now()
    from {_OF_EACH} where n % 7 > 0
"""
_MONITORED = """
    insert into monitored_domains (id, application_id, domain, date_added, dns_records, state)
    select 'mon_' || application || n, application, 'm' || md5(n::text) || '.example', added, '[]',
        case n % 40 when 0 then 'missing' when 1 then 'unchecked' else 'present' end
    from generate_series($2::int, $3::int) n
    cross join lateral (select case when $4::int > 0 then 'other-' || n % $4::int else $1 end as application) owner
    cross join lateral (select now() - interval '730 days' * random() as added) age
    where n % 10 = 0
"""


@dataclass(frozen=True, slots=True)
class Case:
    name: str
    wanted: Wanted


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m bench.domain_lists", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--rows", type=int, default=1_000_000, help="powered domains of the application (1,000,000)")
    parser.add_argument("--others", type=int, default=0, help="powered domains of other applications (0)")
    parser.add_argument("--directory", type=Path, help="where the database is made (TMPDIR)")
    arguments = parser.parse_args()
    console = Console(soft_wrap=True, width=None if sys.stdout.isatty() else 120)
    logs.configure("bench", level="warning")
    try:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            figures = runner.run(_measure(console, arguments.rows, arguments.others, arguments.directory))
    except FrontageError as error:
        sys.exit(f"bench.domain_lists: {error}")
    except KeyboardInterrupt:
        sys.exit(1)
    console.print(_table(figures, arguments.rows, arguments.others))
    written = [{"name": each.name, "median_seconds": each.median, "p99_seconds": each.p99} for each in figures]
    path = output.write("domain_lists", {"rows": arguments.rows, "others": arguments.others, "figures": written})
    console.print(f"written to {path}")


async def _measure(console: Console, count: int, others: int, directory: Path | None) -> list[Figure]:
    with (
        tempfile.TemporaryDirectory(prefix="frontage-domain-lists-", dir=directory, ignore_cleanup_errors=True) as name,
        Progress(console=console, transient=True) as progress,
    ):
        settings = private_environment(Path(name))
        postgres = EmbeddedPostgres(Path(name))
        try:
            dsn = postgres.start()
            await prepare(load(settings))
            numbers = progress.track(range(_chunks(count) + _chunks(others)), description="writing rows")
            await _write(dsn, count, others, iter(numbers))
            async with open_pool(dsn, size=2, application_name="frontage bench") as database:
                cases = progress.track(_cases(), description="reading lists")
                return [await _time(database, case, count) for case in cases]
        finally:
            postgres.stop()


# The rows ---------------------------------------------------------------------------------------------------------


def _chunks(count: int) -> int:
    return -(-count // _CHUNK)


async def _write(dsn: str, count: int, others: int, track: Iterator[int]) -> None:
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute("set session_replication_role = replica")  # no triggers: no feed, no tallies
        await connection.execute(_APPLICATIONS, _APPLICATION, _OTHERS)
        for number in track:
            of_others = _OTHERS if number >= _chunks(count) else 0
            first = (number - (_chunks(count) if of_others else 0)) * _CHUNK
            last = min(others if of_others else count, first + _CHUNK)
            for statement in (_DOMAINS, _CERTIFICATES, _MONITORED):
                await connection.execute(statement, _APPLICATION, first + 1, last, of_others, timeout=_SECONDS)
        await connection.execute("vacuum (analyze)", timeout=_SECONDS)
        await connection.execute("checkpoint", timeout=_SECONDS)
    finally:
        await connection.close()


# The lists --------------------------------------------------------------------------------------------------------


def _cases() -> list[Case]:
    """Of one application as ``GET /power`` and the dashboard list it, and of all, as operators see them."""
    cases = []
    for shown, applications, product in (
        ("GET /power", [_APPLICATION], "power"),
        ("GET /monitor/domains", [_APPLICATION], "monitor"),
        ("dashboard", [_APPLICATION], None),
        ("operators", None, None),
    ):
        every = Wanted(applications, product=_product(product), limit=50)
        for sort in SORTS:
            if shown.startswith("GET") and "status" in sort:
                continue
            cases.append(Case(f"{shown}, by {sort}", replace(every, sort=sort)))
            cases += [
                Case(f"{shown}, by {sort}, {status}", replace(every, sort=sort, status=status)) for status in STATUSES
            ]
        for text in ("example", "shop", "rare", "absent"):
            cases.append(Case(f"{shown}, search {text}", replace(every, text=text)))
            cases.append(Case(f"{shown}, search {text}, by -added", replace(every, text=text, sort="-added")))
    return cases


def _product(text: str | None) -> Product | None:
    return next((each for each in domain_list.PRODUCTS if each == text), None)


async def _time(database: Database, case: Case, count: int) -> Figure:
    """Parts one after the other, each third from a random place of the list."""
    random, seconds = Random(1), list[float]()
    following: Key | None = None
    for number in range(_TIMES):
        if number % 3 == 1:
            following = await _place(database, random, count) if case.wanted.product != "monitor" else None
        async with database.connection() as connection:
            began = time.perf_counter()
            part = await domain_list.list_part(connection, replace(case.wanted, after=following))
            seconds.append(time.perf_counter() - began)
        following = part.next
    return Figure(case.name, f"≤ {_GOAL_SECONDS * 1000:.0f} ms", seconds)


async def _place(database: Database, random: Random, count: int) -> Key:
    async with database.connection() as connection:
        prefix = f"d{random.randrange(256):02x}"
        row = await connection.fetchrow(
            "select domain, created_at, active_until, is_active from domains where application_id = $1"
            " and product = 'power' and domain > $2 order by domain limit 1",
            _APPLICATION,
            prefix,
        )
    assert row is not None, count
    return Key(row["domain"], "power", _APPLICATION, row["created_at"], row["active_until"], row["is_active"])


def _table(figures: Sequence[Figure], count: int, others: int) -> Table:
    table = Table(title=f"Parts of 50 among {count:,} domains, {others:,} of other applications beside them")
    for column in ("list", "median", "p99", f"goal ≤ {_GOAL_SECONDS * 1000:.0f} ms"):
        table.add_column(column, justify="left" if column == "list" else "right")
    for figure in figures:
        verdict = "met" if figure.p99 <= _GOAL_SECONDS else "missed"
        table.add_row(figure.name, f"{figure.median * 1000:.1f} ms", f"{figure.p99 * 1000:.1f} ms", verdict)
    return table


if __name__ == "__main__":
    main()
