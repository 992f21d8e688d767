"""Moving in without a gap: `/domains/:domain/prepare`, with the monitor's work that follows the DNS."""

from __future__ import annotations

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from api.bounds import Bounds
from common.db import delegations, domains, preparations
from common.domain_settings import DomainSettings
from common.enrolment.preparing import request_new
from monitor.preparing import waiting_pause_seconds
from tests.integration.api.conftest import POWER_TARGET, SERVER, Service, open_service
from tests.integration.api.partner import Partner
from tests.integration.api.preparing import (
    ORIGIN,
    SHOP,
    WANTED,
    ZONE,
    delegate,
    events_of,
    open_preparing,
    prepare,
    show,
    until_state,
    until_unwatched,
)
from tests.integration.monitor import parts
from tests.timeouts import UNHURRIED


@pytest.fixture
async def service(dsn: str, tmp_path: Path, probe_port: int, bounds: Bounds) -> AsyncIterator[Service]:
    async with open_preparing(dsn, tmp_path, probe_port, bounds) as service:
        yield service


async def test_a_pending_domain_is_added_once_its_dns_leads_here_and_not_before(
    service: Service, partner: Partner
) -> None:
    answer = await prepare(partner, awaitDns=True)
    leads = {"type": "CNAME", "host": SHOP, "value": "target-1.partner.test"}
    assert (answer.status, answer.body["state"]) == (200, "waiting")
    assert answer.body["records"] == [leads | {"state": "missing"}]
    assert "added by itself" in answer.body["hint"]
    assert (await partner.call("GET", "/power")).body["items"] == []
    service.zone.replace(SHOP, "CNAME", "target-1.partner.test")
    active = await until_state(partner, "active")
    assert active["records"] == [leads | {"state": "found"}]
    eligibility = (await partner.get(domain=SHOP)).body
    assert (eligibility["powerStatus"], eligibility["powerRootPathAccess"]) == ("active", ["/static"])


async def test_a_pending_domain_that_was_added_by_hand_is_pending_no_longer(service: Service, partner: Partner) -> None:
    await prepare(partner, awaitDns=True)
    async with service.database.transaction() as connection:
        await domains.power(connection, SHOP, partner.id, DomainSettings(ORIGIN))
    await until_state(partner, "active")
    assert (await partner.call("DELETE", f"/domains/{SHOP}/prepare")).status == 409


async def test_domain_is_served_before_its_dns_leads_here_and_active_once_it_does(
    service: Service, partner: Partner
) -> None:
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


async def test_power_of_a_prepared_domain_whose_dns_has_turned_makes_it_active(
    service: Service, partner: Partner
) -> None:
    delegate(service, (await prepare(partner)).body)
    await until_state(partner, "prepared")
    refused = await partner.post(SHOP, "https://app.acme.example/new")
    assert (refused.status, refused.body["code"]) == (502, "not_eligible"), "its DNS leads elsewhere"
    await until_unwatched(service)
    service.zone.replace(SHOP, "CNAME", "target-1.partner.test")
    assert (await partner.post(SHOP, "https://app.acme.example/new")).status == 200
    eligibility = (await partner.get(domain=SHOP)).body
    assert (eligibility["powerStatus"], eligibility["applicationUrl"]) == ("active", "https://app.acme.example/new")
    assert (await show(partner))["state"] == "active"


