"""Name servers that mean harm, or are broken beyond belief: what they say is never more than unknown, or is true.

Each is asked both as a resolver, by c-ares, and as a zone's own server, by dnspython.
"""

from __future__ import annotations

import asyncio
import contextlib
import struct
from collections.abc import AsyncIterator, Callable
from ipaddress import ip_network

import dns.flags
import dns.message
import dns.rcode
import dns.rrset
import pytest

from bench.lab.ports import free_ports
from common.addresses import AddressPolicy
from common.dns import Answer, Outcome
from common.dns.authority import Authority
from common.dns.shared_resolvers import SharedResolvers
from common.host_ports import HostPort
from common.records import RecordType

LOOPBACK = AddressPolicy((ip_network("127.0.0.0/8"),), ())
NAME = "www.test"
SOA = "test. 60 IN SOA ns.test. hostmaster.test. 1 3600 600 86400 60"

Script = Callable[[dns.message.Message], list[bytes]]
"""The datagrams that answer a question."""


class _Scripted(asyncio.DatagramProtocol):
    def __init__(self, script: Script) -> None:
        self._script = script

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        for answer in self._script(dns.message.from_wire(data)):
            self._transport.sendto(answer, addr)  # type: ignore[attr-defined]


@contextlib.asynccontextmanager
async def serving(script: Script, *, by_tcp: Script | None = None) -> AsyncIterator[HostPort]:
    """Without `by_tcp`, connections are refused."""

    async def converse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        assert by_tcp is not None
        with contextlib.suppress(asyncio.IncompleteReadError):
            (size,) = struct.unpack("!H", await reader.readexactly(2))
            for answer in by_tcp(dns.message.from_wire(await reader.readexactly(size))):
                writer.write(struct.pack("!H", len(answer)) + answer)
            await writer.drain()
        writer.close()

    address = HostPort("127.0.0.1", *free_ports(1))
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(lambda: _Scripted(script), (address.host, address.port))
    async with contextlib.AsyncExitStack() as stack:
        stack.callback(transport.close)
        if by_tcp is not None:
            server = await asyncio.start_server(converse, address.host, address.port)
            await stack.enter_async_context(server)
        yield address


async def ask_both(address: HostPort, name: str = NAME, kind: RecordType = "A") -> list[Answer]:
    """What c-ares makes of it, and dnspython."""
    resolvers = SharedResolvers([address], LOOPBACK)
    try:
        first = await resolvers.ask(address, name, kind, owner=name)
    finally:
        await resolvers.close()
    return [first, (await Authority(LOOPBACK).ask_server(address, name, kind)).answer]


def answering(query: dns.message.Message, *answer: str, authority: tuple[str, ...] = ()) -> dns.message.Message:
    response = dns.message.make_response(query, recursion_available=True)
    response.flags |= dns.flags.AA
    response.answer.extend(map(rrset, answer))
    response.authority.extend(map(rrset, authority))
    return response


def rrset(line: str) -> dns.rrset.RRset:
    name, ttl, kind_class, kind, rest = line.split(None, 4)
    return dns.rrset.from_text(name, int(ttl), kind_class, kind, rest)


async def test_aliases_in_a_circle_are_no_address() -> None:
    circle = (f"{NAME}. 60 IN CNAME other.test.", f"other.test. 60 IN CNAME {NAME}.")
    async with serving(lambda query: [answering(query, *circle).to_wire()]) as address:
        assert await ask_both(address) == [Answer(Outcome.NO_DATA)] * 2
        assert await ask_both(address, kind="CNAME") == [Answer(Outcome.RECORDS, ("other.test",))] * 2


async def test_records_of_other_names_do_not_count() -> None:
    poison = ("evil.test. 60 IN A 192.0.2.66", "test. 60 IN A 192.0.2.66")
    async with serving(lambda query: [answering(query, *poison).to_wire()]) as address:
        by_resolver, by_zone = await ask_both(address)
    assert by_resolver.values == ()
    assert not by_zone.outcome.is_known


async def test_an_answer_to_another_question_is_none() -> None:
    def script(query: dns.message.Message) -> list[bytes]:
        other = dns.message.make_query("evil.test", "A", id=query.id)
        return [answering(other, "evil.test. 60 IN A 192.0.2.66", f"{NAME}. 60 IN A 192.0.2.66").to_wire()]

    async with serving(script) as address:
        assert not any(answer.outcome.is_known for answer in await ask_both(address))


