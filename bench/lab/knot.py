"""knot, an authoritative name server in earnest, where the lab's own zone would prove too little or be too slow.

It serves its zones on a free port, UDP and TCP, and ends with the block. Zones change by RFC 2136 updates, as an
operator's would.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import AsyncIterator, Collection, Mapping
from pathlib import Path
from typing import Self

import dns.asyncquery
import dns.exception
import dns.message
import dns.rcode
import dns.rdatatype
import dns.update

from bench.lab.ports import free_ports
from bench.lab.programs import end_process, last_log_line
from common.errors import OperatorError
from common.host_ports import HostPort
from common.processes import spawn

_START_SECONDS = 20.0
_POLL_SECONDS = 0.02
_ASK_SECONDS = 2.0
_PROBE_SECONDS = 0.1
_TTL_SECONDS = 60
_SECURE_ENTRY_POINT = 1  # RFC 4034 §2.1.1
_HEAD = "$ORIGIN {zone}.\n$TTL 60\n@ SOA ns hostmaster 1 3600 600 86400 60\n"

_CONFIGURATION = """
server:
    rundir: "{directory}"
    listen: {host}@{port}
    udp-workers: 1
    tcp-workers: 1
    background-workers: 1
database:
    storage: "{directory}"
log:
  - target: stderr
    any: warning
acl:
  - id: ours
    address: 127.0.0.0/8
    action: update
{keyed}template:
  - id: default
    storage: "{directory}"
    file: "%s.zone"
    zonefile-sync: -1
    journal-content: none
    acl: [{acls}]
zone:
"""


def find_knot() -> str | None:
    """Return the command, if the Debian package ``knot`` is installed."""
    return shutil.which("knotd", path=f"{os.environ.get('PATH', os.defpath)}:/usr/sbin:/sbin")


class Knot:
    """A Knot name server. Created and closed by `serve`."""

    def __init__(self, address: HostPort) -> None:
        self.address = address

    @classmethod
    @contextlib.asynccontextmanager
    async def serve(
        cls,
        zones: Mapping[str, str],
        *,
        host: str = "127.0.0.1",
        port: int = 0,
        keys: Mapping[str, str] | None = None,
        signed: Collection[str] = (),
    ) -> AsyncIterator[Self]:
        """Serve `zones`, zone files by apex, within the block; a zone without SOA is given one.

        `keys`: TSIG keys (hmac-sha256) that may update every zone, by name, in base64. `signed`: the zones that it
        signs (DNSSEC), with keys of its own.

        Raises: `OperatorError` when knot is not installed or does not start.
        """
        command = find_knot()
        if command is None:
            raise OperatorError("knotd is not installed: it is in the Debian package knot")
        with tempfile.TemporaryDirectory(prefix="frontage-knot-", ignore_cleanup_errors=True) as made:
            directory = Path(made)
            server = cls(HostPort(host, port or free_ports(1, host)[0]))
            configuration = _keys(keys or {}) + _CONFIGURATION.format(
                directory=directory,
                host=host,
                port=server.address.port,
                keyed="".join(f"  - id: by-{name}\n    key: {name}\n    action: update\n" for name in keys or {}),
                acls=", ".join(["ours", *(f"by-{name}" for name in keys or {})]),
            )
            for zone, text in zones.items():
                head = "" if " SOA " in text else _HEAD.format(zone=zone)
                (directory / f"{zone}.zone").write_text(head + text)
                configuration += f"  - domain: {zone}\n" + ("    dnssec-signing: on\n" if zone in signed else "")
            (directory / "knot.conf").write_text(configuration)
            with (directory / "log").open("wb") as log:
                process = spawn(
                    [command, "-c", str(directory / "knot.conf")],
                    env=os.environ,
                    stdout=log,
                    stderr=log,
                    death_signal=signal.SIGTERM,
                )
            try:
                await server._until_ready(process, directory / "log", [*zones])
                yield server
            finally:
                end_process(process)

    async def add(self, zone: str, name: str, kind: str, value: str) -> None:
        """Add one record; `name` is relative to the zone, or @."""
        update = dns.update.UpdateMessage(zone)
        update.add(name, _TTL_SECONDS, kind, value)
        await self._send(update)

    async def remove(self, zone: str, name: str, kind: str) -> None:
        """Remove every record of that name and type."""
        update = dns.update.UpdateMessage(zone)
        update.delete(name, kind)
        await self._send(update)

    async def find_trust_anchor(self, zone: str) -> str:
        """Return the record of the key that signs a signed zone's keys, for a validating resolver.

        Raises: TimeoutError for a zone that is not signed.
        """
        query = dns.message.make_query(zone, "DNSKEY")
        async with asyncio.timeout(_START_SECONDS):
            while True:  # it signs after it begins to answer
                reply = await dns.asyncquery.tcp(query, self.address.host, port=self.address.port, timeout=_ASK_SECONDS)
                for key in (each for found in reply.answer for each in found):
                    if key.rdtype == dns.rdatatype.DNSKEY and key.flags & _SECURE_ENTRY_POINT:
                        return f"{zone}. {_TTL_SECONDS} IN DNSKEY {key.to_text()}"
                await asyncio.sleep(_POLL_SECONDS)

    async def _send(self, update: dns.update.UpdateMessage) -> None:
        reply = await dns.asyncquery.tcp(update, self.address.host, port=self.address.port, timeout=_ASK_SECONDS)
        if reply.rcode() != dns.rcode.NOERROR:
            raise OperatorError(f"knot did not take the update: {dns.rcode.to_text(reply.rcode())}")

    async def _until_ready(self, process: subprocess.Popen[bytes], log: Path, zones: list[str]) -> None:
        async with asyncio.timeout(_START_SECONDS):
            for zone in zones:
                while not await self._knows(zone):
                    if process.poll() is not None:
                        raise OperatorError(f"knotd did not start: {last_log_line(log)}")
                    await asyncio.sleep(_POLL_SECONDS)

    async def _knows(self, zone: str) -> bool:
        query = dns.message.make_query(zone, "SOA")
        try:
            reply = await dns.asyncquery.udp(query, self.address.host, port=self.address.port, timeout=_PROBE_SECONDS)
        except (dns.exception.DNSException, OSError):
            return False
        return reply.rcode() == dns.rcode.NOERROR and bool(reply.answer)


def _keys(keys: Mapping[str, str]) -> str:
    entries = (f"  - id: {name}\n    algorithm: hmac-sha256\n    secret: {secret}\n" for name, secret in keys.items())
    return "key:\n" + "".join(entries) if keys else ""
