"""Visitors for `bench.scale`: timed to the first byte, one at a time or many at once."""

from __future__ import annotations

import asyncio
import random
import ssl
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from common.host_ports import HostPort

_ANSWER_SECONDS = 10
_PROBE_SECONDS = 0.05
_LONGEST_STAY = 20  # requests on one connection


@dataclass(slots=True)
class VisitTimes:
    """The times of visits. `seconds` are from the first packet to the first byte of the answer, one a connection."""

    seconds: list[float] = field(default_factory=list)
    requests: int = 0
    errors: int = 0
    last_error: str = ""

    def at_most(self, share: float) -> float:
        """Return the seconds that this share of the connections did not exceed."""
        ordered = sorted(self.seconds)
        return ordered[min(len(ordered) - 1, int(len(ordered) * share))]


class Visitors:
    """Clients of one edge that verify the certificate they are shown; created with the certificate to trust."""

    def __init__(self, edge: HostPort, ca_file: Path) -> None:
        self._edge = edge
        self._trust = ssl.create_default_context(cafile=str(ca_file))

    async def visit(self, domain: str, seen: VisitTimes, *, requests: int = 1) -> None:
        """Visit the domain on one connection; errors are counted, not raised."""
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                await self._visit(domain, seen, requests)
        except (OSError, EOFError, TimeoutError, ValueError) as error:
            seen.errors += 1
            seen.last_error = f"{domain}: {error!r}"

    async def visit_each(self, domains: Iterable[str], *, at_once: int) -> VisitTimes:
        """Visit each domain once, on a connection of its own."""
        seen, left = VisitTimes(), iter(domains)

        async def go() -> None:
            for domain in left:
                await self.visit(domain, seen)

        await asyncio.gather(*(go() for _ in range(at_once)))
        return seen

    async def visit_repeatedly(self, pick: Callable[[], str], *, at_once: int, until: float) -> VisitTimes:
        """Visit domains that `pick` names, 1 to 20 requests each, until that time (``perf_counter``)."""
        seen, chance = VisitTimes(), random.Random(1)

        async def go() -> None:
            while time.perf_counter() < until:
                await self.visit(pick(), seen, requests=chance.randint(1, _LONGEST_STAY))

        await asyncio.gather(*(go() for _ in range(at_once)))
        return seen

    async def ask_each(self, http: HostPort, domains: Iterable[str], *, at_once: int) -> int:
        """Send a plain request to each domain, on few connections, and return how many were led to HTTPS."""
        left = iter(domains)
        answers = await asyncio.gather(*(self._ask(http, left) for _ in range(at_once)))
        return sum(answers)

    async def _ask(self, http: HostPort, domains: Iterator[str]) -> int:
        reader, writer = await asyncio.open_connection(*http)
        count = 0
        try:
            for domain in domains:
                writer.write(f"GET / HTTP/1.1\r\nHost: {domain}\r\n\r\n".encode())
                head = await reader.readuntil(b"\r\n\r\n")
                await reader.readexactly(_body_bytes(head))
                count += b" 308 " in head.partition(b"\r\n")[0]
        finally:
            writer.transport.abort()
        return count

    async def probe(self, domains: Sequence[str], *, until: float) -> VisitTimes:
        """Visit one domain at a time, unhurried, to see what visitors meet while something else goes on."""
        seen, chance = VisitTimes(), random.Random(2)
        while time.perf_counter() < until:
            await self.visit(chance.choice(domains), seen)
            await asyncio.sleep(_PROBE_SECONDS)
        return seen

    async def _visit(self, domain: str, seen: VisitTimes, requests: int) -> None:
        begun_at = time.perf_counter()
        reader, writer = await asyncio.open_connection(*self._edge, ssl=self._trust, server_hostname=domain)
        try:
            for number in range(requests):
                writer.write(f"GET /{number} HTTP/1.1\r\nHost: {domain}\r\nAccept: */*\r\n\r\n".encode())
                status = await reader.readline()
                if number == 0:
                    seen.seconds.append(time.perf_counter() - begun_at)
                if b" 200 " not in status:
                    raise ValueError(status.decode("latin-1").strip())
                await reader.readexactly(_body_bytes(await reader.readuntil(b"\r\n\r\n")))
                seen.requests += 1
        finally:
            writer.transport.abort()


def _body_bytes(fields: bytes) -> int:
    """Return the length of an answer's body.

    Raises: ValueError for an answer that does not state it.
    """
    return int(fields.lower().partition(b"content-length:")[2].partition(b"\r\n")[0])
