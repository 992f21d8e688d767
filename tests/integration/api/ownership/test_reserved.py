"""Names that no application may have: ours, and cname targets."""

from __future__ import annotations

import asyncio

import pytest

from api.services.domain_files import parse_row
from api.services.domain_import import DomainImport
from common.db import applications, domains, target_contests
from common.domain_settings import DomainSettings
from common.enrolment import transfer as domain_transfer
from common.names import parse_domain
from tests.integration.api.conftest import POWER_TARGET, SERVER, Service
from tests.integration.api.ownership.parts import (
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
from tests.integration.api.ownership.test_targets import name_target
from tests.integration.api.partner import Partner
from tests.integration.api.secured import Ssl


async def test_our_own_names_are_nobodys_domains(service: Service, partner: Partner, origin: str) -> None:
    for name in (POWER_TARGET, "secure.frontage.localhost", "api.frontage.test"):
        service.zone.add(name, "A", SERVER)
        name_by_txt(service, name, partner)
        for answer in (await partner.post(name), await Ssl(partner, origin).post(name)):
            assert refusal(answer) == (502, NOT_VALID, "reserved"), name
        assert (await partner.get(domain=name)).body["eligible"] is False
        assert (await Ssl(partner, origin).get(domain=name)).body["eligible"] is False
    assert await fetch(service, "select * from domains") == []


async def test_an_applications_own_targets_are_not_its_domains(service: Service, partner: Partner, origin: str) -> None:
    async with service.database.transaction() as connection:
        await applications.update_application(connection, partner.id, secure_cname_target="ssl.partner.test")
    service.zone.add("ssl.partner.test", "A", SERVER)
    for name in ("target-1.partner.test", "ssl.partner.test"):
        name_by_txt(service, name, partner)
        for answer in (await partner.post(name), await Ssl(partner, origin).post(name)):
            assert refusal(answer) == (502, NOT_VALID, "reserved"), name
    assert await fetch(service, "select * from domains") == []


async def test_a_name_that_another_gives_as_its_target_is_its_zones_by_txt(service: Service, origin: str) -> None:
    """An A record, and a CNAME straight to us."""
    victim, attacker = await two(service)
    service.zone.add(SHOP, "A", SERVER)
    service.zone.add("www.customer.test", "CNAME", POWER_TARGET)
    for name in (SHOP, "www.customer.test"):
        await name_target(attacker, name)
        answer = await victim.post(name)
        if name == SHOP:
            assert refusal(answer) == (502, REVIEW, "txt_record_needed")
            assert txt_of(name, victim) in answer.body["hint"]
        diagnosis = await victim.call("GET", f"/domains/{name}/diagnosis")
        assert txt_of(name, victim) in diagnosis.body["next_step"]
        assert (await victim.get(domain=name)).body["eligible"] is False
        name_by_txt(service, name, victim)
        assert (await victim.get(domain=name)).body["eligible"] is True
        assert (await victim.post(name)).status == 200
        assert await holder(service, name) == {victim.id}


async def test_the_root_above_anothers_target_or_ours_is_not_taken_by_address(service: Service, origin: str) -> None:
    attacker, victim = Ssl(await service.partner(), origin), await service.partner()
    async with service.database.transaction() as connection:
        await applications.update_application(connection, victim.id, cname_target="apps.brand.test")
    for root in ("brand.test", "frontage.test"):
        service.zone.add(root, "A", SERVER)
        assert refusal(await attacker.post(root))[2] == "txt_record_needed"


async def test_a_name_becomes_no_target_and_domain_at_once(service: Service, partner: Partner) -> None:
    """An operator gives an application the target that its partner enrols at that moment."""
    for number in range(5):
        name = f"shop-{number}.customer.test"
        service.zone.add(name, "A", SERVER)
        name_by_txt(service, name, partner)

        async def set_target(name: str = name) -> bool:
            try:
                async with service.database.transaction() as connection:
                    await applications.update_application(connection, partner.id, secure_cname_target=name)
            except target_contests.CnameTargetTaken:
                return False
            return True

        is_target, answer = await asyncio.gather(set_target(), partner.post(name))
        assert (is_target, answer.status) in ((True, 502), (False, 200))


WAYS_IN = ("POST /power", "POST /ssl", "PUT /power", "PUT /ssl", "import of power", "import of secure", "transfer")


async def enter(service: Service, way: str, partner: Partner, origin: str, name: str) -> tuple[bool, str]:
    """Whether the partner has the name afterwards, and the words of the refusal."""
    verb, _, target = way.partition(" /")
    if target:
        product = partner if target == "power" else Ssl(partner, origin)
        answer = await (product.post(name) if verb == "POST" else product.put(name, applicationUrl=origin))
        return answer.status == 200, str(answer.body)
    async with service.database.transaction() as connection:
        application = await applications.get_application(connection, partner.id)
        assert application is not None
        if way == "transfer":
            try:
                await domain_transfer.transfer(connection, parse_domain(name), application, origin)
            except domain_transfer.NotTransferable as error:
                return False, str(error)
            return True, ""
    row = parse_row({"product": way.rpartition(" ")[2], "domain": name, "applicationUrl": origin})
    [outcome] = await DomainImport.of(service.settings, service.database, application).write([row])
    return outcome == "added", str(outcome)


@pytest.mark.parametrize("way", WAYS_IN)
async def test_no_way_in_gives_our_names_or_a_target_to_an_application(service: Service, origin: str, way: str) -> None:
    """Another application's target has an A record here and no TXT record."""
    partner, other = await two(service)
    targets = {"own": "apps.partner.test", "another's": "apps.other.test"}
    for name in (*targets.values(), POWER_TARGET, "api.frontage.test"):
        service.zone.add(name, "A", SERVER)
    async with service.database.transaction() as connection:
        await applications.update_application(connection, partner.id, secure_cname_target=targets["own"])
        await applications.update_application(connection, other.id, secure_cname_target=targets["another's"])
        if way == "transfer":  # by its proof, the other may hold what the partner gave as its target
            await domains.enrol_by_hand(
                connection, other.id, [domains.NewDomain(targets["own"], "power", DomainSettings(origin))]
            )
    for name in (targets["own"], targets["another's"], POWER_TARGET, "api.frontage.test"):
        before = await holder(service, name)
        is_in, words = await enter(service, way, partner, origin, name)
        assert (is_in, await holder(service, name)) == (False, before), (name, words)
        assert words, name
