"""``python -m bench.certificate_faults``: certificates while everything goes wrong, for as long as you like.

Domains are secured, renewed, deleted and secured again through the API, while monitors die by SIGKILL, Postgres dies
and comes back, two of three edges die and come back, and the authority refuses, delays and drops requests at every
step, all at random. Each third domain does not lead here, each sixth is a wildcard besides: they are prepared, and
validated by DNS-01 in the zone that the first edge answers. With ``--lifetime`` certificates end soon, as six-day ones
do, and are renewed all the time. Then it becomes quiet, and must come to this: no domain lost; for each one valid
certificate, served by every edge; none that ended before its renewal; no order stuck; a ledger that agrees with what
Pebble saw. ``--seed`` repeats a run's choices, though not its timing. Needs Debian's ``pebble`` and ``unbound``.
"""

from __future__ import annotations

import argparse
import asyncio
import random
import sys
import tempfile
import time
from collections import Counter
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import aiohttp
from rich import box
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn
from rich.table import Table

from bench import output
from bench.certificate_world import CertificateWorld, certificate_world
from bench.certificates import pebble_orders
from bench.demo.walk_clients import NoAnswer
from bench.lab.pebble import is_installed
from bench.lab.unbound import find_unbound
from common.errors import DatabaseUnavailable, FrontageError, OperatorError
from common.names import WILDCARD, base_of, parse_enrollable
from common.processes import loop_factory

_DOMAINS = 60
_AWAY = "away"
"""The first label of domains that do not lead here."""
_EDGES = 3
_CHANGE_SECONDS = 0.2
_FAULT_SECONDS = 0.3
_DEATH_SECONDS = 8.0
_QUIET_SECONDS = 240.0
_STEPS = (
    "directory",
    "nonce",
    "account",
    "new order",
    "authorization",
    "challenge",
    "order",
    "finalize",
    "certificate",
)


@dataclass(slots=True)
class FaultRun:
    """The random choices of a run, and how often each kind of event happened."""

    chance: random.Random
    done: Counter[str] = field(default_factory=Counter)
    accepted: set[str] = field(default_factory=set)
    """The domains whose enrolment was accepted, and whose end was not asked for since."""
    lapsed: dict[str, str] = field(default_factory=dict)
    """The domains whose certificate in service was seen to have ended, and what their order waited for then."""

    def domain(self) -> str:
        """Choose a domain at random."""
        return _name(self.chance.randrange(_DOMAINS))


def _name(number: int) -> str:
    first = "shop" if number % 3 else _AWAY if number % 2 else f"{WILDCARD}{_AWAY}"
    return f"{first}.faults{number}.example"


def main() -> None:
    """Run the fault run and print what was found; exit with 1 if something is wrong."""
    arguments = _parse()
    console = Console(soft_wrap=True)
    if not is_installed():
        sys.exit("bench.certificate_faults: pebble is not installed: `apt-get install pebble`")
    if not find_unbound():
        sys.exit("bench.certificate_faults: unbound is not installed: `apt-get install unbound`")
    fault_run = FaultRun(random.Random(arguments.seed))
    console.print(f"seed {arguments.seed}")
    try:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            found = runner.run(_measure(console, fault_run, arguments))
    except FrontageError as error:
        sys.exit(f"bench.certificate_faults: {error}")
    except KeyboardInterrupt:
        sys.exit(1)
    console.print(_table(fault_run, found))
    path = output.write("certificate_faults", {"seed": arguments.seed, "done": dict(fault_run.done), "found": found})
    console.print(f"written to {path}")
    sys.exit(0 if all(is_right for _, is_right in found.values()) else 1)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.certificate_faults",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--minutes", type=float, default=5, help="how long things go wrong (5)")
    parser.add_argument("--seed", type=int, default=random.SystemRandom().randrange(10**6), help="for the same choices")
    parser.add_argument("--lifetime", type=int, metavar="SECONDS", help="of a certificate, such as 300 (years)")
    parser.add_argument(
        "--directory", type=Path, default=Path("/var/tmp"), help="where the database is made (/var/tmp)"
    )
    return parser.parse_args()


