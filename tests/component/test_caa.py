"""CAA records as a name server on loopback has them."""

from __future__ import annotations

from ipaddress import ip_network

import pytest

from bench.lab.server import NameServer
from bench.lab.zone import Behaviour
from common.addresses import AddressPolicy
from common.caa import Authorization, find_authorization, may_issue
from common.dns import Resolver
from common.host_ports import HostPort

DOMAIN = "shop.customer.test"


async def find(server: NameServer, domain: str = DOMAIN) -> Authorization:
    resolver = Resolver(
        [HostPort(server.host, server.port)], AddressPolicy((ip_network("127.0.0.0/8"),), own_listeners=())
    )
    async with resolver.open_pass() as questions:
        return await find_authorization(questions, domain)


def allows(found: Authorization, name: str, account_url: str | None = None) -> bool:
    return may_issue(found.records, [name], account_url)


async def test_records_of_a_parent_count_until_there_are_closer_ones(server: NameServer) -> None:
    assert (await find(server)).records == ()
    server.zone.add("customer.test", "CAA", '0 issue "far.example"')
    found = await find(server)
    assert (found.name, allows(found, "far.example"), allows(found, "near.example")) == ("customer.test", True, False)
    server.zone.add(DOMAIN, "CAA", '0 issue "near.example; accounturi=https://near.example/acct/7"')
    found = await find(server)
    assert not allows(found, "far.example")
    assert allows(found, "near.example", "https://near.example/acct/7")
    assert not allows(found, "near.example", "https://near.example/acct/8")


async def test_records_of_a_cnames_target_count_before_those_of_a_parent(server: NameServer) -> None:
    server.zone.add(DOMAIN, "CNAME", "apps.partner.test")
    server.zone.add("customer.test", "CAA", '0 issue "far.example"')
    server.zone.add("apps.partner.test", "A", "127.0.0.1")
    assert allows(await find(server), "far.example")  # RFC 8659 §3: not the target's own parents
    server.zone.add("apps.partner.test", "CAA", '0 issue "targets.example"')
    found = await find(server)
    assert (allows(found, "targets.example"), allows(found, "far.example")) == (True, False)


async def test_critical_property_that_nobody_knows_forbids(server: NameServer) -> None:
    server.zone.add("customer.test", "CAA", '0 issue "far.example"')
    server.zone.add("customer.test", "CAA", '128 frobnicate "x"')
    assert not allows(await find(server), "far.example")


@pytest.mark.parametrize("behaviour", [Behaviour.SERVFAIL, Behaviour.REFUSED])
async def test_name_that_cannot_be_asked_is_not_known(server: NameServer, behaviour: Behaviour) -> None:
    server.zone.add(DOMAIN, "A", "127.0.0.1")
    server.zone.misbehave("customer.test", behaviour)
    found = await find(server)
    assert (found.is_known, found.name) == (False, "customer.test")
    server.zone.misbehave("customer.test", None)
    assert (await find(server)).is_known
