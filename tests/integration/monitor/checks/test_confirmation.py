"""Before "missing" is believed: resolvers that are wrong, a zone whose own servers know better, and who answers."""

from __future__ import annotations

import socket
from collections.abc import AsyncIterator
from dataclasses import dataclass
from functools import partial

import pytest

from bench.lab.knot import Knot, find_knot
from bench.lab.server import NameServer
from bench.lab.zone import Behaviour, Zone
from common.db.pool import Database
from monitor.checks.checking import Checking
from tests.waiting import SECONDS

from . import parts
from .parts import a, address_of, check_now, record, row_of, told, watch

DOMAIN = "customer.example"
with_knot = pytest.mark.skipif(find_knot() is None, reason="the Debian package knot is not installed")


@dataclass
class World:
    """Two resolvers of hearsay; both know the zone's name server."""

    database: Database
    first: NameServer
    second: NameServer

    def add(self, name: str, kind: str, value: str) -> None:
        for server in (self.first, self.second):
            server.zone.add(name, kind, value)

    def remove(self, name: str) -> None:
        for server in (self.first, self.second):
            server.zone.remove(name)

    def checking(self, *servers: NameServer, authority_port: int | None = None, **more: float) -> Checking:
        """Without a port, the zone's own servers are where nobody may ask."""
        self.add(f"ns.{DOMAIN}", "A", "127.0.0.1" if authority_port else "10.0.0.53")
        chosen = servers or (self.first, self.second)
        return parts.make_checking(self.database, *map(address_of, chosen), authority_port=authority_port or 53, **more)


@pytest.fixture
async def world(database: Database) -> AsyncIterator[World]:
    await parts.add_application(database)
    async with (
        NameServer.serve(Zone(is_authoritative=False)) as first,
        NameServer.serve(Zone(is_authoritative=False)) as second,
    ):
        world = World(database, first, second)
        world.add(DOMAIN, "NS", f"ns.{DOMAIN}")
        yield world


async def state(world: World, checking: Checking) -> str:
    await check_now(world.database, checking)
    return str((await row_of(world.database, DOMAIN))["state"])


async def test_one_resolver_alone_is_not_believed(world: World) -> None:
    checking = world.checking(world.first)
    async with parts.running(checking):
        await watch(world.database, DOMAIN, [a("www")])
        assert await state(world, checking) == "unchecked"
    assert await told(world.database) == []


@pytest.mark.parametrize("port", [None, 1])
async def test_two_resolvers_that_agree_are_believed_where_nobody_else_can_be_asked(
    world: World, port: int | None
) -> None:
    checking = world.checking(authority_port=port)  # refused, or silent
    async with parts.running(checking):
        await watch(world.database, DOMAIN, [a("www")])
        assert await state(world, checking) == "missing"


@pytest.mark.parametrize("behaviour", [None, Behaviour.SERVFAIL, Behaviour.TIMEOUT])
async def test_a_second_resolver_that_disagrees_or_is_silent_leaves_it_unknown(
    world: World, behaviour: Behaviour | None
) -> None:
    world.add(f"www.{DOMAIN}", "A", "192.0.2.1")
    checking = world.checking()
    async with parts.running(checking):
        await watch(world.database, DOMAIN, [a("www")])
        assert await state(world, checking) == "present"
        world.first.zone.remove(f"www.{DOMAIN}")
        world.second.zone.misbehave(f"www.{DOMAIN}", behaviour)
        assert await state(world, checking) == "present"
    row = await row_of(world.database, DOMAIN)
    assert row["records_missing"] == []
    resolvers = {said["server"] for said in row["evidence"] if said["role"] == "resolver"}
    assert resolvers == {world.first.address, world.second.address}
    assert await told(world.database) == []


async def test_servers_that_stay_silent_are_not_waited_for_with_every_record(world: World) -> None:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as silent:
        silent.bind(("127.0.0.1", 0))
        silent.setblocking(False)
        # Resolvers have time on a busy machine too; only the zone's own server gives no answer.
        port = silent.getsockname()[1]
        checking = world.checking(authority_port=port, try_seconds=10.0, round_seconds=SECONDS)
        records = [a(f"h{number}") for number in range(150)]
        async with parts.running(checking):
            await watch(world.database, DOMAIN, records)
            missing = None
            while missing != records:  # a busy machine may leave an answer unknown; then there is another check
                await state(world, checking)
                missing = (await row_of(world.database, DOMAIN))["records_missing"]
                assert len(_questions(silent)) < 100, "twice at once for as many as there is room for"


def _questions(server: socket.socket) -> list[bytes]:
    """Those that have come since the last call."""
    return list(iter(partial(_received, server), None))


def _received(server: socket.socket) -> bytes | None:
    try:
        return server.recv(512)
    except BlockingIOError:
        return None