async def _measure(console: Console, fault_run: FaultRun, arguments: argparse.Namespace) -> dict[str, tuple[str, bool]]:
    """Let everything go wrong for the given time, wait until it is quiet, and return the findings."""
    columns = (TextColumn("{task.description}"), BarColumn(), TimeElapsedColumn())
    with (
        tempfile.TemporaryDirectory(
            prefix="frontage-faults-", dir=arguments.directory, ignore_cleanup_errors=True
        ) as name,
        Progress(*columns, console=console, transient=True) as progress,
    ):
        running = certificate_world(
            Path(name), edges=_EDGES, has_challenge_zone=True, lifetime_seconds=arguments.lifetime
        )
        async with running as world:
            for domain in filter(_is_away, map(_name, range(_DOMAINS))):
                await world.delegate(base_of(domain))
            until = time.monotonic() + arguments.minutes * 60
            task = progress.add_task("everything goes wrong", total=arguments.minutes * 60)
            async with asyncio.TaskGroup() as work:
                work.create_task(_change(world, fault_run, until))
                work.create_task(_refuse(world, fault_run, until))
                work.create_task(_kill(world, fault_run, until))
                while time.monotonic() < until:
                    progress.update(task, completed=arguments.minutes * 60 - (until - time.monotonic()))
                    await _look_for_lapsed(world, fault_run)
                    await asyncio.sleep(0.5)
            progress.update(task, description="it becomes quiet", total=None)
            world.ca.faults.clear()
            for monitor in world.monitors:
                await monitor.kill()
                await monitor.start()
            await _until_quiet(world)
            await _look_for_lapsed(world, fault_run)
            for monitor in world.monitors:
                await monitor.stop()
            return await _judge(world, fault_run)


def _is_away(domain: str) -> bool:
    return base_of(domain).startswith(f"{_AWAY}.")


# The faults ------------------------------------------------------------------------------------------------


async def _change(world: CertificateWorld, fault_run: FaultRun, until: float) -> None:
    """Enrol, change and remove domains as partners do. The API may answer that its database is unavailable."""
    while time.monotonic() < until:
        domain, what = fault_run.domain(), fault_run.chance.choices(("POST", "PUT", "DELETE"), (6, 2, 1))[0]
        path, body = "/ssl", {"domain": domain} | ({"applicationUrl": world.partner.origin} if what == "POST" else {})
        if _is_away(domain) and what != "PUT":
            path, body["product"] = "/domains/{}/prepare", "secure"
        if what == "DELETE":
            fault_run.accepted.discard(domain)
        with suppress(aiohttp.ClientError, TimeoutError):
            status, _ = await world.partner.ask(what, path.format(domain), body)
            fault_run.done[f"{what} {path}, {'accepted' if status == 200 else 'refused'}"] += 1
            if what == "POST" and status == 200:
                fault_run.accepted.add(domain)
        await asyncio.sleep(_CHANGE_SECONDS * fault_run.chance.random())


async def _refuse(world: CertificateWorld, fault_run: FaultRun, until: float) -> None:
    """Have the authority fail at random steps."""
    faults: tuple[dict[str, Any], ...] = (
        {"status": 503},
        {"status": 500},
        {"status": 429, "problem": "rateLimited", "headers": {"Retry-After": "1"}},
        {"drop": "before"},
        {"drop": "after"},
        {"delay_seconds": 2.0},
    )
    while time.monotonic() < until:
        step, fault = fault_run.chance.choice(_STEPS), fault_run.chance.choice(faults)
        world.ca.faults[:] = [each for each in world.ca.faults if each.times]
        world.ca.fail(step, **fault)  # type: ignore[arg-type]
        fault_run.done["faults of the authority"] += 1
        await asyncio.sleep(_FAULT_SECONDS * fault_run.chance.random())


async def _kill(world: CertificateWorld, fault_run: FaultRun, until: float) -> None:
    """Kill monitors, an edge and Postgres at random, and start them again."""
    while time.monotonic() < until:
        await asyncio.sleep(_DEATH_SECONDS * fault_run.chance.random())
        victim = fault_run.chance.choices(("a monitor", "an edge", "Postgres"), (6, 2, 1))[0]
        fault_run.done[f"deaths of {victim}"] += 1
        if victim == "Postgres":
            await world.restart_postgres()
            continue
        process = fault_run.chance.choice(world.monitors if victim == "a monitor" else world.edges[1:])
        await process.kill()
        while True:  # Postgres may be away just then
            try:
                await process.start()
                break
            except OperatorError:
                await process.kill()
                await asyncio.sleep(0.5)


