"""The check's questions over real sockets: resolvers without a cache of ours, and a zone's own servers."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Sequence
from ipaddress import ip_network

import dns.flags
import dns.message
import dns.rcode
import dns.rrset
import pytest

from bench.lab.knot import Knot, find_knot
from bench.lab.server import NameServer
from bench.lab.zone import Behaviour, Zone
from common.addresses import AddressPolicy
from common.dns import Answer, Outcome
from common.dns.authority import Authority
from common.dns.shared_resolvers import SharedResolvers
from common.host_ports import HostPort
from common.records import RecordType

LOOPBACK = AddressPolicy((ip_network("127.0.0.0/8"),), ())
with_knot = pytest.mark.skipif(find_knot() is None, reason="the Debian package knot is not installed")


@pytest.fixture
async def server() -> AsyncIterator[NameServer]:
    async with NameServer.serve(Zone(is_authoritative=False)) as server:
        yield server


def address_of(server: NameServer) -> HostPort:
    return HostPort(server.host, server.port)


@pytest.fixture
async def resolvers(server: NameServer) -> AsyncIterator[SharedResolvers]:
    resolvers = SharedResolvers([address_of(server)], LOOPBACK)
    yield resolvers
    await resolvers.close()


async def ask(resolvers: SharedResolvers, name: str, kind: RecordType = "A") -> Answer:
    return await resolvers.ask(resolvers.servers()[0], name, kind, owner=name)


# Resolvers --------------------------------------------------------------------------------------------------


async def test_nothing_is_answered_from_a_cache(server: NameServer, resolvers: SharedResolvers) -> None:
    assert (await ask(resolvers, "www.test")).outcome is Outcome.NO_NAME
    server.zone.add("www.test", "TXT", '"hello"')
    assert (await ask(resolvers, "www.test")).outcome is Outcome.NO_DATA
    server.zone.add("www.test", "A", "192.0.2.1", ttl_seconds=86_400)
    assert (await ask(resolvers, "www.test")).values == ("192.0.2.1",)
    server.zone.remove("www.test", "A")
    assert (await ask(resolvers, "www.test")).outcome is Outcome.NO_DATA
    assert len(server.zone.questions) == 4


async def test_questions_asked_at_once_all_reach_the_server(server: NameServer, resolvers: SharedResolvers) -> None:
    answers = await asyncio.gather(*(ask(resolvers, f"n{number % 50}.test") for number in range(200)))
    assert_all_were_asked(server, answers)


async def test_the_same_question_asked_a_thousand_times_takes_no_more_than_there_is_room_for(
    server: NameServer, resolvers: SharedResolvers
) -> None:
    async with asyncio.timeout(60):
        answers = await asyncio.gather(*(ask(resolvers, "same.test") for _ in range(1000)))
    assert_all_were_asked(server, answers)


def assert_all_were_asked(server: NameServer, answers: Sequence[Answer]) -> None:
    """None is from a cache: the server has seen a question for each answer. A busy machine has some time out."""
    known = [answer.outcome for answer in answers if answer.outcome is not Outcome.TIMEOUT]
    assert set(known) == {Outcome.NO_NAME}
    assert len(server.zone.questions) >= len(known)


async def test_what_was_just_told_may_be_shared_where_that_will_do(
    server: NameServer, resolvers: SharedResolvers
) -> None:
    for _ in range(3):
        await resolvers.ask(address_of(server), "zone.test", "NS", owner="zone.test", may_share=True)
    assert len(server.zone.questions) == 1


@pytest.mark.parametrize("name", ["a b.test", "a@b.test"])
async def test_a_name_that_is_no_host_name_is_asked_all_the_same(
    server: NameServer, resolvers: SharedResolvers, name: str
) -> None:
    answer = await resolvers.ask(address_of(server), name, "A", owner=None)
    assert (answer.outcome, len(server.zone.questions)) == (Outcome.NO_NAME, 1)


async def test_only_what_is_said_of_the_name_itself_counts(server: NameServer, resolvers: SharedResolvers) -> None:
    server.zone.add("www.test", "CNAME", "real.test")
    server.zone.add("real.test", "A", "192.0.2.1")
    assert (await ask(resolvers, "www.test")).outcome is Outcome.NO_DATA
    followed = await resolvers.ask(address_of(server), "www.test", "A", owner=None)
    assert followed.values == ("192.0.2.1",)


async def test_an_answer_too_long_for_udp_comes_by_tcp(server: NameServer, resolvers: SharedResolvers) -> None:
    texts = [f"{number:03d}" + "x" * 200 for number in range(60)]
    for text in texts:
        server.zone.add("long.test", "TXT", f'"{text}"')
    assert sorted((await ask(resolvers, "long.test", "TXT")).values) == texts


class Truncating(asyncio.DatagramProtocol):
    """Says of everything that it is too long, and does not listen to TCP."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        response = dns.message.make_response(dns.message.from_wire(data), recursion_available=True)
        response.flags |= dns.flags.TC
        self.transport.sendto(response.to_wire(), addr)  # type: ignore[attr-defined]


