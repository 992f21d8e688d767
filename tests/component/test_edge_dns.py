"""The DNS server of the delegated zone at real sockets, asked by dnspython."""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager

import dns.asyncquery
import dns.flags
import dns.message
import dns.rcode
import pytest

from bench.lab.ports import free_ports
from edge.dns.responder import BURST, DnsCounters, Responder
from edge.dns.server import TCP_CONNECTIONS_PER_CLIENT, serving
from edge.dns.zone import Zone
from tests.waiting import SECONDS, let_run, until

NAME = "abcdefghijklmnopqrstuvwxyz.acme.frontage.example"
QUERY = dns.message.make_query(NAME, "TXT")


class Server:
    """A server at a port of all addresses of this machine."""

    def __init__(self, port: int, counters: DnsCounters) -> None:
        self.port = port
        self._counters = counters

    def count(self, outcome: str) -> float:
        (family,) = self._counters.families()
        return family.samples.get((outcome,), [0.0])[0]


@asynccontextmanager
async def running(host: str, tcp_seconds: float) -> AsyncIterator[Server]:
    (port,) = free_ports(1)
    counters = DnsCounters()
    values = {NAME.split(".", maxsplit=1)[0]: ["x" * 43]}
    zone = Zone("acme.frontage.example", "power.frontage.example", lambda label: values.get(label, ()))
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with ExitStack() as opened:
        sockets = [
            opened.enter_context(socket.socket(family, kind)) for kind in (socket.SOCK_DGRAM, socket.SOCK_STREAM)
        ]
        for each in sockets:
            each.setblocking(False)
            each.bind((host, port))
        sockets[1].listen()
        async with serving([each.fileno() for each in sockets], Responder(zone, counters), tcp_seconds=tcp_seconds):
            yield Server(port, counters)


@pytest.fixture(params=["0.0.0.0", "::"])
async def server(request: pytest.FixtureRequest) -> AsyncIterator[Server]:
    async with running(request.param, SECONDS) as server:
        yield server


async def connect(server: Server) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    return await asyncio.open_connection("127.0.0.1", server.port)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.77"])
async def test_answers_come_from_the_address_that_was_asked(server: Server, host: str) -> None:
    over_udp = await dns.asyncquery.udp(QUERY, host, timeout=SECONDS, port=server.port)  # refuses another source
    over_tcp = await dns.asyncquery.tcp(QUERY, host, timeout=SECONDS, port=server.port)
    assert [each.to_text() for each in over_udp.answer] == [each.to_text() for each in over_tcp.answer]
    assert len(over_udp.answer) == 1


async def test_many_questions_of_one_connection_are_answered_in_order(server: Server) -> None:
    reader, writer = await connect(server)
    queries = [dns.message.make_query(f"{number}.acme.frontage.example", "TXT") for number in range(20)]
    for query in queries:
        wire = query.to_wire()
        writer.write(struct.pack("!H", len(wire)) + wire)
    for query in queries:
        (length,) = struct.unpack("!H", await reader.readexactly(2))
        message = dns.message.from_wire(await reader.readexactly(length))
        assert query.is_response(message)
        assert message.rcode() == dns.rcode.NXDOMAIN
    writer.close()


async def test_question_may_come_byte_by_byte(server: Server) -> None:
    reader, writer = await connect(server)
    wire = QUERY.to_wire()
    for byte in struct.pack("!H", len(wire)) + wire:
        writer.write(bytes([byte]))
        await let_run()
    (length,) = struct.unpack("!H", await reader.readexactly(2))
    assert QUERY.is_response(dns.message.from_wire(await reader.readexactly(length)))
    writer.close()


@pytest.mark.parametrize("sent", [b"\xff\xff" + b"x" * 2000, b"\x00\x00", b"\x00\x03abc"])
async def test_connection_that_sends_no_question_is_closed(server: Server, sent: bytes) -> None:
    reader, writer = await connect(server)
    writer.write(sent)
    with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
        await reader.readexactly(1)
    writer.close()


async def test_silent_connection_is_closed_after_its_time() -> None:
    async with running("127.0.0.1", 0.05) as server:
        reader, writer = await connect(server)
        with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
            await reader.readexactly(1)
        writer.close()


async def test_one_client_has_a_bounded_number_of_connections(server: Server) -> None:
    held = [await connect(server) for _ in range(TCP_CONNECTIONS_PER_CLIENT)]
    reader, writer = await connect(server)
    with pytest.raises((ConnectionResetError, asyncio.IncompleteReadError)):
        await reader.readexactly(1)
    assert await dns.asyncquery.tcp(QUERY, "127.0.0.1", timeout=SECONDS, port=server.port, source="127.0.0.9")
    for _, each in [*held, (reader, writer)]:
        each.close()


async def test_garbage_is_answered_shortly_or_not_and_the_next_question_is(server: Server) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as client:
        client.setblocking(False)
        client.connect(("127.0.0.1", server.port))
        for garbage in (b"", b"x", b"\0" * 12, b"\xff" * 600, QUERY.to_wire()[:20]):
            client.send(garbage)
        await until(lambda: server.count("ignored") == 3 and server.count("malformed") == 2)
        assert [len(client.recv(4096)) for _ in range(2)] == [12, 12]
    assert (await dns.asyncquery.udp(QUERY, "127.0.0.1", timeout=SECONDS, port=server.port)).answer


async def test_flood_of_one_address_leaves_others_their_answers(server: Server) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as flooding:
        flooding.bind(("127.0.0.8", 0))
        flooding.setblocking(False)
        flooding.connect(("127.0.0.1", server.port))
        while server.count("limited") < 100:
            for _ in range(int(BURST) // 10):
                flooding.send(QUERY.to_wire())
            answered = await dns.asyncquery.udp(QUERY, "127.0.0.1", timeout=SECONDS, port=server.port)
            assert answered.answer
