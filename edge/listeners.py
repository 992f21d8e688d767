"""Every listening socket of the data path: one SO_REUSEPORT pair ("gate") a worker, owned by the supervisor.

A socket with queued clients is never closed while the edge runs: closing it resets them (the kernel's
``net.ipv4.tcp_migrate_req`` is off by default). So the supervisor holds all of them, all workers inherit all of
them, and who accepts from which is a matter of telling. `gates` is the one description of the sockets: whoever
inherits the descriptors can go on from it. This module must not accept.
"""

from __future__ import annotations

import errno
import socket

from common.errors import OperatorError
from common.settings import HostPort
from edge.worker_control import Gate

BACKLOG = 4096  # the kernel caps it at net.core.somaxconn, 4096 by default since Linux 5.4


class Listeners:
    """Opened before the first worker starts, closed by the supervisor when all is over."""

    def __init__(self, http: HostPort, https: HostPort, gates: int) -> None:
        """Raises: `OperatorError` that names the variable whose address cannot be had."""
        self._sockets: list[socket.socket] = []
        try:
            plain = self._open(http, "FRONTAGE_EDGE_HTTP", gates)
            secure = self._open(https, "FRONTAGE_EDGE_HTTPS", gates)
        except BaseException:
            self.close()
            raise
        self.gates = tuple(Gate(*pair) for pair in zip(plain, secure, strict=True))

    @property
    def descriptors(self) -> tuple[int, ...]:
        return tuple(descriptor for gate in self.gates for descriptor in (gate.http, gate.https))

    def close(self) -> None:
        for listener in self._sockets:
            listener.close()
        self._sockets.clear()

    def _open(self, address: HostPort, variable: str, count: int) -> list[int]:
        try:
            family, _, _, _, target = socket.getaddrinfo(
                address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
            )[0]
            # Every process of the same user may join a SO_REUSEPORT group: only a bind without it tells
            # whether somebody else, another edge say, is there already.
            with _bound(family, target, shared=False):
                pass
            listeners = [_bound(family, target, shared=True) for _ in range(count)]
        except OSError as error:
            raise cannot_listen(address, variable, error) from error
        self._sockets += listeners
        for listener in listeners:
            listener.listen(BACKLOG)
        return [listener.fileno() for listener in listeners]


def cannot_listen(address: HostPort, variable: str, error: OSError) -> OperatorError:
    """One line for the operator about an address that cannot be listened on."""
    if error.errno == errno.EADDRINUSE:
        reason = f"{address} is in use: stop what listens there, or set {variable} to another address"
    elif error.errno in {errno.EACCES, errno.EPERM}:
        reason = f"{address} needs a privilege: use a port above 1023, or grant CAP_NET_BIND_SERVICE"
    else:
        reason = error.strerror or str(error)
    return OperatorError(f"{variable}: {reason}")


def _bound(family: int, target: tuple[object, ...], *, shared: bool) -> socket.socket:
    listener = socket.socket(family, socket.SOCK_STREAM)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if shared:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.setblocking(False)
        listener.bind(target)
    except BaseException:
        listener.close()
        raise
    return listener
