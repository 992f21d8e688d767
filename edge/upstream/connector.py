"""Makes connections to origins: resolve, check every address against the policy, race, pin, and speak TLS.

The address that was checked is the address that is dialled: the socket is connected here, and TLS is put on it.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
import ssl
from collections.abc import Callable

import aiohappyeyeballs

from common.addresses import AddressPolicy
from common.errors import AddressRefused, FrontageError
from common.origin_faults import OriginFault
from common.settings import HostPort
from edge.routing.route import Origin
from edge.upstream.connection import UpstreamConnection
from edge.upstream.resolution import OriginResolver, Unresolvable

# RFC 8305 §5 recommends 250 ms between attempts.
_RACE_DELAY_SECONDS = 0.25


class ConnectFailed(FrontageError):
    """The origin could not be reached; nothing was sent to it."""

    def __init__(self, fault: OriginFault, words: str) -> None:
        super().__init__(words)
        self.fault: OriginFault = fault


class ConnectTimedOut(ConnectFailed):
    """It did not answer in time."""

    def __init__(self, words: str) -> None:
        super().__init__("timeout", words)


class Connector:
    """One a worker. Holds the TLS contexts towards origins."""

    def __init__(
        self,
        resolver: OriginResolver,
        policy: AddressPolicy,
        *,
        timeout_seconds: float,
        api: HostPort | None = None,
    ) -> None:
        """`api`: where the management API of this machine listens, which `policy` lets no other origin be."""
        self._resolver = resolver
        self._policy = policy
        self._api = api
        self._timeout_seconds = timeout_seconds
        self._verifying = _client_context(verify=True)
        self._trusting = _client_context(verify=False)

    async def connect(self, origin: Origin, on_lost: Callable[[UpstreamConnection], None]) -> UpstreamConnection:
        """Raises: `ConnectFailed`."""
        try:
            async with asyncio.timeout(self._timeout_seconds):
                return await self._speak(origin, await self._dial(origin), on_lost)
        except TimeoutError as error:
            raise ConnectTimedOut(f"no connection to {origin.host} in {self._timeout_seconds:g} s") from error
        except (OSError, ssl.SSLError, ssl.CertificateError, Unresolvable, AddressRefused) as error:
            raise ConnectFailed(_fault_of(error), f"{type(error).__name__}: {error}") from error

    async def _dial(self, origin: Origin) -> socket.socket:
        addresses = await self._resolver.addresses(origin.host, timeout_seconds=self._timeout_seconds)
        infos = [_address_info(address, origin.port) for address in self._permitted(addresses, origin)]
        sock = await aiohappyeyeballs.start_connection(infos, happy_eyeballs_delay=_RACE_DELAY_SECONDS, interleave=1)
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        return sock

    def _permitted(self, addresses: tuple[str, ...], origin: Origin) -> list[str]:
        """Those the policy lets us dial. Raises: `AddressRefused` when there are none."""
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

    async def _speak(
        self, origin: Origin, sock: socket.socket, on_lost: Callable[[UpstreamConnection], None]
    ) -> UpstreamConnection:
        connection = UpstreamConnection(origin, on_lost, sock)
        context = self._verifying if origin.verify else self._trusting
        try:
            await asyncio.get_running_loop().create_connection(
                lambda: connection,
                sock=sock,
                ssl=context if origin.scheme == "https" else None,
                server_hostname=origin.server_name if origin.scheme == "https" else None,
            )
        except BaseException:
            # Cancelled or failed half-way: close the socket, held by the transport or not yet.
            if connection.transport is not None:
                connection.transport.abort()
            sock.close()
            raise
        return connection


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


def _address_info(
    address: str, port: int
) -> tuple[socket.AddressFamily, socket.SocketKind, int, str, tuple[str, int] | tuple[str, int, int, int]]:
    if ":" in address:
        return socket.AF_INET6, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (address, port, 0, 0)
    return socket.AF_INET, socket.SOCK_STREAM, socket.IPPROTO_TCP, "", (address, port)


def _client_context(*, verify: bool) -> ssl.SSLContext:
    if verify:
        context = ssl.create_default_context()
    else:  # without the system's authorities: some 140 that take 20 ms to read
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context
