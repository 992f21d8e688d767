"""The API on a real socket, with a real database and a real name server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import pytest

from api.app import build_app
from api.bounds import BOUNDS, Bounds
from api.counters import Counters
from api.serving import serving
from bench.lab.ports import free_ports
from bench.lab.server import NameServer
from bench.lab.zone import Zone
from common.addresses import tenant_policy
from common.clock import SystemClock
from common.db.pool import Database, open_pool
from common.db.session import SessionTimeouts
from common.dns import Resolver
from common.dns.authority import DNS_PORT
from common.host_ports import HostPort
from common.secrets import Keyring, load_keyring
from common.settings import Settings, load
from tests.integration.api.installation import FollowingEdge, lease_monitor
from tests.integration.api.partner import Partner, enrol_partner
from tests.integration.api.watching import Watcher
from tests.timeouts import UNHURRIED

POWER_TARGET = "power.frontage.test"
SERVER = "192.0.2.10"


@dataclass(slots=True)
class Service:
    """One API process' worth, in this process."""

    url: str
    counters: Counters
    zone: Zone
    database: Database
    keyring: Keyring
    session: aiohttp.ClientSession
    settings: Settings
    edge: FollowingEdge
    _partners: int = field(default=0)

    @property
    def address(self) -> tuple[str, int]:
        host, _, port = self.url.removeprefix("http://").partition(":")
        return host, int(port)

    async def partner(self, *, step_one: bool = True) -> Partner:
        """An application whose cname target leads to ours, unless `step_one` is not done."""
        self._partners += 1
        target = f"target-{self._partners}.partner.test"
        if step_one:
            self.zone.add(target, "CNAME", POWER_TARGET)
        application, secret = await enrol_partner(self.database, self.keyring, target)
        return Partner(application.id, secret, self.session, self.url)

    def point(self, domain: str, partner: int = 1) -> None:
        """Step two, done by the customer."""
        self.zone.add(domain, "CNAME", f"target-{partner}.partner.test")


@pytest.fixture
def probe_port() -> int:
    return free_ports(1)[0]


@pytest.fixture
def bounds() -> Bounds:
    """A test that comes to one of them overrides this by a parameter."""
    return BOUNDS


@pytest.fixture
async def service(dsn: str, tmp_path: Path, probe_port: int, bounds: Bounds) -> AsyncIterator[Service]:
    async with open_service(dsn, tmp_path, probe_port, UNHURRIED, bounds=bounds) as service:
        yield service


@pytest.fixture
async def partner(service: Service) -> Partner:
    """The first application, whose cname target leads to ours."""
    return await service.partner()


@pytest.fixture
def mine(partner: Partner) -> Watcher:
    """The domains that the partner has monitored."""
    return Watcher(partner)


@asynccontextmanager
async def open_service(
    dsn: str,
    state_dir: Path,
    probe_port: int,
    timeouts: SessionTimeouts,
    *,
    authority_port: int | None = DNS_PORT,
    bounds: Bounds = BOUNDS,
    **environ: str,
) -> AsyncIterator[Service]:
    """`environ`: further settings, by their names without the prefix. `authority_port` None: the zone's name server is
    that of every zone, once the zone has an NS record."""
    async with AsyncExitStack() as stack:
        server = await stack.enter_async_context(NameServer.serve(Zone()))
        settings = load(
            {
                "FRONTAGE_STATE_DIR": str(state_dir),
                "FRONTAGE_ALLOW_PRIVATE_ADDRESSES": "127.0.0.0/8",
                "FRONTAGE_DNS_SERVERS": server.address,
                "FRONTAGE_POWER_TARGET": POWER_TARGET,
                "FRONTAGE_SERVICE_SERVERS": f"{SERVER},2001:db8::10",
            }
            | {f"FRONTAGE_{name}": value for name, value in environ.items()}
        )
        keyring = load_keyring(settings.key_file, create=True)
        database = await stack.enter_async_context(
            open_pool(dsn, size=5, application_name="api test", timeouts=timeouts)
        )
        resolver = Resolver(settings.dns_servers, tenant_policy(settings), authority_port=authority_port or server.port)
        counters = Counters()
        app = build_app(
            settings,
            database,
            keyring,
            resolver,
            SystemClock(),
            counters,
            probe_port=probe_port,
            authority_port=authority_port or server.port,
            bounds=bounds,
        )
        listen = settings.api_listen if "API_LISTEN" in environ else HostPort("127.0.0.1", 0)
        host, port = await stack.enter_async_context(serving(app, listen))
        session = await stack.enter_async_context(aiohttp.ClientSession())
        await lease_monitor(database)
        edge = await stack.enter_async_context(FollowingEdge.running(dsn, database))
        yield Service(f"http://{host}:{port}", counters, server.zone, database, keyring, session, settings, edge)
