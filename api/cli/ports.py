"""Checks that the ports of the roles are free, before anything starts, so that the error names a setting.

A role may still lose the race for its port; this is for people, not a reservation.
"""

from __future__ import annotations

import contextlib
import errno
import socket
import time
from collections.abc import Iterable, Sequence

from common.errors import OperatorError
from common.host_ports import HostPort
from common.listen_errors import cannot_listen
from common.settings import PREFIX, Settings

LISTENERS = ("edge_http", "edge_https", "edge_admin", "edge_dns", "api_listen", "api_admin", "monitor_admin")

_PATIENCE_SECONDS = 1.0  # processes of an `up` that was killed may be leaving
_POLL_SECONDS = 0.05


def require_free(settings: Settings) -> None:
    """Refuse ports that are taken.

    Raises: `OperatorError` naming every variable whose address cannot be listened on.
    """
    deadline = time.monotonic() + _PATIENCE_SECONDS
    while (problem := find_problem(settings)) is not None:
        if time.monotonic() > deadline:
            raise OperatorError(problem)
        time.sleep(_POLL_SECONDS)


def find_problem(settings: Settings, listeners: Sequence[str] = LISTENERS) -> str | None:
    """Return why addresses cannot be listened on, all in one line. All are bound at once, so that duplicates show."""
    taken: list[str] = []
    problems: list[str] = []
    with contextlib.ExitStack() as held:
        for field in listeners:
            address: HostPort | None = getattr(settings, field)
            if address is None:  # off
                continue
            try:
                held.enter_context(bind(address))
            except OSError as error:
                variable = PREFIX + field.upper()
                if error.errno == errno.EADDRINUSE:
                    taken.append(f"{variable}: {address} is in use")
                else:
                    problems.append(str(cannot_listen(address, variable, error)))
    if taken:
        problems.append(f"{', '.join(taken)}. Stop what listens there, such as a demo, or set other addresses")
    return "; ".join(problems) or None


def free_instead_of_taken(addresses: Iterable[HostPort]) -> dict[HostPort, HostPort]:
    """Return a free port of the same host for each address that is in use."""
    instead: dict[HostPort, HostPort] = {}
    with contextlib.ExitStack() as held:  # all at once, so that no port is found twice
        for address in addresses:
            try:
                held.enter_context(bind(address))
            except OSError as error:
                if error.errno == errno.EADDRINUSE:
                    found = held.enter_context(bind(HostPort(address.host, 0)))
                    instead[address] = HostPort(address.host, found.getsockname()[1])
    return instead


def bind(address: HostPort) -> socket.socket:
    """Return a socket bound to `address` that accepts no connection. Raises: OSError."""
    family, kind, protocol, _, resolved = socket.getaddrinfo(
        address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    bound = socket.socket(family, kind, protocol)
    try:
        bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        bound.bind(resolved)
        bound.listen(1)  # two sockets may be bound to one port; only one may listen
    except BaseException:
        bound.close()
        raise
    return bound
