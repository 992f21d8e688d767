"""A cname target reserves its name only while its DNS leads here: after seven days elsewhere it reserves nothing."""

from __future__ import annotations

import asyncio

import pytest

from bench.lab.zone import Behaviour
from common.addresses import tenant_policy
from common.db import applications, target_sightings
from common.dns import Resolver
from common.enrolment.eligibility import ServiceTargets
from monitor.target_watch import TargetWatch
from tests.integration.api.conftest import POWER_TARGET, SERVER, Service
from tests.integration.api.ownership.parts import fetch, holder, two
from tests.integration.api.partner import Partner
from tests.integration.api.people import organisation, person
from tests.integration.api.secured import Ssl

ROOT, TARGET = "customer.test", "target-2.partner.test"


async def look(service: Service) -> None:
    """As the monitors do when all targets are due."""
    async with service.database.transaction() as connection:
        await connection.execute("update target_sightings set due_at = now()")
    resolver = Resolver(service.settings.dns_servers, tenant_policy(service.settings))
    watch = TargetWatch(service.database, resolver, ServiceTargets.of(service.settings))
    await asyncio.gather(watch.check_once(), watch.check_once())


async def pass_days(service: Service, days: int) -> None:
    async with service.database.transaction() as connection:
        for column in ("elsewhere_since", "elsewhere_at", "here_at"):
            await connection.execute(
                f"update target_sightings set {column} = {column} - make_interval(days => $1)", days
            )
        for column in ("created_at", "cname_target_set_at", "secure_cname_target_set_at"):
            earlier = f"{column} = {column} - make_interval(days => $1)"
            await connection.execute(f"update applications set {earlier}", days)


async def lapse(service: Service, target: str = TARGET) -> None:
    service.zone.replace(target, "CNAME", "elsewhere.example.test")
    await look(service)
    await pass_days(service, 8)
    await look(service)


async def set_target(partner: Partner, target: str = TARGET) -> int:
    return (await partner.call("PUT", "/application", json={"cnameTarget": target})).status


async def target_of(partner: Partner) -> object:
    return (await partner.call("GET", "/application")).body["cnameTarget"]


async def test_a_target_that_leads_elsewhere_is_reserved_for_seven_days(service: Service) -> None:
    first, second = await two(service)
    assert await set_target(first) == 409
    service.zone.replace(TARGET, "CNAME", "elsewhere.example.test")
    await look(service)
    await pass_days(service, 6)
    await look(service)
    assert await set_target(first) == 409
    assert await target_of(second) == TARGET
    await pass_days(service, 2)
    assert await set_target(first) == 409, "it was not seen elsewhere again"
    await look(service)
    assert await set_target(first) == 200
    assert await target_of(second) == f"lost.{second.id}.invalid"
    lost = "select application_id from audit where action = 'application.target_lost'"
    assert await fetch(service, lost) == [(second.id,)]


async def test_an_application_can_be_made_with_a_lapsed_target(service: Service) -> None:
    await two(service)
    owner = await person(service, "owner@acme.example", await organisation(service), "owner")
    body = {"name": "Shops", "cnameTarget": TARGET}
    assert (await owner.call("POST", "/applications", json=body)).status == 409
    await lapse(service)
    assert (await owner.call("POST", "/applications", json=body)).status == 201


@pytest.mark.parametrize("fault", [Behaviour.SERVFAIL, Behaviour.TIMEOUT])
async def test_what_could_not_be_asked_lets_nothing_lapse(service: Service, fault: Behaviour) -> None:
    first, _ = await two(service)
    service.zone.misbehave(TARGET, fault)
    await look(service)
    await pass_days(service, 8)
    await look(service)
    assert await fetch(service, f"select elsewhere_since from target_sightings where target = '{TARGET}'") == [(None,)]
    assert await set_target(first) == 409


async def test_a_target_that_leads_here_again_is_reserved_again(service: Service) -> None:
    first, _ = await two(service)
    await lapse(service)
    service.zone.replace(TARGET, "CNAME", POWER_TARGET)
    await look(service)
    assert await set_target(first) == 409
    service.zone.remove(TARGET)  # gone is elsewhere
    await look(service)
    assert await set_target(first) == 409, "the days begin anew"


async def test_without_a_monitor_nothing_lapses(service: Service) -> None:
    first, _ = await two(service)
    await lapse(service)
    await pass_days(service, 2)
    assert await set_target(first) == 409


async def test_the_days_of_a_target_begin_when_it_is_set(service: Service) -> None:
    first, second = await two(service)
    await lapse(service)
    assert await set_target(first) == 200
    await look(service)
    assert await set_target(second) == 409


async def test_a_lapsed_target_is_a_customers_domain_like_any(service: Service, origin: str) -> None:
    """A root that only leads here by address, while it is another's target, and while one is beneath it."""
    first, second = await two(service)
    async with service.database.transaction() as connection:
        targets = {"cname_target": f"shops.{ROOT}", "secure_cname_target": ROOT}
        await applications.update_application(connection, second.id, **targets)  # type: ignore[arg-type]
    service.zone.add(ROOT, "A", SERVER)
    service.zone.add(f"shops.{ROOT}", "A", "192.0.2.1")
    refused = await Ssl(first, origin).post(ROOT)
    assert (refused.status, refused.body["code"]) == (502, "txt_record_needed")
    await look(service)
    await pass_days(service, 8)
    await look(service)
    answer = await Ssl(first, origin).post(ROOT)
    assert answer.status == 200, answer
    assert await holder(service, ROOT) == {first.id}


async def test_a_former_target_lapses_too(service: Service) -> None:
    first, second = await two(service)
    assert await set_target(second, "next.partner.test") == 200
    assert await set_target(first) == 409
    await lapse(service)
    assert await set_target(first) == 200
    assert await target_of(second) == "next.partner.test"


async def test_the_diagnosis_says_until_when_a_target_is_kept(service: Service) -> None:
    _, second = await two(service)
    service.zone.add("shop.customer.test", "CNAME", TARGET)
    await look(service)
    path = "/domains/shop.customer.test/diagnosis"
    target = (await second.call("GET", path)).body["dns"]["cname_target"]
    assert (target["seen_here_at"] is not None, target["elsewhere_since"], target["has_lapsed"]) == (True, None, False)
    service.zone.replace(TARGET, "CNAME", "elsewhere.example.test")
    await look(service)
    body = (await second.call("GET", path)).body
    assert body["dns"]["cname_target"]["elsewhere_since"] is not None
    assert "reserves nothing from then on" in body["next_step"]


async def test_two_monitors_ask_about_a_target_once(service: Service) -> None:
    await two(service)
    async with service.database.transaction() as connection:
        assert len(await target_sightings.claim(connection, most=1)) == 1
    async with service.database.transaction() as connection:
        assert len(await target_sightings.claim(connection, most=10)) == 1
    async with service.database.transaction() as connection:
        assert await target_sightings.claim(connection, most=10) == []
