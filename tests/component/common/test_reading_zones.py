"""Reading a zone: knot serves the zone and the one above it, and a resolver knows where their servers are."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from ipaddress import ip_network

import pytest

from bench.lab.knot import Knot, find_knot
from bench.lab.server import NameServer
from bench.lab.zone import Behaviour, Zone
from common.addresses import AddressPolicy
from common.dns import Outcome, Pass, Resolver
from common.domain_check.conflicts import Rule, find_conflicts
from common.domain_check.reading import read_zone, unknown_outcome
from common.domain_check.zone_view import ZoneView
from common.records import Record, RecordType
from common.settings import HostPort

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
