"""The origin of the offender's domain: ``python -m bench.neighbours.offending_origin PORT --seed 1``.

``GET /<key>`` is answered with that offence, ``/silent`` not at all, an upgrade with 101, anything else with 2 bytes.
"""

from __future__ import annotations

import argparse
import asyncio
import os
from random import Random
from typing import Final, cast

from bench.neighbours.offences import OFFENCES
from common.processes import loop_factory

_NICENESS: Final = 10
_OK: Final = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok"
_SWITCHED: Final = b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n"


class OffendingOrigin(asyncio.Protocol):
    """One connection of the origin.

    It trusts its clients to be well-behaved proxies: it looks for ends of requests only.
    """

    def __init__(self, answers: dict[bytes, bytes]) -> None:
        self._answers = answers
        self._received = b""
        self._is_tunnel = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self._transport = cast("asyncio.Transport", transport)

    def data_received(self, data: bytes) -> None:
        """Answer each request once its end is received."""
        if self._is_tunnel:
            return
        self._received += data
        if self._received.startswith(b"POST "):
            if self._received.endswith(b"\r\n0\r\n\r\n") or b"\r\n\r\n0\r\n" in self._received[-4096:]:
                self._answer(_OK)
            else:
                self._received = self._received[:5] + self._received[-64:]
        elif b"\r\n\r\n" in self._received:
            head = self._received
            self._is_tunnel = b"\r\nupgrade:" in head.lower()
            path = head.split(b"\r\n", 1)[0].partition(b" /")[2].partition(b" ")[0]
            if path != b"silent":
                self._answer(_SWITCHED if self._is_tunnel else self._answers.get(path, _OK))

    def _answer(self, answer: bytes) -> None:
        self._received = b""
        self._transport.write(answer)


async def _serve(port: int, seed: int) -> None:
    answers = {offence.key.encode(): offence.make(Random(seed)) for offence in OFFENCES if offence.by_origin}
    server = await asyncio.get_running_loop().create_server(lambda: OffendingOrigin(answers), "127.0.0.1", port)
    async with server:
        await server.serve_forever()


def main() -> None:
    """Run the origin until it is ended."""
    parser = argparse.ArgumentParser(prog="python -m bench.neighbours.offending_origin", description=__doc__)
    parser.add_argument("port", type=int)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    os.nice(_NICENESS)
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(_serve(arguments.port, arguments.seed))


if __name__ == "__main__":
    main()
