"""Names that move from one application to another."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta

import pytest

from bench.lab.zone import Behaviour
from common.db import order_outcomes, order_queue
from common.db.certificates import Certificate
from common.errors import FenceLost
from tests.integration.api.conftest import SERVER, Service
from tests.integration.api.ownership.parts import (
    ALREADY,
    NOT_VALID,
    NOTHING,
    REVIEW,
    ROOT,
    SHOP,
    delegate,
    fetch,
    holder,
    holder_and_other,
    name_by_txt,
    refusal,
    two,
)
from tests.integration.api.partner import Partner
from tests.integration.api.secured import Ssl, go_live, order_state

# Challenges that are delegated ----------------------------------------------------------------------------------


async def test_a_delegated_challenge_proves_and_moves_a_name_as_a_txt_record_does(
    service: Service, origin: str
) -> None:
    first, second = await two(service)
    service.zone.add(SHOP, "A", SERVER)
    assert refusal(await first.post(SHOP, origin)) == (502, REVIEW, "txt_record_needed")
    await delegate(service, SHOP, first)
    assert refusal(await second.post(SHOP, origin)) == (502, REVIEW, "txt_record_needed")
    assert (await first.post(SHOP, origin)).status == 200
    ownership = (await first.diagnose(SHOP))["ownership"]
    assert await fetch(service, "select claim from domains") == [("delegation",)]
    assert (ownership["status"], ownership["delegation"]["is_seen"]) == ("yours", True)
    assert ownership["delegation"]["host"] == f"_acme-challenge.{SHOP}"

    name_by_txt(service, SHOP, second)
    assert refusal(await second.post(SHOP, origin)) == (502, ALREADY, "leads_to_holder")
    await delegate(service, SHOP, second)
    name_by_txt(service, SHOP)
    assert (await second.post(SHOP, origin)).status == 200
    assert (await first.get(domain=SHOP)).body == NOTHING


# Names that move -------------------------------------------------------------------------------------------------


async def test_a_name_moves_to_the_application_that_its_cname_leads_to(service: Service, origin: str) -> None:
    old, new = await two(service)
    service.point(SHOP)
    assert (await Ssl(old, origin).post(SHOP, redirectTo="elsewhere.test")).status == 200
    await go_live(service, SHOP, old.id)
    assert (await old.post(SHOP, powerRootPathAccess=["/old"])).status == 200
    assert (await new.get(domain=SHOP)).body == NOTHING
    assert refusal(await new.post(SHOP)) == (502, ALREADY, "held")

    service.zone.replace(SHOP, "CNAME", "target-2.partner.test")
    found = (await new.get(domain=SHOP)).body
    assert (found["eligible"], found["powerStatus"], found["cnameTarget"]) == (
        True,
        "inactive",
        "target-2.partner.test",
    )
    assert (await Ssl(new, origin).get(domain=SHOP)).body["eligible"] is True
    assert await holder(service) == {old.id}  # a question moves nothing
    assert (await new.post(SHOP, "https://new.example.com")).status == 200

    [item] = (await new.get()).body["items"]
    shown = (item["domain"], item["applicationUrl"], item["powerRootPathAccess"], item["powerStatus"])
    assert shown == (SHOP, "https://new.example.com", ["/assets"], "active")
    assert await fetch(service, "select application_id from certificates where released_at is null") == []
    assert await fetch(service, "select application_id, state from orders") == [(new.id, "running")]
    events = "select type, subdomain, fields from events where fields::text like '%moved%' order by type"
    assert await fetch(service, events) == [
        ("domain.power", "shop", {"power_status": "inactive", "reason": "moved"}),
        ("domain.secure", "shop", {"secure_status": "inactive", "reason": "moved"}),
    ]
    assert (await old.get()).body["total"] == 0
    assert (await old.get(domain=SHOP)).body == NOTHING
    for answer in (await old.put(SHOP), await old.delete(SHOP), await Ssl(old, origin).put(SHOP)):
        assert refusal(answer)[:2] == (502, NOT_VALID)


async def test_secure_moves_names_too(service: Service, origin: str) -> None:
    old, new = Ssl(await service.partner(), origin), Ssl(await service.partner(), origin)
    service.point(SHOP)
    await old.post(SHOP)
    await go_live(service, SHOP, old.id)
    assert refusal(await new.post(SHOP))[:2] == (502, ALREADY)
    service.zone.replace(SHOP, "CNAME", "target-2.partner.test")

    assert (await new.post(SHOP, redirectTo="www.customer.test")).status == 200
    assert await holder(service) == {new.id}
    assert (await new.get(domain=SHOP)).body["redirectTo"] == "https://www.customer.test"


async def test_a_name_moves_by_txt_once_nothing_leads_to_its_holder(service: Service, origin: str) -> None:
    old, new = Ssl(await service.partner(), origin), Ssl(await service.partner(), origin)
    service.zone.add(ROOT, "A", SERVER)
    name_by_txt(service, ROOT, old.partner)
    await old.post(ROOT)
    assert refusal(await new.post(ROOT)) == (502, ALREADY, "held")

    name_by_txt(service, ROOT, old.partner, new.partner)
    refused = await new.post(ROOT)
    assert refusal(refused) == (502, ALREADY, "leads_to_holder")
    assert f"remove any TXT record at _frontage.{ROOT} that names another application" in refused.body["hint"]
    name_by_txt(service, ROOT, new.partner)
    assert (await new.post(ROOT)).status == 200


async def test_the_holders_txt_record_keeps_a_name_whose_cname_leads_away(service: Service) -> None:
    old, new = await holder_and_other(service)
    service.zone.replace(SHOP, "CNAME", "target-2.partner.test")
    name_by_txt(service, SHOP, old)
    assert refusal(await new.post(SHOP)) == (502, ALREADY, "leads_to_holder")
    assert (await new.get(domain=SHOP)).body == NOTHING


async def test_a_txt_record_moves_no_name_that_still_leads_to_its_holder(service: Service) -> None:
    _, new = await holder_and_other(service)
    name_by_txt(service, SHOP, new)
    assert refusal(await new.post(SHOP)) == (502, ALREADY, "leads_to_holder")


@pytest.mark.parametrize("behaviour", [Behaviour.SERVFAIL, Behaviour.TIMEOUT])
async def test_what_cannot_be_asked_moves_nothing(service: Service, behaviour: Behaviour) -> None:
    old, new = await holder_and_other(service)
    service.zone.replace(SHOP, "CNAME", "target-2.partner.test")
    service.zone.misbehave(f"_frontage.{SHOP}", behaviour)
    assert refusal(await new.post(SHOP)) == (502, ALREADY, "held_unknown")
    assert await holder(service) == {old.id}


async def test_a_resolvers_word_moves_nothing(service: Service) -> None:
    """Without the zone's own servers, a lying or outdated resolver could give any name away."""
    old, new = await holder_and_other(service)
    service.zone.replace(SHOP, "CNAME", "target-2.partner.test")
    service.zone.remove("test", "NS")
    assert refusal(await new.post(SHOP)) == (502, ALREADY, "held_unknown")
    assert await holder(service) == {old.id}


