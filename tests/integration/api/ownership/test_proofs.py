"""What proves whose a name is that leads here, and what POST /power answers where nothing does."""

from __future__ import annotations

from tests.integration.api.conftest import POWER_TARGET, SERVER, Service
from tests.integration.api.ownership.parts import (
    ALREADY,
    NOT_VALID,
    REVIEW,
    ROOT,
    SHOP,
    fetch,
    holder,
    name_by_txt,
    refusal,
    two,
)
from tests.integration.api.partner import Partner
from tests.integration.api.secured import Ssl, go_live
from tests.integration.api.test_eligibility import cdn

# Names that only lead here ---------------------------------------------------------------------------------------


async def test_a_cdn_name_set_up_for_another_is_out_of_reach(service: Service, origin: str, probe_port: int) -> None:
    attacker, victim = await two(service)
    service.zone.add(SHOP, "A", "127.0.0.1")
    async with cdn(service, probe_port):
        for answer in (await attacker.post(SHOP), await Ssl(attacker, origin).post(SHOP)):
            assert refusal(answer)[2] == "txt_record_needed"
            assert f"the TXT record _frontage.{SHOP} with the value application={attacker.id}" in answer.body["hint"]
        name_by_txt(service, SHOP, victim)
        assert (await attacker.post(SHOP)).status == 502
        assert (await victim.post(SHOP)).status == 200


async def test_an_a_record_of_ours_needs_the_txt_record_too(service: Service, partner: Partner) -> None:
    service.zone.add(SHOP, "A", SERVER)
    assert refusal(await partner.post(SHOP)) == (502, REVIEW, "txt_record_needed")
    name_by_txt(service, SHOP, partner)
    assert (await partner.get(domain=SHOP)).body["eligible"] is True
    assert (await partner.post(SHOP)).status == 200
    assert await fetch(service, "select claim from domains") == [("txt",)]


async def test_a_cname_straight_to_us_or_to_anothers_target_needs_the_txt_record(service: Service) -> None:
    partner, _ = await two(service)
    service.zone.add(SHOP, "CNAME", POWER_TARGET)
    service.point("via.customer.test", 2)
    for name in (SHOP, "via.customer.test"):
        assert (await partner.post(name)).status == 502
        name_by_txt(service, name, partner)
        assert (await partner.post(name)).status == 200


async def test_a_txt_record_for_a_name_that_leads_elsewhere_is_not_enough(service: Service, partner: Partner) -> None:
    service.zone.add(SHOP, "A", "192.0.2.99")
    name_by_txt(service, SHOP, partner)
    assert (await partner.get(domain=SHOP)).body["eligible"] is False
    assert refusal(await partner.post(SHOP))[:2] == (502, REVIEW)


async def test_a_name_just_deleted_waits_for_its_holder(service: Service, origin: str, probe_port: int) -> None:
    """Its DNS still leads here: to the old holder's target, by address, or through a CDN."""
    victim, attacker = await two(service)
    service.point(SHOP)
    service.zone.add("cdn.customer.test", "A", "127.0.0.1")
    service.zone.add(ROOT, "A", SERVER)
    name_by_txt(service, "cdn.customer.test", victim)
    async with cdn(service, probe_port):
        for name in (SHOP, "cdn.customer.test"):
            assert (await victim.post(name)).status == 200
            assert (await victim.delete(name)).status == 200
        assert (await Ssl(victim, origin).post(ROOT)).status == 200
        assert (await Ssl(victim, origin).delete(ROOT)).status == 200
        service.zone.remove("_frontage.cdn.customer.test")

        for name in (SHOP, "cdn.customer.test"):
            assert (await attacker.post(name)).status == 502
        service.zone.replace(SHOP, "CNAME", POWER_TARGET)
        assert (await attacker.post(SHOP)).status == 502
        assert refusal(await Ssl(attacker, origin).post(ROOT))[2] == "txt_record_needed"

        assert (await victim.post("cdn.customer.test")).status == 200  # the last holder may come back
        assert (await Ssl(victim, origin).post(ROOT)).status == 200
    assert await fetch(service, "select distinct application_id from domains") == [(victim.id,)]


async def test_a_root_is_free_again_after_thirty_days(service: Service, origin: str) -> None:
    first, second = Ssl(await service.partner(), origin), Ssl(await service.partner(), origin)
    service.zone.add(ROOT, "A", SERVER)
    await first.post(ROOT)
    await first.delete(ROOT)
    assert (await second.post(ROOT)).status == 502
    await fetch(service, "update former_holders set released_at = now() - interval '30 days 1 minute'")
    assert (await second.post(ROOT)).status == 200


async def test_a_root_that_an_attacker_took_and_left_is_its_owners_by_txt(service: Service, origin: str) -> None:
    attacker, victim = Ssl(await service.partner(), origin), Ssl(await service.partner(), origin)
    service.zone.add(ROOT, "A", SERVER)
    for _ in range(6):
        assert (await attacker.post(ROOT)).status == 200
        assert (await attacker.delete(ROOT)).status == 200

    refused = await victim.post(ROOT)
    assert f"the TXT record _frontage.{ROOT} with the value application={victim.id}" in refused.body["hint"]
    name_by_txt(service, ROOT, victim.partner)
    assert (await victim.post(ROOT)).status == 200  # the attacker's enrolments are not counted
    assert refusal(await attacker.post(ROOT)) == (502, ALREADY, "held")


async def test_a_departed_name_stays_its_holders_until_a_proof(service: Service, origin: str) -> None:
    victim, attacker = Ssl(await service.partner(), origin), Ssl(await service.partner(), origin)
    service.zone.add(ROOT, "A", SERVER)
    await victim.post(ROOT)
    await fetch(service, "update domains set departed_at = now()")
    assert refusal(await attacker.post(ROOT)) == (502, ALREADY, "held")
    assert await holder(service, ROOT) == {victim.id}


# What is answered ------------------------------------------------------------------------------------------------


async def test_a_repeated_post_says_what_to_do(service: Service, partner: Partner, origin: str) -> None:
    service.point(SHOP)
    assert (await partner.post(SHOP)).status == 200
    answer = await partner.post(SHOP)
    assert refusal(answer) == (502, ALREADY, "enrolled")
    assert "PUT /power changes it" in answer.body["hint"]
    await go_live(service, SHOP, partner.id)
    answer = await Ssl(partner, origin).post(SHOP)
    assert refusal(answer) == (502, "There is already a valid certificate for this domain.", "enrolled")


async def test_a_root_is_eligible_and_post_power_says_where_it_goes(
    service: Service, partner: Partner, origin: str
) -> None:
    service.zone.add(ROOT, "A", SERVER)
    found = (await partner.get(domain=SHOP, rootDomain="true")).body
    assert found["eligible"] is True
    assert "POST /ssl" in found["hint"]
    answer = await partner.post(ROOT)
    assert refusal(answer) == (502, NOT_VALID, "root")
    assert "POST /ssl" in answer.body["hint"]
    assert (await Ssl(partner, origin).post(ROOT)).status == 200
