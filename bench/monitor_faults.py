"""``python -m bench.monitor_faults``: the monitor while everything around it fails, and what it got wrong.

Two resolvers lie (NXDOMAIN to every tenth question), fail, stay silent and truncate, and now and then one of them is
gone for seconds; the zones' own servers fail too, but do not lie. Two monitors check and deliver, and are killed with
SIGKILL at random moments, as is Postgres. A webhook sink answers some deliveries with errors. Meanwhile records of some
domains go and come back; most domains never lose anything. Printed in the end, each of which should be 0:

    false alarms        events that name a record missing which was there, or restored while one was not
    missed transitions  losses and returns that were not told in time
    lost webhooks       events that never arrived at the sink, though nothing superseded them

Seeded: ``--seed`` repeats the faults drawn, though not their timing. Bounded: ``--minutes`` and what settling takes.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_network
from pathlib import Path
from random import Random
from typing import Any

from aiohttp import web
from rich.console import Console
from rich.table import Table

from bench import output
from bench.lab.faulty_dns import Faults, FaultyServer
from bench.lab.sink import Delivery, WebhookSink
from bench.lab.zone import Zone
from bench.pinned import module
from common import applications as minting
from common.addresses import AddressPolicy
from common.claims import Runner
from common.clock import SystemClock
from common.db import applications, deliveries, monitored_domains
from common.db.listener import Listener
from common.db.migrate import migrate
from common.db.monitored_domains import Key, Labels
from common.db.pool import Database, open_pool
from common.dns import Resolver
from common.errors import DatabaseUnavailable, FrontageError
from common.postgres import EmbeddedPostgres
from common.processes import exited, loop_factory, spawn
from common.records import Record
from common.secrets import Keyring, load_keyring
from common.settings import HostPort, parse_host_port
from monitor.checks.checking import Checking
from monitor.webhooks.deliveries import make_runner
from monitor.webhooks.sender import Sender

_ADDRESS = "192.0.2.1"
_NAME_SERVER = "ns.faults.example"
_INTERVAL_SECONDS = 3.0
_MONITORS = 2
_KILL_SECONDS = (1.0, 5.0)
_OUTAGE_SECONDS = 4.0
_TOLD_SECONDS = 90.0  # within which a loss or a return has to be told, faults and all
_CHECK_SECONDS = 30.0  # longer than any check takes: what it saw may be so old
_SETTLE_SECONDS = 60.0
_POLL_SECONDS = 0.05
_SINK_ERRORS = 0.1
_LOOPBACK = AddressPolicy((ip_network("127.0.0.0/8"),), ())

RESOLVERS = Faults(lies=0.1, failures=0.05, silence=0.05, truncated=0.02)
AUTHORITY = Faults(failures=0.05, silence=0.05)


@dataclass(slots=True)
class Counts:
    """What happened, and above all what went wrong."""

    seconds: float = 0.0
    answers: int = 0
    faulty_answers: int = 0
    monitors_killed: int = 0
    databases_killed: int = 0
    resolver_outages: int = 0
    losses: int = 0
    returns: int = 0
    events: int = 0
    webhooks: int = 0
    superseded: int = 0
    false_alarms: int = 0
    missed_transitions: int = 0
    lost_webhooks: int = 0
    details: list[str] = field(default_factory=list)

    @property
    def wrong(self) -> int:
        return self.false_alarms + self.missed_transitions + self.lost_webhooks


def main() -> None:
    arguments = _parse()
    try:
        with asyncio.Runner(loop_factory=loop_factory()) as runner:
            if arguments.monitor:
                runner.run(_be_a_monitor(json.loads(arguments.monitor)))
                return
            counts = runner.run(
                run(
                    seconds=60 * arguments.minutes,
                    domains=arguments.domains,
                    changing=arguments.changing,
                    seed=arguments.seed,
                )
            )
    except FrontageError as error:
        sys.exit(f"bench.monitor_faults: {error}")
    except KeyboardInterrupt:
        sys.exit(1)
    console = Console(soft_wrap=True)
    console.print(_table(counts))
    for detail in counts.details:
        console.print(detail, highlight=False)
    console.print(f"written to {output.write('monitor_faults', asdict(counts))}")
    sys.exit(1 if counts.wrong else 0)


def _parse() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        prog="python -m bench.monitor_faults",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--minutes", type=float, default=3.0, help="how long everything fails (3)")
    parser.add_argument("--domains", type=int, default=150, help="monitored domains, of two records each (150)")
    parser.add_argument("--changing", type=int, default=20, help="of them those whose records go and come back (20)")
    parser.add_argument("--seed", type=int, default=1, help="of the faults (1)")
    parser.add_argument("--monitor", help=argparse.SUPPRESS)
    return parser.parse_args()


def _table(counts: Counts) -> Table:
    table = Table(title="the monitor under faults", show_header=False)
    table.add_column(justify="right")
    for name, value in asdict(counts).items():
        if name != "details":
            table.add_row(f"{value:,.0f}", name.replace("_", " "))
    return table


# The world --------------------------------------------------------------------------------------------------


@dataclass
class World:
    """Everything around the monitors. `absent` says when which name was not there; the last stay may not have ended."""

    zone: Zone
    resolvers: list[FaultyServer]
    authority: FaultyServer
    sink: WebhookSink
    postgres: EmbeddedPostgres
    dsn: str
    state_dir: Path
    random: Random
    counts: Counts
    application_id: str = ""
    absent: dict[str, list[tuple[datetime, datetime | None]]] = field(default_factory=dict)
    monitors: list[subprocess.Popen[bytes]] = field(default_factory=list)
    has_faults: bool = True

    def lose(self, name: str) -> None:
        self.zone.remove(name)
        self.absent.setdefault(name, []).append((_now(), None))

    def bring_back(self, name: str) -> None:
        self.zone.add(name, "A", _ADDRESS)
        since, _ = self.absent[name].pop()
        self.absent[name].append((since, _now()))

    def was_absent(self, name: str, first: datetime, last: datetime) -> bool:
        return any(since <= last and (until or last) >= first for since, until in self.absent.get(name, ()))

    def was_present(self, name: str, first: datetime, last: datetime) -> bool:
        return not any(
            since <= first and (until is None or until >= last) for since, until in self.absent.get(name, ())
        )

    def start_monitor(self) -> subprocess.Popen[bytes]:
        configuration = {
            "dsn": self.dsn,
            "state_dir": str(self.state_dir),
            "resolvers": [str(server.address) for server in self.resolvers],
            "authority_port": self.authority.address.port,
        }
        with (self.state_dir / "monitors.log").open("ab") as log:
            argv = module("bench.monitor_faults", "--monitor", json.dumps(configuration))
            return spawn(argv, env=os.environ, stdout=log, stderr=log)


async def run(*, seconds: float, domains: int, changing: int, seed: int) -> Counts:
    """One run; what it prints is in the answer."""
    counts, began = Counts(), time.monotonic()
    async with _world(seed, counts) as world:
        async with open_pool(world.dsn, size=4, application_name="frontage bench") as database:
            await _watch(world, database, domains)
            world.monitors += [world.start_monitor() for _ in range(_MONITORS)]
            told = Told(database)
            async with asyncio.TaskGroup() as tasks:
                listening = tasks.create_task(told.follow_for_ever(), name="faults: follow events")
                breaking = tasks.create_task(_break_things(world), name="faults: break things")
                ends_at = time.monotonic() + seconds
                changes = [_change(world, told, _domain(number), ends_at) for number in range(changing)]
                await asyncio.gather(*changes)
                world.has_faults = False
                await breaking  # what it broke, it mends
                await _settle(database)
                listening.cancel()
            await _audit(world, database, told)
        for server in (*world.resolvers, world.authority):
            counts.answers += server.answered
            counts.faulty_answers += server.faulty
    counts.seconds = time.monotonic() - began
    return counts


@contextlib.asynccontextmanager
async def _world(seed: int, counts: Counts) -> AsyncIterator[World]:
    random, zone = Random(seed), Zone()
    async with contextlib.AsyncExitStack() as stack:
        directory = stack.enter_context(
            tempfile.TemporaryDirectory(prefix="frontage-faults-", ignore_cleanup_errors=True)
        )
        resolvers = [await stack.enter_async_context(FaultyServer.serve(zone, RESOLVERS, random)) for _ in range(2)]
        authority = await stack.enter_async_context(FaultyServer.serve(zone, AUTHORITY, random, is_authoritative=True))
        sink = await stack.enter_async_context(WebhookSink.serve())
        postgres = EmbeddedPostgres(Path(directory))
        stack.callback(postgres.stop)
        dsn = postgres.start()
        await migrate(dsn)
        world = World(zone, resolvers, authority, sink, postgres, dsn, Path(directory), random, counts)
        zone.add(_NAME_SERVER, "A", "127.0.0.1")
        sink.answer_by(lambda _, delivery: _answer_webhook(world, delivery))
        try:
            yield world
        finally:
            for process in world.monitors:
                process.kill()
                process.wait()


async def _answer_webhook(world: World, _: Delivery) -> web.StreamResponse:
    is_error = world.has_faults and world.random.random() < _SINK_ERRORS
    return web.Response(status=500 if is_error else 204)


async def _watch(world: World, database: Database, domains: int) -> None:
    keyring = load_keyring(world.state_dir / "master.key", create=True)
    async with database.transaction() as connection:
        world.application_id = await _make_application(connection, keyring, world.sink.url)
        for number in range(domains):
            domain = _domain(number)
            records = tuple(Record("A", host, _ADDRESS, 300) for host in ("@", "www"))
            world.zone.add(domain, "NS", _NAME_SERVER)
            world.zone.add(domain, "A", _ADDRESS)
            world.zone.add(f"www.{domain}", "A", _ADDRESS)
            await monitored_domains.add(connection, Key(world.application_id, domain), records, Labels())


async def _make_application(connection: Any, keyring: Keyring, webhook_url: str) -> str:
    new_id, secret = minting.mint_id(), minting.mint_webhook_secret()
    await applications.create_application(
        connection,
        applications.NewApplication(
            id=new_id,
            name="Faults",
            cname_target="apps.faults.example",
            webhook_url=webhook_url,
            client_secret=keyring.seal(b"none", applications.client_secret_identity(new_id)),
            webhook_secret=keyring.seal(secret.encode(), applications.webhook_secret_identity(new_id)),
        ),
    )
    return new_id


def _domain(number: int) -> str:
    return f"c{number}.example"


def _now() -> datetime:
    return datetime.now(UTC)


# What happens -----------------------------------------------------------------------------------------------


async def _change(world: World, told: Told, domain: str, ends_at: float) -> None:
    """One domain's ``www`` goes and comes back, each to be told before the next."""
    name = f"www.{domain}"
    await asyncio.sleep(world.random.uniform(5, 10))  # it was there at first
    while time.monotonic() < ends_at:
        world.lose(name)
        world.counts.losses += 1
        if not await told.wait_for(domain, "domain.record_missing"):
            world.counts.missed_transitions += 1
            world.counts.details.append(f"{_now():%H:%M:%S} {name} was lost, and nobody told")
        await asyncio.sleep(world.random.uniform(0, 3))
        world.bring_back(name)
        world.counts.returns += 1
        if not await told.wait_for(domain, "domain.record_restored"):
            world.counts.missed_transitions += 1
            world.counts.details.append(f"{_now():%H:%M:%S} {name} came back, and nobody told")
        await asyncio.sleep(world.random.uniform(0, 5))


