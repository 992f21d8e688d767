"""The fault run's world: name servers that fail, a receiver that fails, Postgres, an API, two monitors.

It knows at any time what is so: which names are there, and which were not, and when.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import aiohttp

from api.cli.database import prepare
from bench.application import make_application
from bench.certificate_world import ApiClient, RoleProcess
from bench.lab.faulty_dns import Faults, FaultyServer
from bench.lab.faulty_sink import FaultyReceiver, SinkFaults
from bench.lab.ports import free_ports
from bench.lab.sink import WebhookSink
from bench.lab.zone import Zone
from bench.monitor_faults.counts import MonitorCounts
from bench.monitor_faults.monitoring_process import SENDER_SECONDS, MonitoringSetup
from bench.private_stage import private_environment
from common import monitored_changes
from common.db.monitored_domains import Labels, MonitoredKey
from common.db.pool import Database, open_pool
from common.postgres import EmbeddedPostgres
from common.processes import spawn
from common.records import Record

ADDRESS = "192.0.2.1"
TTL_SECONDS = 300
_NAME_SERVER = "ns.faults.example"
_CONNECTIONS = 4
_MONITORS = 2
_ANSWER_SECONDS = 30.0  # longer than the API waits for anything

RESOLVERS = Faults(lies=0.1, failures=0.05, silence=0.05, truncated=0.02)
AUTHORITY = Faults(lies=0.02, failures=0.04, silence=0.04)
RECEIVER = SinkFaults(
    errors=0.06,
    silence=0.03,
    broken=0.03,
    slow=0.1,
    silence_seconds=1.5 * SENDER_SECONDS,
    slow_seconds=SENDER_SECONDS / 2,
)


@dataclass
class MonitorWorld:
    """The processes and servers of a run. Created by `open_world`.

    `absent` holds when which name was not there; the last interval may still be open. Once `quiet` is set, nothing is
    broken any more.
    """

    zone: Zone
    resolvers: list[FaultyServer]
    authority: FaultyServer
    sink: WebhookSink
    receiver: FaultyReceiver
    postgres: EmbeddedPostgres
    database: Database
    directory: Path
    configuration: MonitoringSetup
    api: RoleProcess
    partner: ApiClient
    random: Random
    counts: MonitorCounts
    absent: dict[str, list[tuple[datetime, datetime | None]]] = field(default_factory=dict)
    monitors: list[subprocess.Popen[bytes]] = field(default_factory=list)
    quiet: asyncio.Event = field(default_factory=asyncio.Event)

    def host(self, domain: str) -> None:
        """Have the zone's own server answer for the domain from now on."""
        self.zone.add(domain, "NS", _NAME_SERVER)

    def lose(self, name: str) -> None:
        """Remove the name from the DNS."""
        self.zone.remove(name)
        self.absent.setdefault(name, []).append((now(), None))

    def bring_back(self, name: str) -> None:
        """Put the name back into the DNS."""
        self.zone.add(name, "A", ADDRESS)
        since, _ = self.absent[name].pop()
        self.absent[name].append((since, now()))

    def was_absent(self, name: str, first: datetime, last: datetime) -> bool:
        """Return whether the name was absent at any time between the two."""
        return any(since <= last and (until or last) >= first for since, until in self.absent.get(name, ()))

    def was_present(self, name: str, first: datetime, last: datetime) -> bool:
        """Return whether the name was present at any time between the two."""
        return not any(
            since <= first and (until is None or until >= last) for since, until in self.absent.get(name, ())
        )

    def start_monitor(self) -> subprocess.Popen[bytes]:
        """Start another monitor."""
        with (self.directory / "monitors.log").open("ab") as log:
            return spawn(self.configuration.argv(), env=os.environ, stdout=log, stderr=log)


def now() -> datetime:
    """Return the present time in UTC."""
    return datetime.now(UTC)


@contextlib.asynccontextmanager
async def open_world(seed: int, counts: MonitorCounts) -> AsyncIterator[MonitorWorld]:
    """Run everything for the block; nothing is monitored yet.

    Raises: `OperatorError`.
    """
    random, zone = Random(seed), Zone()
    async with contextlib.AsyncExitStack() as stack:
        directory = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="frontage-faults-", ignore_cleanup_errors=True))
        )
        resolvers = [await stack.enter_async_context(FaultyServer.serve(zone, RESOLVERS, random)) for _ in range(2)]
        authority = await stack.enter_async_context(FaultyServer.serve(zone, AUTHORITY, random, is_authoritative=True))
        sink = await stack.enter_async_context(WebhookSink.serve())
        receiver = FaultyReceiver(RECEIVER, random)
        sink.answer_by(receiver.answer)
        postgres = EmbeddedPostgres(directory)
        stack.callback(postgres.stop)
        dsn = postgres.start()
        api = _make_api(directory, dsn)
        stack.push_async_callback(api.kill)
        keyring = await prepare(api.settings)
        database = await stack.enter_async_context(open_pool(dsn, size=_CONNECTIONS, application_name="frontage bench"))
        application_id, secret = await make_application(
            database, keyring, name="Faults", cname_target="apps.faults.example", webhook_url=sink.url
        )
        session = await stack.enter_async_context(_open_session(api.settings.base_url))
        configuration = MonitoringSetup(
            dsn, str(api.settings.key_file), [str(server.address) for server in resolvers], authority.address.port
        )
        partner = ApiClient(session, application_id, secret, "")
        peers = (zone, resolvers, authority, sink, receiver, postgres, database)
        world = MonitorWorld(*peers, directory, configuration, api, partner, random, counts)
        zone.add(_NAME_SERVER, "A", "127.0.0.1")
        await stack.enter_async_context(_monitoring(world))
        yield world


@contextlib.asynccontextmanager
async def _monitoring(world: MonitorWorld) -> AsyncIterator[None]:
    """Run the monitors and the API for the block; no monitor runs after it."""
    try:
        world.monitors += [world.start_monitor() for _ in range(_MONITORS)]
        await world.api.start()
        yield
    finally:
        for process in world.monitors:
            process.kill()
            process.wait()


def _make_api(directory: Path, dsn: str) -> RoleProcess:
    state_dir = directory / "api"
    state_dir.mkdir()
    settings = {"DATABASE_URL": dsn, "ALLOW_PRIVATE_ADDRESSES": "127.0.0.0/8"}
    settings["API_LISTEN"] = f"127.0.0.1:{free_ports(1)[0]}"
    return RoleProcess("api", private_environment(state_dir, **settings), directory / "api.log")


def _open_session(base_url: str) -> aiohttp.ClientSession:
    """Open a session with a new connection for each request.

    The client repeats a request whose kept connection has died, which would hide the first answer.
    """
    return aiohttp.ClientSession(
        base_url,
        connector=aiohttp.TCPConnector(force_close=True),
        timeout=aiohttp.ClientTimeout(total=_ANSWER_SECONDS),
    )


async def watch(world: MonitorWorld, domains: list[str]) -> None:
    """Have the domains monitored, each with two records that are there."""
    records = tuple(Record("A", host, ADDRESS, TTL_SECONDS) for host in ("@", "www"))
    async with world.database.transaction() as connection:
        for domain in domains:
            world.host(domain)
            world.zone.add(domain, "A", ADDRESS)
            world.zone.add(f"www.{domain}", "A", ADDRESS)
            key = MonitoredKey(world.partner.application_id, domain)
            await monitored_changes.add(connection, key, records, Labels())
