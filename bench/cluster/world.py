"""The machines of a run with all that runs on them. Everything is a real process, or served by the lab in this one."""

from __future__ import annotations

import asyncio
import re
import subprocess
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from importlib import resources
from pathlib import Path

import aiohttp
from aiohttp import web

from api.cli.database import prepare
from bench.application import make_application
from bench.certificate_world import ApiClient, RoleProcess
from bench.cluster.network import Machine, Network, mount_memory, unmount_memory
from bench.cluster.patroni import PatroniCluster, dsn_of, running_patroni
from bench.lab.pebble import Pebble, running_pebble
from bench.lab.ports import free_ports
from bench.lab.server import NameServer
from bench.lab.serving import serving
from bench.lab.sink import WebhookSink
from bench.lab.slow_link import SlowLink, opened_link
from bench.lab.zone import Zone
from common.db.pool import Database, open_pool
from common.host_ports import HostPort
from common.processes import spawn
from common.settings import PREFIX

ZONE = "example"
READY_MAX_AGE_SECONDS = 10.0
"""Beyond which an edge must say at ``/readyz`` that its copy is old."""
_CNAME_TARGET = "apps.partner.example"
_SERVERS, _EDGES, _APIS, _MONITORS = 3, 3, 2, 2
_DISK_MEBIBYTES = 512
_ANSWER_SECONDS = 20.0
_LIMITS = (
    "ORDERS_PER_ACCOUNT",
    "CERTIFICATES_PER_REGISTERED_DOMAIN",
    "CERTIFICATES_PER_EXACT_SET",
    "FAILED_VALIDATIONS",
)


@dataclass
class RoleMachine:
    """A machine with one role. `process` is another one after each start with other variables."""

    machine: Machine
    process: RoleProcess

    @property
    def name(self) -> str:
        """The machine's name."""
        return self.machine.name


@dataclass
class ClusterWorld:
    """Everything that runs. Created by `cluster_world`."""

    directory: Path
    network: Network
    postgres: PatroniCluster
    database: Database
    pebble: Pebble
    ca_file: Path
    """Pebble's root, for visitors to trust."""
    sink: WebhookSink
    zone: Zone
    origin: str
    partner: ApiClient
    edges: list[RoleMachine] = field(default_factory=list)
    apis: list[RoleMachine] = field(default_factory=list)
    monitors: list[RoleMachine] = field(default_factory=list)
    links: dict[str, list[SlowLink]] = field(default_factory=dict)
    """By the role's machine: its links to the servers of Postgres, in their order."""

    @property
    def roles(self) -> list[RoleMachine]:
        """Every machine with a role."""
        return [*self.apis, *self.edges, *self.monitors]

    @property
    def machines(self) -> list[Machine]:
        """Every machine but the lab."""
        return [member.machine for member in self.postgres.members] + [role.machine for role in self.roles]


@dataclass(frozen=True, slots=True)
class _Lab:
    """What the lab serves to all machines."""

    zone: Zone
    dns: NameServer
    sink: WebhookSink
    origin: str
    pebble: Pebble


@dataclass(frozen=True, slots=True)
class _Ports:
    """Ports that are the same on every machine."""

    http: int
    https: int
    api: int
    admin: int

    def listeners(self, machine: Machine) -> dict[str, str]:
        """Return the settings by which a machine's role listens."""
        ports = {"EDGE_HTTP": self.http, "EDGE_HTTPS": self.https, "API_LISTEN": self.api}
        ports |= dict.fromkeys(("EDGE_ADMIN", "API_ADMIN", "MONITOR_ADMIN"), self.admin)
        return {key: f"{machine.address}:{port}" for key, port in ports.items()}


