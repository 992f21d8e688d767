"""Names of others as one's own cname target."""

from __future__ import annotations

import pytest

from bench.lab.zone import Behaviour
from common.db import applications
from tests.integration.api.conftest import POWER_TARGET, SERVER, Service
from tests.integration.api.ownership.parts import (
    ALREADY,
    NOT_VALID,
    REVIEW,
    SHOP,
    fetch,
    holder,
    name_by_txt,
    refusal,
    two,
    txt_of,
)
from tests.integration.api.partner import Partner


async def name_target(attacker: Partner, target: str) -> None:
    assert (await attacker.call("PUT", "/application", json={"cnameTarget": target})).status == 200


async def next_step(partner: Partner) -> str:
    words: str = (await partner.diagnose(SHOP))["next_step"]
    return words


@pytest.mark.parametrize("target", ["cust-7.partner.test", "lb.partner.test"])
async def test_a_target_on_the_way_to_another_partners_takes_no_name(service: Service, target: str) -> None:
    """Before and behind the partner's own on the way to us: free names, and names that are held."""
    victim, attacker = await two(service)
    service.zone.add(SHOP, "CNAME", "cust-7.partner.test")
    service.zone.add("cust-7.partner.test", "CNAME", "target-1.partner.test")
    service.zone.replace("target-1.partner.test", "CNAME", "lb.partner.test")
    service.zone.add("lb.partner.test", "CNAME", POWER_TARGET)
    await name_target(attacker, target)

    assert (await attacker.get(domain=SHOP)).body["eligible"] is False
    assert refusal(await attacker.post(SHOP))[:2] == (502, REVIEW)
    assert f"Create the TXT record _frontage.{SHOP}" in await next_step(attacker)
    assert (await victim.post(SHOP)).status == 200
    refused = await attacker.post(SHOP)
    assert refusal(refused) == (502, ALREADY, "held")
    for words in (refused.body["hint"], await next_step(attacker)):
        assert f"o move it here: create the TXT record _frontage.{SHOP}" in words, "a CNAME to its target is there"
    assert await holder(service) == {victim.id}


async def test_a_holder_keeps_no_name_by_a_target_on_the_way_to_another(service: Service) -> None:
    claimant, attacker = await two(service)
    service.point(SHOP, 2)
    assert (await attacker.post(SHOP)).status == 200
    service.zone.replace(SHOP, "CNAME", "cust-7.partner.test")
    service.zone.add("cust-7.partner.test", "CNAME", "target-1.partner.test")
    await name_target(attacker, "cust-7.partner.test")
    assert (await claimant.post(SHOP)).status == 200
    assert await holder(service) == {claimant.id}


async def test_a_provider_takes_no_name_from_an_application_that_leads_through_its_target(service: Service) -> None:
    provider, reseller = await two(service)
    service.zone.replace("target-2.partner.test", "CNAME", "target-1.partner.test")
    service.point(SHOP, 2)
    name_by_txt(service, SHOP, reseller)
    assert (await reseller.post(SHOP)).status == 200
    service.zone.remove(f"_frontage.{SHOP}", "TXT")
    assert refusal(await provider.post(SHOP)) == (502, ALREADY, "leads_to_holder")


async def test_a_name_that_another_gives_as_its_target_is_enrolled_all_the_same(service: Service) -> None:
    victim, attacker = await two(service)
    service.point(SHOP)
    await name_target(attacker, SHOP)
    assert (await victim.get(domain=SHOP)).body["eligible"] is True
    assert (await victim.post(SHOP)).status == 200
    assert refusal(await attacker.post(SHOP))[:2] == (502, NOT_VALID)
    assert await holder(service) == {victim.id}


async def test_a_name_that_was_given_as_a_target_was_not_held(service: Service) -> None:
    """Otherwise an address would do for the next claim of that application."""
    attacker = await service.partner()
    service.zone.add(SHOP, "A", SERVER)
    await name_target(attacker, SHOP)
    await name_target(attacker, "target-1.partner.test")
    assert refusal(await attacker.post(SHOP)) == (502, REVIEW, "txt_record_needed")


