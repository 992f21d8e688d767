"""A world to get certificates in: Pebble behind a CA that can fail, a Postgres, an API, edges and monitors, one lab.

Everything is a real process on loopback. Each edge and each monitor has a state directory of its own; all share one
Postgres and one master key, as on several machines. Every name below `ZONE` leads to the application; Pebble validates
through the first edge. For `bench.certificates` and the acceptance tests.
"""

from __future__ import annotations

import asyncio
import subprocess
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any

import aiohttp

from api.cli.database import prepare
from api.rules import application_tokens as minting
from bench.application import make_application
from bench.demo.walk_clients import VisitorClient
from bench.lab.faulty_ca import FaultyCa, faulty_ca
from bench.lab.lab import Lab
from bench.lab.pebble import Pebble, running_pebble
from bench.lab.ports import free_ports
from bench.lab.unbound import serve_unbound
from bench.lab.zone import Zone
from bench.private_stage import private_environment
from common.db import delegations
from common.db.pool import Database, open_pool
from common.errors import OperatorError
from common.host_ports import HostPort
from common.postgres import EmbeddedPostgres
from common.processes import exited, role_argv, spawn
from common.secrets import Keyring
from common.settings import Settings, load

ZONE = "example"
CHALLENGE_ZONE = "acme.frontage.test"
_CNAME_TARGET = "apps.partner.example"
_READY_SECONDS = 60.0
_STOP_SECONDS = 20.0
_LIMITS = ("ORDERS_PER_ACCOUNT", "CERTIFICATES_PER_REGISTERED_DOMAIN", "CERTIFICATES_PER_EXACT_SET")


class RoleProcess:
    """One edge, monitor or API; started, stopped and killed as often as wanted. Its world ends it."""

    def __init__(self, role: str, environ: Mapping[str, str], log: Path, within: Sequence[str] = ()) -> None:
        """Prepare a process. `within`: a command that runs it on another machine, such as ``nsenter``."""
        self.role = role
        self.log = log
        self.settings: Settings = load(environ)
        self.environ = environ
        self._within = tuple(within)
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int:
        """Return the process id; the process must run."""
        assert self._process is not None
        return self._process.pid

    async def start(self) -> None:
        """Start the process, and return when it has printed ``ready``.

        Raises: `OperatorError` when it ends without that; TimeoutError.
        """
        with self.log.open("ab") as log:
            self._process = spawn(
                [*self._within, *role_argv(self.role)], env=self.environ, stdout=subprocess.PIPE, stderr=log
            )
        assert self._process.stdout is not None
        async with asyncio.timeout(_READY_SECONDS):
            answer = await asyncio.to_thread(self._process.stdout.readline)
        if answer != b"ready\n":
            raise OperatorError(f"the {self.role} does not serve: see {self.log}")

    @classmethod
    def make(cls, directory: Path, role: str, number: int, **settings: str) -> RoleProcess:
        """Create a process with a state directory of its own below `directory`; it is not started.

        `settings` are named without the prefix.
        """
        state_dir = directory / f"{role}-{number}"
        state_dir.mkdir()
        return cls(role, private_environment(state_dir, **settings), directory / f"{role}.log")

    def with_variables(self, **variables: str) -> RoleProcess:
        """Return another process of this role, not started, with these variables in its environment."""
        return RoleProcess(self.role, {**self.environ, **variables}, self.log, self._within)

    async def kill(self) -> None:
        """Kill the process with SIGKILL, if it runs."""
        if self._process is not None:
            self._process.kill()
            await exited(self._process)
            self._process.communicate()
            self._process = None

    async def stop(self) -> None:
        """Stop the process with SIGTERM, if it runs; kill it if it does not end in time."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            async with asyncio.timeout(_STOP_SECONDS):
                await exited(self._process)
        finally:
            await self.kill()


@dataclass(slots=True)
class CertificateWorld:
    """The processes and servers of a run. Created by `certificate_world`."""

    directory: Path
    postgres: EmbeddedPostgres
    dsn: str
    database: Database
    keyring: Keyring
    pebble: Pebble
    ca: FaultyCa
    lab: Lab
    api: RoleProcess
    partner: ApiClient
    ca_file: Path
    """Pebble's root, for visitors to trust."""
    edges: list[RoleProcess] = field(default_factory=list)
    monitors: list[RoleProcess] = field(default_factory=list)

    @property
    def zone(self) -> Zone:
        """Return the lab's DNS zone."""
        return self.lab.zone

    def visitor(self, edge: int = 0) -> VisitorClient:
        """Create a visitor of that edge, who trusts Pebble's root."""
        return VisitorClient("127.0.0.1", self.edges[edge].settings.edge_https.port, self.ca_file)

    async def delegate(self, domain: str) -> None:
        """Have the domain lead elsewhere, with its challenge delegated to the application."""
        async with self.database.connection() as connection:
            label = await delegations.mint(connection, domain, self.partner.application_id)
        self.zone.add(f"_acme-challenge.{domain}", "CNAME", f"{label}.{CHALLENGE_ZONE}")
        self.zone.add(domain, "A", "192.0.2.1")

    async def restart_postgres(self) -> None:
        """Kill Postgres with SIGKILL, and start it again at the same address."""
        self.postgres.process.kill()
        await exited(self.postgres.process)
        self.postgres.launch()
        while not self.postgres.is_ready():  # noqa: ASYNC110 - its only sign is a file
            await asyncio.sleep(0.02)