async def test_case_is_kept_or_changed_as_servers_like() -> None:
    """DNS 0x20 and servers that answer in a case of their own (RFC 4343)."""

    def script(query: dns.message.Message) -> list[bytes]:
        wire = answering(query, f"{NAME.upper()}. 60 IN A 192.0.2.1").to_wire()
        return [wire.replace(b"\3www\4test", b"\3WwW\4tEsT")]

    async with serving(script) as address:
        assert await ask_both(address) == [Answer(Outcome.RECORDS, ("192.0.2.1",))] * 2


async def test_a_name_that_points_at_itself_is_unknown_and_ends() -> None:
    def script(query: dns.message.Message) -> list[bytes]:
        question = dns.message.make_response(query)
        question.use_edns(False)
        head = question.to_wire()
        pointer = struct.pack("!H", 0xC000 | len(head))
        counted = head[:6] + struct.pack("!HHH", 1, 0, 0)
        return [counted + head[12:] + pointer + struct.pack("!HHIH", 1, 1, 60, 4) + bytes(4)]

    async with serving(script) as address:
        assert not any(answer.outcome.is_known for answer in await ask_both(address))


async def test_noise_is_unknown_and_ends() -> None:
    async with serving(lambda query: [query.to_wire()[:2] + bytes(range(40))]) as address:
        assert not any(answer.outcome.is_known for answer in await ask_both(address))


async def test_truncated_and_tcp_that_breaks_off_is_unknown() -> None:
    def truncated(query: dns.message.Message) -> list[bytes]:
        response = answering(query)
        response.flags |= dns.flags.TC
        return [response.to_wire()]

    async with serving(truncated, by_tcp=lambda _: []) as address:
        assert not any(answer.outcome.is_known for answer in await ask_both(address))
    async with serving(truncated, by_tcp=lambda query: [answering(query).to_wire()[:15]]) as address:
        assert not any(answer.outcome.is_known for answer in await ask_both(address))


async def test_a_text_as_long_as_a_message_can_be() -> None:
    text = "".join(f"{number:05d}" for number in range(12_000))
    chunks = " ".join(f'"{text[first : first + 255]}"' for first in range(0, len(text), 255))

    def by_udp(query: dns.message.Message) -> list[bytes]:
        response = answering(query)
        response.flags |= dns.flags.TC
        return [response.to_wire()]

    def by_tcp(query: dns.message.Message) -> list[bytes]:
        return [answering(query, f"{NAME}. 60 IN TXT {chunks}").to_wire(max_size=65_535)]

    async with serving(by_udp, by_tcp=by_tcp) as address:
        assert await ask_both(address, kind="TXT") == [Answer(Outcome.RECORDS, (text,))] * 2


@pytest.mark.parametrize("rcode", [dns.rcode.FORMERR, dns.rcode.NOTIMP])
@pytest.mark.parametrize("has_question", [True, False])
async def test_a_zones_server_that_hates_edns_is_asked_without(rcode: dns.rcode.Rcode, has_question: bool) -> None:
    """RFC 6891 §7 has FORMERR, RFC 2671 §5.3 had others as well, and some send nothing but the head. Of resolvers,
    which are the operator's choice, only the first is understood."""

    def script(query: dns.message.Message) -> list[bytes]:
        response = answering(query, f"{NAME}. 60 IN A 192.0.2.1")
        response.use_edns(False)
        if query.edns >= 0:
            response.answer.clear()
            response.set_rcode(rcode)
            if not has_question:
                response.question.clear()
        return [response.to_wire()]

    found = Answer(Outcome.RECORDS, ("192.0.2.1",))
    async with serving(script) as address:
        by_resolver, by_zone = await ask_both(address)
    assert by_zone == found
    assert by_resolver == found or not by_resolver.outcome.is_known


async def test_that_there_is_nothing_is_understood_without_edns_and_in_any_case() -> None:
    def script(query: dns.message.Message) -> list[bytes]:
        response = answering(query, authority=(SOA.upper(),))
        response.use_edns(False)
        return [response.to_wire()]

    async with serving(script) as address:
        assert await ask_both(address) == [Answer(Outcome.NO_DATA)] * 2