async def _break_things(world: World) -> None:
    while world.has_faults:
        await asyncio.sleep(world.random.uniform(*_KILL_SECONDS))
        drawn = world.random.random()
        if drawn < 0.6:
            await _kill_monitor(world)
        elif drawn < 0.8:
            await _kill_postgres(world)
        else:
            await _lose_resolver(world)


async def _kill_monitor(world: World) -> None:
    number = world.random.randrange(len(world.monitors))
    process = world.monitors[number]
    process.send_signal(signal.SIGKILL)
    await exited(process)
    world.counts.monitors_killed += 1
    world.monitors[number] = world.start_monitor()


async def _kill_postgres(world: World) -> None:
    process = world.postgres.process
    process.send_signal(signal.SIGKILL)
    await exited(process)
    world.counts.databases_killed += 1
    world.postgres.launch()
    await _until_ready(world.postgres)


async def _until_ready(postgres: EmbeddedPostgres) -> None:
    while True:
        if postgres.is_ready():
            return
        await asyncio.sleep(_POLL_SECONDS)


async def _lose_resolver(world: World) -> None:
    server = world.random.choice(world.resolvers)
    server.is_out = True
    world.counts.resolver_outages += 1
    await asyncio.sleep(_OUTAGE_SECONDS)
    server.is_out = False


