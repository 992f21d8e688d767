"""Origins that clients of HTTP/2 are led to."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable

from tests.component.peers import Wire


class Recorder:
    """An origin that keeps what it received, and answers each request with its body."""

    def __init__(self) -> None:
        self.heads: list[bytes] = []
        self.bodies: list[bytes] = []

    async def __call__(self, wire: Wire) -> None:
        while True:
            head = await wire.head()
            self.heads.append(head)
            body = b""
            if length := re.search(rb"\r\ncontent-length: ([0-9]+)", head, re.IGNORECASE):
                body = await wire.exactly(int(length[1]))
            elif b"\r\nTransfer-Encoding: chunked" in head:
                body = await wire.chunks()
            self.bodies.append(body)
            await wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))


def sends(*pieces: bytes, closes: bool = False) -> Callable[[Wire], Awaitable[None]]:
    """Return an origin's script: the same answer to every request."""

    async def script(wire: Wire) -> None:
        while True:
            await wire.head()
            for piece in pieces:
                await wire.send(piece)
            if closes:
                return

    return script