@asynccontextmanager
async def cluster_world(directory: Path, *, has_namespaces: bool, is_synchronous: bool) -> AsyncIterator[ClusterWorld]:
    """Run everything for the block. `directory` exists, and Postgres' user can enter it.

    Raises: `OperatorError`.
    """
    network = Network(has_namespaces=has_namespaces)
    add = partial(_add_machines, network)
    servers, edges = add("db", _SERVERS, 10), add("edge", _EDGES, 20)
    apis, monitors = add("api", _APIS, 30), add("monitor", _MONITORS, 40)
    balanced, http, https, api, admin, *database_ports = free_ports(9)
    ports = _Ports(http, https, api, admin)
    balancer = HostPort(network.lab.address, balanced)
    if has_namespaces:
        _mount_disks(directory, servers)
    async with AsyncExitStack() as stack:
        if has_namespaces:
            for machine in servers:
                stack.callback(unmount_memory, directory / machine.name)
        enter = stack.enter_async_context
        lab = await enter(_running_lab(directory, network.lab.address, ports.http))
        postgres = await enter(
            running_patroni(directory, network.lab, servers, database_ports, is_synchronous=is_synchronous)
        )
        stack.callback(_balance(directory, balancer, apis, ports.api).kill)
        links = {machine.name: await enter(_opened_links(network, postgres)) for machine in (edges[1], apis[1])}
        shared = _shared_settings(directory, network, lab, postgres.dsn) | {
            "SERVICE_SERVERS": ",".join(machine.address for machine in edges),
            "PUBLIC_URL": f"http://{balancer}",
        }
        own = {name: {"DATABASE_URL": dsn_of([link.address for link in each])} for name, each in links.items()}
        own[edges[2].name] = {
            "FEED_URL": dsn_of([f"{each.machine.address}:{each.port}" for each in reversed(postgres.members)])
        }
        roles = {
            name: [
                _role(name, machine, directory, shared | ports.listeners(machine) | own.get(machine.name, {}))
                for machine in machines
            ]
            for name, machines in (("edge", edges), ("api", apis), ("monitor", monitors))
        }
        for each in (role for of_kind in roles.values() for role in of_kind):
            stack.push_async_callback(each.process.kill)
        settings = roles["api"][0].process.settings
        keyring = await prepare(settings)
        _lead(lab.zone, settings.power_target, edges)
        database = await enter(open_pool(postgres.dsn, size=4, application_name="frontage bench"))
        made = await make_application(
            database, keyring, name="Cluster", cname_target=_CNAME_TARGET, webhook_url=lab.sink.url
        )
        session = await enter(_session(shared["PUBLIC_URL"]))
        world = ClusterWorld(
            directory,
            network,
            postgres,
            database,
            lab.pebble,
            await _write_root(directory, lab.pebble),
            lab.sink,
            lab.zone,
            lab.origin,
            ApiClient(session, *made, lab.origin),
            roles["edge"],
            roles["api"],
            roles["monitor"],
            links,
        )
        await asyncio.gather(*(each.process.start() for each in world.roles))
        await _until_balanced(session)
        yield world


@asynccontextmanager
async def _running_lab(directory: Path, host: str, validated_port: int) -> AsyncIterator[_Lab]:
    """Serve DNS, a webhook sink and an origin, and run Pebble, which validates at `validated_port`."""
    zone = Zone()
    async with (
        NameServer.serve(zone, host) as dns,
        WebhookSink.serve(host) as sink,
        serving(_origin(), host, 0) as origin,
        running_pebble(directory, http_port=validated_port, host=host, resolver=HostPort(dns.host, dns.port)) as pebble,
    ):
        yield _Lab(zone, dns, sink, f"http://{origin}", pebble)


@asynccontextmanager
async def _opened_links(network: Network, postgres: PatroniCluster) -> AsyncIterator[list[SlowLink]]:
    """Open links to the servers of Postgres, in their order, which can be made slow."""
    async with AsyncExitStack() as stack:
        yield [
            await stack.enter_async_context(
                opened_link(HostPort(each.machine.address, each.port), host=network.lab.address)
            )
            for each in postgres.members
        ]


