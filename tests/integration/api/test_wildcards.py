"""Wildcards: `*.customer.test` is enrolled like a name where its challenge is delegated, and only there."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from common.db import delegations
from tests.integration.api.conftest import SERVER, Service
from tests.integration.api.partner import Partner
from tests.integration.api.preparing import ORIGIN, ZONE, delegate, events_of, open_preparing, prepare, until_state
from tests.integration.monitor import parts

BASE = "customer.test"
WILD = f"*.{BASE}"
SHOP = f"shop.{BASE}"


@pytest.fixture
async def service(dsn: str, tmp_path: Path, probe_port: int) -> AsyncIterator[Service]:
    async with open_preparing(dsn, tmp_path, probe_port) as service:
        service.zone.remove(SHOP)
        yield service


async def delegate_to(service: Service, partner: Partner, base: str = BASE) -> str:
    """Set the record that the application is shown; return its value."""
    async with service.database.connection() as connection:
        value = f"{await delegations.mint(connection, base, partner.id)}.{ZONE}"
    service.zone.replace(f"_acme-challenge.{base}", "CNAME", value)
    return value


async def wildcard_of(service: Service, partner: Partner, target: str, name: str = WILD) -> None:
    """Enrol a wildcard whose DNS leads to the application."""
    await delegate_to(service, partner, name.removeprefix("*."))
    service.zone.replace(name, "CNAME", target)
    assert (await partner.post(name, ORIGIN)).status == 200


async def test_wildcard_is_refused_with_the_record_to_create_until_its_challenge_is_delegated(
    service: Service, partner: Partner
) -> None:
    service.zone.add(WILD, "CNAME", "target-1.partner.test")
    refused = await partner.post(WILD, ORIGIN)
    async with service.database.connection() as connection:
        label = await delegations.find_label(connection, BASE, partner.id)
    assert (refused.status, refused.body["code"]) == (502, "delegation_needed")
    record = f"the CNAME record _acme-challenge.{BASE} with the value {label}.{ZONE}"
    assert record in refused.body["hint"]
    eligibility = (await partner.get(domain=WILD)).body
    assert (eligibility["eligible"], record in eligibility["hint"]) == (False, True)
    secured = await partner.call("POST", "/ssl", json={"domain": WILD, "applicationUrl": "https://app.acme.example"})
    assert (secured.status, secured.body["code"]) == (502, "delegation_needed")

    diagnosis = await partner.diagnose(WILD)
    assert (record in diagnosis["next_step"], diagnosis["ownership"]["status"]) == (True, "not proven")

    await delegate_to(service, partner)
    assert (await partner.get(domain="*.Customer.TEST.")).body["eligible"] is True
    assert (await partner.post("*.CUSTOMER.test.", ORIGIN)).status == 200
    assert [row["domain"] for row in await parts.fetch(service.database, "select domain from domains")] == [WILD]
    [certificate] = await until_certified(service)
    assert certificate["domain"] == WILD
    assert (await partner.put(WILD, applicationUrl="https://app.acme.example/new")).status == 200
    listed = (await partner.get()).body["items"]
    assert [(each["domain"], each["powerStatus"]) for each in listed] == [(WILD, "active")]
    assert ("domain.power", "success") in await events_of(partner)
    diagnosis = await partner.diagnose(WILD)
    assert (diagnosis["dns"]["status"], diagnosis["ownership"]["claim"]) == ("ok", "delegation")
    assert (await partner.delete(WILD)).status == 200
    assert (await partner.get()).body["items"] == []


async def until_certified(service: Service) -> list[dict[str, str]]:
    await parts.until_live(service.database, WILD)
    return [dict(row) for row in await parts.fetch(service.database, "select domain from certificates")]


async def test_delegation_alone_enrols_no_wildcard_that_leads_elsewhere(service: Service, partner: Partner) -> None:
    await delegate_to(service, partner)
    service.zone.add(WILD, "CNAME", "other-vendor.test")
    refused = await partner.post(WILD, ORIGIN)
    assert (refused.status, refused.body["code"]) == (502, "not_eligible")


async def test_prepared_wildcard_is_served_before_its_dns_leads_here(service: Service, partner: Partner) -> None:
    answer = await prepare(partner, WILD)
    first, second = answer.body["records"]
    assert (first["host"], second["host"]) == (f"_acme-challenge.{BASE}", WILD)
    delegate(service, answer.body)
    prepared = await until_state(partner, "prepared", domain=WILD)
    assert f"https://www.{BASE}/" in prepared["hint"]
    service.zone.add(WILD, "CNAME", "target-1.partner.test")
    await until_state(partner, "active", domain=WILD)


@pytest.mark.parametrize("name", ["*", "*.com", "*.co.uk", "*.github.io", "*.*.customer.test", "a.*.customer.test"])
async def test_other_wildcards_are_refused_and_change_nothing(service: Service, partner: Partner, name: str) -> None:
    for answer in (await partner.post(name, ORIGIN), await partner.put(name, applicationUrl=ORIGIN)):
        assert (answer.message, answer.body["code"]) == ("Domain not valid", "domain_not_valid")
        assert answer.body["hint"]
    assert (await prepare(partner, name)).status >= 400
    assert await parts.fetch(service.database, "select from acme_delegations") == []


async def test_wildcard_over_our_own_names_is_reserved(service: Service, partner: Partner) -> None:
    await delegate_to(service, partner, "frontage.test")
    refused = await partner.post("*.frontage.test", ORIGIN)
    assert (refused.message, refused.body["code"]) == ("Domain not valid", "reserved")


async def test_name_beneath_anothers_wildcard_is_enrolled_by_its_own_proof_alone(service: Service) -> None:
    holder, other = await service.partner(), await service.partner()
    await wildcard_of(service, holder, "target-1.partner.test")
    refused = await other.post(SHOP, ORIGIN)
    assert refused.body["code"] == "not_eligible", "the wildcard's record leads to its application"
    service.zone.add(SHOP, "CNAME", "target-2.partner.test")
    assert (await other.post(SHOP, ORIGIN)).status == 200
    assert (await holder.get(domain=WILD)).body["powerStatus"] == "active"
    assert (await holder.post(SHOP, ORIGIN)).message == "This domain has been already powered."


async def test_former_holder_of_a_name_does_not_come_back_by_an_address_beneath_anothers_wildcard(
    service: Service,
) -> None:
    holder, former = await service.partner(), await service.partner()
    service.zone.add(SHOP, "CNAME", "target-2.partner.test")
    assert (await former.post(SHOP, ORIGIN)).status == 200
    assert (await former.delete(SHOP)).status == 200
    service.zone.remove(SHOP)
    await wildcard_of(service, holder, "target-1.partner.test")
    service.zone.replace(WILD, "A", SERVER)
    service.zone.remove(WILD, "CNAME")
    refused = await former.post(SHOP, ORIGIN)
    assert (refused.status, refused.body["code"]) == (502, "txt_record_needed")


async def test_wildcard_moves_once_its_delegation_and_its_dns_are_anothers(service: Service) -> None:
    first, second = await service.partner(), await service.partner()
    await wildcard_of(service, first, "target-1.partner.test")
    refused = await second.post(WILD, ORIGIN)
    assert (refused.body["code"], "/prepare" in refused.body["hint"]) == ("held", True)
    await delegate_to(service, second)
    assert (await second.post(WILD, ORIGIN)).body["code"] == "leads_to_holder"
    service.zone.replace(WILD, "CNAME", "target-2.partner.test")
    assert (await second.post(WILD, ORIGIN)).status == 200
    rows = await parts.fetch(service.database, "select application_id from domains")
    assert [row["application_id"] for row in rows] == [second.id]


async def test_nested_wildcards_of_two_applications_stand_side_by_side(service: Service) -> None:
    upper, lower = await service.partner(), await service.partner()
    await wildcard_of(service, upper, "target-1.partner.test")
    await wildcard_of(service, lower, "target-2.partner.test", f"*.b.{BASE}")
    assert (await upper.get(domain=WILD)).body["powerStatus"] == "active"
    assert (await lower.get(domain=f"*.b.{BASE}")).body["powerStatus"] == "active"


async def test_root_and_wildcard_have_one_record_and_answer_each_others_values(
    service: Service, partner: Partner
) -> None:
    """Two orders may run at once, of one challenge name."""
    await delegate_to(service, partner)
    async with service.database.transaction() as connection:
        await delegations.set_values(connection, BASE, partner.id, ["root"])
        assert sorted(await delegations.set_values(connection, WILD, partner.id, ["wild"])) == ["root", "wild"]
        assert list(await delegations.set_values(connection, BASE, partner.id, ())) == ["wild"]
        assert list(await delegations.find_other_values(connection, BASE, partner.id)) == ["wild"]
        await delegations.set_values(connection, BASE, partner.id, ["again"])
        assert list(await delegations.find_other_values(connection, WILD, partner.id)) == ["again"]
        await delegations.end_values(connection, WILD)
        assert list(await delegations.set_values(connection, BASE, partner.id, ["again"])) == ["again"]


async def test_redirect_of_a_wildcard_to_a_name_that_it_stands_for_is_a_loop(
    service: Service, partner: Partner
) -> None:
    await delegate_to(service, partner)
    service.zone.replace(WILD, "CNAME", "target-1.partner.test")
    body = {"domain": WILD, "redirectTo": f"https://www.{BASE}"}
    assert (await partner.call("POST", "/ssl", json=body)).body["code"] == "loop"
    service.zone.replace(f"www.{BASE}", "CNAME", "target-1.partner.test")
    assert (await partner.post(f"www.{BASE}", ORIGIN)).status == 200
    assert (await partner.call("POST", "/ssl", json=body)).status == 200
    looping = {"domain": SHOP, "redirectTo": f"https://other.{BASE}"}
    service.zone.replace(SHOP, "CNAME", "target-1.partner.test")
    assert (await partner.call("POST", "/ssl", json=looping)).status == 200, "by the wildcard, to www"
