"""Every listening socket of the edge: one pair (HTTP and HTTPS, SO_REUSEPORT) a worker, the admin port's, and the DNS'.

A socket with queued clients is never closed while the edge runs: closing it resets them (the kernel's
``net.ipv4.tcp_migrate_req`` is off by default). So the upgrade parent opens all of them, or gets them from systemd, and
holds them; every supervisor and worker inherits them, and commands say which worker accepts from which. Descriptors
describe them: a process that inherits these can go on from there. This module must not accept.

The public sockets are bound at first, and listen once a generation can serve: until then the kernel refuses clients.
Those from systemd listen from the beginning.
"""

from __future__ import annotations

import socket
from collections.abc import Mapping, Sequence
from typing import Self

from common.errors import OperatorError
from common.host_ports import HostPort
from common.listen_errors import cannot_listen
from common.socket_activation import one_for_each
from edge.process.address_spreading import spread_by_address
from edge.process.worker_messages import ListenerPair

HTTP, HTTPS, ADMIN, DNS = "http", "https", "admin", "dns"
"""The names of the sockets that systemd passes."""
BACKLOG = 4096  # the kernel caps it at net.core.somaxconn, 4096 by default since Linux 5.4


class Listeners:
    """One process' references to the sockets, closed by its creator; a socket ends with its last reference."""

    def __init__(
        self, pairs: Sequence[ListenerPair], admin: int, sockets: list[socket.socket], dns: Sequence[int] = ()
    ) -> None:
        """Take the sockets. `dns`: descriptors of EDGE_DNS over UDP and over TCP, none where it is off."""
        self.pairs = tuple(pairs)
        self.admin = admin
        self.dns = list(dns)
        self._sockets = sockets

    @classmethod
    def opened(cls, http: HostPort, https: HostPort, admin: HostPort, pairs: int, dns: HostPort | None = None) -> Self:
        """Bind every socket.

        Raises: `OperatorError` that names every variable whose address cannot be had.
        """
        sockets: list[socket.socket] = []
        opened: list[list[int]] = []
        problems: list[str] = []
        for address, variable, count in (
            (http, "FRONTAGE_EDGE_HTTP", pairs),
            (https, "FRONTAGE_EDGE_HTTPS", pairs),
            (admin, "FRONTAGE_EDGE_ADMIN", 1),
        ):
            try:
                opened.append(_bind(sockets, address, variable, count))
            except OperatorError as error:
                problems.append(str(error))
        names: list[int] = []
        try:
            names = _bind_dns(sockets, dns)
        except OperatorError as error:
            problems.append(str(error))
        if problems:
            for listener in sockets:
                listener.close()
            raise OperatorError("; ".join(problems))
        plain, secure, (own,) = opened
        _listen(next(each for each in sockets if each.fileno() == own))
        return cls([ListenerPair(*pair) for pair in zip(plain, secure, strict=True)], own, sockets, names)

    @classmethod
    def passed(
        cls, sockets: Mapping[str, list[socket.socket]], admin: HostPort, workers: int, dns: HostPort | None = None
    ) -> Self:
        """Take the sockets of socket units (`socket_activation`); those of the admin port and EDGE_DNS may be ours.

        Each worker accepts from at least one socket of each port, and each socket has a worker.

        Raises: `OperatorError` when the admin port is not passed, and its address cannot be had; or that of EDGE_DNS.
        """
        plain, secure = sockets[HTTP], sockets[HTTPS]
        pairs = max(workers, len(plain), len(secure))
        plain, secure = one_for_each(plain, pairs), one_for_each(secure, pairs)
        own = sockets.get(ADMIN) or []
        held = [*plain, *secure, *own]
        for listener in held:
            listener.setblocking(False)
        if not own:
            _bind(held, admin, "FRONTAGE_EDGE_ADMIN", 1)
            _listen(held[-1])
        own_descriptor = held[-1].fileno()
        numbered = [ListenerPair(http.fileno(), https.fileno()) for http, https in zip(plain, secure, strict=True)]
        names = _take_dns(held, sockets.get(DNS, [])) or _bind_dns(held, dns)
        return cls(numbered, own_descriptor, held, names)

    @classmethod
    def inherited(cls, pairs: Sequence[ListenerPair], admin: int, dns: Sequence[int] = ()) -> Self:
        """Take sockets that the parent opened, by their descriptors."""
        descriptors = [admin, *_descriptors(pairs), *dns]
        return cls(pairs, admin, [socket.socket(fileno=descriptor) for descriptor in descriptors], dns)

    def listen(self) -> None:
        """Let clients connect to the data path; harmless where they can."""
        for listener in self._public:
            _listen(listener)

    def spread_by_address(self) -> None:
        """Lead all connections of a client's address to one pair (`edge.process.address_spreading`), once they listen.

        Raises: `OperatorError`.
        """
        spread_by_address(self._public)

    @property
    def _public(self) -> list[socket.socket]:
        return [each for each in self._sockets if each.fileno() not in (self.admin, *self.dns)]

    @property
    def descriptors(self) -> tuple[int, ...]:
        """Return the descriptors of the data path."""
        return _descriptors(self.pairs)

    def close_pairs(self) -> None:
        """Close the sockets of the data path."""
        for listener in self._public:
            listener.close()

    def close(self) -> None:
        """Close all sockets."""
        for listener in self._sockets:
            listener.close()


