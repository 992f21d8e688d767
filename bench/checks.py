"""``python -m bench.checks``: how many DNS records one core checks in a second, with results stored.

A real authoritative server (Debian's ``knot``) and an embedded Postgres have core 1, a monitor's checks core 0: they
claim due domains, ask, decide, and write rows and evidence, as ever, only unpaced. Two rounds are measured: the first
checks, and routine ones. Then the odd domain: a tenth has lost a record, which the zone's own server has to confirm.
All of it is measured twice: with a TTL of a minute, and with one of a day, longer than the check interval, so that the
zone's own server is asked about every record. The goal is that this takes at most 2.5 × the CPU.
Where others use the cores too, the last column is what one would do by itself. The table is also written to
``bench/output/checks.json``.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from ipaddress import ip_network
from pathlib import Path
from random import Random
from typing import Any

import asyncpg
import orjson
from rich import box
from rich.console import Console
from rich.table import Table

from bench import output
from bench.lab.knot import Knot
from bench.peers import LOAD_CORE, PROXY_CORE
from bench.pinned import last_line, module
from common.addresses import AddressPolicy
from common.clock import SystemClock
from common.db.migrate import migrate
from common.db.pool import Database, open_pool
from common.errors import FrontageError, OperatorError
from common.host_ports import HostPort, parse_host_port
from common.postgres import EmbeddedPostgres
from common.processes import loop_factory, settle_garbage_collector
from monitor.checks.checking import Checking

GOAL_A_SECOND = 4000
_ZONE = "checks.example"
_APPLICATION = "app-bench"
_HOUR = 3600.0
_TTLS = (60, 86_400)
_GOAL_RATIO = 2.5
_ROUND_SECONDS = 300.0
_POLL_SECONDS = 0.05
_PAGE_COLUMNS = 132  # where there is no terminal to ask
_UNLIMITED = 1e9
_LOST = 10  # one domain in so many has lost a record
_KINDS = ("A", "TXT", "MX", "AAAA")


@dataclass(frozen=True, slots=True)
class Round:
    """The measurements of one round.

    `cpu_seconds` are the monitor's own, all its threads; `unknown` domains had a record that could not be asked.
    `zone_questions` went to the zone's own server besides those to the resolver.
    """

    name: str
    domains: int
    records: int
    seconds: float
    cpu_seconds: float
    unknown: int
    zone_questions: int

    @property
    def records_a_second(self) -> float:
        """Return the records checked in a second."""
        return self.records / self.seconds


def main() -> None:
    """Run the bench and print its rounds; with ``--work``, do the checks of one round."""
    arguments = _parse()
    try:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            if arguments.work:
                print(json.dumps(runner.run(_work(*arguments.work))))
                return
            measured = {ttl: runner.run(_measure(arguments.domains, arguments.records, ttl)) for ttl in arguments.ttl}
    except FrontageError as error:
        sys.exit(f"bench.checks: {error}")
    except KeyboardInterrupt:
        sys.exit(1)
    console = Console(soft_wrap=True, width=None if sys.stdout.isatty() else _PAGE_COLUMNS)
    for ttl, rounds in measured.items():
        console.print(_table(rounds, arguments.records, ttl))
    if len(measured) == 2:
        console.print(_comparison(*measured.values()))
    figures = [
        asdict(each) | {"ttl": ttl, "records_a_second": round(each.records_a_second)}
        for ttl, rounds in measured.items()
        for each in rounds
    ]
    console.print(f"written to {output.write('checks', {'rounds': figures})}")


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.checks", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--domains", type=int, default=20_000, help="monitored domains (20,000)")
    parser.add_argument("--records", type=int, default=2, choices=range(1, len(_KINDS) + 1), help="of each (2)")
    parser.add_argument("--ttl", type=int, nargs="+", default=_TTLS, help="seconds of each record (60 and 86400)")
    parser.add_argument("--work", nargs=2, metavar=("DSN", "SERVER"), help=argparse.SUPPRESS)
    return parser.parse_args()


def _comparison(first: list[Round], second: list[Round]) -> str:
    """Describe the CPU of the second measurement relative to the first."""
    ratios = [long.cpu_seconds / short.cpu_seconds for short, long in zip(first, second, strict=True)]
    verdict = "met" if max(ratios) <= _GOAL_RATIO else "missed"
    shown = ", ".join(f"{ratio:.2f}" for ratio in ratios)
    return f"CPU a record with the second TTL / with the first, by round: {shown} (goal ≤ {_GOAL_RATIO:g}: {verdict})"


def _table(rounds: list[Round], records: int, ttl_seconds: int) -> Table:
    title = f"record checks on one core, {records} records a domain, TTL {ttl_seconds:,} s"
    table = Table(title=title, box=box.SIMPLE)
    for column in (
        "round",
        "domains",
        "records",
        "seconds",
        "records/s",
        "goal",
        "unknown",
        "zone asked",
        "CPU a record",
        "a CPU second",
    ):
        table.add_column(column, justify="left" if column == "round" else "right")
    for each in rounds:
        is_met = each.records_a_second >= GOAL_A_SECOND
        table.add_row(
            each.name,
            f"{each.domains:,}",
            f"{each.records:,}",
            f"{each.seconds:.1f}",
            f"{each.records_a_second:,.0f}",
            f"{GOAL_A_SECOND:,} {'met' if is_met else 'missed'}",
            f"{each.unknown:,}",
            f"{each.zone_questions:,}",
            f"{each.cpu_seconds / each.records * 1e6:.0f} µs",
            f"{each.records / each.cpu_seconds:,.0f}",
        )
    return table


# The world --------------------------------------------------------------------------------------------------


async def _measure(domains: int, records: int, ttl_seconds: int) -> list[Round]:
    if not {PROXY_CORE, LOAD_CORE} <= os.sched_getaffinity(0):
        raise OperatorError("two cores are needed: one for the checks, one for everything else")
    os.sched_setaffinity(0, {LOAD_CORE})  # and so for Postgres and knot, our children
    with tempfile.TemporaryDirectory(prefix="frontage-checks-", ignore_cleanup_errors=True) as directory:
        postgres = EmbeddedPostgres(Path(directory))
        try:
            dsn = postgres.start()
            await migrate(dsn)
            async with Knot.serve({_ZONE: "\n".join(_zone_lines(domains, ttl_seconds))}) as knot:
                await _write_domains(dsn, domains, records)
                rounds = [await _round("first checks", dsn, knot.address, domains, records)]
                rounds.append(await _round("routine checks", dsn, knot.address, domains, records))
                await _lose(dsn)
                rounds.append(
                    await _round("routine checks, a tenth missing a record", dsn, knot.address, domains, records)
                )
                return rounds
        finally:
            postgres.stop()


def _zone_lines(domains: int, ttl_seconds: int) -> Iterator[str]:
    yield "@ NS ns\nns A 127.0.0.1"
    for number in range(domains):
        for kind in _KINDS:
            yield f"d{number} {ttl_seconds} {kind} {_value(number, kind)}"


def _value(number: int, kind: str) -> str:
    return {
        "A": f"192.0.2.{number % 256}",
        "AAAA": f"2001:db8::{number:x}",
        "TXT": f'"v=spf1 include:_spf{number}.mail.example -all"',
        "MX": f"10 mx{number}.mail.example.",
    }[kind]


def _records(number: int, count: int) -> list[dict[str, Any]]:
    return [{"type": kind, "host": f"d{number}", "value": _value(number, kind), "ttl": 300} for kind in _KINDS[:count]]


async def _write_domains(dsn: str, domains: int, records: int) -> None:
    now = datetime.now(UTC)
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute(
            "insert into applications (id, name, cname_target, client_secret, webhook_secret)"
            " values ($1, $1, $1, '', '')",
            _APPLICATION,
        )
        await connection.copy_records_to_table(
            "monitored_domains",
            columns=("id", "application_id", "domain", "subdomain", "dns_records", "date_added"),
            records=(
                (
                    *(f"mon_{number:024x}", _APPLICATION, _ZONE, f"d{number}"),
                    orjson.dumps(_records(number, records)).decode(),
                    now,
                )
                for number in range(domains)
            ),
        )
        await connection.execute("analyze monitored_domains, checks")
    finally:
        await connection.close()


async def _lose(dsn: str) -> None:
    """Let a tenth of the domains monitor an address that their name does not have."""
    connection = await asyncpg.connect(dsn)
    try:
        await connection.execute(
            "update monitored_domains set state = 'missing', records_missing = dns_records, records_present = '[]',"
            " dns_records = jsonb_set(dns_records, '{0,value}', '\"203.0.113.1\"')"
            f" where right(subdomain, 1) = '{_LOST % 10}'"
        )
    finally:
        await connection.close()


async def _round(name: str, dsn: str, server: HostPort, domains: int, records: int) -> Round:
    """Check every domain once in a process of its own, and return its measurements."""
    argv = module("bench.checks", "--work", dsn, str(server))
    measured = json.loads(await last_line(argv, core=PROXY_CORE, seconds=_ROUND_SECONDS))
    return Round(name, domains, domains * records, **measured)


# The work ---------------------------------------------------------------------------------------------------


async def _work(dsn: str, server: str) -> dict[str, Any]:
    """Check every domain once, and return how long it took."""
    address = parse_host_port(server)
    async with open_pool(dsn, size=8, application_name="frontage bench") as database:
        async with database.transaction() as connection:
            await connection.execute("update checks set due_at = now()")
        checking = Checking(
            database,
            SystemClock(),
            Random(1),
            servers=[address],
            policy=AddressPolicy((ip_network("127.0.0.0/8"),), ()),
            interval_seconds=_HOUR,
            base_url="https://frontage.example",
            on_events=lambda: None,
            authority_port=address.port,
            checks_per_second=_UNLIMITED,
        )
        settle_garbage_collector()  # as the role does
        began, cpu = time.perf_counter(), time.process_time()
        task = asyncio.create_task(checking.run(), name="checks")
        try:
            await _until_none_is_due(database)
        finally:
            task.cancel()
        seconds, cpu_seconds = time.perf_counter() - began, time.process_time() - cpu
        async with database.connection() as connection:
            unknown = await connection.fetchval("select count(*) from checks where attempts > 0")
            zone_questions = await connection.fetchval(
                "select count(*) from monitored_domains, jsonb_array_elements(evidence) as statement"
                " where statement->>'role' = 'authority'"
            )
        return {
            "seconds": seconds,
            "cpu_seconds": cpu_seconds,
            "unknown": unknown,
            "zone_questions": zone_questions,
        }


async def _until_none_is_due(database: Database) -> None:
    """Wait until no check is due."""
    while True:
        async with database.connection() as connection:
            if not await connection.fetchval("select exists (select from checks where due_at <= now())"):
                return
        await asyncio.sleep(_POLL_SECONDS)


if __name__ == "__main__":
    main()