async def _settle(database: Database) -> None:
    """Until every delivery is settled; retries that would wait for minutes are hurried."""
    deadline = time.monotonic() + _SETTLE_SECONDS
    while time.monotonic() < deadline:
        with contextlib.suppress(DatabaseUnavailable):
            async with database.transaction() as connection:
                pending = await connection.fetch(
                    "update deliveries set due_at = now() where status = 'pending' returning event_id"
                )
            if not pending:
                return
        await asyncio.sleep(0.5)


# What was told ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Event:
    id: str
    type: str
    domain: str
    sequence: int
    hosts: tuple[str, ...]
    created_at: datetime


class Told:
    """The events as they come to be. Mutable state: all of them so far, by domain."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._changed = asyncio.Condition()
        self._taken: dict[str, int] = {}
        self.events: dict[str, list[Event]] = {}

    async def follow_for_ever(self) -> None:
        while True:
            with contextlib.suppress(DatabaseUnavailable):
                await self.read()
            await asyncio.sleep(0.2)

    async def read(self) -> None:
        async with self._database.connection() as connection:
            rows = await connection.fetch(
                "select id, type, domain, sequence, fields, created_at from events order by domain, sequence"
            )
        events: dict[str, list[Event]] = {}
        for row in rows:
            missing = row["fields"]["data"]["records_non_propagated"]
            event = Event(
                *(row["id"], row["type"], row["domain"], row["sequence"]),
                tuple(record["host"] for record in missing),
                row["created_at"],
            )
            events.setdefault(event.domain, []).append(event)
        async with self._changed:
            self.events = events
            self._changed.notify_all()

    async def wait_for(self, domain: str, kind: str) -> bool:
        """Whether the domain's next event comes in time and is of this kind."""

        def is_there() -> bool:
            return len(self.events.get(domain, ())) > self._taken.get(domain, 0)

        try:
            async with asyncio.timeout(_TOLD_SECONDS), self._changed:
                await self._changed.wait_for(is_there)
        except TimeoutError:
            return False
        number = self._taken.get(domain, 0)
        self._taken[domain] = number + 1
        return self.events[domain][number].type == kind