def _descriptors(pairs: Sequence[ListenerPair]) -> tuple[int, ...]:
    return tuple(descriptor for pair in pairs for descriptor in (pair.http, pair.https))


def _bind(sockets: list[socket.socket], address: HostPort, variable: str, count: int) -> list[int]:
    try:
        family, _, _, _, target = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
        # Every process of the same user may join a SO_REUSEPORT group: only a bind without it fails
        # when another process, such as another edge, listens already.
        with _bound(family, target, reuse_address=True, shared=False):
            pass
        listeners = _bind_shared(family, target, count)
    except OSError as error:
        raise cannot_listen(address, variable, error) from error
    sockets += listeners
    return [listener.fileno() for listener in listeners]


def _take_dns(sockets: list[socket.socket], passed: list[socket.socket]) -> list[int]:
    """Take the passed sockets of EDGE_DNS, that of UDP first; nothing where none are passed.

    Raises: `OperatorError` unless they are one of each kind.
    """
    by_kind = {each.type: each for each in passed}
    if passed and (len(passed) != 2 or by_kind.keys() != {socket.SOCK_DGRAM, socket.SOCK_STREAM}):
        raise OperatorError("systemd's socket unit named dns needs one ListenDatagram= and one ListenStream=")
    for each in passed:
        each.setblocking(False)
    sockets += passed
    return [by_kind[kind].fileno() for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM)] if passed else []


def _bind_dns(sockets: list[socket.socket], address: HostPort | None) -> list[int]:
    """Open EDGE_DNS over UDP and over TCP; nothing where it is off.

    Questions queue from now on, for whichever generation answers.

    Raises: `OperatorError`.
    """
    if address is None:
        return []
    try:
        family, _, _, _, target = socket.getaddrinfo(
            address.host, address.port, type=socket.SOCK_DGRAM, flags=socket.AI_PASSIVE
        )[0]
        # Without SO_REUSEADDR: over UDP it would let another edge take the questions.
        datagrams = _bound(family, target, reuse_address=False, shared=False, kind=socket.SOCK_DGRAM)
        sockets.append(datagrams)
        listener = _bound(family, target, reuse_address=True, shared=False)
    except OSError as error:
        raise cannot_listen(address, "FRONTAGE_EDGE_DNS", error) from error
    sockets.append(listener)
    _listen(listener)
    return [datagrams.fileno(), listener.fileno()]


def _listen(listener: socket.socket) -> None:
    # Not before: connections inherit it, and what is left of them must not keep the next edge from the port.
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.listen(BACKLOG)


def _bind_shared(family: int, target: tuple[object, ...], count: int) -> list[socket.socket]:
    """Bind without SO_REUSEADDR where that is possible, so that another edge finds the address in use.

    It is not possible for a minute after another program's connections at this port have ended.
    """
    listeners = []
    for _ in range(count):
        try:
            listeners.append(_bound(family, target, reuse_address=False, shared=True))
        except OSError:
            listeners.append(_bound(family, target, reuse_address=True, shared=True))
    return listeners


def _bound(
    family: int,
    target: tuple[object, ...],
    *,
    reuse_address: bool,
    shared: bool,
    kind: socket.SocketKind = socket.SOCK_STREAM,
) -> socket.socket:
    listener = socket.socket(family, kind)
    try:
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, reuse_address)
        if shared:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        listener.setblocking(False)
        listener.bind(target)
    except BaseException:
        listener.close()
        raise
    return listener
