"""Whose domain it is: attacks on names by applications that have none of their own there, and names that move."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from api.services.domain_files import parse_row
from api.services.domain_import import DomainImport
from bench.lab.zone import Behaviour
from common.db import (
    applications,
    delegations,
    domains,
    order_outcomes,
    order_queue,
    ownership,
    policies,
    target_contests,
)
from common.db.certificates import Certificate
from common.domain_settings import DomainSettings
from common.enrolment import transfer as domain_transfer
from common.errors import FenceLost
from common.names import parse_domain
from tests.integration.api.conftest import POWER_TARGET, SERVER, Service, open_service
from tests.integration.api.partner import Answer, Partner
from tests.integration.api.secured import Ssl, go_live, order_state, serve_origin
from tests.integration.api.test_eligibility import cdn
from tests.timeouts import UNHURRIED

SHOP = "shop.customer.test"
ROOT = "customer.test"
ALREADY = "This domain has been already powered."
NOT_VALID = "Domain not valid"
REVIEW = "Please review Power eligibility status of this domain."
REASON = "Phishing was reported."
NOTHING = {
    "eligible": False,
    "powerStatus": "inactive",
    "cnameTarget": "",
    "applicationUrl": "",
    "powerRootPathAccess": [],
}


@pytest.fixture
async def service(dsn: str, tmp_path: Path, probe_port: int) -> AsyncIterator[Service]:
    """One whose zones' own servers can be asked."""
    settings: dict[str, Any] = {"PUBLIC_URL": "https://api.frontage.test", "ACME_DNS_ZONE": "acme.frontage.test"}
    async with open_service(dsn, tmp_path, probe_port, UNHURRIED, authority_port=None, **settings) as service:
        service.zone.add("test", "NS", "ns.test")
        service.zone.add("ns.test", "A", "127.0.0.1")
        yield service


@pytest.fixture
async def origin() -> AsyncIterator[str]:
    async with serve_origin() as origin:
        yield origin.url


def refusal(answer: Answer) -> tuple[int, str, str | None]:
    return answer.status, answer.message, answer.body.get("code")


def name_by_txt(service: Service, domain: str, *partners: Partner) -> None:
    service.zone.replace(f"_frontage.{domain}", "TXT", *(f"application={each.id}" for each in partners))


def txt_of(name: str, partner: Partner) -> str:
    return f"the TXT record _frontage.{name} with the value application={partner.id}"


async def fetch(service: Service, statement: str) -> list[tuple[Any, ...]]:
    async with service.database.connection() as connection:
        return [tuple(row) for row in await connection.fetch(statement)]


async def holder(service: Service, domain: str = SHOP) -> set[str]:
    return {row[0] for row in await fetch(service, f"select application_id from domains where domain = '{domain}'")}


async def two(service: Service) -> tuple[Partner, Partner]:
    return await service.partner(), await service.partner()


# Names that an operator has blocked ------------------------------------------------------------------------------


async def test_a_blocked_name_is_enrolled_by_no_application_and_stays_enrolled_where_it_is(
    service: Service, origin: str
) -> None:
    partner = await service.partner()
    service.zone.add(SHOP, "A", SERVER)
    name_by_txt(service, SHOP, partner)
    assert (await partner.post(SHOP, origin)).status == 200
    async with service.database.transaction() as connection:
        await policies.put(connection, "domain", SHOP, policies.FORBIDDEN, "Phishing was reported.")
    diagnosis = await partner.diagnose(SHOP)
    assert diagnosis["blocked"]["reason"] == "Phishing was reported."
    assert diagnosis["next_step"].startswith("The operator of this service has blocked shop.customer.test")
    assert (await partner.get(domain=SHOP)).body["powerStatus"] == "active"

    async with service.database.transaction() as connection:
        await ownership.revoke_ownership(connection, SHOP, partner.id, "released")
        await ownership.forget(connection, SHOP)
    answer = await partner.post(SHOP, origin)
    assert refusal(answer) == (502, NOT_VALID, "domain_blocked")
    assert "unblock" in answer.body["hint"]
    assert await holder(service) == set()
    diagnosis = await partner.diagnose(SHOP)
    assert (diagnosis["blocked"], diagnosis["ownership"]["status"]) == (None, "blocked")
    assert "unblock" in diagnosis["next_step"]
    async with service.database.transaction() as connection:
        assert await policies.remove(connection, "domain", SHOP)
    assert (await partner.post(SHOP, origin)).status == 200


