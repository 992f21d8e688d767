"""Questions to a real name server on loopback."""

import asyncio
from ipaddress import ip_network
from pathlib import Path

import pytest

from bench.lab.ports import free_ports
from bench.lab.server import NameServer
from bench.lab.zone import Behaviour, Zone
from common.addresses import AddressPolicy
from common.dns import Chain, Outcome, Resolver
from common.errors import OperatorError
from common.host_ports import HostPort

LOOPBACK = AddressPolicy((ip_network("127.0.0.0/8"),), ())
TARGETS = ("power.test",)


@pytest.fixture
def resolver(server: NameServer) -> Resolver:
    return Resolver([HostPort(server.host, server.port)], LOOPBACK)


async def outcome(resolver: Resolver, name: str) -> Outcome:
    async with resolver.open_pass() as look:
        return (await look.ask(name, "CNAME")).outcome


async def follow(resolver: Resolver, name: str) -> Chain:
    async with resolver.open_pass() as look:
        return await look.follow(name, TARGETS)


async def test_outcomes_are_told_apart(server: NameServer, resolver: Resolver) -> None:
    server.zone.add("alias.test", "CNAME", "Target.Test.")
    server.zone.add("plain.test", "A", "192.0.2.1")
    server.zone.misbehave("broken.test", Behaviour.SERVFAIL)
    server.zone.misbehave("refused.test", Behaviour.REFUSED)

    async with resolver.open_pass() as look:
        assert (await look.ask("alias.test", "CNAME")).values == ("target.test",)
        assert (await look.ask("plain.test", "A")).values == ("192.0.2.1",)
        assert (await look.ask("plain.test", "CNAME")).outcome is Outcome.NO_DATA
        assert (await look.ask("absent.test", "CNAME")).outcome is Outcome.NO_NAME
        assert (await look.ask("broken.test", "CNAME")).outcome is Outcome.SERVER_FAILURE
        assert (await look.ask("refused.test", "CNAME")).outcome is Outcome.SERVER_FAILURE


async def test_a_record_added_after_nxdomain_is_seen_at_once(server: NameServer, resolver: Resolver) -> None:
    assert await outcome(resolver, "new.test") is Outcome.NO_NAME

    server.zone.add("new.test", "A", "192.0.2.1")
    assert await outcome(resolver, "new.test") is Outcome.NO_DATA

    server.zone.replace("new.test", "A")
    server.zone.add("new.test", "CNAME", "power.test")
    assert await outcome(resolver, "new.test") is Outcome.RECORDS


async def test_a_pass_asks_each_question_once(server: NameServer, resolver: Resolver) -> None:
    server.zone.add("a.test", "CNAME", "b.test")

    async with resolver.open_pass() as look:
        for _ in range(3):
            await look.ask("a.test", "CNAME")
            await look.ask("absent.test", "CNAME")

    assert [question.name for question in server.zone.questions] == ["a.test", "absent.test"]


async def test_a_silent_server_is_a_time_out(server: NameServer, resolver: Resolver) -> None:
    server.zone.misbehave("silent.test", Behaviour.TIMEOUT)

    async with asyncio.timeout(5):
        assert await outcome(resolver, "silent.test") is Outcome.TIMEOUT


async def test_nobody_listening_is_a_time_out() -> None:
    resolver = Resolver([HostPort("127.0.0.1", *free_ports(1))], LOOPBACK)

    async with asyncio.timeout(5):
        assert await outcome(resolver, "www.test") is Outcome.TIMEOUT


