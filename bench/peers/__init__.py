"""Proxies side by side. A peer knows how to start itself before origins; `bench.compare` loads and measures it.

All do the same work: they serve the same hosts with the same certificates (ECDSA P-256, TLS 1.2 and 1.3, session
tickets but no session cache), add the same fields to what they forward (X-Forwarded-For, -IP, -Proto, -Port and -Host,
x-service-forwarded-host, Via), keep connections alive on both sides, and write an access log where it is asked for
(nginx and HAProxy in the combined format, Caddy and Frontage as JSON; aiohttp none). To add one: a class with
`name`, `needs` and `serve`, in a module that is called like no library, and a line in `bench.compare`.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

PROXY_CORE = 0
LOAD_CORE = 1
HOST = "shop.customer.localhost"  # what clients ask for: Host and SNI
SOCKET_HOST = "socket.customer.localhost"  # echoes the messages of a WebSocket
SECURE_HOST = "tls.customer.localhost"  # its origin speaks TLS; no peer verifies the certificate


@dataclass(frozen=True, slots=True)
class Sites:
    """What every peer serves: the port of each host's origin on loopback, and the directory of the certificates."""

    origin_ports: Mapping[str, int]
    certificates: Path
    """``<host>.pem`` each: private key and chain."""
    log: Path | None = None
    """The access log, one line a request; None for none."""

    def scheme(self, host: str) -> str:
        """Return the scheme by which the host's origin is reached."""
        return "https" if host == SECURE_HOST else "http"

    @property
    def secure_ports(self) -> frozenset[int]:
        """Return the ports of the origins that speak TLS."""
        return frozenset(port for host, port in self.origin_ports.items() if self.scheme(host) == "https")

    def certificate(self, host: str) -> Path:
        """Return the file with the host's private key and chain."""
        return self.certificates / f"{host}.pem"


@dataclass(frozen=True, slots=True)
class RunningProxy:
    """A proxy that serves the sites on loopback; `pid` is the root of its process tree."""

    pid: int
    http_port: int
    https_port: int


class Peer(Protocol):
    """A proxy that the benches compare."""

    name: str

    @property
    def needs(self) -> Mapping[str, str]:
        """Return the programs that must be installed, by program the Debian package."""

    def serve(self, sites: Sites) -> AbstractAsyncContextManager[RunningProxy]:
        """Run the proxy before its origins for the block, pinned to `PROXY_CORE`."""


def missing(programs: Mapping[str, str]) -> list[str]:
    """Return the packages of those programs that are not installed."""
    return sorted({package for program, package in programs.items() if shutil.which(program) is None})