async def test_a_cname_target_is_its_applications_that_the_zone_names(service: Service) -> None:
    victim, attacker = await two(service)
    target = "future.victim.test"
    service.zone.add(target, "CNAME", POWER_TARGET)
    await name_target(attacker, target)
    service.zone.add(SHOP, "CNAME", target)
    assert (await attacker.post(SHOP)).status == 200

    for named in ((), (attacker,), (victim, attacker)):
        name_by_txt(service, target, *named)
        refused = await victim.call("PUT", "/application", json={"cnameTarget": target})
        assert (refused.status, refused.message) == (409, "The cname target cannot be used")
        assert f"create {txt_of(target, victim)}, remove" in refused.body["hint"]
    assert (await attacker.call("GET", "/application")).body["cnameTarget"] == target

    name_by_txt(service, target, victim)
    await name_target(victim, target)
    assert (await victim.call("GET", "/application")).body["cnameTarget"] == target
    assert (await attacker.call("GET", "/application")).body["cnameTarget"] == f"lost.{attacker.id}.invalid"
    assert await fetch(
        service,
        f"select after ->> 'cname_target' from audit where action = 'application.target_lost'"
        f" and application_id = '{attacker.id}'",
    ) == [(f"lost.{attacker.id}.invalid",)]
    assert (await victim.post(SHOP)).status == 200
    assert await holder(service) == {victim.id}

    back = await attacker.call("PUT", "/application", json={"cnameTarget": target})
    assert back.status == 409
    await name_target(attacker, "target-2.partner.test")


async def test_a_lost_target_is_nobodys_and_the_diagnosis_says_what_to_do(service: Service) -> None:
    victim, attacker = await two(service)
    name_by_txt(service, "target-2.partner.test", victim)
    async with service.database.transaction() as connection:
        await applications.update_application(connection, attacker.id, secure_cname_target="target-2.partner.test")
    await name_target(victim, "target-2.partner.test")
    body = (await attacker.call("GET", "/application")).body
    assert (body["cnameTarget"], body["secureCnameTarget"]) == (f"lost.{attacker.id}.invalid", None)
    assert "Set another cname target" in await next_step(attacker), "there is no DNS record yet"
    service.zone.add(SHOP, "A", SERVER)
    assert "Set another cname target: another application proved the one so far" in await next_step(attacker)
    squat = await victim.call("PUT", "/application", json={"cnameTarget": f"lost.{attacker.id}.invalid"})
    assert squat.status == 400


async def test_a_target_that_another_gave_up_or_enrolled_is_its_zones(service: Service) -> None:
    victim, attacker = await two(service)
    service.zone.add("given-up.victim.test", "CNAME", POWER_TARGET)
    await name_target(attacker, "given-up.victim.test")
    await name_target(attacker, "target-2.partner.test")
    service.point(SHOP, 2)
    assert (await attacker.post(SHOP)).status == 200
    for target in ("given-up.victim.test", SHOP):
        refused = await victim.call("PUT", "/application", json={"cnameTarget": target})
        assert refused.status == 409
        assert f"create {txt_of(target, victim)}, remove" in refused.body["hint"]
        name_by_txt(service, target, victim)
        if target == SHOP:  # its DNS still leads to its holder
            assert (await victim.call("PUT", "/application", json={"cnameTarget": target})).status == 409
            service.zone.replace(SHOP, "CNAME", POWER_TARGET)
        await name_target(victim, target)
    assert await holder(service) == set()
    assert await fetch(service, "select application_id from audit where action = 'domain.moved'") == [(attacker.id,)]


async def test_a_target_whose_zone_cannot_be_asked_does_not_move(service: Service) -> None:
    victim, _ = await two(service)
    name_by_txt(service, "target-2.partner.test", victim)
    service.zone.misbehave("_frontage.target-2.partner.test", Behaviour.SERVFAIL)
    assert (await victim.call("PUT", "/application", json={"cnameTarget": "target-2.partner.test"})).status == 409
