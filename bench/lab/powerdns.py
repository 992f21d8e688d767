"""PowerDNS, an authoritative name server with an HTTP API, as a provider's API in earnest.

It serves its zones on a free port, UDP and TCP, takes changes over its API, and ends with the block.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import shutil
import signal
import sqlite3
import subprocess
import tempfile
from collections.abc import AsyncIterator, Iterable, Mapping
from pathlib import Path
from typing import Any, Self

import aiohttp

from bench.lab.ports import free_ports
from bench.lab.programs import end_process, last_log_line
from common.errors import OperatorError
from common.host_ports import HostPort
from common.processes import spawn

_SCHEMA = Path("/usr/share/pdns-backend-sqlite3/schema/schema.sqlite3.sql")
_START_SECONDS = 20.0
_POLL_SECONDS = 0.02
_TTL_SECONDS = 60

_CONFIGURATION = """
launch=gsqlite3
gsqlite3-database={directory}/zones.sqlite3
gsqlite3-pragma-synchronous=0
local-address={host}
local-port={port}
api=yes
api-key={key}
webserver=yes
webserver-address={host}
webserver-port={api_port}
webserver-allow-from=127.0.0.0/8
socket-dir=.
cache-ttl=0
query-cache-ttl=0
negquery-cache-ttl=0
zone-cache-refresh-interval=0
disable-syslog=yes
"""

Records = Iterable[tuple[str, str, str]]
"""Whole name, type and value."""


def find_powerdns() -> str | None:
    """Return the command, if the Debian packages ``pdns-server`` and ``pdns-backend-sqlite3`` are installed."""
    command = shutil.which("pdns_server", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin")
    return command if _SCHEMA.exists() else None


class PowerDns:
    """A PowerDNS server. Created and closed by `serve`. `api_url` and `key` are what a person would paste."""

    def __init__(self, address: HostPort, api_port: int, key: str) -> None:
        self.address = address
        self.api_url = f"http://{address.host}:{api_port}"
        self.key = key

    @classmethod
    @contextlib.asynccontextmanager
    async def serve(
        cls, zones: Mapping[str, Records], *, host: str = "127.0.0.1", ports: tuple[int, int] | None = None
    ) -> AsyncIterator[Self]:
        """Serve within the block. `ports`: of the name server and of the API; two that are free, if not given.

        Raises: `OperatorError` when PowerDNS is not installed or does not start.
        """
        command = find_powerdns()
        if command is None:
            raise OperatorError(
                "pdns_server is not installed: see the Debian packages pdns-server, pdns-backend-sqlite3"
            )
        with tempfile.TemporaryDirectory(prefix="frontage-pdns-", ignore_cleanup_errors=True) as made:
            directory = Path(made)
            port, api_port = ports or free_ports(2, host)
            server = cls(HostPort(host, port), api_port, secrets.token_hex(16))
            (directory / "pdns.conf").write_text(
                _CONFIGURATION.format(directory=directory, host=host, port=port, api_port=api_port, key=server.key)
            )
            _create_database(directory / "zones.sqlite3")
            with (directory / "log").open("wb") as log:
                process = spawn(
                    [command, f"--config-dir={directory}"],
                    env=os.environ,
                    cwd=directory,  # for its control socket: the path of a Unix socket may have 107 bytes
                    stdout=log,
                    stderr=log,
                    death_signal=signal.SIGTERM,
                )
            try:
                await server._until_ready(process, directory / "log")
                for zone, records in zones.items():
                    await server.create(zone, records)
                yield server
            finally:
                end_process(process)

    async def create(self, zone: str, records: Records) -> None:
        """Create a zone with an SOA of its own and these records."""
        sets: dict[tuple[str, str], list[str]] = {}
        for name, kind, value in records:
            sets.setdefault((name, kind), []).append(value)
        rrsets = [
            {
                "name": f"{name}.",
                "type": kind,
                "ttl": _TTL_SECONDS,
                "records": [{"content": value, "disabled": False} for value in values],
            }
            for (name, kind), values in sets.items()
        ]
        body = {"name": f"{zone}.", "kind": "Native", "nameservers": [], "rrsets": rrsets}
        await self._call("POST", "/zones", body)

    async def replace(self, zone: str, name: str, kind: str, *values: str) -> None:
        """Make `values` the name's only records of that type; with none, remove them."""
        records = [{"content": value, "disabled": False} for value in values]
        change = {"name": f"{name}.", "type": kind, "ttl": _TTL_SECONDS, "changetype": "REPLACE", "records": records}
        await self._call("PATCH", f"/zones/{zone}.", {"rrsets": [change]})

    async def _call(self, method: str, path: str, body: Any) -> None:
        url = f"{self.api_url}/api/v1/servers/localhost{path}"
        async with (
            aiohttp.ClientSession(headers={"X-API-Key": self.key}) as session,
            session.request(method, url, json=body) as response,
        ):
            if response.status >= 300:
                raise OperatorError(f"PowerDNS answered {response.status}: {await response.text()}")

    async def _until_ready(self, process: subprocess.Popen[bytes], log: Path) -> None:
        async with asyncio.timeout(_START_SECONDS):
            while True:
                with contextlib.suppress(aiohttp.ClientError, OperatorError):
                    return await self._call("GET", "/zones", None)
                if process.poll() is not None:
                    raise OperatorError(f"pdns_server did not start: {last_log_line(log)}")
                await asyncio.sleep(_POLL_SECONDS)


def _create_database(path: Path) -> None:
    with contextlib.closing(sqlite3.connect(path)) as database:
        database.execute("pragma journal_mode = wal")  # readers and the writer do not lock each other out
        database.executescript(_SCHEMA.read_text())
