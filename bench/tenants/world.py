"""Two applications, their Postgres and their DNS; an API before them as often as wanted."""

from __future__ import annotations

import contextlib
import tempfile
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import dns.message
import dns.name

from api.cli.database import prepare
from bench.application import make_application
from bench.certificate_world import RoleProcess
from bench.lab.server import NameServer
from bench.lab.zone import Zone
from bench.private_stage import private_environment
from bench.tenants.client import Tenant
from common.db.pool import open_pool
from common.host_ports import HostPort
from common.postgres import EmbeddedPostgres
from common.settings import load

DEAD_ZONE = "dead.example"
READY_ZONE = "ready.example"
"""Every name below leads to the neighbour's CNAME target, and from there to the edge."""

_DEAD = dns.name.from_text(DEAD_ZONE)
_TARGETS = ("apps.offender.example", "apps.neighbour.example")


class _HalfDeadZone(Zone):
    """A zone that gives questions below `DEAD_ZONE` no answer."""

    def answer(self, query: dns.message.Message) -> dns.message.Message | None:
        """Answer a question, but none below `DEAD_ZONE`."""
        if query.question and query.question[0].name.is_subdomain(_DEAD):
            return None
        self.questions.clear()  # not read here
        return super().answer(query)


@dataclass(frozen=True, slots=True)
class TwoTenants:
    """Two applications and what an API needs to serve them. Created by `two_tenants`."""

    dsn: str
    environ: dict[str, str]
    log: Path
    offender: Tenant
    neighbour: Tenant

    @contextlib.asynccontextmanager
    async def api(self, **settings: str) -> AsyncIterator[HostPort]:
        """Run an API process for the block, and yield where it listens; `settings` are named without the prefix.

        Raises: `OperatorError`.
        """
        environ = self.environ | {f"FRONTAGE_{name}": value for name, value in settings.items()}
        process = RoleProcess("api", environ, self.log)
        try:
            await process.start()
            yield process.settings.api_listen
        finally:
            await process.stop()


@contextlib.asynccontextmanager
async def two_tenants(directory: Path | None) -> AsyncIterator[TwoTenants]:
    """Create the database, the DNS and the two applications for the block."""
    with tempfile.TemporaryDirectory(prefix="frontage-tenants-", dir=directory, ignore_cleanup_errors=True) as name:
        state_dir = Path(name)
        zone = _HalfDeadZone()
        async with NameServer.serve(zone) as server:
            environ = private_environment(state_dir, ALLOW_PRIVATE_ADDRESSES="127.0.0.0/8", DNS_SERVERS=server.address)
            settings = load(environ)
            for target in _TARGETS:
                zone.add(target, "CNAME", settings.power_target)
            zone.add(settings.power_target, "A", "127.0.0.1")
            zone.add(f"*.{READY_ZONE}", "CNAME", _TARGETS[1])
            postgres = EmbeddedPostgres(state_dir)
            try:
                dsn = postgres.start()  # from this thread: the server ends with it
                keyring = await prepare(settings)
                async with open_pool(dsn, size=1, application_name="frontage bench") as database:
                    offender, neighbour = [
                        Tenant(*await make_application(database, keyring, name=target, cname_target=target), address)
                        for target, address in zip(_TARGETS, ("127.0.0.2", "127.0.0.3"), strict=True)
                    ]
                yield TwoTenants(dsn, environ, state_dir / "api.log", offender, neighbour)
            finally:
                postgres.stop()