async def _audit(world: World, database: Database, told: Told) -> None:
    counts = world.counts
    await told.read()
    for domain, events in told.events.items():
        for event in events:
            counts.events += 1
            if _is_false(world, domain, event):
                counts.false_alarms += 1
                counts.details.append(f"{event.created_at:%H:%M:%S} {event.type} of {domain} {event.hosts} was not so")
    received = {delivery.json()["id"] for delivery in world.sink.deliveries}
    counts.webhooks = len(received)
    async with database.connection() as connection:
        rows = await connection.fetch("select event_id, status, last_error from deliveries")
    counts.superseded = sum(row["status"] == "superseded" for row in rows)
    for row in rows:
        if row["event_id"] not in received and row["status"] != "superseded":
            counts.lost_webhooks += 1
            counts.details.append(f"{row['event_id']} never arrived: {row['status']}, {row['last_error']}")
    counts.lost_webhooks += counts.events - len(rows)  # every event has a delivery


def _is_false(world: World, domain: str, event: Event) -> bool:
    first = event.created_at - timedelta(seconds=_CHECK_SECONDS)
    if event.type == "domain.record_restored":
        return not world.was_present(f"www.{domain}", first, event.created_at)
    names = [domain if host == "@" else f"{host}.{domain}" for host in event.hosts]
    return not names or not all(world.was_absent(name, first, event.created_at) for name in names)


# A monitor --------------------------------------------------------------------------------------------------


async def _be_a_monitor(configuration: dict[str, Any]) -> None:
    """What the role does for monitored domains, with name servers on a port of their own, until it is killed."""
    clock, random = SystemClock(), Random()
    servers: list[HostPort] = [parse_host_port(server) for server in configuration["resolvers"]]
    keyring = load_keyring(Path(configuration["state_dir"]) / "master.key")
    async with open_pool(configuration["dsn"], size=8, application_name="frontage monitor") as database:
        sender = Sender(Resolver(servers, _LOOPBACK), _LOOPBACK)
        delivering: Runner[deliveries.Claimed] = make_runner(database, sender, keyring, clock, random)
        checking = Checking(
            database,
            clock,
            random,
            servers=servers,
            policy=_LOOPBACK,
            interval_seconds=_INTERVAL_SECONDS,
            base_url="https://frontage.example",
            on_events=delivering.wake,
            authority_port=configuration["authority_port"],
        )
        listener = Listener(configuration["dsn"], checking.wake, channel=monitored_domains.CHANNEL)
        await asyncio.gather(checking.run(), delivering.run(), listener.run())


if __name__ == "__main__":
    main()
