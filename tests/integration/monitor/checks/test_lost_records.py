"""Records lost while resolvers' caches still have them, for a day: found missing at the next check."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import dataclass

import pytest

from bench.lab.knot import Knot, find_knot
from bench.lab.server import NameServer
from bench.lab.unbound import find_unbound, serve_unbound
from bench.lab.zone import Zone
from common.db.pool import Database
from monitor.checks.checking import Checking

from . import parts
from .parts import a, address_of, check_now, row_of, told, watch

DOMAIN = "customer.example"
WWW = f"www.{DOMAIN}"
DAY = 86_400
ZONE = f"@ NS ns\nns A 127.0.0.1\nwww {DAY} A 192.0.2.1\nshop 3600 A 192.0.2.1"

pytestmark = pytest.mark.skipif(find_knot() is None, reason="the Debian package knot is not installed")


@dataclass(frozen=True, slots=True)
class World:
    """A zone of knot, and two resolvers whose caches are what a test puts there."""

    database: Database
    knot: Knot
    first: NameServer
    second: NameServer

    def cache(self, name: str, ttl_seconds: int, *servers: NameServer) -> None:
        for server in servers or (self.first, self.second):
            server.zone.replace(name, "A", "192.0.2.1", ttl_seconds=ttl_seconds)

    def checking(self, *servers: NameServer, authority_port: int | None = None) -> Checking:
        resolvers = map(address_of, servers or (self.first, self.second))
        port = authority_port or self.knot.address.port
        return parts.make_checking(self.database, *resolvers, authority_port=port)


@pytest.fixture
async def world(database: Database) -> AsyncIterator[World]:
    await parts.add_application(database)
    async with (
        Knot.serve({DOMAIN: ZONE}) as knot,
        NameServer.serve(Zone(is_authoritative=False)) as first,
        NameServer.serve(Zone(is_authoritative=False)) as second,
    ):
        for server in (first, second):
            server.zone.add(DOMAIN, "NS", f"ns.{DOMAIN}")
            server.zone.add(f"ns.{DOMAIN}", "A", "127.0.0.1")
        yield World(database, knot, first, second)


async def state(database: Database, checking: Checking) -> str:
    await check_now(database, checking)
    return str((await row_of(database, DOMAIN))["state"])


@pytest.mark.skipif(find_unbound() is None, reason="the Debian package unbound is not installed")
async def test_a_record_with_a_ttl_of_a_day_is_missing_at_the_check_after_its_loss(database: Database) -> None:
    await parts.add_application(database)
    async with Knot.serve({DOMAIN: ZONE}) as knot, serve_unbound({DOMAIN: knot.address}) as cache:
        checking = parts.make_checking(database, cache, authority_port=knot.address.port)
        async with parts.running(checking):
            await watch(database, DOMAIN, [a("www")])
            assert await state(database, checking) == "present"
            await knot.remove(DOMAIN, "www", "A")
            assert await state(database, checking) == "missing"
            assert await told(database) == [("missing", ["www"])]


async def test_ordinary_ttls_take_no_question_more(world: World) -> None:
    world.cache(WWW, 3600)
    checking = world.checking()
    async with parts.running(checking):
        await watch(world.database, DOMAIN, [a("www")])
        assert await state(world.database, checking) == "present"
    asked = [question.name for server in (world.first, world.second) for question in server.zone.questions]
    assert set(asked) == {WWW}
    assert not (await row_of(world.database, DOMAIN))["has_long_ttl"]


async def test_the_same_answer_is_still_in_doubt_when_little_is_left_of_it(world: World) -> None:
    world.cache(WWW, DAY)
    checking = world.checking()
    async with parts.running(checking):
        await watch(world.database, DOMAIN, [a("www")])
        assert await state(world.database, checking) == "present"
        world.cache(WWW, 60)
        await world.knot.remove(DOMAIN, "www", "A")
        assert await state(world.database, checking) == "missing"


async def test_a_domain_is_in_doubt_as_long_as_its_zone_has_the_ttl(world: World) -> None:
    world.cache(WWW, DAY)
    world.cache(f"shop.{DOMAIN}", DAY)
    checking = world.checking()
    async with parts.running(checking):
        await watch(world.database, DOMAIN, [a("www")])
        assert await state(world.database, checking) == "present"
        world.cache(WWW, 60)
        assert await state(world.database, checking) == "present"
        assert (await row_of(world.database, DOMAIN))["has_long_ttl"]

        await watch(world.database, DOMAIN, [a("shop")])
        world.cache(f"shop.{DOMAIN}", 60)
        assert await state(world.database, checking) == "present"
        assert not (await row_of(world.database, DOMAIN))["has_long_ttl"], "the zone has a TTL of an hour"


async def test_a_second_resolvers_cache_hides_no_loss(world: World) -> None:
    world.cache(WWW, 60)
    checking = world.checking()
    async with parts.running(checking):
        await watch(world.database, DOMAIN, [a("www")])
        assert await state(world.database, checking) == "present"
        await world.knot.remove(DOMAIN, "www", "A")
        world.first.zone.remove(WWW)
        world.cache(WWW, DAY, world.second)
        assert await state(world.database, checking) == "missing"


async def test_the_servers_of_a_zone_are_looked_up_once_for_all_its_names(world: World) -> None:
    world.first.zone.replace(DOMAIN, "NS", f"ns.{DOMAIN}", ttl_seconds=DAY)
    world.first.zone.replace(f"ns.{DOMAIN}", "A", "127.0.0.1", ttl_seconds=DAY)
    checking = world.checking(world.first)
    async with parts.running(checking):
        for subdomain in ("www", "shop"):
            world.cache(f"{subdomain}.{DOMAIN}", DAY)
            await watch(world.database, DOMAIN, [a(subdomain)])
            assert await state(world.database, checking) == "present"
        asked = {(question.name, question.type) for question in world.first.zone.questions}
        assert (WWW, "NS") in asked
        assert (f"shop.{DOMAIN}", "NS") not in asked

        await world.knot.remove(DOMAIN, "shop", "A")
        assert await state(world.database, checking) == "missing", "what is remembered decides no loss"


async def test_a_zone_that_cannot_be_asked_loses_nothing(world: World) -> None:
    world.cache(WWW, DAY)
    await world.knot.remove(DOMAIN, "www", "A")
    checking = world.checking(authority_port=1)
    async with parts.running(checking):
        await watch(world.database, DOMAIN, [a("www")])
        assert await state(world.database, checking) == "present"
    assert await told(world.database) == []


async def test_a_zone_that_moved_is_asked_where_each_resolver_finds_it(world: World) -> None:
    """The first resolver remembers the old servers, which no longer have the record; the second knows the new ones."""
    world.cache(WWW, DAY)
    world.second.zone.replace(f"ns.{DOMAIN}", "A", "127.0.0.2")
    async with Knot.serve({DOMAIN: ZONE}, host="127.0.0.2", port=world.knot.address.port):
        await world.knot.remove(DOMAIN, "www", "A")
        checking = world.checking()
        async with parts.running(checking):
            await watch(world.database, DOMAIN, [a("www")])
            assert await state(world.database, checking) == "unchecked", "they disagree"
            world.first.zone.remove(WWW)
            assert await state(world.database, checking) == "unchecked"
    assert await told(world.database) == []
