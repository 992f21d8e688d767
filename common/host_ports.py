"""Addresses with a port, as they are written: where to listen, what to connect to."""

from __future__ import annotations

from typing import NamedTuple


class HostPort(NamedTuple):
    """Where to listen or what to connect to; `host` is an IP literal or a name, without brackets."""

    host: str
    port: int

    def __str__(self) -> str:
        return f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}"


def parse_host_port(text: str, default_port: int | None = None) -> HostPort:
    """Parse ``host:port``, ``[v6]:port``, or just a host where there is a default port.

    Raises: ValueError.
    """
    host, colon, port = text.strip().rpartition(":")
    if not colon or (port.endswith("]") and default_port is not None):
        host, port = text.strip(), ""
    if not port:
        if default_port is None:
            raise ValueError("expected host:port")
        port = str(default_port)
    host = host.removeprefix("[").removesuffix("]")
    if not host or not port.isascii() or not port.isdigit() or not 0 < int(port) < 65536:
        raise ValueError("expected host:port with a port from 1 to 65535")
    return HostPort(host, int(port))
