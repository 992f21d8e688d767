"""An edge's TLS layer on loopback for tests, the protocols inside it, and the clients that speak to it."""

from __future__ import annotations

import asyncio
import socket
import ssl
import struct
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import pytest

from common.clock import Clock, SystemClock
from edge.tls.failures import Failure
from edge.tls.layer import TlsLayer
from edge.tls.shared import TlsLimits, TlsShared
from edge.transport.tls_stream import TlsStream
from tests.tls_parts import MemoryReplica, keyring, the_ca
from tests.waiting import until

T = TypeVar("T")
TIMEOUT_SECONDS = 10
TLS12, TLS13 = ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3


class Inner(asyncio.Protocol):
    """Echoes, and records its events."""

    transport: TlsStream

    def __init__(self) -> None:
        self.events: list[str] = []
        self.received = bytearray()
        self.error: Exception | None = None
        self.is_full = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, TlsStream)
        self.transport = transport
        self.events.append("made")

    def data_received(self, data: bytes) -> None:
        self.received += data
        self.on_data(data)

    def on_data(self, data: bytes) -> None:
        self.transport.write(data)

    def eof_received(self) -> bool:
        self.events.append("eof")
        return False

    def pause_writing(self) -> None:
        self.is_full = True

    def resume_writing(self) -> None:
        self.is_full = False

    def connection_lost(self, exc: Exception | None) -> None:
        self.events.append("lost")
        self.error = exc


class Silent(Inner):
    def on_data(self, data: bytes) -> None:
        pass


class Http(Inner):
    """Answers, and closes."""

    def on_data(self, data: bytes) -> None:
        self.transport.write(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
        self.transport.close()


class HalfClosed(Silent):
    """Goes on after the client's end."""

    def eof_received(self) -> bool:
        super().eof_received()
        return True


@dataclass
class Edge:
    tls: TlsShared
    replica: MemoryReplica
    port: int
    inners: list[Any] = field(default_factory=list)

    def failed(self, failure: Failure) -> int:
        return self.tls.counters.failed[failure]


@asynccontextmanager
async def edge(
    inner: Callable[[], asyncio.Protocol] = Inner,
    *domains: str,
    limits: TlsLimits | None = None,
    first: Callable[[TlsLayer], asyncio.Protocol] = lambda layer: layer,
    clock: Clock | None = None,
) -> AsyncIterator[Edge]:
    """A listening edge; nothing may reach the loop's exception handler while it runs."""
    loop = asyncio.get_running_loop()
    unexpected: list[dict[str, Any]] = []
    loop.set_exception_handler(lambda _, context: unexpected.append(context))
    replica = MemoryReplica()
    for domain in domains or ("a.example", "b.example"):
        replica.put_certificate(domain)
    tls = TlsShared(replica, keyring(), loop, clock or SystemClock(), limits)
    inners: list[Any] = []

    def make_inner(_protocol: str | None) -> asyncio.Protocol:
        made = inner()
        inners.append(made)
        return made

    server = await loop.create_server(lambda: first(TlsLayer(tls, make_inner)), "127.0.0.1", 0)
    try:
        yield Edge(tls, replica, server.sockets[0].getsockname()[1], inners)
    finally:
        server.close()
        for made in inners:
            made.transport.abort()
        await until(lambda: all("lost" in made.events for made in inners))
        await server.wait_closed()
    assert unexpected == [], unexpected
    assert all(made.events.count("lost") == 1 for made in inners)


async def in_thread(work: Callable[[], T]) -> T:
    return await asyncio.wait_for(asyncio.to_thread(work), 3 * TIMEOUT_SECONDS)


def raw_connection(port: int) -> socket.socket:
    return socket.create_connection(("127.0.0.1", port), timeout=TIMEOUT_SECONDS)


def connection(
    port: int,
    name: str = "a.example",
    version: ssl.TLSVersion = TLS13,
    *,
    context: ssl.SSLContext | None = None,
    session: ssl.SSLSession | None = None,
) -> ssl.SSLSocket:
    context = context or the_ca().client_context()
    context.maximum_version = version
    raw = raw_connection(port)
    try:
        return context.wrap_socket(raw, server_hostname=name, session=session)
    except BaseException:
        raw.close()
        raise


def receive(connection: socket.socket, size: int) -> bytes:
    data = bytearray()
    while len(data) < size:
        part = connection.recv(min(size - len(data), 65536))
        if not part:
            break
        data += part
    return bytes(data)


def ask(port: int, name: str = "a.example", version: ssl.TLSVersion = TLS13, words: bytes = b"hello") -> bytes:
    with connection(port, name, version) as client:
        client.sendall(words)
        return receive(client, len(words))


def refusal(port: int, name: str = "a.example") -> str:
    """The alert a client is told."""
    with pytest.raises(ssl.SSLError) as caught:
        connection(port, name)
    return str(caught.value.reason)


def reset(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


class RawClient:
    """A client whose engine and socket can be moved one without the other."""

    def __init__(self, port: int, version: ssl.TLSVersion = TLS13) -> None:
        context = the_ca().client_context()
        context.maximum_version = version
        self.socket = raw_connection(port)
        self.incoming, self.outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        self.engine = context.wrap_bio(self.incoming, self.outgoing, server_hostname="a.example")
        self.run(self.engine.do_handshake)

    def run(self, step: Callable[[], T]) -> T:
        while True:
            try:
                result = step()
            except ssl.SSLWantReadError:
                self.flush()
                data = self.socket.recv(65536)
                if not data:
                    raise EOFError from None
                self.incoming.write(data)
            else:
                self.flush()
                return result

    def flush(self) -> None:
        if self.outgoing.pending:
            self.socket.sendall(self.outgoing.read())

    def say_close_notify(self) -> None:
        try:
            self.engine.unwrap()
        except ssl.SSLWantReadError:
            self.flush()

    def receive(self, size: int) -> bytes:
        data = b""
        while len(data) < size:
            data += self.run(lambda: self.engine.read(65536))
        return data