async def test_the_next_server_is_asked_when_one_could_not_be(server: NameServer, resolver: Resolver) -> None:
    async with NameServer.serve(Zone()) as second:
        both = Resolver([HostPort(server.host, server.port), HostPort(second.host, second.port)], LOOPBACK)
        second.zone.add("www.test", "CNAME", "power.test")
        second.zone.add("other.test", "CNAME", "power.test")

        assert await outcome(both, "www.test") is Outcome.NO_NAME  # the first one's answer stands
        assert second.zone.questions == []

        server.zone.misbehave("www.test", Behaviour.SERVFAIL)
        assert await outcome(both, "www.test") is Outcome.RECORDS

        server.zone.misbehave("www.test", Behaviour.TIMEOUT)
        async with both.open_pass() as look:
            assert (await look.ask("www.test", "CNAME")).outcome is Outcome.RECORDS
            assert (await look.ask("other.test", "CNAME")).outcome is Outcome.RECORDS
        assert not any(question.name == "other.test" for question in server.zone.questions)


async def test_a_server_failure_says_more_than_a_time_out(server: NameServer, resolver: Resolver) -> None:
    async with NameServer.serve(Zone()) as second:
        both = Resolver([HostPort(server.host, server.port), HostPort(second.host, second.port)], LOOPBACK)
        server.zone.misbehave("www.test", Behaviour.SERVFAIL)
        second.zone.misbehave("www.test", Behaviour.TIMEOUT)

        assert await outcome(both, "www.test") is Outcome.SERVER_FAILURE


async def test_chains_are_followed_to_a_target_or_their_end(server: NameServer, resolver: Resolver) -> None:
    server.zone.add("www.test", "CNAME", "partner.test")
    server.zone.add("partner.test", "CNAME", "power.test")
    server.zone.add("cdn.test", "CNAME", "edge.cdn.test")
    server.zone.add("edge.cdn.test", "A", "192.0.2.1")
    server.zone.add("dangling.test", "CNAME", "gone.test")

    assert await follow(resolver, "www.test") == Chain(("partner.test", "power.test"), Outcome.RECORDS)
    assert await follow(resolver, "cdn.test") == Chain(("edge.cdn.test",), Outcome.NO_DATA)
    assert await follow(resolver, "dangling.test") == Chain(("gone.test",), Outcome.NO_NAME)
    assert await follow(resolver, "absent.test") == Chain((), Outcome.NO_NAME)
    assert not any(question.name == "power.test" for question in server.zone.questions)


async def test_loops_and_endless_chains_end(server: NameServer, resolver: Resolver) -> None:
    server.zone.add("a.test", "CNAME", "b.test")
    server.zone.add("b.test", "CNAME", "a.test")
    for hop in range(20):
        server.zone.add(f"hop{hop}.test", "CNAME", f"hop{hop + 1}.test")

    assert (await follow(resolver, "a.test")).end is Outcome.CHAIN
    chain = await follow(resolver, "hop0.test")
    assert (len(chain.names), chain.end) == (8, Outcome.CHAIN)


async def test_localhost_names_are_asked_of_the_server(server: NameServer, resolver: Resolver) -> None:
    server.zone.add("shop.demo.localhost", "CNAME", "power.test")

    assert await outcome(resolver, "shop.demo.localhost") is Outcome.RECORDS


def test_name_servers_on_private_addresses_need_the_operators_word() -> None:
    with pytest.raises(OperatorError, match="FRONTAGE_ALLOW_PRIVATE_ADDRESSES"):
        Resolver([HostPort("10.0.0.1", 53)], LOOPBACK)
    with pytest.raises(OperatorError, match="addresses, not names"):
        Resolver([HostPort("dns.example", 53)], LOOPBACK)


async def test_the_systems_own_servers_are_asked_wherever_they_stand(tmp_path: Path) -> None:
    resolv_conf = tmp_path / "resolv.conf"
    resolv_conf.write_text("# ours\nsearch example.com\nnameserver 127.0.0.1\nnameserver\n")
    resolver = Resolver([], AddressPolicy((), ()), resolv_conf=resolv_conf)

    async with asyncio.timeout(5):
        assert await outcome(resolver, "www.test") in (Outcome.TIMEOUT, Outcome.SERVER_FAILURE)
