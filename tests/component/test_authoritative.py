"""What zones' own servers answer, with knot as the zones' server and a resolver whose answers are out of date."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import AsyncExitStack, asynccontextmanager
from ipaddress import ip_network

import pytest

from bench.lab.knot import Knot, find_knot
from bench.lab.server import NameServer
from bench.lab.zone import Behaviour, Zone
from common.addresses import AddressPolicy
from common.dns import Answer, Chain, Outcome, Pass, Resolver
from common.dns.authoritative import MOST_QUESTIONS, combine
from common.host_ports import HostPort
from common.records import RecordType

LOOPBACK = AddressPolicy((ip_network("127.0.0.0/8"),), ())
FIRST, SECOND = "127.0.0.1", "127.0.0.2"
GOAL = "power.test"

pytestmark = pytest.mark.skipif(find_knot() is None, reason="the Debian package knot is not installed")

CUSTOMER = """
@ NS ns
ns A 127.0.0.1
@ A 192.0.2.1
www CNAME target.partner.test.
far CNAME middle.partner.test.
plain A 192.0.2.1
one CNAME two
two CNAME one
""" + "\n".join(f"hop{hop} CNAME hop{hop + 1}" for hop in range(20))
PARTNER = """
@ NS ns
ns A 127.0.0.2
target CNAME power.test.
middle CNAME back.customer.test.
"""


class World:
    """Two zones, each with a server of its own, and a resolver that knows nothing but where the servers are."""

    def __init__(self, customer: Knot, partner: Knot, cache: NameServer) -> None:
        self.customer, self.partner, self.cache = customer, partner, cache

    @asynccontextmanager
    async def open_pass(self, policy: AddressPolicy = LOOPBACK) -> AsyncIterator[Pass]:
        servers = [HostPort(self.cache.host, self.cache.port)]
        resolver = Resolver(servers, policy, authority_port=self.customer.address.port)
        async with resolver.open_pass() as questions:
            yield questions

    async def ask(self, name: str, kind: RecordType = "CNAME") -> Answer:
        async with self.open_pass() as questions:
            return await questions.authoritative.ask(name, kind)

    async def follow(self, name: str, goals: Collection[str] = (GOAL,)) -> Chain:
        async with self.open_pass() as questions:
            return await questions.authoritative.follow(name, goals)


@pytest.fixture
async def world() -> AsyncIterator[World]:
    async with AsyncExitStack() as stack:
        customer = await stack.enter_async_context(Knot.serve({"customer.test": CUSTOMER}, host=FIRST))
        port = customer.address.port
        partner = await stack.enter_async_context(Knot.serve({"partner.test": PARTNER}, host=SECOND, port=port))
        cache = await stack.enter_async_context(NameServer.serve(Zone(is_authoritative=False)))
        for zone, address in (("customer.test", FIRST), ("partner.test", SECOND)):
            cache.zone.add(zone, "NS", f"ns.{zone}")
            cache.zone.add(f"ns.{zone}", "A", address)
        yield World(customer, partner, cache)


async def test_records_no_name_no_data_and_could_not_ask_are_told_apart(world: World) -> None:
    world.cache.zone.add("lost.test", "NS", "ns.lost.test")

    assert await world.ask("www.customer.test") == Answer(Outcome.RECORDS, ("target.partner.test",))
    assert await world.ask("customer.test", "A") == Answer(Outcome.RECORDS, ("192.0.2.1",))
    assert (await world.ask("plain.customer.test")).outcome is Outcome.NO_DATA
    assert (await world.ask("absent.customer.test")).outcome is Outcome.NO_NAME
    assert not (await world.ask("www.lost.test")).outcome.is_known
    assert not (await world.ask("www.nowhere.example")).outcome.is_known


async def test_a_resolvers_word_on_the_question_itself_does_not_count(world: World) -> None:
    world.cache.zone.add("absent.customer.test", "CNAME", GOAL)
    world.cache.zone.add("www.customer.test", "CNAME", "old.elsewhere.test")
    world.cache.zone.misbehave("plain.customer.test", Behaviour.SERVFAIL)

    assert (await world.ask("absent.customer.test")).outcome is Outcome.NO_NAME
    assert (await world.ask("www.customer.test")).values == ("target.partner.test",)
    assert (await world.ask("plain.customer.test", "A")).values == ("192.0.2.1",)


async def test_a_chain_is_followed_through_zones_to_its_goal(world: World) -> None:
    chain = await world.follow("www.customer.test")

    assert chain == Chain(("target.partner.test", GOAL), Outcome.RECORDS)
    assert not chain.is_disputed
    assert await world.follow("www.customer.test", ("target.partner.test",)) == Chain(
        ("target.partner.test",), Outcome.RECORDS
    )
    await world.customer.add("customer.test", "back", "CNAME", f"{GOAL}.")
    assert (await world.follow("far.customer.test")).names == ("middle.partner.test", "back.customer.test", GOAL)


async def test_a_chain_into_a_zone_that_cannot_be_asked_is_not_absent(world: World) -> None:
    await world.customer.add("customer.test", "astray", "CNAME", "www.nowhere.example.")

    chain = await world.follow("astray.customer.test")

    assert chain.names == ("www.nowhere.example",)
    assert not chain.end.is_known


async def test_circles_and_endless_chains_end(world: World) -> None:
    assert (await world.follow("one.customer.test")).end is Outcome.CHAIN
    assert (await world.follow("hop0.customer.test")).end is Outcome.CHAIN


async def test_a_pass_asks_zones_a_bounded_number_of_questions(world: World) -> None:
    async with world.open_pass() as questions:
        answers = [
            await questions.authoritative.ask(f"n{number}.customer.test", "CNAME")
            for number in range(MOST_QUESTIONS + 5)
        ]

    assert [answer.outcome for answer in answers].count(Outcome.NO_NAME) == MOST_QUESTIONS
    assert {answer.outcome for answer in answers[MOST_QUESTIONS:]} == {Outcome.TIMEOUT}


async def test_name_servers_that_the_address_policy_refuses_are_not_asked(world: World) -> None:
    async with world.open_pass(AddressPolicy((ip_network(f"{FIRST}/32"),), ())) as questions:
        chain = await questions.authoritative.follow("www.customer.test", (GOAL,))

    assert chain.names == ("target.partner.test",)
    assert not chain.end.is_known


async def test_a_dead_server_of_a_zone_costs_a_moment_only(world: World) -> None:
    world.cache.zone.add("customer.test", "NS", "dead.customer.test")
    world.cache.zone.add("dead.customer.test", "A", "127.0.0.3")
    async with NameServer.serve(Zone(), "127.0.0.3", world.customer.address.port) as dead:
        dead.zone.misbehave("www.customer.test", Behaviour.TIMEOUT)
        started = asyncio.get_running_loop().time()
        answer = await world.ask("www.customer.test")
        took = asyncio.get_running_loop().time() - started

    assert answer.values == ("target.partner.test",)
    assert took < 1.0


async def test_records_at_one_server_outweigh_absence_at_another_but_are_disputed(world: World) -> None:
    world.cache.zone.add("customer.test", "NS", "ns2.customer.test")
    world.cache.zone.add("ns2.customer.test", "A", "127.0.0.3")
    async with Knot.serve(
        {"customer.test": "@ NS ns2\nns2 A 127.0.0.3"}, host="127.0.0.3", port=world.customer.address.port
    ):
        answer = await world.ask("www.customer.test")
        chain = await world.follow("www.customer.test")

    assert (answer.values, answer.is_disputed) == (("target.partner.test",), True)
    assert (chain.names[-1], chain.is_disputed) == (GOAL, True)


@pytest.mark.parametrize(
    ("answers", "combined"),
    [
        ([], Answer(Outcome.TIMEOUT)),
        ([Answer(Outcome.TIMEOUT), Answer(Outcome.SERVER_FAILURE)], Answer(Outcome.SERVER_FAILURE)),
        ([Answer(Outcome.TIMEOUT), Answer(Outcome.NO_NAME)], Answer(Outcome.NO_NAME)),
        ([Answer(Outcome.NO_DATA), Answer(Outcome.NO_NAME)], Answer(Outcome.NO_DATA)),
        ([Answer(Outcome.NO_NAME), Answer(Outcome.RECORDS, ("a",))], Answer(Outcome.RECORDS, ("a",))),
        (
            [Answer(Outcome.RECORDS, ("a", "b")), Answer(Outcome.RECORDS, ("b", "a"))],
            Answer(Outcome.RECORDS, ("a", "b")),
        ),
    ],
)
def test_one_answer_is_made_of_those_of_all_servers(answers: list[Answer], combined: Answer) -> None:
    assert combine(answers) == combined


def test_servers_that_could_not_be_asked_dispute_nothing() -> None:
    there, gone, silent = Answer(Outcome.RECORDS, ("a",)), Answer(Outcome.NO_NAME), Answer(Outcome.TIMEOUT)

    assert combine([there, gone]).is_disputed
    assert combine([gone, Answer(Outcome.NO_DATA)]).is_disputed
    assert not combine([there, silent]).is_disputed
