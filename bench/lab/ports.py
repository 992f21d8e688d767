"""Ports that are free for both of DNS' protocols."""

from __future__ import annotations

import contextlib
import socket

_ATTEMPTS = 50


def free_dns_port(host: str) -> int:
    """A port nobody uses now, over UDP or TCP; somebody may before you do."""
    for _ in range(_ATTEMPTS):
        with contextlib.ExitStack() as held:
            datagrams = held.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
            datagrams.bind((host, 0))
            port: int = datagrams.getsockname()[1]
            stream = held.enter_context(socket.socket())
            try:
                stream.bind((host, port))
            except OSError:
                continue
            return port
    raise OSError("no port is free for both UDP and TCP")
