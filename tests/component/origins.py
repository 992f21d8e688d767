"""Scripts of origins: what they answer, and what they keep of requests."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable

from tests.component.peers import Wire
from tests.unit.edge.oracle import AskingOrigin


class Recorder:
    """An origin that keeps what it received, and answers each request with `content`, or with the request's body."""

    def __init__(self, content: bytes | None = None) -> None:
        self._content = content
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
            content = body if self._content is None else self._content
            await wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(content), content))


class StrictOrigin:
    """An origin that reads each of its connections strictly."""

    def __init__(self) -> None:
        self.machines: list[AskingOrigin] = []

    async def __call__(self, wire: Wire) -> None:
        self.machines.append(machine := AskingOrigin(len(self.machines)))
        while data := await wire.reader.read(65536):
            for answer in machine.receive(data):
                assert isinstance(answer, bytes)
                await wire.send(answer)

    def served(self) -> int:
        """Return how many requests have arrived."""
        return sum(machine._served for machine in self.machines)


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