class ApiClient:
    """A client of the API, whose requests each carry a fresh token."""

    def __init__(self, session: aiohttp.ClientSession, application_id: str, client_secret: str, origin: str) -> None:
        self.application_id = application_id
        self.origin = origin
        self._session = session
        self._secret = client_secret

    async def ask(
        self, method: str, path: str, body: dict[str, Any] | None = None, *, key: str = ""
    ) -> tuple[int, dict[str, Any]]:
        """Send a request, under an idempotency key if one is given, and return the answer's status and content."""
        token = minting.mint_api_token(self.application_id, self._secret, datetime.now(UTC))
        headers = {"applicationId": self.application_id, "Authorization": f"Bearer {token}"}
        headers |= {"Idempotency-Key": key} if key else {}
        async with self._session.request(method, path, json=body, headers=headers) as answer:
            return answer.status, await answer.json()

    async def change(self, method: str, path: str, **body: Any) -> None:
        """Send a request that must succeed.

        Raises: `OperatorError` unless it is answered with 200.
        """
        status, answer = await self.ask(method, path, body)
        if status != 200:
            raise OperatorError(f"{method} {path} {body} was answered {status}: {answer}")

    async def secure(self, domain: str) -> None:
        """Secure the domain.

        Raises: `OperatorError`.
        """
        await self.change("POST", "/ssl", domain=domain, applicationUrl=self.origin)

    async def prepare(self, domain: str) -> None:
        """Prepare the domain in Secure, which is enrolled once its challenge is delegated.

        Raises: `OperatorError`.
        """
        await self.change("POST", f"/domains/{domain}/prepare", product="secure", applicationUrl=self.origin)

    async def power(self, domain: str) -> None:
        """Power the domain.

        Raises: `OperatorError`.
        """
        await self.change("POST", "/power", domain=domain, applicationUrl=self.origin)

    async def status(self, domain: str) -> str:
        """Return the domain's status in Secure, ``active`` or ``inactive``.

        Raises: `OperatorError`.
        """
        status, answer = await self.ask("GET", f"/ssl?domain={domain}")
        if status != 200:
            raise OperatorError(f"GET /ssl?domain={domain} was answered {status}: {answer}")
        return str(answer["sslStatus"])