@with_knot
async def test_the_zones_own_server_outweighs_resolvers_that_lie(world: World) -> None:
    async with Knot.serve({DOMAIN: "@ NS ns\nns A 127.0.0.1\nwww A 192.0.2.1"}) as knot:
        checking = world.checking(authority_port=knot.address.port)
        async with parts.running(checking):
            await watch(world.database, DOMAIN, [a("www")])
            assert await state(world, checking) == "present"

            await knot.remove(DOMAIN, "www", "A")
            assert await state(world, checking) == "missing"
            evidence = (await row_of(world.database, DOMAIN))["evidence"]
            assert {
                "role": "authority",
                "server": str(knot.address),
                "name": f"www.{DOMAIN}",
                "type": "A",
                "outcome": "nxdomain",
            }.items() <= evidence[-1].items()

            world.first.zone.add(f"www.{DOMAIN}", "A", "192.0.2.1")
            assert await state(world, checking) == "present", "one answer is enough for that"
    assert [event for event, _ in await told(world.database)] == ["missing", "restored"]


@with_knot
async def test_a_cache_that_still_has_it_keeps_the_alarm_back(world: World) -> None:
    async with Knot.serve({DOMAIN: "@ NS ns\nns A 127.0.0.1\nwww A 192.0.2.1"}) as knot:
        checking = world.checking(authority_port=knot.address.port)
        async with parts.running(checking):
            await watch(world.database, DOMAIN, [a("www")])
            assert await state(world, checking) == "present"
            world.second.zone.add(f"www.{DOMAIN}", "A", "192.0.2.1")
            await knot.remove(DOMAIN, "www", "A")
            assert await state(world, checking) == "present"
            world.second.zone.remove(f"www.{DOMAIN}")
            assert await state(world, checking) == "missing"


@with_knot
async def test_a_flattened_apex_is_confirmed_with_the_zones_own_server(world: World) -> None:
    world.add("shop.partner.example", "A", "198.51.100.1")
    zone = "@ NS ns\nns A 127.0.0.1\n@ A 198.51.100.1"
    async with Knot.serve({DOMAIN: zone}) as knot:
        checking = world.checking(authority_port=knot.address.port)
        async with parts.running(checking):
            await watch(world.database, DOMAIN, [record("CNAME", "@", "shop.partner.example")])
            assert await state(world, checking) == "present"
            await knot.remove(DOMAIN, "@", "A")
            await knot.add(DOMAIN, "@", "A", "203.0.113.9")
            assert await state(world, checking) == "missing"


async def test_names_that_no_host_has_are_confirmed_by_resolvers_where_nobody_else_can_be_asked(world: World) -> None:
    """c-ares asks nobody of them."""
    world.add(f"one\\032printer.{DOMAIN}", "A", "192.0.2.1")
    checking = world.checking()
    records = [a(r"one\032printer"), a(r"no\032printer")]
    async with parts.running(checking):
        await watch(world.database, DOMAIN, records)
        assert await state(world, checking) == "missing"
    row = await row_of(world.database, DOMAIN)
    assert (row["records_present"], row["records_missing"]) == (records[:1], records[1:])


async def test_a_server_of_our_own_that_has_authority_is_believed(database: Database) -> None:
    await parts.add_application(database)
    async with NameServer.serve(Zone()) as server:
        checking = parts.make_checking(database, address_of(server))
        async with parts.running(checking):
            await watch(database, DOMAIN, [a("www")])
            await check_now(database, checking)
    assert await told(database) == [("missing", ["www"])]


async def test_a_server_that_denies_a_name_without_the_soa_of_its_zone_is_not_believed(database: Database) -> None:
    """One that lies, or has lost its zone, and sets AA; it says so every time."""
    await parts.add_application(database)
    async with NameServer.serve(Zone()) as server:
        server.zone.add(DOMAIN, "NS", f"ns.{DOMAIN}")
        server.zone.add(f"ns.{DOMAIN}", "A", "127.0.0.1")
        server.zone.misbehave(f"www.{DOMAIN}", Behaviour.NXDOMAIN)
        checking = parts.make_checking(database, address_of(server), authority_port=server.port)
        async with parts.running(checking):
            await watch(database, DOMAIN, [a("www")])
            await check_now(database, checking)
        assert (await row_of(database, DOMAIN))["state"] == "unchecked"
    assert await told(database) == []


async def test_the_second_resolver_is_asked_when_the_first_cannot_be(world: World) -> None:
    world.add(f"www.{DOMAIN}", "A", "192.0.2.1")
    world.first.zone.misbehave(f"www.{DOMAIN}", Behaviour.SERVFAIL)
    checking = world.checking()
    async with parts.running(checking):
        await watch(world.database, DOMAIN, [a("www")])
        assert await state(world, checking) == "present"
