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
from bench.cluster.network import Machine, Network, mount_memory
from bench.cluster.patroni import PatroniCluster, dsn_of, running_patroni
from bench.lab.pebble import Pebble, running_pebble
from bench.lab.ports import free_ports
from bench.lab.server import NameServer
from bench.lab.serving import serving
from bench.lab.sink import WebhookSink
from bench.lab.slow_link import SlowLink, opened_link
from bench.lab.zone import Zone
from common.db.pool import Database, open_pool
from common.processes import spawn
from common.settings import PREFIX, HostPort

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


@asynccontextmanager
async def cluster_world(directory: Path, *, has_namespaces: bool, is_synchronous: bool) -> AsyncIterator[ClusterWorld]:
    """Run everything for the block. `directory` exists, and Postgres' user can enter it.

    Raises: `OperatorError`.
    """
    network = Network(has_namespaces=has_namespaces)
    lab = network.lab
    add = partial(_add_machines, network)
    servers, edges = add("db", _SERVERS, 10), add("edge", _EDGES, 20)
    apis, monitors = add("api", _APIS, 30), add("monitor", _MONITORS, 40)
    http, https, listen, admin, balanced, *database_ports = free_ports(9)
    if has_namespaces:
        for machine in servers:
            home = directory / machine.name
            home.mkdir()
            mount_memory(home, _DISK_MEBIBYTES)
    async with AsyncExitStack() as stack:
        enter = stack.enter_async_context
        zone = Zone()
        dns = await enter(NameServer.serve(zone, lab.address))
        sink = await enter(WebhookSink.serve(lab.address))
        origin = "http://" + await enter(serving(_origin(), lab.address, 0))
        resolver = HostPort(dns.host, dns.port)
        pebble = await enter(running_pebble(directory, http_port=http, host=lab.address, resolver=resolver))
        postgres = await enter(running_patroni(directory, lab, servers, database_ports, is_synchronous=is_synchronous))
        stack.callback(_balance(directory, HostPort(lab.address, balanced), apis, listen).kill)
        links = {
            machine.name: [
                await enter(opened_link(HostPort(each.machine.address, each.port), host=lab.address))
                for each in postgres.members
            ]
            for machine in (edges[1], apis[1])
        }
        shared = {
            "MASTER_KEY_FILE": str(directory / "master.key"),
            "DATABASE_URL": postgres.dsn,
            "DNS_SERVERS": dns.address,
            "ALLOW_PRIVATE_ADDRESSES": network.cidr,
            "SERVICE_SERVERS": ",".join(machine.address for machine in edges),
            "PUBLIC_URL": f"http://{lab.address}:{balanced}",
            "API_TRUSTED_PROXIES": f"{lab.address}/32",
            "RDAP_BOOTSTRAP": "off",
            "EDGE_WORKERS": "1",
            "EDGE_READY_MAX_AGE_SECONDS": f"{READY_MAX_AGE_SECONDS:g}",
            "ISSUER": "acme",
            "ACME_DIRECTORY": pebble.directory,
            "ACME_CA_FILE": str(pebble.ca_file),
            **{f"ACME_{name}": "1000000" for name in _LIMITS},
        }
        listeners = {"EDGE_HTTP": http, "EDGE_HTTPS": https, "API_LISTEN": listen} | dict.fromkeys(
            ("EDGE_ADMIN", "API_ADMIN", "MONITOR_ADMIN"), admin
        )

        def role(name: str, machine: Machine, **settings: str) -> RoleMachine:
            own = {key: f"{machine.address}:{port}" for key, port in listeners.items()}
            if machine.name in links:
                own["DATABASE_URL"] = dsn_of([link.address for link in links[machine.name]])
            state = directory / machine.name
            state.mkdir()
            own |= {"STATE_DIR": str(state)} | settings
            environ = {"PATH": "/usr/bin:/bin"} | {PREFIX + key: value for key, value in (shared | own).items()}
            process = RoleProcess(name, environ, directory / f"{machine.name}.log", machine.within)
            stack.push_async_callback(process.kill)
            return RoleMachine(machine, process)

        reversed_feed = dsn_of([f"{each.machine.address}:{each.port}" for each in reversed(postgres.members)])
        feeds = {edges[2].name: {"FEED_URL": reversed_feed}}
        edge_roles = [role("edge", machine, **feeds.get(machine.name, {})) for machine in edges]
        api_roles = [role("api", machine) for machine in apis]
        monitor_roles = [role("monitor", machine) for machine in monitors]
        keyring = await prepare(api_roles[0].process.settings)
        zone.add(f"*.{ZONE}", "CNAME", _CNAME_TARGET)
        zone.add(_CNAME_TARGET, "CNAME", api_roles[0].process.settings.power_target)
        for machine in edges:
            zone.add(api_roles[0].process.settings.power_target, "A", machine.address)
        database = await enter(open_pool(postgres.dsn, size=4, application_name="frontage bench"))
        made = await make_application(
            database, keyring, name="Cluster", cname_target=_CNAME_TARGET, webhook_url=sink.url
        )
        session = await enter(
            aiohttp.ClientSession(
                shared["PUBLIC_URL"],
                connector=aiohttp.TCPConnector(force_close=True),  # which would repeat a request by itself
                timeout=aiohttp.ClientTimeout(total=_ANSWER_SECONDS),
            )
        )
        ca_file = directory / "pebble-root.pem"
        ca_file.write_text(await pebble.root())
        partner = ApiClient(session, *made, origin)
        world = ClusterWorld(
            directory,
            network,
            postgres,
            database,
            pebble,
            ca_file,
            sink,
            zone,
            origin,
            partner,
            edge_roles,
            api_roles,
            monitor_roles,
            links,
        )
        await asyncio.gather(*(each.process.start() for each in world.roles))
        await _until_balanced(session)
        yield world


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
