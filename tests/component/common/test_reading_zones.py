"""Reading a zone: knot serves the zone and the one above it, and a resolver knows where their servers are."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from ipaddress import ip_network

import dns.message
import pytest

from bench.lab.knot import Knot, find_knot
from bench.lab.powerdns import PowerDns, find_powerdns
from bench.lab.server import NameServer
from bench.lab.zone import Behaviour, Zone
from common.addresses import AddressPolicy
from common.dns import Outcome, Pass, Resolver
from common.domain_check.conflicts import Rule, find_conflicts
from common.domain_check.providers import find_provider
from common.domain_check.reading import read_zone, unknown_outcome
from common.domain_check.zone_view import ZoneView
from common.host_ports import HostPort
from common.records import Record, RecordType

pytestmark = pytest.mark.skipif(find_knot() is None, reason="the Debian package knot is not installed")

LOOPBACK = AddressPolicy((ip_network("127.0.0.0/8"),), ())
PARENT, CHILD = "127.0.0.1", "127.0.0.2"
APEX = "shop.test"

ABOVE = """
@ NS ns
ns A 127.0.0.1
shop NS ns1.shop
shop NS ns2.shop
ns1.shop A 127.0.0.2
ns2.shop A 127.0.0.2
dead NS ns.dead
ns.dead A 127.0.0.3
"""
ZONE = """
@ NS ns1
@ NS ns2
ns1 A 127.0.0.2
ns2 A 127.0.0.2
@ A 192.0.2.1
@ TXT "v=spf1 include:mail.test ~all"
www CNAME old.elsewhere.test.
alias 4711 CNAME own
own A 192.0.2.5
same A 192.0.2.9
* A 192.0.2.9
* TXT "any"
sub NS ns.sub
ns.sub A 127.0.0.3
"""


class World:
    def __init__(self, parent: Knot, child: Knot, cache: NameServer) -> None:
        self.parent, self.child, self.cache = parent, child, cache

    @asynccontextmanager
    async def open_pass(self) -> AsyncIterator[Pass]:
        servers = [HostPort(self.cache.host, self.cache.port)]
        resolver = Resolver(servers, LOOPBACK, authority_port=self.parent.address.port)
        async with resolver.open_pass() as questions:
            yield questions

    async def read(self, apex: str, *requested: Record) -> ZoneView:
        async with self.open_pass() as questions:
            return await read_zone(questions, apex, requested)


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with AsyncExitStack() as stack:
        parent = await stack.enter_async_context(Knot.serve({"test": ABOVE}, host=PARENT))
        port = parent.address.port
        child = await stack.enter_async_context(Knot.serve({APEX: ZONE}, host=CHILD, port=port))
        cache = await stack.enter_async_context(NameServer.serve(Zone(is_authoritative=False)))
        cache.zone.add("test", "NS", "ns.test")
        cache.zone.add("ns.test", "A", PARENT)
        cache.zone.add(APEX, "NS", f"ns1.{APEX}")
        cache.zone.add(f"ns1.{APEX}", "A", CHILD)
        yield World(parent, child, cache)


def record(kind: RecordType, host: str, value: str) -> Record:
    return Record(kind, host, value, 300)


async def test_delegation_name_servers_and_soa_come_from_both_zones(world: World) -> None:
    view = await world.read(APEX)

    assert set(view.delegation.values) == {"ns1.shop.test", "ns2.shop.test"}
    assert set(view.name_servers.values) == {"ns1.shop.test", "ns2.shop.test"}
    assert view.soa.values[0].startswith("ns.shop.test hostmaster.shop.test")
    assert unknown_outcome(view) is None


async def test_a_name_that_the_zone_above_does_not_have_is_known_to_be_absent(world: World) -> None:
    view = await world.read("absent.test")

    assert view.delegation.outcome is Outcome.NO_NAME
    assert unknown_outcome(view) is None


async def test_a_zone_whose_servers_do_not_answer_is_unknown(world: World) -> None:
    view = await world.read("dead.test")

    assert view.delegation.values == ("ns.dead.test",)
    assert unknown_outcome(view) is not None


async def test_a_zone_above_that_cannot_be_asked_is_unknown(world: World) -> None:
    world.cache.zone.misbehave("test", Behaviour.SERVFAIL)

    assert unknown_outcome(await world.read(APEX)) is not None


async def test_records_of_a_wildcard_are_not_records_of_the_host(world: World) -> None:
    view = await world.read(APEX, *(record("A", host, "198.51.100.1") for host in ("new", "own", "same", "a.deep")))

    assert view.host("new.shop.test").wildcard == "*.shop.test"
    assert view.host("a.deep.shop.test").wildcard == "*.shop.test"
    assert view.host("new.shop.test").values("A") == ()
    assert view.host("own.shop.test").wildcard is None
    assert view.host("same.shop.test").values("A") == ("192.0.2.9",)  # its own, though the wildcard has the same


async def test_a_zone_cut_is_found_though_its_servers_are_dead(world: World) -> None:
    wanted = record("A", "deep.sub", "198.51.100.1")
    view = await world.read(APEX, wanted)

    host = view.host("deep.sub.shop.test")
    assert (host.zone_cut, host.delegated_to) == ("sub.shop.test", ("ns.sub.shop.test",))
    assert unknown_outcome(view) is None
    assert [each.rule for each in find_conflicts([wanted], view)] == [Rule.ZONE_CUT]


async def test_an_alias_is_shown_by_the_answer_about_another_type(world: World) -> None:
    wanted = record("TXT", "alias", "partner=1")
    host = (await world.read(APEX, wanted)).host(f"alias.{APEX}")

    assert (host.values("CNAME"), host.values("TXT")) == (("own.shop.test",), ())
    assert host.answer("CNAME").ttl_seconds == 4711
    absent = (await world.read(APEX, record("TXT", "x.own", "partner=1"))).host(f"x.own.{APEX}")
    assert absent.answer("CNAME").outcome is absent.answer("TXT").outcome is Outcome.NO_NAME


async def test_vanity_name_servers_show_their_provider_by_the_soa(world: World) -> None:
    soa = "ns-1.awsdns-00.com. awsdns-hostmaster.amazon.com. 1 7200 900 1209600 86400"
    zone = f"@ SOA {soa}\n@ NS ns1\n@ NS ns2\nns1 A 127.0.0.4\nns2 A 127.0.0.4\n"
    port = world.parent.address.port
    async with Knot.serve({"vanity.test": f"$ORIGIN vanity.test.\n$TTL 60\n{zone}"}, host="127.0.0.4", port=port):
        await world.parent.add("test", "vanity", "NS", "ns1.vanity.test.")
        await world.parent.add("test", "ns1.vanity", "A", "127.0.0.4")

        view = await world.read("vanity.test")

    assert unknown_outcome(view) is None
    assert find_provider(view.server_names).name == "vanity.test"
    assert find_provider(view.server_names, view.soa.values[0]).id == "route53"


async def test_a_lame_server_beside_a_good_one_takes_nothing_away(world: World) -> None:
    """The first name server of the delegation does not have the zone; the second one does."""
    world.cache.zone.replace(APEX, "NS", "lame.elsewhere.test", f"ns1.{APEX}")
    world.cache.zone.add("lame.elsewhere.test", "A", PARENT)

    view = await world.read(APEX, record("A", "own", "198.51.100.1"))

    assert unknown_outcome(view) is None
    assert view.host("own.shop.test").values("A") == ("192.0.2.5",)


async def test_only_lame_servers_are_unknown_never_absent(world: World) -> None:
    world.cache.zone.replace(APEX, "NS", "lame.elsewhere.test")
    world.cache.zone.add("lame.elsewhere.test", "A", PARENT)
    await world.parent.remove("test", "shop", "NS")
    await world.parent.add("test", "shop", "NS", "lame.elsewhere.test.")

    assert unknown_outcome(await world.read(APEX)) is not None


class HoldingServer(asyncio.DatagramProtocol):
    """Answers no question before `wanted` different ones have arrived."""

    def __init__(self, zone: Zone, wanted: int) -> None:
        self._zone, self._wanted = zone, wanted
        self._held: dict[tuple[str, str], list[tuple[dns.message.Message, tuple[str, int]]]] = {}

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        query = dns.message.from_wire(data)
        question = query.question[0]
        self._held.setdefault((str(question.name), str(question.rdtype)), []).append((query, addr))
        if len(self._held) < self._wanted:
            return
        for held in self._held.values():
            for each, address in held:
                response = self._zone.answer(each)
                assert response is not None
                self.transport.sendto(response.to_wire(), address)  # type: ignore[attr-defined]
            held.clear()


async def test_the_zone_and_the_one_above_are_asked_everything_at_once() -> None:
    """A check takes as long as the slowest server: no question waits for the answer to another."""
    zone = Zone()
    for name, server in (("test", "ns.test"), (APEX, "ns.host.test")):
        zone.add(name, "NS", server)
        zone.add(server, "A", PARENT)
    zone.add(APEX, "SOA", "ns.host.test hostmaster.host.test 1 3600 600 86400 60")
    zone.add(f"www.{APEX}", "A", "192.0.2.1")
    loop = asyncio.get_running_loop()
    async with NameServer.serve(zone) as cache:
        for records, questions in (((), 2), ((record("A", "www", "192.0.2.2"),), 4)):
            holding, _ = await loop.create_datagram_endpoint(
                partial(HoldingServer, zone, questions), local_addr=(PARENT, 0)
            )
            port = holding.get_extra_info("sockname")[1]
            resolver = Resolver([HostPort(cache.host, cache.port)], LOOPBACK, authority_port=port)
            async with resolver.open_pass() as opened:
                view = await read_zone(opened, APEX, records)
            holding.close()
            assert unknown_outcome(view) is None, server


async def test_without_a_zone_server_to_find_an_authoritative_resolver_stands_in() -> None:
    async with NameServer.serve(Zone()) as server:
        server.zone.add("private.test", "NS", "ns.elsewhere.test")
        server.zone.remove("private.test", "NS")
        server.zone.add("www.private.test", "A", "192.0.2.1")
        async with Resolver([HostPort(server.host, server.port)], LOOPBACK).open_pass() as questions:
            view = await read_zone(questions, "private.test", [record("A", "www", "192.0.2.2")])
            absent = await read_zone(questions, "absent.test")

    assert unknown_outcome(view) is None
    assert view.host("www.private.test").values("A") == ("192.0.2.1",)
    assert absent.delegation.outcome is Outcome.NO_NAME


async def test_a_resolver_that_stands_in_may_rotate_the_records_of_a_set() -> None:
    if find_powerdns() is None:
        pytest.skip("PowerDNS is not installed")
    addresses = {f"192.0.2.{number}" for number in range(1, 9)}
    records = [(f"many.{APEX}", "A", address) for address in sorted(addresses)]
    async with (
        PowerDns.serve({APEX: records}) as server,
        Resolver([server.address], LOOPBACK).open_pass() as questions,
    ):
        answer = await questions.zone_questions(100).ask(f"many.{APEX}", "A")
    assert (answer.outcome, set(answer.values)) == (Outcome.RECORDS, addresses)


async def test_servers_are_looked_for_once_and_those_of_the_zone_above_are_remembered(world: World) -> None:
    hosts = [record("A", host, "192.0.2.7") for host in ("own", "new", "www")]
    server = HostPort(world.cache.host, world.cache.port)
    resolver = Resolver([server], LOOPBACK, authority_port=world.parent.address.port)

    async def asked() -> set[tuple[str, str]]:
        world.cache.zone.questions.clear()
        async with resolver.open_pass() as questions:
            view = await read_zone(questions, APEX, hosts)
        assert unknown_outcome(view) is None
        assert view.host(f"own.{APEX}").values("A") == ("192.0.2.5",)
        return {(each.name, each.type) for each in world.cache.zone.questions}

    own = {("ns1.shop.test", "A"), (APEX, "NS")}
    assert await asked() == own | {("ns.test", "A"), ("test", "NS")}
    assert await asked() == own
