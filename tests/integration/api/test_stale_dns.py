"""Records change while a resolver's cache still answers with what was: unbound before a zone of knot."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from bench.lab.knot import Knot, find_knot
from bench.lab.unbound import find_unbound, serve_unbound
from common.addresses import tenant_policy
from common.caa import find_authorization
from common.dns import Outcome, Resolver
from tests.integration.api.conftest import SERVER, Service, open_service
from tests.integration.api.partner import Partner
from tests.timeouts import UNHURRIED

pytestmark = pytest.mark.skipif(
    find_knot() is None or find_unbound() is None, reason="the Debian packages knot and unbound are not installed"
)

ZONE = "customer.example"
DOMAIN = f"shop.{ZONE}"
TARGET = "target-1.partner.test"
RECORDS = f"""
@ NS ns
ns A 127.0.0.1
@ A 192.0.2.99
www A 192.0.2.99
old CNAME www
moved CNAME {TARGET}.
"""
LONGEST_SECONDS = 2.0  # of a GET that has to ask the zone, on a busy machine


@dataclass(frozen=True, slots=True)
class World:
    service: Service
    partner: Partner
    knot: Knot

    async def point(self, name: str) -> None:
        """What the customer does: the cache is not told."""
        await self.knot.remove(ZONE, name, "CNAME")
        await self.knot.add(ZONE, name, "CNAME", f"{TARGET}.")

    def resolver(self) -> Resolver:
        settings = self.service.settings
        return Resolver(settings.dns_servers, tenant_policy(settings), authority_port=self.knot.address.port)


@pytest.fixture
async def world(dsn: str, tmp_path: Path, probe_port: int) -> AsyncIterator[World]:
    zones = {ZONE: RECORDS, "partner.test": "@ NS ns\nns A 127.0.0.1\ntarget-1 CNAME power.frontage.test."}
    async with (
        Knot.serve(zones) as knot,
        serve_unbound(dict.fromkeys(zones, knot.address)) as cache,
        open_service(
            dsn, tmp_path, probe_port, UNHURRIED, authority_port=knot.address.port, DNS_SERVERS=str(cache)
        ) as service,
    ):
        yield World(service, await service.partner(), knot)


async def test_a_cname_added_after_nxdomain_makes_the_domain_eligible_at_once(world: World) -> None:
    before = await world.partner.get(domain=DOMAIN)
    await world.point("shop")
    started = time.monotonic()
    after = await world.partner.get(domain=DOMAIN)
    took = time.monotonic() - started

    async with world.resolver().open_pass() as questions:
        assert (await questions.ask(DOMAIN, "CNAME")).outcome is Outcome.NO_NAME, "the cache still has it"
    assert (before.status, before.body["code"]) == (400, "nxdomain")
    assert (after.status, after.body["eligible"]) == (200, True)
    assert took < LONGEST_SECONDS
    assert (await world.partner.post(DOMAIN)).status == 200


async def test_a_cname_that_led_elsewhere_is_seen_to_lead_here_at_once(world: World) -> None:
    assert (await world.partner.get(domain=f"old.{ZONE}")).body["eligible"] is False

    await world.point("old")

    assert (await world.partner.get(domain=f"old.{ZONE}")).body["eligible"] is True


async def test_step_one_done_after_a_look_counts_at_once(world: World) -> None:
    await world.point("shop")
    await world.knot.remove("partner.test", "target-1", "CNAME")
    assert (await world.partner.get(domain=DOMAIN)).body["eligible"] is False

    await world.knot.add("partner.test", "target-1", "CNAME", "power.frontage.test.")

    assert (await world.partner.get(domain=DOMAIN)).body["eligible"] is True


async def test_a_root_is_eligible_at_once_when_its_address_is_ours(world: World) -> None:
    assert (await world.partner.get(domain=ZONE, rootDomain="true")).body["eligible"] is False

    await world.knot.remove(ZONE, "@", "A")
    await world.knot.add(ZONE, "@", "A", SERVER)

    assert (await world.partner.get(domain=ZONE, rootDomain="true")).body["eligible"] is True


async def test_the_diagnosis_shows_the_zone_and_not_the_cache(world: World) -> None:
    before = await world.partner.call("GET", f"/domains/moved.{ZONE}/diagnosis")
    await world.knot.remove(ZONE, "moved", "CNAME")
    after = await world.partner.call("GET", f"/domains/moved.{ZONE}/diagnosis")

    seen = before.body["dns"]["found"][0]
    assert (seen["type"], seen["value"]) == ("CNAME", TARGET)
    assert after.body["dns"]["found"] == []


async def test_where_no_server_of_the_zone_can_be_asked_the_resolver_is_believed(world: World) -> None:
    elsewhere = Resolver(world.service.settings.dns_servers, tenant_policy(world.service.settings), authority_port=9)

    async with elsewhere.open_pass() as questions:
        assert (await questions.ask_confirmed(f"moved.{ZONE}", "CNAME")).values == (TARGET,)
        assert (await questions.ask_confirmed(f"absent.{ZONE}", "CNAME")).outcome is Outcome.NO_NAME


async def test_caa_records_that_are_gone_no_longer_forbid(world: World) -> None:
    async def find() -> tuple[str, ...]:
        async with world.resolver().open_pass() as questions:
            return (await find_authorization(questions, ZONE)).records

    await world.knot.add(ZONE, "@", "CAA", '0 issue "never.example"')
    assert await find() == ("0 issue never.example",)

    await world.knot.remove(ZONE, "@", "CAA")

    assert await find() == ()
