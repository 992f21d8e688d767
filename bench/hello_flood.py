"""A flood of TLS ClientHellos from many addresses, each for another name that is not enrolled.

``python -m bench.hello_flood HOST PORT --seconds 10 --at-once 128`` prints in the end, as JSON, how many were refused
with a TLS alert, how many were answered otherwise, and how many got no answer. A hello costs us no more than a write,
so that it is the edge that is tried.
"""

from __future__ import annotations

import argparse
import asyncio
import contextlib
import json
import os
import random
import ssl
import time

from common.host_ports import HostPort
from common.processes import loop_factory

_ANSWER_SECONDS = 10
_ADDRESSES = 64
_PLACEHOLDER = b"0123456789abcdef"
_NICENESS = 10  # who measures beside us on the same core goes first


class Flood:
    """A flood of one edge; `refused`, `answered` and `failed` count hellos."""

    def __init__(self, edge: HostPort) -> None:
        self._edge = edge
        self._chance = random.Random(3)
        self._hello = client_hello(f"{_PLACEHOLDER.decode()}.flood.localhost")
        self.refused = 0
        self.answered = 0
        self.failed = 0

    async def run(self, *, at_once: int, until: float) -> None:
        """Send hellos on `at_once` connections at a time, until `time.perf_counter()` reaches `until`."""

        async def go(number: int) -> None:
            source = f"127.0.1.{number % _ADDRESSES + 1}"
            while time.perf_counter() < until:
                try:
                    async with asyncio.timeout(_ANSWER_SECONDS):
                        await self._ask(source)
                except (OSError, TimeoutError):
                    self.failed += 1

        await asyncio.gather(*(go(number) for number in range(at_once)))

    async def _ask(self, source: str) -> None:
        reader, writer = await asyncio.open_connection(*self._edge, local_addr=(source, 0))
        try:
            name = b"%016x" % self._chance.getrandbits(64)
            writer.write(self._hello.replace(_PLACEHOLDER, name))
            answer = await reader.read(256)
        finally:
            writer.transport.abort()
        if is_alert(answer):
            self.refused += 1
        else:
            self.answered += 1


def client_hello(name: str) -> bytes:
    """Return the ClientHello of a current client for `name`."""
    outgoing = ssl.MemoryBIO()
    engine = ssl.create_default_context().wrap_bio(ssl.MemoryBIO(), outgoing, server_hostname=name)
    with contextlib.suppress(ssl.SSLWantReadError):
        engine.do_handshake()
    return outgoing.read()


def is_alert(answer: bytes) -> bool:
    """Return whether the answer is a TLS record of type alert (RFC 8446 §5.1)."""
    return answer[:1] == b"\x15"


def main() -> None:
    """Run the flood and print its counts."""
    parser = argparse.ArgumentParser(prog="python -m bench.hello_flood", description=__doc__)
    parser.add_argument("host")
    parser.add_argument("port", type=int)
    parser.add_argument("--seconds", type=float, default=10)
    parser.add_argument("--at-once", type=int, default=128)
    arguments = parser.parse_args()
    os.nice(_NICENESS)
    flood = Flood(HostPort(arguments.host, arguments.port))
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        runner.run(flood.run(at_once=arguments.at_once, until=time.perf_counter() + arguments.seconds))
    print(json.dumps({"refused": flood.refused, "answered": flood.answered, "failed": flood.failed}))


if __name__ == "__main__":
    main()
