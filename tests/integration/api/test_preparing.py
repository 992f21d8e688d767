"""Moving in without a gap: `/domains/:domain/prepare`, with the monitor's work that follows the DNS."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest

from common.addresses import tenant_policy
from common.db import delegations, preparations
from common.dns import Resolver
from common.enrolment.delegations import Delegations
from common.enrolment.domain_claims import DomainClaims
from common.enrolment.eligibility import ServiceTargets
from common.enrolment.ownership import OwnNames
from common.enrolment.preparing import Preparing
from monitor.certificates.dns_moved_away import DomainDnsCheck
from monitor.claims import Runner
from monitor.preparing import PreparationWork, waiting_pause_seconds
from tests.integration.api.conftest import POWER_TARGET, SERVER, Service, open_service
from tests.integration.api.connecting import no_probe
from tests.integration.api.partner import Answer, Partner
from tests.integration.monitor import parts
from tests.timeouts import UNHURRIED
from tests.waiting import until

SHOP = "shop.customer.test"
ORIGIN = "https://app.acme.example/shop"
WANTED = {"product": "power", "applicationUrl": ORIGIN, "powerRootPathAccess": ["/static"], "metadata": {"plan": "pro"}}
ZONE = "acme.frontage.test"


@pytest.fixture
async def service(dsn: str, tmp_path: Path, probe_port: int) -> AsyncIterator[Service]:
    """One whose zones' own servers can be asked, and a monitor beside it."""
    settings = {"PUBLIC_URL": "https://api.frontage.test", "ACME_DNS_ZONE": ZONE}
    async with (
        open_service(dsn, tmp_path, probe_port, UNHURRIED, authority_port=None, **settings) as service,
        AsyncExitStack() as stack,
    ):
        service.zone.add("test", "NS", "ns.test")
        service.zone.add("ns.test", "A", "127.0.0.1")
        service.zone.add(SHOP, "CNAME", "other-vendor.test")
        service.zone.add("other-vendor.test", "A", "127.0.0.9")
        for runner in runners(service, tmp_path):
            await stack.enter_async_context(parts.running(runner))
        yield service


def runners(service: Service, state_dir: Path) -> tuple[Runner[Any], Runner[Any]]:
    settings, database = service.settings, service.database
    policy, targets = tenant_policy(settings), ServiceTargets.of(settings)
    resolver = Resolver(settings.dns_servers, policy, authority_port=settings.dns_servers[0].port)
    found = Delegations(database, settings.acme_dns_zone)
    dns_check = DomainDnsCheck(database, resolver, targets, no_probe, found)
    claims = DomainClaims(database, resolver, targets, OwnNames.of(settings), no_probe, found)
    random = parts.HastyRandom()
    work = PreparationWork(database, Preparing(claims, policy), dns_check, random)
    orders = parts.make_runner(
        database,
        parts.CountingIssuer(state_dir),
        service.keyring,
        find_lead=dns_check,
        is_delegated=dns_check.is_delegated,
    )
    return orders, Runner(database, preparations, work.perform, concurrency=4, random=random, poll_seconds=0.1)


async def prepare(partner: Partner, domain: str = SHOP, **changed: Any) -> Answer:
    return await partner.call("POST", f"/domains/{domain}/prepare", json=WANTED | changed)


async def show(partner: Partner, domain: str = SHOP) -> dict[str, Any]:
    body: dict[str, Any] = (await partner.call("GET", f"/domains/{domain}/prepare")).body
    return body


async def until_state(partner: Partner, state: str, **fields: Any) -> dict[str, Any]:
    """Asking makes the monitor look again."""

    body: dict[str, Any] = {}

    async def is_so() -> bool:
        body.update(await show(partner))
        return body["state"] == state and all(body[key] == value for key, value in fields.items())

    await until(is_so, f"a domain that is {state}")
    return body


def delegate(service: Service, body: dict[str, Any]) -> None:
    record = body["records"][0]
    service.zone.replace(record["host"], record["type"], record["value"])


async def events_of(partner: Partner) -> list[tuple[str, str | None]]:
    items = (await partner.call("GET", "/webhooks/events")).body["events"]
    return [(each["type"], each["payload"].get("power_status")) for each in reversed(items)]


