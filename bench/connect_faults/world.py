"""The fault run's world: a name server behind its proxy, Postgres, an API and two monitors as processes of their own.

All zones of a run are on one name server, which also stands in for the resolver.
"""

from __future__ import annotations

import asyncio
import contextlib
import tempfile
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final, Literal

import aiohttp
import dns.name
import dns.tsig

from api.cli.database import prepare
from bench.application import make_application
from bench.certificate_world import ApiClient, RoleProcess
from bench.connect_faults import zones
from bench.connect_faults.counts import FlowCounts
from bench.connect_faults.faults import WriteFault
from bench.connect_faults.proxies import Forward, OnWrite, api_proxy, update_proxy
from bench.lab.knot import Knot
from bench.lab.ports import free_ports
from bench.lab.powerdns import PowerDns
from common.db.pool import Database, open_pool
from common.errors import OperatorError
from common.host_ports import HostPort
from common.postgres import EmbeddedPostgres

Way = Literal["dynamic_update", "provider_api"]
_KEY_NAME, _KEY_SECRET = "writer", "c2VjcmV0LW9mLXRoZS1sYWItc2VjcmV0LW9mLXRoZS1sYWI="
_MONITORS = 2
_MOST_TRIES = 50
_PAUSE_SECONDS = 0.1
_ANSWER_SECONDS = 60.0  # longer than the API waits for anything
_PARENT: Final = (
    ("apps.partner", "CNAME", "power.frontage.test."),
    ("power.frontage", "A", "192.0.2.10"),
    ("mail", "TXT", '"v=spf1 -all"'),
    ("partner", "TXT", '"v=spf1 -all"'),
)


@dataclass(slots=True)
class FlowWorld:
    """The processes and servers of a run. Created by `open_world`.

    `foreign` are another party's records, by zone. `drawn` are the faults of the zone's next write requests; once they
    are used up, requests pass.
    """

    way: Way
    server: HostPort
    credentials: Mapping[str, str]
    """Those that write."""
    wrong: Mapping[str, str]
    """Those that do not."""
    add_foreign: Callable[[str, str, str], Awaitable[None]]
    """Zone, host and value of a TXT record that another party adds."""
    database: Database
    api: RoleProcess
    monitors: list[RoleProcess]
    partner: ApiClient
    counts: FlowCounts
    drawn: dict[str, list[WriteFault | None]] = field(default_factory=dict)
    foreign: dict[str, set[tuple[str, str, str]]] = field(default_factory=dict)
    _killing: asyncio.Lock = field(default_factory=asyncio.Lock)

    async def change_zone(self, zone: str, host: str, value: str) -> None:
        """Add a TXT record as another party does."""
        await self.add_foreign(zone, host, f'"{value}"')
        self.foreign.setdefault(zone, set()).add((host, "TXT", f'"{value}"'))
        self.counts.done["changes by another party"] += 1

    async def on_write(self, zone: str, forward: Forward) -> WriteFault | None:
        """Act out the next fault of the zone, or return it for the proxy to act out; None lets the request pass."""
        drawn = self.drawn.get(zone)
        fault = drawn.pop(0) if drawn else None
        if fault is None:
            return None
        self.counts.done[fault] += 1
        match fault:
            case WriteFault.KILL_BEFORE:
                await self.kill_api()
                return WriteFault.CUT_BEFORE
            case WriteFault.KILL_AFTER:
                await forward()
                await self.kill_api()
                return WriteFault.CUT_BEFORE
            case WriteFault.FOREIGN:
                await self.change_zone(zone, "foreign", f"during {len(self.foreign.get(zone, ()))}")
                return None
        return fault

    async def kill_api(self) -> None:
        """Kill the API and start it again. Its leases lapse at once, as they do within seconds."""
        async with self._killing:
            await self.api.kill()
            async with self.database.transaction() as connection:
                await connection.execute(
                    "update connect_flows set lease_until = clock_timestamp()"
                    " where state in ('applying', 'undoing') and lease_until is not null"
                )
            await self.api.start()

    async def kill_monitors(self, state: str) -> None:
        """Kill all monitors and start them again, unless other processes are being killed.

        Their leases lapse at once.
        """
        if self._killing.locked():
            return
        async with self._killing:
            self.counts.done[f"the monitors are killed while a flow is {state}"] += 1
            await asyncio.gather(*(monitor.kill() for monitor in self.monitors))
            async with self.database.transaction() as connection:
                await connection.execute(
                    "update connect_flows set lease_until = clock_timestamp()"
                    " where state not in ('applying', 'undoing') and lease_until is not null"
                )
            await asyncio.gather(*(monitor.start() for monitor in self.monitors))


_SETTINGS: Final = {
    "ALLOW_PRIVATE_ADDRESSES": "127.0.0.0/8",
    "POWER_TARGET": "power.frontage.test",
    "SERVICE_SERVERS": "192.0.2.10",
    "API_REQUESTS_PER_SECOND": "100000",
    "API_REQUESTS_PER_SECOND_PER_ADDRESS": "100000",
}
"""Of every role, by their names without the prefix."""


