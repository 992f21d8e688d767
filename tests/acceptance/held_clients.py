"""An origin that holds on, and clients who hold on to it through an edge: a tunnel and an upload."""

from __future__ import annotations

import asyncio
import hashlib
import os
import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from tests.tcp_server import tcp_server

UPLOAD_BYTES = 4 << 20
PIECE_BYTES = 4096
PIECE_SECONDS = 0.01
PATIENCE_SECONDS = 20.0


@asynccontextmanager
async def an_origin(name: str) -> AsyncIterator[int]:
    """Its port. Tells its name, echoes through a tunnel, and answers an upload with its digest."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(asyncio.IncompleteReadError, ConnectionError):
            while True:
                await _answer(name, reader, writer)
        writer.close()

    async with tcp_server(serve) as port:
        yield port


async def _answer(name: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    head = (await reader.readuntil(b"\r\n\r\n")).lower()
    if b"\nupgrade: websocket" in head:
        writer.write(b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n")
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()
        raise ConnectionResetError
    body = name
    if b"\ncontent-length:" in head:
        length = int(head.partition(b"\ncontent-length:")[2].split()[0])
        body = hashlib.sha256(await reader.readexactly(length)).hexdigest()
    writer.write(f"HTTP/1.1 200 OK\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())


class Domain:
    """A customer's domain as its visitors meet it: at a port of this machine, with certificates of that authority."""

    def __init__(self, name: str, port: int, context: ssl.SSLContext) -> None:
        self.name = name
        self._port = port
        self._context = context

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        return await asyncio.open_connection("127.0.0.1", self._port, ssl=self._context, server_hostname=self.name)

    def head(self, request: str, *fields: str) -> bytes:
        return "\r\n".join([f"{request} HTTP/1.1", f"Host: {self.name}", *fields, "", ""]).encode()

    async def visit(self) -> tuple[str, int]:
        """Which origin answers, and the serial number of the certificate."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            reader, writer = await self.connect()
            try:
                writer.write(self.head("GET /", "Connection: close"))
                body = (await reader.read()).rpartition(b"\r\n\r\n")[2].decode()
                return body, int(writer.get_extra_info("peercert")["serialNumber"], 16)
            finally:
                writer.close()


class Tunnel:
    """Opened, then used until the end."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self.writer = writer

    @classmethod
    async def through(cls, domain: Domain) -> Tunnel:
        reader, writer = await domain.connect()
        writer.write(domain.head("GET /chat", "Connection: Upgrade", "Upgrade: websocket"))
        answer = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE_SECONDS)
        assert answer.startswith(b"HTTP/1.1 101 ")
        return cls(reader, writer)

    async def carries(self) -> bool:
        """What is sent comes back whole."""
        sent = os.urandom(100_000)
        self.writer.write(sent)
        return await asyncio.wait_for(self._reader.readexactly(len(sent)), PATIENCE_SECONDS) == sent


async def upload(domain: Domain, enough: asyncio.Event) -> bool:
    """Send piece by piece until `enough`, then the rest; whether the origin got exactly that."""
    content = os.urandom(UPLOAD_BYTES)
    reader, writer = await domain.connect()
    try:
        writer.write(domain.head("POST /upload", f"Content-Length: {len(content)}"))
        sent = 0
        while not enough.is_set() and sent < len(content) - PIECE_BYTES:
            writer.write(content[sent : sent + PIECE_BYTES])
            sent += PIECE_BYTES
            await writer.drain()
            await asyncio.sleep(PIECE_SECONDS)
        assert enough.is_set(), "the upload was too short"
        writer.write(content[sent:])
        head = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), PATIENCE_SECONDS)
        digest = (await asyncio.wait_for(reader.readexactly(64), PATIENCE_SECONDS)).decode()
        return head.startswith(b"HTTP/1.1 200 ") and digest == hashlib.sha256(content).hexdigest()
    finally:
        writer.close()