async def test_domain_is_served_before_its_dns_leads_here_and_active_once_it_does(service: Service) -> None:
    partner = await service.partner()
    answer = await prepare(partner)
    assert (answer.status, answer.body["state"]) == (200, "waiting")
    assert answer.body["metadata"] == {"plan": "pro"}
    first, second = answer.body["records"]
    assert (first["host"], first["state"]) == (f"_acme-challenge.{SHOP}", "missing")
    assert first["value"].endswith(f".{ZONE}")
    expected = {"type": "CNAME", "host": SHOP, "value": "target-1.partner.test", "state": "later"}
    assert second == expected
    assert (await prepare(partner)).body["records"] == answer.body["records"], "the label stays"

    delegate(service, answer.body)
    prepared = await until_state(partner, "prepared")
    assert [each["state"] for each in prepared["records"]] == ["found", "missing"]
    assert prepared["certificate"]["issuer"] == "internal"
    assert f"curl --resolve {SHOP}:443:{SERVER} https://{SHOP}/" in prepared["hint"]
    eligibility = (await partner.get(domain=SHOP)).body
    assert (eligibility["eligible"], eligibility["powerStatus"]) == (False, "inactive")
    assert await events_of(partner) == [("domain.prepared", None)]

    service.zone.replace(SHOP, "CNAME", "target-1.partner.test")
    await until_state(partner, "active")
    eligibility = (await partner.get(domain=SHOP)).body
    assert (eligibility["powerStatus"], eligibility["powerRootPathAccess"]) == ("active", ["/static"])
    assert await events_of(partner) == [("domain.prepared", None), ("domain.power", "success")]
    assert (await prepare(partner)).status == 409


async def test_power_of_a_prepared_domain_whose_dns_has_turned_makes_it_active(service: Service) -> None:
    partner = await service.partner()
    delegate(service, (await prepare(partner)).body)
    await until_state(partner, "prepared")
    refused = await partner.post(SHOP, "https://app.acme.example/new")
    assert (refused.status, refused.body["code"]) == (502, "not_eligible"), "its DNS leads elsewhere"
    service.zone.replace(SHOP, "CNAME", "target-1.partner.test")
    assert (await partner.post(SHOP, "https://app.acme.example/new")).status == 200
    eligibility = (await partner.get(domain=SHOP)).body
    assert (eligibility["powerStatus"], eligibility["applicationUrl"]) == ("active", "https://app.acme.example/new")
    assert (await show(partner))["state"] == "active"


async def test_preparation_that_is_ended_leaves_nothing(service: Service) -> None:
    partner = await service.partner()
    path = f"/domains/{SHOP}/prepare"
    assert (await partner.call("GET", path)).status == (await partner.call("DELETE", path)).status == 404
    delegate(service, (await prepare(partner)).body)
    await until_state(partner, "prepared")
    assert (await partner.call("DELETE", path)).status == 200
    assert (await partner.call("GET", path)).status == 404
    assert await parts.fetch(service.database, "select from domains") == []
    assert (await partner.post(SHOP, ORIGIN)).body["code"] == "not_eligible"


async def test_delegation_to_another_application_prepares_nothing(service: Service) -> None:
    first, second = await service.partner(), await service.partner()
    mine = (await prepare(first)).body
    theirs = (await prepare(second)).body
    assert mine["records"][0]["value"] != theirs["records"][0]["value"]
    delegate(service, mine)
    await until_state(first, "prepared")
    assert (await show(second))["state"] == "waiting"
    delegate(service, theirs)  # the customer changes its mind before the DNS leads anywhere
    await until_state(second, "prepared")
    assert (await first.call("GET", f"/domains/{SHOP}/prepare")).status == 404
    async with service.database.connection() as connection:
        assert await delegations.find_label(connection, SHOP, first.id) is not None


async def test_domain_that_leads_to_its_holder_waits_with_the_reason(service: Service) -> None:
    holder, claimant = await service.partner(), await service.partner()
    service.zone.replace(SHOP, "CNAME", "target-1.partner.test")
    assert (await holder.post(SHOP, ORIGIN)).status == 200
    delegate(service, (await prepare(claimant)).body)
    waiting = await until_state(claimant, "waiting", reason="leads_to_holder")
    assert "still leads to it" in waiting["hint"]
    assert (await holder.get(domain=SHOP)).body["powerStatus"] == "active"


async def test_what_no_dns_could_change_is_refused_at_once(
    service: Service, dsn: str, tmp_path: Path, probe_port: int
) -> None:
    partner = await service.partner()
    assert (await prepare(partner, POWER_TARGET)).body["code"] == "reserved"
    assert (await prepare(partner, "customer.test")).body["code"] == "root"
    assert (await prepare(partner, product="secure", applicationUrl="http://10.0.0.1")).body["code"] == "origin_refused"
    assert (await prepare(partner, product="magic")).status == 400
    async with open_service(dsn, tmp_path, probe_port, UNHURRIED) as without_zone:
        answer = await prepare(Partner(partner.id, partner.secret, without_zone.session, without_zone.url))
        assert (answer.status, "FRONTAGE_ACME_DNS_ZONE" in answer.body["hint"]) == (409, True)


def test_domain_is_looked_at_less_often_the_longer_ago_someone_asked() -> None:
    assert [waiting_pause_seconds(seconds) for seconds in (0, 60, 1200, 86_400)] == [2.0, 3.0, 60.0, 300.0]