async def test_truncated_and_no_tcp_is_unknown() -> None:
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(Truncating, ("127.0.0.1", 0))
    address = HostPort(*transport.get_extra_info("sockname")[:2])
    resolvers = SharedResolvers([address], LOOPBACK)
    try:
        assert not (await ask(resolvers, "www.test")).outcome.is_known
        reply = await Authority(LOOPBACK).ask_server(address, "www.test", "A")
        assert not reply.answer.outcome.is_known
    finally:
        await resolvers.close()
        transport.close()


class Ancient(Truncating):
    """Has never heard of EDNS (RFC 6891 §7)."""

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        query = dns.message.from_wire(data)
        response = dns.message.make_response(query)
        response.use_edns(False)
        response.flags |= dns.flags.AA
        response.set_rcode(dns.rcode.FORMERR if query.edns >= 0 else dns.rcode.NXDOMAIN)
        response.authority.append(dns.rrset.from_text("test.", 60, "IN", "SOA", "ns.test. hm.test. 1 60 60 60 60"))
        self.transport.sendto(response.to_wire(), addr)  # type: ignore[attr-defined]


async def test_a_server_without_edns_is_asked_without() -> None:
    loop = asyncio.get_running_loop()
    transport, _ = await loop.create_datagram_endpoint(Ancient, ("127.0.0.1", 0))
    address = HostPort(*transport.get_extra_info("sockname")[:2])
    resolvers = SharedResolvers([address], LOOPBACK)
    try:
        assert (await ask(resolvers, "www.test")).outcome is Outcome.NO_NAME
        assert (await Authority(LOOPBACK).ask_server(address, "www.test", "A")).answer.outcome is Outcome.NO_NAME
    finally:
        await resolvers.close()
        transport.close()


async def test_a_silent_server_is_asked_last(server: NameServer) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        mute = HostPort(*silent.getsockname())
        resolvers = SharedResolvers([mute, address_of(server)], LOOPBACK)
        try:
            assert resolvers.servers() == [mute, address_of(server)]
            assert (await ask(resolvers, "www.test")).outcome is Outcome.TIMEOUT
            assert resolvers.servers() == [address_of(server), mute]
        finally:
            await resolvers.close()


# A zone's own servers ---------------------------------------------------------------------------------------

ZONE = {
    "zone.test": """
@ NS ns
ns A 127.0.0.1
www A 192.0.2.1
alias CNAME www
*.wild TXT "any"
sub NS ns.sub
ns.sub A 127.0.0.1
gone NS ns.elsewhere.test.
big TXT """
    + " ".join(f'"{number:03d}{"x" * 240}"' for number in range(40)),
    "sub.zone.test": "@ NS ns\nns A 127.0.0.1\nwww A 192.0.2.2",
}


@pytest.fixture
async def knot() -> AsyncIterator[Knot]:
    async with Knot.serve(ZONE) as knot:
        yield knot


class Hearsay:
    """What a resolver might know."""

    def __init__(self) -> None:
        self.known: dict[tuple[str, str], tuple[str, ...]] = {}
        self.asked: list[tuple[str, str]] = []

    def add(self, name: str, kind: str, *values: str) -> None:
        self.known[name, kind] = values

    async def resolve(self, name: str, kind: RecordType) -> Answer:
        self.asked.append((name, kind))
        values = self.known.get((name, kind), ())
        return Answer(Outcome.RECORDS, values) if values else Answer(Outcome.NO_DATA)