async def test_a_name_moves_to_no_application_whose_target_does_not_lead_here(service: Service) -> None:
    old, new = await service.partner(), await service.partner(step_one=False)
    service.point(SHOP)
    await old.post(SHOP)
    service.zone.replace(SHOP, "CNAME", "target-2.partner.test")
    assert (await new.post(SHOP)).message == "Please complete step 1."
    assert (await new.get(domain=SHOP)).body == NOTHING
    assert await holder(service) == {old.id}


async def test_an_order_under_way_gives_the_next_holder_nothing(service: Service) -> None:
    _, new = await holder_and_other(service)
    async with service.database.transaction() as connection:
        [order] = await order_queue.claim(connection, most=1, lease_seconds=60)
    service.zone.replace(SHOP, "CNAME", "target-2.partner.test")
    assert (await new.post(SHOP)).status == 200

    now = datetime.now(UTC)
    certificate = Certificate("internal", "chain of the old holder", b"key", now, now + timedelta(days=90))
    with pytest.raises(FenceLost):
        async with service.database.transaction() as connection:
            await order_outcomes.record_issued(connection, order, certificate, {})
    assert await fetch(service, "select * from certificates") == []


async def test_a_kept_certificate_is_adopted_by_no_other_application(service: Service, origin: str) -> None:
    old, new = Ssl(await service.partner(), origin), Ssl(await service.partner(), origin)
    service.point(SHOP)
    await old.post(SHOP)
    await go_live(service, SHOP, old.id)
    await old.delete(SHOP)
    service.zone.replace(SHOP, "CNAME", "target-2.partner.test")
    assert (await new.post(SHOP)).status == 200
    assert await order_state(service, SHOP) == "running"


