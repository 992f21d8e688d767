"""Makes connections to origins: resolve, check every address against the policy, race, pin, and speak TLS.

The address that was checked is the address that is dialled: the socket is connected here, and TLS is put on it. Nothing
of a request was sent yet: where TLS fails, the origin's next address is tried.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
import ssl
from collections.abc import Callable, Sequence

from common.addresses import AddressPolicy
from common.errors import AddressRefused, FrontageError
from common.host_ports import HostPort
from common.origin_faults import OriginFault
from edge.routing.route import Origin
from edge.transport.deferred_work import LoopTurns
from edge.upstream.address_order import AddressOrder
from edge.upstream.connection import UpstreamConnection
from edge.upstream.dialling import Connected, dial
from edge.upstream.origin_tls import OriginTls
from edge.upstream.resolution import OriginResolver, Unresolvable

_HEAD_START_SECONDS = 0.25  # as RFC 8305 §5 recommends
_MAX_HANDSHAKES = 3  # for one connection, each at another address


class ConnectFailed(FrontageError):
    """The origin could not be reached; nothing was sent to it."""

    def __init__(self, fault: OriginFault, words: str) -> None:
        super().__init__(words)
        self.fault: OriginFault = fault


class ConnectTimedOut(ConnectFailed):
    """The origin did not answer in time."""

    def __init__(self, words: str) -> None:
        super().__init__("timeout", words)


class Connector:
    """Makes a worker's connections."""

    def __init__(
        self,
        resolver: OriginResolver,
        policy: AddressPolicy,
        order: AddressOrder,
        tls: OriginTls,
        turns: LoopTurns,
        *,
        timeout_seconds: float,
        api: HostPort | None = None,
    ) -> None:
        """Prepare to connect.

        `api`: where the management API of this machine listens, which `policy` lets no other origin be.
        """
        self.resolver = resolver
        self._policy = policy
        self._order = order
        self._turns = turns
        self._api = api
        self._timeout_seconds = timeout_seconds
        self.tls = tls

    async def connect(self, origin: Origin, on_lost: Callable[[UpstreamConnection], None]) -> UpstreamConnection:
        """Connect to the origin.

        Raises: `ConnectFailed`.
        """
        try:
            async with asyncio.timeout(self._timeout_seconds):
                return await self._connect(origin, on_lost)
        except TimeoutError as error:
            raise ConnectTimedOut(f"no connection to {origin.host} in {self._timeout_seconds:g} s") from error
        except (OSError, ssl.SSLError, ssl.CertificateError, Unresolvable, AddressRefused) as error:
            raise ConnectFailed(_fault_of(error), f"{type(error).__name__}: {error}") from error

    def note_unanswered(self, connection: UpstreamConnection) -> None:
        """Have the origin's other addresses tried first: a new connection closed before any byte."""
        if connection.has_alternatives:
            now = asyncio.get_running_loop().time()
            self._order.note_failed(connection.origin, [connection.address], now)

    @property
    def address_failure_count(self) -> int:
        """Return how often addresses were passed over since they failed."""
        return self._order.failure_count

    async def _connect(self, origin: Origin, on_lost: Callable[[UpstreamConnection], None]) -> UpstreamConnection:
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._timeout_seconds
        answer = await self.resolver.resolve(origin.host, timeout_seconds=self._timeout_seconds)
        permitted = self._permitted(answer.addresses, origin)
        addresses = self._order.order(origin, permitted, loop.time())
        for remaining_handshakes in reversed(range(_MAX_HANDSHAKES)):
            sock, address = await self._dial(origin, addresses)
            addresses.remove(address)
            connection = UpstreamConnection(origin, on_lost, sock, address=address, has_alternatives=len(permitted) > 1)
            is_last = not (addresses and remaining_handshakes)
            try:
                async with asyncio.timeout_at(None if is_last else (loop.time() + deadline) / 2):
                    await self._speak(connection, sock)
                if is_last or not connection.is_closing():
                    break
                self.note_unanswered(connection)
            except (OSError, ssl.SSLError, ssl.CertificateError):  # a time-out among them
                self.note_unanswered(connection)
                if is_last:
                    raise
        return connection

    async def _dial(self, origin: Origin, addresses: Sequence[str]) -> Connected:
        """Connect to one of these; earlier ones have a head start."""
        await self._turns.take()
        sock, address = await dial(addresses, origin.port, head_start_seconds=_HEAD_START_SECONDS)
        if len(addresses) > 1:
            self._order.note_chosen(origin, addresses, address, asyncio.get_running_loop().time())
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return sock, address

    def _permitted(self, addresses: tuple[str, ...], origin: Origin) -> list[str]:
        """Return the addresses that the policy lets us dial.

        Raises: `AddressRefused` when there are none.
        """
        permitted: list[str] = []
        refusal: AddressRefused | None = None
        for address in addresses:
            try:
                if not (origin.is_own_api and (address, origin.port) == self._api):
                    self._policy.check(ipaddress.ip_address(address), origin.port)
            except AddressRefused as error:
                refusal = error
            else:
                permitted.append(address)
        if refusal is not None and not permitted:
            raise refusal
        return permitted

    async def _speak(self, connection: UpstreamConnection, sock: socket.socket) -> None:
        origin, loop = connection.origin, asyncio.get_running_loop()
        handshake = self.tls.handshake(origin, connection) if origin.scheme == "https" else None
        raw: asyncio.Transport | None = None
        try:
            await self._turns.take()
            raw, _ = await loop.create_connection(lambda: handshake or connection, sock=sock)
            if handshake is not None:
                await self.tls.complete(origin, handshake)
        except BaseException:
            # Cancelled or failed half-way: close the socket, held by the transport or not yet.
            if raw is not None:
                raw.abort()
            sock.close()
            raise


def _fault_of(error: Exception) -> OriginFault:
    match error:
        case Unresolvable():
            return "unresolved"
        case AddressRefused():
            return "forbidden"
        case ssl.SSLCertVerificationError():
            return "certificate"
        case ssl.SSLError():
            return "tls"
        case ConnectionRefusedError():
            return "refused"
        case _:
            return "connection"
