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
    """What every peer serves: the port of each host's origin on loopback, and where the certificates lie."""

    origin_ports: Mapping[str, int]
    certificates: Path
    """``<host>.pem`` each: private key and chain."""
    log: Path | None = None
    """The access log, one line a request; None for none."""

    def scheme(self, host: str) -> str:
        """Return how the host's origin is spoken to."""
        return "https" if host == SECURE_HOST else "http"

    @property
    def secure_ports(self) -> frozenset[int]:
        return frozenset(port for host, port in self.origin_ports.items() if self.scheme(host) == "https")

    def certificate(self, host: str) -> Path:
        return self.certificates / f"{host}.pem"


@dataclass(frozen=True, slots=True)
class RunningProxy:
    """A proxy that serves the sites on loopback; `pid` is the root of its process tree."""

    pid: int
    http_port: int
    https_port: int


class Peer(Protocol):
    name: str

    @property
    def needs(self) -> Mapping[str, str]:
        """Programs that must be installed, and the Debian packages they are in."""

    def serve(self, sites: Sites) -> AbstractAsyncContextManager[RunningProxy]:
        """The proxy before its origins, pinned to `PROXY_CORE`, until the block ends."""


def missing(programs: Mapping[str, str]) -> list[str]:
    """The packages of those programs that are not there."""
    return sorted({package for program, package in programs.items() if shutil.which(program) is None})
