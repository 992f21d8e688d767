"""Pebble, the ACME test server, with the DNS it asks: real processes on loopback, with a CA of their own.

Every name leads to 127.0.0.1 there, so validation arrives at whatever listens on `http_port`: an edge. Pebble's habits
are chosen by its environment (its README): by default it validates at once and rejects 5 % of good nonces.
Needs Debian's ``pebble`` (and ``pebble-challtestsrv``, which it comes with).
"""

from __future__ import annotations

import asyncio
import ipaddress
import json
import shutil
import ssl
import subprocess
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import aiohttp
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat
from cryptography.x509.oid import NameOID

from bench.lab.ports import free_ports
from common.host_ports import HostPort
from common.processes import spawn

_READY_SECONDS = 15.0
DEFAULT_HABITS = {"PEBBLE_VA_NOSLEEP": "1", "PEBBLE_AUTHZREUSE": "0"}


@dataclass(frozen=True, slots=True)
class Pebble:
    """A CA of Pebble's. Made by `running_pebble`."""

    directory: str
    ca_file: Path
    """Whom to trust for the API; what it issues has other roots."""
    management: str
    dns: str
    """The name server it asks, ``host:port``."""
    dns_management: str
    log_file: Path

    @property
    def trust(self) -> ssl.SSLContext:
        """Return a context that trusts Pebble's API."""
        return ssl.create_default_context(cafile=self.ca_file)

    async def root(self) -> str:
        """Return the certificate that its certificates lead to, PEM; another with every start."""
        return (await self._get("/roots/0")).decode()

    async def certificate_status(self, serial: int) -> dict[str, Any]:
        """Return ``Status`` (Valid, Revoked), and ``Reason`` when revoked."""
        status: dict[str, Any] = json.loads(await self._get(f"/cert-status-by-serial/{serial:x}"))
        return status

    async def tell_dns(self, command: str, **arguments: Any) -> None:
        """Send its DNS server a command such as ``add-caa`` or ``set-servfail`` (pebble-challtestsrv's manual)."""
        async with (
            aiohttp.ClientSession() as session,
            session.post(f"{self.dns_management}/{command}", json=arguments) as answer,
        ):
            answer.raise_for_status()

    def log(self) -> str:
        """Return its log."""
        return self.log_file.read_text()

    def count(self, line: str) -> int:
        """Return how often its log has this line."""
        return self.log().count(line)

    async def _get(self, path: str) -> bytes:
        async with (
            aiohttp.ClientSession() as session,
            session.get(self.management + path, ssl=self.trust) as answer,
        ):
            answer.raise_for_status()
            return await answer.read()


def is_installed() -> bool:
    """Return whether Pebble and its DNS server are installed."""
    return bool(shutil.which("pebble") and shutil.which("pebble-challtestsrv"))


@asynccontextmanager
async def running_pebble(
    directory: Path,
    *,
    http_port: int,
    habits: Mapping[str, str] | None = None,
    external_accounts: Mapping[str, str] | None = None,
    resolver: HostPort | None = None,
    host: str = "127.0.0.1",
    lifetime_seconds: int | None = None,
) -> AsyncIterator[Pebble]:
    """Run Pebble until the end of the block; its files lie in `directory`, which exists.

    `habits` are variables of its environment beside `DEFAULT_HABITS`. With `external_accounts`, key ids and their
    MAC keys (base64url), it takes no others. `resolver`: asked instead of the DNS server in which any name is this
    machine. `host`: the address of this machine that it serves at. `lifetime_seconds`: of its
    certificates, instead of years.
    """
    api, management, dns, dns_management = free_ports(4)
    _write_certificate(directory, host)
    config = directory / "pebble.json"
    described = _config(directory, (f"{host}:{api}", f"{host}:{management}"), http_port, external_accounts or {})
    if lifetime_seconds is not None:
        described["pebble"]["certificateValidityPeriod"] = lifetime_seconds
    config.write_text(json.dumps(described))
    pebble = Pebble(
        directory=f"https://{host}:{api}/dir",
        ca_file=directory / "pebble-api.pem",
        management=f"https://{host}:{management}",
        dns=f"{resolver.host}:{resolver.port}" if resolver else f"127.0.0.1:{dns}",
        dns_management=f"http://127.0.0.1:{dns_management}",
        log_file=directory / "pebble.log",
    )
    environment = {"PATH": "/usr/bin:/bin", **DEFAULT_HABITS, **(habits or {})}
    with pebble.log_file.open("ab") as log:
        commands = (_names(dns, dns_management), ["pebble", "-config", str(config), "-dnsserver", pebble.dns])
        processes = [spawn(command, env=environment, stdout=log, stderr=log) for command in commands]
    try:
        await _until_ready(pebble, processes)
        yield pebble
    finally:
        for process in processes:
            process.kill()
            process.wait()


def _names(dns: int, management: int) -> list[str]:
    """Return the DNS server's command: any name is this machine; nothing else of the server is used."""
    addresses = ["-dns01", f"127.0.0.1:{dns}", "-management", f"127.0.0.1:{management}"]
    off = ["-http01", "", "-https01", "", "-tlsalpn01", ""]
    return ["pebble-challtestsrv", *addresses, *off, "-defaultIPv4", "127.0.0.1", "-defaultIPv6", ""]


def _config(
    directory: Path, listeners: tuple[str, str], http_port: int, external_accounts: Mapping[str, str]
) -> dict[str, Any]:
    api, management = listeners
    return {
        "pebble": {
            "listenAddress": api,
            "managementListenAddress": management,
            "certificate": str(directory / "pebble-api.pem"),
            "privateKey": str(directory / "pebble-api.key"),
            "httpPort": http_port,
            "tlsPort": http_port,
            "externalAccountBindingRequired": bool(external_accounts),
            "externalAccountMACKeys": dict(external_accounts),
        }
    }


def _write_certificate(directory: Path, host: str) -> None:
    """Write a self-signed certificate for that address: its own CA file."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "Pebble's API")])
    now = datetime.now(UTC)
    names = [x509.DNSName("localhost"), x509.IPAddress(ipaddress.ip_address(host))]
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName(names), critical=False)
        .sign(key, hashes.SHA256())
    )
    (directory / "pebble-api.pem").write_bytes(certificate.public_bytes(Encoding.PEM))
    (directory / "pebble-api.key").write_bytes(key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()))


async def _until_ready(pebble: Pebble, processes: list[subprocess.Popen[bytes]]) -> None:
    """Wait until both answer.

    Raises: RuntimeError when one ends instead; TimeoutError.
    """
    async with asyncio.timeout(_READY_SECONDS), aiohttp.ClientSession() as session:
        for url in (pebble.directory, f"{pebble.dns_management}/"):
            while True:
                if any(process.poll() is not None for process in processes):
                    raise RuntimeError(f"Pebble did not start: {pebble.log()}")
                try:
                    async with session.get(url, ssl=pebble.trust):
                        break
                except aiohttp.ClientError:
                    await asyncio.sleep(0.02)
