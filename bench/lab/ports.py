"""Ports for servers that must be given a port number before they start.

The kernel picks a port for `bind(0)` from the range of outgoing connections: between the probe and the server's own
bind, a connection or another process may take it. These ports lie below that range, and a counter in a locked file
gives each port to one caller, so concurrent tests and benches do not meet. Programs that leave no file behind draw
theirs from a range of their own.
"""

from __future__ import annotations

import os
import secrets
import socket
import tempfile
from pathlib import Path
from typing import Final

from common.file_locks import locked_text

# Both end before the range of outgoing connections begins, at 32768 (ip(7), ip_local_port_range).
_RESERVED: Final = range(20_000, 28_000)
_UNRESERVED: Final = range(28_000, 32_000)


def free_ports(count: int, host: str = "127.0.0.1") -> list[int]:
    """Return ports of `host` that no socket uses, over TCP or UDP; no other call returns them soon.

    Raises: `OSError` when there are not so many.
    """
    with locked_text(Path(tempfile.gettempdir()) / f"frontage-ports-{os.geteuid()}") as counter:
        first = int(counter.read() or 0)
        found: list[int] = []
        for number in range(first, first + len(_RESERVED)):
            if len(found) == count:
                counter.truncate(0)
                counter.write(str(number))
                return found
            if _is_free(host, port := _RESERVED[number % len(_RESERVED)]):
                found.append(port)
    raise OSError(f"fewer than {count} ports are free")


def unreserved_ports(count: int, host: str = "127.0.0.1") -> list[int]:
    """Return free ports, as `free_ports`, and leave no file behind. For programs that people run.

    Another call of this function may return the same ones, none of `free_ports` does.

    Raises: `OSError` when there are not so many.
    """
    first = secrets.randbelow(len(_UNRESERVED))
    found: list[int] = []
    for number in range(first, first + len(_UNRESERVED)):
        if len(found) == count:
            return found
        if _is_free(host, port := _UNRESERVED[number % len(_UNRESERVED)]):
            found.append(port)
    raise OSError(f"fewer than {count} ports are free")


def _is_free(host: str, port: int) -> bool:
    try:
        for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
            with socket.socket(socket.AF_INET, kind) as probe:
                probe.bind((host, port))
    except OSError:
        return False
    return True