@pytest.mark.parametrize("by_browser", [True, False])
async def test_a_preparation_that_waits_changes_nothing_of_a_later_enrolment(
    service: Service, partner: Partner, by_browser: bool
) -> None:
    """The server enrols the name meanwhile; its DNS leaves later, and the challenge is delegated only then."""
    prepared = (await prepare(partner)).body
    if by_browser:
        wanted = preparations.Wanted(SHOP, "power", DomainSettings(ORIGIN))
        async with service.database.transaction() as connection:
            await preparations.delete(connection, SHOP, partner.id)
            assert await request_new(connection, partner.id, wanted, keeps_enrolled=True, most_waiting=10)
    service.zone.replace(SHOP, "CNAME", "target-1.partner.test")
    assert (await partner.post(SHOP, "https://app.acme.example/new")).status == 200
    assert (await show(partner))["state"] == "active", "it waits no longer"
    service.zone.replace(SHOP, "CNAME", "other-vendor.test")
    async with service.database.transaction() as connection:
        await connection.execute("update domains set departed_at = now()")
        await connection.execute("update preparations set asked_at = asked_at - interval '1 minute'")
    delegate(service, prepared)
    await show(partner)  # would have a monitor look
    async with service.database.connection() as connection:
        assert await connection.fetchval("select count(*) from preparations where due_at is not null") == 0
        [held] = await domains.find(connection, SHOP)
    assert (held.application_url, held.is_prepared) == ("https://app.acme.example/new", False)
    again = (await prepare(partner, applicationUrl="https://app.acme.example/back")).body
    assert again["state"] == "waiting", "the server may prepare it anew, and then change it"
    await until_state(partner, "prepared")
    async with service.database.connection() as connection:
        [held] = await domains.find(connection, SHOP)
    assert held.application_url == "https://app.acme.example/back"


async def test_power_of_a_prepared_domain_whose_answer_was_lost_may_be_sent_again(
    service: Service, partner: Partner
) -> None:
    """As after a failover: the database committed the first attempt, and nobody knows that it ended."""
    delegate(service, (await prepare(partner)).body)
    await until_state(partner, "prepared")
    await until_unwatched(service)
    service.zone.replace(SHOP, "CNAME", "target-1.partner.test")
    body = {name: value for name, value in WANTED.items() if name != "product"} | {"domain": SHOP}
    for _ in range(2):  # with the settings that it was prepared with
        answer = await partner.call("POST", "/power", json=body, headers=partner.headers | {"Idempotency-Key": "one"})
        assert answer.status == 200, answer.body
        assert "Idempotent-Replayed" not in answer.headers
        async with service.database.transaction() as connection:
            await connection.execute(
                "update idempotent_requests set status = null, body = null, started_at = now() - interval '3 minutes'"
            )
    entries = await parts.fetch(service.database, "select action, way from audit where subject = $1 order by id", SHOP)
    assert ("power.enrol", "api") in [(each["action"], each["way"]) for each in entries]


async def test_preparation_that_is_ended_leaves_nothing(service: Service, partner: Partner) -> None:
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
    partner: Partner, dsn: str, tmp_path: Path, probe_port: int
) -> None:
    assert (await prepare(partner, POWER_TARGET)).body["code"] == "reserved"
    assert (await prepare(partner, "customer.test")).body["code"] == "root"
    assert (await prepare(partner, product="secure", applicationUrl="http://10.0.0.1")).body["code"] == "origin_refused"
    assert (await prepare(partner, product="magic")).status == 400
    async with open_service(dsn, tmp_path, probe_port, UNHURRIED) as without_zone:
        answer = await prepare(Partner(partner.id, partner.secret, without_zone.session, without_zone.url))
        assert (answer.status, "FRONTAGE_ACME_DNS_ZONE" in answer.body["hint"]) == (409, True)


@pytest.mark.parametrize("bounds", [Bounds(most_prepared=2)], ids=["few"])
async def test_waiting_preparations_of_an_application_are_bounded(service: Service) -> None:
    partner, other = await service.partner(), await service.partner()
    for number in (1, 2):
        assert (await prepare(partner, f"shop{number}.customer.test")).status == 200
    refused = await prepare(partner, "shop3.customer.test")
    assert (refused.status, "2 of its domains wait" in refused.body["hint"]) == (409, True)
    assert (await prepare(partner, "shop2.customer.test")).status == 200, "it is prepared already"
    assert (await prepare(other, "shop3.customer.test")).status == 200
    assert (await partner.call("DELETE", "/domains/shop1.customer.test/prepare")).status == 200
    assert (await prepare(partner, "shop3.customer.test")).status == 200


def test_domain_is_looked_at_less_often_the_longer_ago_someone_asked() -> None:
    assert [waiting_pause_seconds(seconds) for seconds in (0, 60, 1200, 86_400)] == [2.0, 3.0, 60.0, 300.0]
