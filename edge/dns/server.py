"""The sockets of EDGE_DNS: UDP and TCP, given to the responder. Linux only, as the edge is.

A question over UDP is answered from the address that it was sent to (IP_PKTINFO), so that a machine with several
addresses may listen on all. Over TCP a client has `_TCP_SECONDS` in all, whatever it does; connections are bounded. The
sockets themselves are not closed here: what is queued is for the next generation.
"""

from __future__ import annotations

import asyncio
import os
import socket
import struct
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Final, cast

from edge.dns.messages import MOST_QUESTION_BYTES
from edge.dns.responder import Responder
from edge.transport.connection_limits import ConnectionLimits, client_key

_AT_ONCE: Final = 64  # messages read in one turn of the loop, which has other work
_TCP_SECONDS: Final = 5.0
_TCP_CONNECTIONS: Final = 256
TCP_CONNECTIONS_PER_CLIENT: Final = 16
_TCP_QUESTIONS: Final = 100
_LENGTH: Final = struct.Struct("!H")
_IP_PKTINFO: Final = 8  # <linux/in.h>; the socket module has no name for it
_PKTINFO: Final = struct.Struct("=i4s4s")  # interface, the local address, the address in the header
_CONTROL_BYTES: Final = 64


@asynccontextmanager
async def serving(
    descriptors: Sequence[int], responder: Responder, *, tcp_seconds: float = _TCP_SECONDS
) -> AsyncIterator[None]:
    """Answer at these sockets, UDP's and TCP's descriptor, until the block ends."""
    loop = asyncio.get_running_loop()
    datagrams, listener = (socket.socket(fileno=os.dup(descriptor)) for descriptor in descriptors)
    limits = ConnectionLimits(in_all=_TCP_CONNECTIONS, per_client=TCP_CONNECTIONS_PER_CLIENT)
    connections: set[DnsConnection] = set()
    with datagrams:
        ask_for_local_address(datagrams)
        server = await loop.create_server(
            lambda: DnsConnection(responder, limits, connections, tcp_seconds), sock=listener
        )
        loop.add_reader(datagrams.fileno(), answer_datagrams, datagrams, responder)
        try:
            yield
        finally:
            loop.remove_reader(datagrams.fileno())
            server.close()
            for connection in list(connections):
                connection.end()


def ask_for_local_address(datagrams: socket.socket) -> None:
    """Have the kernel state the address that each message was sent to."""
    if datagrams.family == socket.AF_INET6:
        datagrams.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_RECVPKTINFO, 1)
    else:
        datagrams.setsockopt(socket.IPPROTO_IP, _IP_PKTINFO, 1)


def answer_datagrams(datagrams: socket.socket, responder: Responder) -> None:
    """Answer the messages that have arrived, at most `_AT_ONCE`."""
    now = asyncio.get_running_loop().time()
    for _ in range(_AT_ONCE):
        try:
            message, control, _, client = datagrams.recvmsg(MOST_QUESTION_BYTES + 1, _CONTROL_BYTES)
            response = responder.respond(message, client_key(client), now)
            if response is not None:
                datagrams.sendmsg([response], [*map(_from_same_address, control)], 0, client)
        except BlockingIOError:  # none is left, or the kernel's buffer is full: the resolver asks again
            return
        except OSError:  # such as an unreachable client, or port 0
            continue


def _from_same_address(item: tuple[int, int, bytes]) -> tuple[int, int, bytes]:
    """Return the control message that sends from the address that the received one states."""
    level, kind, content = item
    if level == socket.IPPROTO_IP and kind == _IP_PKTINFO:
        _interface, local, _header = _PKTINFO.unpack_from(content)
        content = _PKTINFO.pack(0, local, bytes(4))
    return level, kind, content


class DnsConnection(asyncio.Protocol):
    """One TCP connection (RFC 7766): messages behind their length, answered in order."""

    def __init__(
        self, responder: Responder, limits: ConnectionLimits, connections: set[DnsConnection], seconds: float
    ) -> None:
        self._responder = responder
        self._limits = limits
        self._connections = connections
        self._seconds = seconds
        self._place: str | None = None
        self._client = ""
        self._received = b""
        self._questions = 0
        self._transport: asyncio.Transport
        self._deadline: asyncio.TimerHandle

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin, or refuse a connection over a limit."""
        self._transport = cast("asyncio.Transport", transport)
        self._deadline = asyncio.get_running_loop().call_later(self._seconds, self.end)
        self._connections.add(self)
        peer = self._transport.get_extra_info("peername")
        self._client = client_key(peer)
        self._place = self._limits.admit(peer)
        if self._place is None:
            self.end()

    def data_received(self, data: bytes) -> None:
        """Answer the questions that are complete."""
        self._received += data  # at most one read of the transport beyond a message
        while len(self._received) >= _LENGTH.size and not self._transport.is_closing():
            (length,) = _LENGTH.unpack_from(self._received)
            if length > MOST_QUESTION_BYTES:
                self.end()
            elif len(self._received) < _LENGTH.size + length:
                return
            else:
                message = self._received[_LENGTH.size : _LENGTH.size + length]
                self._received = self._received[_LENGTH.size + length :]
                self._answer(message)

    def _answer(self, message: bytes) -> None:
        self._questions += 1
        now = asyncio.get_running_loop().time()
        response = self._responder.respond(message, self._client, now, over_tcp=True)
        if response is None or self._questions > _TCP_QUESTIONS:
            self.end()
        else:
            self._transport.write(_LENGTH.pack(len(response)) + response)

    def pause_writing(self) -> None:
        """End the connection of a client that does not read."""
        self.end()

    def end(self) -> None:
        """End the connection at once."""
        self._transport.abort()

    def connection_lost(self, exc: Exception | None) -> None:
        """Give up the connection's place."""
        self._deadline.cancel()
        self._connections.discard(self)
        self._limits.leave(self._place)