async def test_what_an_operator_has_blocked_or_suspended_is_neither_enrolled_nor_changed(
    service: Service, origin: str
) -> None:
    partner = await service.partner()
    power, ssl = partner, Ssl(partner, origin)
    for name in (SHOP, "second.customer.test", "new.customer.test"):
        service.zone.add(name, "A", SERVER)
        name_by_txt(service, name, partner)
    assert (await power.post(SHOP, origin)).status == 200
    assert (await ssl.post("second.customer.test")).status == 200
    enrolled = (power.put(SHOP, applicationUrl=origin), ssl.put("second.customer.test", applicationUrl=origin))
    assert [(await each).status for each in enrolled] == [200, 200]
    async with service.database.connection() as connection:
        application = await applications.get_application(connection, partner.id)
    assert application is not None
    importing = DomainImport.of(service.settings, service.database, application)

    async def enrolling(name: str) -> list[tuple[int, str, str | None]]:
        return [refusal(await each) for each in (power.post(name, origin), ssl.post(name))]

    async def changing() -> list[tuple[int, str, str | None]]:
        calls = (
            power.put(SHOP, applicationUrl=origin),
            ssl.put("second.customer.test", redirectTo="https://new.example.com"),
        )
        return [refusal(await each) for each in calls]

    async def imported(name: str) -> str:
        row = parse_row({"product": "power", "domain": name, "applicationUrl": "https://other.example.com"})
        [outcome] = await importing.write([row])
        return str(outcome)

    cases: list[tuple[policies.Scope, tuple[str, ...], str, str]] = [
        ("domain", (SHOP, "second.customer.test", "new.customer.test"), "domain_blocked", "unblock"),
        ("application", (partner.id,), "application_suspended", "resume"),
    ]
    for scope, subjects, code, words in cases:
        async with service.database.transaction() as connection:
            for subject in subjects:
                await policies.put(connection, scope, subject, policies.FORBIDDEN, REASON)
        assert [*await enrolling("new.customer.test"), *await changing()] == [(502, NOT_VALID, code)] * 4
        shown = (await partner.call("GET", "/application")).body["suspended"]
        assert shown == (None if scope == "domain" else {"status": 403, "reason": REASON, "since": shown["since"]})
        eligibility = (await power.get(domain="new.customer.test")).body
        assert (eligibility["eligible"], words in eligibility["hint"]) == (False, True)
        assert [words in await imported(name) for name in (SHOP, "new.customer.test")] == [True, True]
        async with service.database.transaction() as connection:
            for subject in subjects:
                assert await policies.remove(connection, scope, subject)
    assert (await power.post("new.customer.test", origin)).status == 200


# Challenges that are delegated ----------------------------------------------------------------------------------


async def delegate(service: Service, domain: str, partner: Partner) -> None:
    async with service.database.connection() as connection:
        label = await delegations.mint(connection, domain, partner.id)
        assert await delegations.mint(connection, domain, partner.id) == label
    service.zone.replace(f"_acme-challenge.{domain}", "CNAME", f"{label}.acme.frontage.test")


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


# Names that nobody may have --------------------------------------------------------------------------------------


async def test_our_own_names_are_nobodys_domains(service: Service, origin: str) -> None:
    partner = await service.partner()
    for name in (POWER_TARGET, "secure.frontage.localhost", "api.frontage.test"):
        service.zone.add(name, "A", SERVER)
        name_by_txt(service, name, partner)
        for answer in (await partner.post(name), await Ssl(partner, origin).post(name)):
            assert refusal(answer) == (502, NOT_VALID, "reserved"), name
        assert (await partner.get(domain=name)).body["eligible"] is False
        assert (await Ssl(partner, origin).get(domain=name)).body["eligible"] is False
    assert await fetch(service, "select * from domains") == []


async def test_an_applications_own_targets_are_not_its_domains(service: Service, origin: str) -> None:
    partner = await service.partner()
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


async def test_a_name_becomes_no_target_and_domain_at_once(service: Service) -> None:
    """An operator gives an application the target that its partner enrols at that moment."""
    partner = await service.partner()
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


# Names of others as one's own cname target -----------------------------------------------------------------------


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