@asynccontextmanager
async def certificate_world(
    directory: Path,
    *,
    edges: int = 2,
    monitors: int = 2,
    habits: Mapping[str, str] | None = None,
    through_faulty_ca: bool = True,
    has_challenge_zone: bool = False,
    lifetime_seconds: int | None = None,
    **settings: str,
) -> AsyncIterator[CertificateWorld]:
    """Run everything for the block.

    `settings` are named without the prefix; limits are far away unless they are given. `directory` exists, and
    Postgres' own user can enter it. With `has_challenge_zone` the first edge answers `CHALLENGE_ZONE`, and Pebble asks
    unbound, which must be installed. `lifetime_seconds`: of Pebble's certificates.

    Raises: `OperatorError`.
    """
    http_port, api_port, dns_port = free_ports(3)
    postgres = EmbeddedPostgres(directory)
    dsn = postgres.start()
    async with AsyncExitStack() as stack:
        stack.callback(postgres.stop)
        lab = await stack.enter_async_context(Lab.start())
        resolver = None
        if has_challenge_zone:
            zones = {ZONE: HostPort(lab.dns.host, lab.dns.port), CHALLENGE_ZONE: HostPort("127.0.0.1", dns_port)}
            resolver = await stack.enter_async_context(serve_unbound(zones))
        running = running_pebble(
            directory, http_port=http_port, habits=habits, resolver=resolver, lifetime_seconds=lifetime_seconds
        )
        pebble = await stack.enter_async_context(running)
        ca = await stack.enter_async_context(faulty_ca(pebble))
        shared = {"DATABASE_URL": dsn, "DNS_SERVERS": lab.dns.address, "API_LISTEN": f"127.0.0.1:{api_port}"}
        shared |= _issuer_settings(ca.directory if through_faulty_ca else pebble.directory, pebble.ca_file)
        first = {"EDGE_HTTP": f"127.0.0.1:{http_port}"}
        if has_challenge_zone:
            shared |= {"ACME_DNS_ZONE": CHALLENGE_ZONE, "SSL_TARGET": f"ssl.{ZONE}", "POWER_TARGET": f"power.{ZONE}"}
            first["EDGE_DNS"] = f"127.0.0.1:{dns_port}"
        role = partial(_make_role, stack, directory, shared | settings)
        api = role("api", 0)
        keyring = await prepare(api.settings)
        _write_zone(lab.zone, api.settings)
        database = await stack.enter_async_context(open_pool(dsn, size=4, application_name="frontage bench"))
        made = await make_application(database, keyring, name="Certificates", cname_target=_CNAME_TARGET)
        session = await stack.enter_async_context(aiohttp.ClientSession(api.settings.base_url))
        ca_file = directory / "pebble-root.pem"
        ca_file.write_text(await pebble.root())
        partner = ApiClient(session, *made, lab.origin.url)
        world = CertificateWorld(directory, postgres, dsn, database, keyring, pebble, ca, lab, api, partner, ca_file)
        world.edges = [role("edge", number, **({} if number else first)) for number in range(edges)]
        world.monitors = [role("monitor", number) for number in range(monitors)]
        await asyncio.gather(*(process.start() for process in (api, *world.edges, *world.monitors)))
        yield world


def _make_role(
    stack: AsyncExitStack, directory: Path, shared: Mapping[str, str], name: str, number: int, **own: str
) -> RoleProcess:
    """Create a role's process, which is killed when the stack is left."""
    key_file = str(directory / "master.key")
    process = RoleProcess.make(directory, name, number, **{"MASTER_KEY_FILE": key_file, **shared, **own})
    stack.push_async_callback(process.kill)
    return process


def _issuer_settings(acme_directory: str, ca_file: Path) -> dict[str, str]:
    """Return the settings of roles on loopback that order certificates there, with the CA's limits far away."""
    return {
        "ALLOW_PRIVATE_ADDRESSES": "127.0.0.0/8",
        "SERVICE_SERVERS": "127.0.0.1",
        "EDGE_WORKERS": "1",
        "ISSUER": "acme",
        "ACME_DIRECTORY": acme_directory,
        "ACME_CA_FILE": str(ca_file),
        **{f"ACME_{name}": "1000000" for name in _LIMITS},
    }


def _write_zone(zone: Zone, settings: Settings) -> None:
    zone.add(f"*.{ZONE}", "CNAME", _CNAME_TARGET)
    zone.add(_CNAME_TARGET, "CNAME", settings.ssl_target)
    for target in (settings.ssl_target, settings.power_target):
        zone.add(target, "A", "127.0.0.1")
