"""Peers for the proxy under test: an origin that does as it is told, a raw client, a replica in memory."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import orjson

from common import settings
from common.secrets import Keyring, load_keyring
from edge.proxy.client_connection import ClientConnection
from edge.proxy.http2_connection import Http2ClientConnection
from edge.proxy.worker_context import WorkerContext
from edge.transport.proxy_protocol import entrance
from tests.waiting import until

PATIENCE_SECONDS = 10.0


class MemoryReplica:
    """What workers ask of a replica, without the disk."""

    def __init__(self) -> None:
        self.records: dict[tuple[str, str], dict[str, Any]] = {}
        self.cut_off = False
        self._generation = 1

    def generation(self) -> int:
        return self._generation

    def is_unattended(self) -> bool:
        return False

    def is_cut_off(self) -> bool:
        return self.cut_off

    def get_raw(self, kind: str, key: str) -> bytes | None:
        record = self.records.get((kind, key))
        return None if record is None else orjson.dumps(record)

    def touch(self) -> None:
        """`records` were changed by hand."""
        self._generation += 1

    def remove(self, domain: str) -> None:
        self._generation += 1
        del self.records["route", f"power/{domain}"]

    def enrol(self, domain: str, application_url: str, *, application: str = "app", **fields: Any) -> None:
        self._generation += 1
        self.records["application", application] = {
            "id": application,
            "application_url": None,
            "root_path_access": fields.pop("application_roots", []),
            "service_auth": fields.pop("service_auth", None),
        }
        self.records["route", f"power/{domain}"] = {
            "domain": domain,
            "product": "power",
            "application_id": application,
            "application_url": application_url,
            "root_path_access": None,
            "redirect_to": None,
            **fields,
        }
        self.records["certificate", domain] = {"domain": domain}


class Wire:
    """A raw connection: what was sent is what the test wrote, what comes is what it reads."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, data: bytes) -> None:
        self.writer.write(data)
        await self.writer.drain()

    async def head(self) -> bytes:
        """The next head, with its empty line."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await self.reader.readuntil(b"\r\n\r\n")

    async def exactly(self, size: int) -> bytes:
        async with asyncio.timeout(PATIENCE_SECONDS):
            return await self.reader.readexactly(size)

    async def rest(self) -> bytes:
        """Everything up to the end of the stream, however it ends."""
        data = b""
        with contextlib.suppress(ConnectionError):
            async with asyncio.timeout(PATIENCE_SECONDS):
                while piece := await self.reader.read(65536):
                    data += piece
        return data

    async def response(self) -> tuple[bytes, bytes]:
        """Head and body of a response with a Content-Length."""
        head = await self.head()
        length = next(
            (line.split(b":")[1] for line in head.split(b"\r\n") if line.lower().startswith(b"content-length:")), b"0"
        )
        return head, await self.exactly(int(length))

    async def chunks(self) -> bytes:
        """The content of a chunked body."""
        content = b""
        while True:
            async with asyncio.timeout(PATIENCE_SECONDS):
                size = int(await self.reader.readuntil(b"\r\n"), 16)
            piece = await self.exactly(size + 2)
            content += piece[:-2]
            if not size:
                return content

    def close(self) -> None:
        self.writer.close()

    async def closed(self) -> None:
        self.writer.transport.abort()
        with contextlib.suppress(ConnectionError):
            await self.writer.wait_closed()


Script = Callable[[Wire], Awaitable[None]]


@dataclass
class Origin:
    """An origin whose every connection follows `script`; connections that came are counted."""

    port: int
    connections: list[Wire] = field(default_factory=list)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}"


@contextlib.asynccontextmanager
async def origin(
    script: Script, context: ssl.SSLContext | None = None, *, host: str = "127.0.0.1", port: int = 0
) -> AsyncIterator[Origin]:
    started: list[asyncio.Task[None]] = []
    here = Origin(0)

    async def follow(wire: Wire) -> None:
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError, TimeoutError):
            await script(wire)
        wire.close()

    def on_connection(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        wire = Wire(reader, writer)
        here.connections.append(wire)
        started.append(asyncio.get_running_loop().create_task(follow(wire)))

    server = await asyncio.start_server(on_connection, host, port, ssl=context)
    here.port = server.sockets[0].getsockname()[1]
    try:
        yield here
    finally:
        server.close()
        for task in started:
            task.cancel()
        await asyncio.gather(*started, *(wire.closed() for wire in here.connections), return_exceptions=True)


async def answer_each(wire: Wire, response: bytes = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok") -> None:
    """The plainest script: the same answer to every request without a body."""
    while True:
        await wire.head()
        await wire.send(response)


@dataclass
class Edge:
    port: int
    worker: WorkerContext
    replica: MemoryReplica
    keyring: Keyring
    clients: list[Wire] = field(default_factory=list)
    http2_port: int = 0

    async def connect(self) -> Wire:
        self.clients.append(Wire(*await asyncio.open_connection("127.0.0.1", self.port)))
        return self.clients[-1]

    def change(self) -> None:
        """What the worker does when the supervisor says that the replica moved."""
        self.worker.on_replica_change()

    def only_connection(self) -> ClientConnection:
        """Return the one connection that a client has with the proxy."""
        (connection,) = self.worker.connections
        assert isinstance(connection, ClientConnection)
        return connection


@contextlib.asynccontextmanager
async def served(
    script: Script, tmp_path: Path, *, secure: bool = True, **environ: str
) -> AsyncIterator[tuple[Origin, Edge]]:
    """An origin that follows `script`, and an edge that serves shop.example.com from it."""
    async with origin(script) as there, edge(tmp_path, secure=secure, **environ) as proxy:
        enrol(proxy, there)
        yield there, proxy


@contextlib.asynccontextmanager
async def served_client(script: Script, tmp_path: Path, *, secure: bool = True, **environ: str) -> AsyncIterator[Wire]:
    """A client's connection to an edge as `served` has it."""
    async with served(script, tmp_path, secure=secure, **environ) as (_, proxy):
        yield await proxy.connect()


def enrol(proxy: Edge, there: Origin) -> None:
    proxy.replica.enrol("shop.example.com", there.url)
    proxy.change()


@contextlib.asynccontextmanager
async def edge(tmp_path: Path, *, secure: bool = True, **environ: str) -> AsyncIterator[Edge]:
    """The proxy on a port of its own, and one for HTTP/2. `secure`: as behind its TLS layer, without the TLS."""
    loop = asyncio.get_running_loop()
    allowed = {"FRONTAGE_ALLOW_PRIVATE_ADDRESSES": "127.0.0.0/8"}
    replica = MemoryReplica()
    keyring = load_keyring(tmp_path / "master.key", create=True)
    worker = WorkerContext(settings.load(allowed | environ), replica, keyring, loop)
    first = entrance(
        partial(ClientConnection, worker, secure=secure),
        worker.connection_limits,
        worker.trusted_proxies,
        worker.head_seconds,
    )
    server = await loop.create_server(first, "127.0.0.1", 0)
    http2 = await loop.create_server(partial(Http2ClientConnection, worker), "127.0.0.1", 0)
    here = Edge(server.sockets[0].getsockname()[1], worker, replica, keyring)
    here.http2_port = http2.sockets[0].getsockname()[1]
    try:
        yield here
    finally:
        server.close()
        http2.close()
        await asyncio.gather(*(client.closed() for client in here.clients))
        await until(lambda: not worker.connections)
        worker.close()
        await until(lambda: not worker.upstream_count)