async def test_an_a_record_of_ours_needs_the_txt_record_too(service: Service) -> None:
    partner = await service.partner()
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


async def test_a_txt_record_for_a_name_that_leads_elsewhere_is_not_enough(service: Service) -> None:
    partner = await service.partner()
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
    old, new = await two(service)
    service.point(SHOP)
    await old.post(SHOP)
    service.zone.replace(SHOP, "CNAME", "target-2.partner.test")
    name_by_txt(service, SHOP, old)
    assert refusal(await new.post(SHOP)) == (502, ALREADY, "leads_to_holder")
    assert (await new.get(domain=SHOP)).body == NOTHING


async def test_a_txt_record_moves_no_name_that_still_leads_to_its_holder(service: Service) -> None:
    old, new = await two(service)
    service.point(SHOP)
    await old.post(SHOP)
    name_by_txt(service, SHOP, new)
    assert refusal(await new.post(SHOP)) == (502, ALREADY, "leads_to_holder")


@pytest.mark.parametrize("behaviour", [Behaviour.SERVFAIL, Behaviour.TIMEOUT])
async def test_what_cannot_be_asked_moves_nothing(service: Service, behaviour: Behaviour) -> None:
    old, new = await two(service)
    service.point(SHOP)
    await old.post(SHOP)
    service.zone.replace(SHOP, "CNAME", "target-2.partner.test")
    service.zone.misbehave(f"_frontage.{SHOP}", behaviour)
    assert refusal(await new.post(SHOP)) == (502, ALREADY, "held_unknown")
    assert await holder(service) == {old.id}


async def test_a_resolvers_word_moves_nothing(service: Service) -> None:
    """Without the zone's own servers, a lying or outdated resolver could give any name away."""
    old, new = await two(service)
    service.point(SHOP)
    await old.post(SHOP)
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
    old, new = await two(service)
    service.point(SHOP)
    await old.post(SHOP)
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
    old, new = await two(service)
    service.point(SHOP)
    await old.post(SHOP)
    body = {"domain": ROOT, "dnsRecords": [{"type": "A", "host": "@", "value": "192.0.2.1", "ttl": 60}]}
    for partner in (old, new):
        assert (await partner.call("POST", "/monitor/domains", json=body)).status == 201
    service.zone.replace(SHOP, "CNAME", "target-2.partner.test")
    await new.post(SHOP)
    assert len(await fetch(service, "select * from monitored_domains")) == 2


async def test_an_application_that_is_being_deleted_gets_nothing(service: Service) -> None:
    partner = await service.partner()
    service.point(SHOP)
    await fetch(service, "update applications set deleting_at = now()")
    assert (await partner.post(SHOP)).status == 401
    credentials = {"applicationId": partner.id, "secret": partner.secret}
    assert (await partner.call("POST", "/token", json=credentials, headers={})).status == 401


async def test_the_diagnosis_leads_from_a_held_name_to_a_moved_one(service: Service) -> None:
    """Each step that it names is done; the last POST works."""
    old, new = await two(service)
    service.point(SHOP)
    await old.post(SHOP)

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


# What is answered ------------------------------------------------------------------------------------------------


async def test_a_repeated_post_says_what_to_do(service: Service, origin: str) -> None:
    partner = await service.partner()
    service.point(SHOP)
    assert (await partner.post(SHOP)).status == 200
    answer = await partner.post(SHOP)
    assert refusal(answer) == (502, ALREADY, "enrolled")
    assert "PUT /power changes it" in answer.body["hint"]
    await go_live(service, SHOP, partner.id)
    answer = await Ssl(partner, origin).post(SHOP)
    assert refusal(answer) == (502, "There is already a valid certificate for this domain.", "enrolled")


async def test_a_root_is_eligible_and_post_power_says_where_it_goes(service: Service, origin: str) -> None:
    partner = await service.partner()
    service.zone.add(ROOT, "A", SERVER)
    found = (await partner.get(domain=SHOP, rootDomain="true")).body
    assert found["eligible"] is True
    assert "POST /ssl" in found["hint"]
    answer = await partner.post(ROOT)
    assert refusal(answer) == (502, NOT_VALID, "root")
    assert "POST /ssl" in answer.body["hint"]
    assert (await Ssl(partner, origin).post(ROOT)).status == 200
