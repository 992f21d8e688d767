"""Requests, answers and ways to end a connection that the proxy's fault tests share."""

from __future__ import annotations

import asyncio
import socket
import struct

from tests.component.peers import Edge, Wire
from tests.waiting import SECONDS

HOST = b"Host: shop.example.com\r\n"
GET = b"GET / HTTP/1.1\r\n" + HOST + b"\r\n"
LAST_GET = b"GET / HTTP/1.1\r\n" + HOST + b"Connection: close\r\n\r\n"
POST = b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 5\r\n\r\nhello"
ANSWERS = {
    "length": b"HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nhello",
    "chunked": b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nhel\r\n2\r\nlo\r\n0\r\n\r\n",
    "close": b"HTTP/1.1 200 OK\r\n\r\nhello",
}


def reset(wire: Wire) -> None:
    """End the connection with RST."""
    sock = wire.writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    wire.writer.transport.abort()


async def ask(proxy: Edge, request: bytes) -> tuple[bytes, bool]:
    """All that comes back, and whether it ended in order rather than by a reset."""
    client = await proxy.connect()
    await client.send(request)
    received = b""
    try:
        async with asyncio.timeout(SECONDS):
            while piece := await client.reader.read(65536):
                received += piece
    except ConnectionError:
        return received, False
    finally:
        client.close()
    return received, True


def is_whole(answer: bytes) -> bool:
    head, _, body = answer.partition(b"\r\n\r\n")
    if b"Transfer-Encoding: chunked" in head:
        return body.endswith(b"0\r\n\r\n")
    return body == b"hello"
