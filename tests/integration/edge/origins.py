"""Origins behind an edge that runs as a process."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from tests.tcp_server import tcp_server


@asynccontextmanager
async def answering(answer: Callable[[bytes], Awaitable[bytes]]) -> AsyncIterator[int]:
    """Answer each request, which has no body, with the content that `answer` makes of its head; yields the port."""

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while True:
                content = await answer(await reader.readuntil(b"\r\n\r\n"))
                writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(content), content))
        except (asyncio.IncompleteReadError, ConnectionError):
            pass
        finally:
            writer.close()

    async with tcp_server(serve) as port:
        yield port


@asynccontextmanager
async def an_origin(name: str, released: asyncio.Event | None = None) -> AsyncIterator[int]:
    """Answer every request with the origin's name, ``/slow`` once it is `released`; yields the port."""

    async def say_name(head: bytes) -> bytes:
        if released and b" /slow " in head:
            await released.wait()
        return name.encode()

    async with answering(say_name) as port:
        yield port


@asynccontextmanager
async def an_echo() -> AsyncIterator[int]:
    """Answer every request with the head that was received; yields the port."""

    async def repeat(head: bytes) -> bytes:
        return head

    async with answering(repeat) as port:
        yield port