async def _look_for_lapsed(world: CertificateWorld, fault_run: FaultRun) -> None:
    """Note the domains whose certificate in service has ended."""
    with suppress(DatabaseUnavailable):
        async with world.database.connection() as connection:
            rows = await connection.fetch(
                "select domain, attempts, last_error, extract(epoch from due_at - now())::int as seconds"
                " from certificates join orders using (domain) where released_at is null and not_after < now()"
            )
        for row in rows:
            words = f"attempt {row['attempts']} in {row['seconds']} s: {row['last_error']}"
            fault_run.lapsed.setdefault(row["domain"], words)


# What came of it -------------------------------------------------------------------------------------------


async def _until_quiet(world: CertificateWorld) -> None:
    """Wait until no order is under way.

    Raises: `OperatorError` when orders are stuck.
    """
    deadline = time.monotonic() + _QUIET_SECONDS
    busy = 0
    while time.monotonic() < deadline:
        with suppress(DatabaseUnavailable):
            async with world.database.transaction() as connection:
                await connection.execute(
                    "update orders set due_at = now()"
                    " where state <> 'issued' and lease_until is null and due_at > now()"
                )
                await connection.execute(
                    "update preparations set due_at = now() where state = 'waiting' and lease_until is null"
                )
                busy = await connection.fetchval(
                    "select (select count(*) from preparations where state in ('waiting', 'issuing')) + count(*)"
                    " from orders left join certificates"
                    " on certificates.domain = orders.domain and released_at is null"
                    " where state <> 'issued' or lease_until is not null or live_at is null or live_at < issued_at"
                )
            if not busy:
                return
        await asyncio.sleep(1)
    raise OperatorError(f"{busy} orders are not at rest after {_QUIET_SECONDS:g} seconds")


async def _judge(world: CertificateWorld, fault_run: FaultRun) -> dict[str, tuple[str, bool]]:
    """Return, for each question, what was found and whether it is right."""
    async with world.database.connection() as connection:
        enrolled = {row["domain"] for row in await connection.fetch("select domain from domains")}
        valid = [
            row["domain"]
            for row in await connection.fetch(
                "select domain from certificates where released_at is null and not_after > now()"
            )
        ]
        rows = await connection.fetch("select state, count(*) as n from ca_ledger where kind = 'order' group by state")
        states = {row["state"]: row["n"] for row in rows}
    served = 0
    for domain in sorted(enrolled):
        for edge in range(len(world.edges)):
            with suppress(NoAnswer):
                served += (await world.visitor(edge).get(parse_enrollable(domain).visited_host)).status == 200
    made, counted, placed = pebble_orders(world), sum(states.values()), states.get("placed", 0)
    return {
        "domains that were accepted, and lost": (
            f"{len(fault_run.accepted)} and {len(fault_run.accepted - enrolled)}",
            fault_run.accepted <= enrolled,
        ),
        "certificates that ended before their renewal": (
            "; ".join(f"{domain}: {words}" for domain, words in fault_run.lapsed.items()) or "0",
            not fault_run.lapsed,
        ),
        "domains enrolled, and valid certificates": (
            f"{len(enrolled)} and {len(valid)}",
            sorted(valid) == sorted(enrolled),
        ),
        "… served by each of the edges": (
            f"{served} of {len(enrolled) * len(world.edges)}",
            served == len(enrolled) * len(world.edges),
        ),
        "orders Pebble made; the ledger: placed, and in all": (
            f"{made}; {placed}, and {counted}",
            placed <= made <= counted,
        ),
    }


def _table(fault_run: FaultRun, found: dict[str, tuple[str, bool]]) -> Table:
    table = Table(title="Certificates while everything goes wrong", box=box.SIMPLE_HEAD)
    for title in ("", "", ""):
        table.add_column(title)
    for what, times in sorted(fault_run.done.items()):
        table.add_row(what, f"{times:,}", "")
    for what, (seen, is_right) in found.items():
        table.add_row(what, seen, "[green]right[/]" if is_right else "[red]wrong[/]")
    return table


if __name__ == "__main__":
    main()