@contextlib.asynccontextmanager
async def open_world(way: Way, names: list[str], counts: FlowCounts) -> AsyncIterator[FlowWorld]:
    """Run everything for the block. `names` are the zones.

    Raises: `OperatorError`.
    """
    async with contextlib.AsyncExitStack() as stack:
        directory = Path(
            stack.enter_context(tempfile.TemporaryDirectory(prefix="frontage-faults-", ignore_cleanup_errors=True))
        )
        opened: list[FlowWorld] = []  # the proxy is there before the world that it is for

        async def on_write(zone: str, forward: Forward) -> WriteFault | None:
            return await opened[0].on_write(zone, forward)

        name_server = _knot if way == "dynamic_update" else _powerdns
        server, credentials, wrong, add_foreign = await stack.enter_async_context(name_server(names, on_write))
        postgres = EmbeddedPostgres(directory)
        stack.callback(postgres.stop)
        dsn = postgres.start()
        shared = {"DATABASE_URL": dsn, "MASTER_KEY_FILE": str(directory / "master.key"), "DNS_SERVERS": str(server)}

        def role(name: str, number: int, **own: str) -> RoleProcess:
            process = RoleProcess.make(directory, name, number, **shared, **_SETTINGS, **own)
            stack.push_async_callback(process.kill)
            return process

        api = role("api", 0, API_LISTEN=f"127.0.0.1:{free_ports(1)[0]}")
        keyring = await prepare(api.settings)
        database = await stack.enter_async_context(open_pool(dsn, size=4, application_name="frontage bench"))
        made = await make_application(database, keyring, name="Faults", cname_target=zones.CNAME_TARGET)
        session = await stack.enter_async_context(_open_session(api.settings.base_url))
        monitors = [role("monitor", number) for number in range(_MONITORS)]
        partner = ApiClient(session, *made, "")
        world = FlowWorld(way, server, credentials, wrong, add_foreign, database, api, monitors, partner, counts)
        opened.append(world)
        await asyncio.gather(*(process.start() for process in (api, *monitors)))
        yield world


def _open_session(base_url: str) -> aiohttp.ClientSession:
    """Open a session with a connection for each request: the API is killed between them."""
    return aiohttp.ClientSession(
        base_url,
        connector=aiohttp.TCPConnector(force_close=True),
        timeout=aiohttp.ClientTimeout(total=_ANSWER_SECONDS),
    )


_Parts = tuple[HostPort, Mapping[str, str], Mapping[str, str], Callable[[str, str, str], Awaitable[None]]]


@contextlib.asynccontextmanager
async def _knot(names: list[str], on_write: OnWrite) -> AsyncIterator[_Parts]:
    """Run knot behind its proxy, for changes by RFC 2136."""
    parent = zones.file_of(frozenset(_PARENT))
    files = {zones.PARENT: parent} | {name: zones.file_of(zones.BEFORE) for name in names}
    key = dns.tsig.Key(dns.name.from_text(_KEY_NAME), _KEY_SECRET, dns.tsig.HMAC_SHA256)
    async with (
        Knot.serve(files, keys={_KEY_NAME: _KEY_SECRET}) as knot,
        update_proxy(knot.address, key, on_write) as proxy,
    ):

        async def add(zone: str, host: str, value: str) -> None:
            await knot.add(zone, host, "TXT", value)

        credentials = {"key_name": _KEY_NAME, "key_secret": _KEY_SECRET, "server": str(proxy)}
        yield knot.address, credentials, credentials | {"key_secret": "d3Jvbmc="}, add


@contextlib.asynccontextmanager
async def _powerdns(names: list[str], on_write: OnWrite) -> AsyncIterator[_Parts]:
    """Run PowerDNS behind its proxy, for changes by its API."""

    def whole(zone: str, content: zones.Content) -> list[tuple[str, str, str]]:
        return [(zone if host == "@" else f"{host}.{zone}", kind, value) for host, kind, value in content]

    content = {zones.PARENT: whole(zones.PARENT, frozenset(_PARENT))}
    content |= {name: whole(name, zones.BEFORE) for name in names}
    async with PowerDns.serve(content) as server, api_proxy(server.api_url, on_write) as proxy:

        async def add(zone: str, host: str, value: str) -> None:
            there = [text for at, kind, text in await zones.read(server.address, zone) if (at, kind) == (host, "TXT")]
            name = zone if host == "@" else f"{host}.{zone}"
            for _ in range(_MOST_TRIES):
                with contextlib.suppress(OperatorError):  # its SQLite is locked by another zone's change
                    await server.replace(zone, name, "TXT", *there, value)
                    return
                await asyncio.sleep(_PAUSE_SECONDS)
            raise OperatorError(f"PowerDNS did not take a change of {zone}")

        credentials = {"pdns_server": proxy, "auth_token": server.key}
        yield server.address, credentials, credentials | {"auth_token": "wrong"}, add
