"""Name servers that answer some questions wrongly or not at all, over UDP only: the lab's zone behind a bad line.

The fault is drawn anew for each answer. A liar answers NXDOMAIN; a truncated answer stays truncated, since there is no
TCP to fetch the rest.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator
from dataclasses import dataclass
from random import Random
from typing import Self, cast

import dns.exception
import dns.flags
import dns.message
import dns.rcode

from bench.lab.zone import Zone
from common.host_ports import HostPort


@dataclass(frozen=True, slots=True)
class Faults:
    """How often, of one, each fault is met: an answer meets one of them at most."""

    lies: float = 0.0
    failures: float = 0.0
    silence: float = 0.0
    truncated: float = 0.0


class FaultyServer:
    """A name server with faults. Created and closed by `serve`.

    While `is_out`, nothing is answered; `answered` and `faulty` count.
    """

    def __init__(self, zone: Zone, faults: Faults, random: Random, *, is_authoritative: bool) -> None:
        self._zone = zone
        self._faults = faults
        self._random = random
        self._is_authoritative = is_authoritative
        self.address = HostPort("127.0.0.1", 0)
        self.is_out = False
        self.answered = 0
        self.faulty = 0

    @classmethod
    @contextlib.asynccontextmanager
    async def serve(
        cls, zone: Zone, faults: Faults, random: Random, *, is_authoritative: bool = False
    ) -> AsyncIterator[Self]:
        """Serve within the block."""
        server = cls(zone, faults, random, is_authoritative=is_authoritative)
        loop = asyncio.get_running_loop()
        transport, _ = await loop.create_datagram_endpoint(lambda: _FaultyDatagrams(server), ("127.0.0.1", 0))
        server.address = HostPort(*transport.get_extra_info("sockname")[:2])
        try:
            yield server
        finally:
            transport.close()

    def answer(self, question: bytes) -> bytes | None:
        """Return the answer to a question; None when there is to be none."""
        try:
            query = dns.message.from_wire(question)
        except dns.exception.DNSException:
            return None
        self.answered += 1
        response = None if self.is_out else self._zone.answer(query)
        self._zone.questions.clear()  # not read in this server
        if response is None:
            return None
        if not self._is_authoritative:
            response.flags &= ~dns.flags.AA
        return self._spoil(response)

    def _spoil(self, response: dns.message.Message) -> bytes | None:
        faults, drawn = self._faults, self._random.random()
        bounds = (faults.lies, faults.failures, faults.silence, faults.truncated)
        for fault, share in enumerate(bounds):
            if drawn < share:
                self.faulty += 1
                return _SPOILERS[fault](response)
            drawn -= share
        return response.to_wire()


def _lie(response: dns.message.Message) -> bytes | None:
    response.answer.clear()
    response.set_rcode(dns.rcode.NXDOMAIN)
    return response.to_wire()


def _fail(response: dns.message.Message) -> bytes | None:
    response.answer.clear()
    response.set_rcode(dns.rcode.SERVFAIL)
    return response.to_wire()


def _stay_silent(_: dns.message.Message) -> bytes | None:
    return None


def _truncate(response: dns.message.Message) -> bytes | None:
    response.answer.clear()
    response.flags |= dns.flags.TC
    return response.to_wire()


_SPOILERS = (_lie, _fail, _stay_silent, _truncate)


class _FaultyDatagrams(asyncio.DatagramProtocol):
    def __init__(self, server: FaultyServer) -> None:
        self._server = server

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.DatagramTransport", transport)  # a selector's is not registered as one

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        if (answer := self._server.answer(data)) is not None:
            self._transport.sendto(answer, addr)