async def test_of_two_applications_at_once_the_one_with_the_proof_has_the_name(service: Service, origin: str) -> None:
    attacker, victim = Ssl(await service.partner(), origin), Ssl(await service.partner(), origin)
    for number in range(6):
        root = f"customer-{number}.test"
        service.zone.add(root, "A", SERVER)
        name_by_txt(service, root, victim.partner)
        answers = await asyncio.gather(attacker.post(root), victim.post(root))
        assert answers[1].status == 200, answers[1].body
        assert await holder(service, root) == {victim.id}


async def test_monitored_domains_are_no_matter_of_whose_it_is(service: Service) -> None:
    old, new = await holder_and_other(service)
    body = {"domain": ROOT, "dnsRecords": [{"type": "A", "host": "@", "value": "192.0.2.1", "ttl": 60}]}
    for partner in (old, new):
        assert (await partner.call("POST", "/monitor/domains", json=body)).status == 201
    service.zone.replace(SHOP, "CNAME", "target-2.partner.test")
    await new.post(SHOP)
    assert len(await fetch(service, "select * from monitored_domains")) == 2


async def test_an_application_that_is_being_deleted_gets_nothing(service: Service, partner: Partner) -> None:
    service.point(SHOP)
    await fetch(service, "update applications set deleting_at = now()")
    assert (await partner.post(SHOP)).status == 401
    credentials = {"applicationId": partner.id, "secret": partner.secret}
    assert (await partner.call("POST", "/token", json=credentials, headers={})).status == 401


async def test_the_diagnosis_leads_from_a_held_name_to_a_moved_one(service: Service) -> None:
    """Each step that it names is done; the last POST works."""
    old, new = await holder_and_other(service)

    async def diagnose(partner: Partner) -> tuple[str, str, str]:
        found = await partner.diagnose(SHOP)
        return found["status"], found["ownership"]["status"], found["next_step"]

    status, ownership, words = await diagnose(new)
    assert (status, ownership) == ("action needed", "another application's")
    assert f"point {SHOP} to target-2.partner.test by CNAME" in words
    assert f"_frontage.{SHOP} with the value application={new.id}" in words
    name_by_txt(service, SHOP, new)
    assert "the DNS still leads to it: remove the CNAME to the other application's target" in (await diagnose(new))[2]
    service.zone.replace(SHOP, "CNAME", "target-2.partner.test")
    status, ownership, words = await diagnose(new)
    assert (ownership, words) == (
        "moves here",
        "The DNS is right. Enrol the domain: POST /power or POST /ssl, which moves it here from another application.",
    )
    assert (await new.post(SHOP)).status == 200
    assert (await diagnose(new))[1] == "yours"
    assert (await diagnose(old))[1] == "another application's"

    service.zone.add("direct.customer.test", "A", SERVER)
    found = await new.diagnose("direct.customer.test")
    assert found["ownership"]["status"] == "not proven"
    assert found["ownership"]["txt_record"] == {
        "type": "TXT",
        "host": "_frontage.direct.customer.test",
        "value": f"application={new.id}",
    }
    assert "nothing shows whose it is" in found["next_step"]