@pytest.fixture
def hearsay() -> Hearsay:
    hearsay = Hearsay()
    hearsay.add("zone.test", "NS", "ns.zone.test")
    hearsay.add("ns.zone.test", "A", "127.0.0.1")
    return hearsay


async def consult(knot: Knot, hearsay: Hearsay, name: str, kind: RecordType = "A") -> list[Answer]:
    authority = Authority(LOOPBACK, port=knot.address.port)
    return [heard.answer for heard in await authority.ask_zone(name, kind, hearsay.resolve)]


@with_knot
async def test_the_zones_servers_are_found_by_walking_up(knot: Knot, hearsay: Hearsay) -> None:
    assert await consult(knot, hearsay, "www.zone.test") == [Answer(Outcome.RECORDS, ("192.0.2.1",))]
    assert await consult(knot, hearsay, "www.zone.test", "TXT") == [Answer(Outcome.NO_DATA)]
    assert await consult(knot, hearsay, "a.b.zone.test") == [Answer(Outcome.NO_NAME)]
    assert ("b.zone.test", "NS") in hearsay.asked


@with_knot
async def test_an_alias_is_not_its_target(knot: Knot, hearsay: Hearsay) -> None:
    assert await consult(knot, hearsay, "alias.zone.test", "CNAME") == [Answer(Outcome.RECORDS, ("www.zone.test",))]
    assert await consult(knot, hearsay, "alias.zone.test", "A") == [Answer(Outcome.NO_DATA)]


@with_knot
async def test_wildcards_and_long_answers(knot: Knot, hearsay: Hearsay) -> None:
    assert await consult(knot, hearsay, "*.wild.zone.test", "TXT") == [Answer(Outcome.RECORDS, ("any",))]
    assert await consult(knot, hearsay, "x.wild.zone.test", "TXT") == [Answer(Outcome.RECORDS, ("any",))]
    (answer,) = await consult(knot, hearsay, "big.zone.test", "TXT")
    assert len(answer.values[0]) == 40 * 243


@with_knot
async def test_referrals_lead_past_a_resolver_that_hides_the_delegation(knot: Knot, hearsay: Hearsay) -> None:
    async with Knot.serve({"zone.test": ZONE["zone.test"]}, host="127.0.0.2", port=knot.address.port):
        hearsay.add("ns.zone.test", "A", "127.0.0.2")  # knows of the delegation, but not what is in it
        assert await consult(knot, hearsay, "www.sub.zone.test") == [Answer(Outcome.RECORDS, ("192.0.2.2",))]
        assert await consult(knot, hearsay, "sub.zone.test", "NS") == [Answer(Outcome.RECORDS, ("ns.sub.zone.test",))]
        assert all(not answer.outcome.is_known for answer in await consult(knot, hearsay, "www.gone.zone.test"))


@with_knot
async def test_a_server_without_authority_is_not_believed(knot: Knot, hearsay: Hearsay) -> None:
    hearsay.add("other.test", "NS", "ns.zone.test")
    (answer,) = await consult(knot, hearsay, "www.other.test")
    assert not answer.outcome.is_known


@with_knot
async def test_addresses_are_asked_only_under_the_policy(knot: Knot, hearsay: Hearsay) -> None:
    strict = Authority(AddressPolicy((), ()), port=knot.address.port)
    assert await strict.ask_zone("www.zone.test", "A", hearsay.resolve) == []


async def test_a_zone_nobody_knows_has_no_servers(hearsay: Hearsay) -> None:
    assert await Authority(LOOPBACK).ask_zone("www.unknown.example", "A", hearsay.resolve) == []


async def test_a_server_that_is_not_there_is_unknown(server: NameServer) -> None:
    with socket.socket() as closed:
        closed.bind(("127.0.0.1", 0))
        reply = await Authority(LOOPBACK).ask_server(HostPort(*closed.getsockname()), "www.test", "A")
    assert reply.answer.outcome is Outcome.TIMEOUT


async def test_hearsay_is_not_authority(server: NameServer) -> None:
    server.zone.add("www.test", "A", "192.0.2.1")
    server.zone.misbehave("broken.test", Behaviour.SERVFAIL)
    authority = Authority(LOOPBACK)
    assert not (await authority.ask_server(address_of(server), "www.test", "A")).answer.outcome.is_known
    assert not (await authority.ask_server(address_of(server), "broken.test", "A")).answer.outcome.is_known
