"""Sockets of questions to name servers: what a forger must guess, and what stays open."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import dns.flags
import dns.message
import dns.rrset

from common.dns.direct import DirectClient, DirectReply
from common.dns.questions import Outcome
from common.host_ports import HostPort
from tests.waiting import let_run

Forge = Callable[[dns.message.Message], list[bytes]]
"""Datagrams to send before the true reply."""


def no_forgery(_query: dns.message.Message) -> list[bytes]:
    return []


class _Server(asyncio.DatagramProtocol):
    """Answers when `waits_for` questions are open. Mutable state: the ids by port, and the open questions."""

    def __init__(self, forge: Forge, waits_for: int) -> None:
        self._forge = forge
        self._waits_for = waits_for
        self._open: dict[tuple[str, int, int], bytes] = {}
        self.ids: dict[int, set[int]] = defaultdict(set)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        query = dns.message.from_wire(data)
        self.ids[addr[1]].add(query.id)
        self._open[*addr, query.id] = data
        if len(self._open) >= self._waits_for:
            for (host, port, _), question in self._open.items():
                asked = dns.message.from_wire(question)
                for datagram in (*self._forge(asked), answer(asked)):
                    self._transport.sendto(datagram, (host, port))  # type: ignore[attr-defined]
            self._open.clear()


def answer(query: dns.message.Message, value: str = "192.0.2.1") -> bytes:
    response = dns.message.make_response(query)
    response.flags |= dns.flags.AA
    response.answer.append(dns.rrset.from_text(query.question[0].name, 60, "IN", "A", value))
    return response.to_wire()


@asynccontextmanager
async def serving(forge: Forge = no_forgery, waits_for: int = 1) -> AsyncIterator[tuple[_Server, HostPort]]:
    loop = asyncio.get_running_loop()
    transport, server = await loop.create_datagram_endpoint(lambda: _Server(forge, waits_for), ("127.0.0.1", 0))
    try:
        yield server, HostPort(*transport.get_extra_info("sockname")[:2])
    finally:
        transport.close()


async def ask(client: DirectClient, server: HostPort, name: str = "www.test") -> tuple[str, ...]:
    reply = await client.ask(server, name, "A", recursion=False)
    assert isinstance(reply, DirectReply)
    present = reply.read("A")
    assert present is not None
    return present.values


def open_descriptors() -> int:
    return len(list(Path("/proc/self/fd").iterdir()))


async def test_forged_replies_end_no_question() -> None:
    """Another id, another question, or no question: the true reply is still waited for."""

    def forge(query: dns.message.Message) -> list[bytes]:
        other_id = bytearray(answer(query, "192.0.2.66"))
        other_id[0] ^= 1
        other_name = answer(dns.message.make_query("evil.test", "A", id=query.id), "192.0.2.66")
        no_question = query.to_wire()[:2] + b"\x84\x00" + bytes(8)
        return [bytes(other_id), other_name, no_question, b"\0" * 11]

    async with serving(forge) as (_, address):
        assert await ask(DirectClient(most_at_once=4), address) == ("192.0.2.1",)


async def test_a_port_carries_few_questions() -> None:
    names = [f"n{number}.test" for number in range(120)]
    async with serving() as (server, address):
        client = DirectClient(most_at_once=len(names))
        await asyncio.gather(*(client.ask(address, name, "A", recursion=False) for name in names))
    assert max(map(len, server.ids.values())) <= 50


async def test_questions_open_at_once_share_a_port_and_no_id() -> None:
    async with serving(waits_for=2) as (server, address):
        client = DirectClient(most_at_once=4)
        assert await asyncio.gather(ask(client, address, "a.test"), ask(client, address, "b.test"))
    assert max(map(len, server.ids.values())) == 2


async def test_a_port_is_closed_with_its_last_question() -> None:
    async with serving() as (_, address):
        before = open_descriptors()
        await ask(DirectClient(most_at_once=4), address)
        assert open_descriptors() == before


async def test_a_cancelled_question_leaves_no_socket() -> None:
    async with serving(waits_for=100) as (server, address):
        before = open_descriptors()
        task = asyncio.create_task(DirectClient(most_at_once=4).ask(address, "www.test", "A", recursion=False))
        while not server.ids:
            await let_run()
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        assert open_descriptors() == before


async def test_a_name_that_no_zone_can_have_leaves_no_socket() -> None:
    async with serving() as (_, address):
        before = open_descriptors()
        too_long = ".".join(["a" * 60] * 5)
        assert await DirectClient(most_at_once=4).ask(address, too_long, "A", recursion=False) is Outcome.NO_NAME
        assert open_descriptors() == before


async def test_a_closed_port_counts_as_silence() -> None:
    """Anybody can forge the error that a router reports, so it ends no question."""
    async with serving() as (_, address):
        pass
    assert await DirectClient(most_at_once=4).ask(address, "www.test", "A", recursion=False) is Outcome.TIMEOUT