def _shared_settings(directory: Path, network: Network, lab: _Lab, dsn: str) -> dict[str, str]:
    """Return the settings that all roles have."""
    return {
        "MASTER_KEY_FILE": str(directory / "master.key"),
        "DATABASE_URL": dsn,
        "DNS_SERVERS": lab.dns.address,
        "ALLOW_PRIVATE_ADDRESSES": network.cidr,
        "API_TRUSTED_PROXIES": f"{network.lab.address}/32",
        "RDAP_BOOTSTRAP": "off",
        "EDGE_WORKERS": "1",
        "EDGE_READY_MAX_AGE_SECONDS": f"{READY_MAX_AGE_SECONDS:g}",
        "ISSUER": "acme",
        "ACME_DIRECTORY": lab.pebble.directory,
        "ACME_CA_FILE": str(lab.pebble.ca_file),
        **{f"ACME_{name}": "1000000" for name in _LIMITS},
    }


def _role(name: str, machine: Machine, directory: Path, settings: dict[str, str]) -> RoleMachine:
    """Return a machine with a role that is not started, and a state directory of its own."""
    state = directory / machine.name
    state.mkdir()
    environ = {"PATH": "/usr/bin:/bin", f"{PREFIX}STATE_DIR": str(state)}
    environ |= {PREFIX + key: value for key, value in settings.items()}
    return RoleMachine(machine, RoleProcess(name, environ, directory / f"{machine.name}.log", machine.within))


def _mount_disks(directory: Path, servers: Sequence[Machine]) -> None:
    """Give each server of Postgres a disk of its own, which can be full."""
    for machine in servers:
        home = directory / machine.name
        home.mkdir()
        mount_memory(home, _DISK_MEBIBYTES)


def _lead(zone: Zone, power_target: str, edges: Sequence[Machine]) -> None:
    """Have every name of the zone lead to the edges."""
    zone.add(f"*.{ZONE}", "CNAME", _CNAME_TARGET)
    zone.add(_CNAME_TARGET, "CNAME", power_target)
    for machine in edges:
        zone.add(power_target, "A", machine.address)


def _session(url: str) -> aiohttp.ClientSession:
    """Return a session that repeats no request by itself, as one with kept connections would."""
    return aiohttp.ClientSession(
        url,
        connector=aiohttp.TCPConnector(force_close=True),
        timeout=aiohttp.ClientTimeout(total=_ANSWER_SECONDS),
    )


async def _write_root(directory: Path, pebble: Pebble) -> Path:
    """Write Pebble's root, and return the file."""
    path = directory / "pebble-root.pem"
    path.write_text(await pebble.root())
    return path


async def _until_balanced(session: aiohttp.ClientSession) -> None:
    """Wait until the balancer has found an API."""
    async with asyncio.timeout(_ANSWER_SECONDS):
        while True:
            async with session.get("/readyz") as answer:
                if answer.status == 200:
                    return
            await asyncio.sleep(0.1)


def _add_machines(network: Network, name: str, count: int, first: int) -> list[Machine]:
    return [network.add(f"{name}{number}", first + number) for number in range(1, count + 1)]


def _origin() -> web.Application:
    """Return an application that answers each request with its path, and so with its version."""

    async def answer(request: web.Request) -> web.Response:
        return web.Response(text=request.path)

    app = web.Application()
    app.router.add_get("/{path:.*}", answer)
    return app


def _balance(directory: Path, address: HostPort, apis: Sequence[Machine], port: int) -> subprocess.Popen[bytes]:
    """Start HAProxy as the handbook configures it, with these addresses."""
    page = (resources.files("api") / "handbook" / "several-machines.md").read_text("utf-8")
    found = re.search(r"```haproxy\n(.*?)```", page, re.DOTALL)
    assert found is not None, "the page shows HAProxy's configuration"
    configuration = found[1].replace("127.0.0.1:8000", str(address))
    for number, machine in enumerate(apis, 1):
        configuration = configuration.replace(f"10.0.0.1{number}:8000", f"{machine.address}:{port}")
    path = directory / "haproxy.cfg"
    path.write_text(configuration)
    with (directory / "haproxy.log").open("ab") as log:
        return spawn(
            ["haproxy", "-db", "-f", str(path)], env={"PATH": "/usr/sbin:/usr/bin:/bin"}, stdout=log, stderr=log
        )
