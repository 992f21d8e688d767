"""What a browser's token can do: real requests, a monitor, and real zones."""

from __future__ import annotations

from typing import Any, cast

import pytest

from tests.integration.api.browsers.parts import (
    EVIL,
    FRESH,
    LIVE,
    OWN,
    RECORD,
    TARGET,
    Browser,
    power,
    powered,
    register,
    secure,
)
from tests.integration.api.connecting import APEX, World
from tests.integration.api.partner import Partner

# Where visitors are led --------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("config", "key"),
    [
        (power(EVIL), "applicationUrl"),
        (power(f"{OWN}/elsewhere"), "applicationUrl"),
        (power(OWN, powerRootPathAccess=["/"]), "powerRootPathAccess"),
        (power(OWN, powerRootPathAccess=[]), "powerRootPathAccess"),
        (secure(applicationUrl=EVIL), "applicationUrl"),
        (secure(redirectTo="evil.example"), "redirectTo"),
        (secure(redirectTo="{SUBDOMAIN}.evil.{TLD}"), "redirectTo"),
        (
            {"dnsRecords": {"domain": [RECORD], "subDomain": secure(redirectTo="evil.example")["dnsRecords"]}},
            "redirectTo",
        ),
    ],
)
async def test_a_browser_sets_no_origin_redirect_or_path(browser: Browser, config: dict[str, Any], key: str) -> None:
    refused = await browser.begin(domain=FRESH, **config)
    assert (refused.status, refused.body["code"]) == (403, "outside_configuration")
    assert refused.body["hint"].startswith(f"{key} is not the application's own")
    assert "POST /connect/configurations" in refused.body["hint"]


async def test_a_browser_may_repeat_the_applications_own_settings(browser: Browser, partner: Partner) -> None:
    same = "HTTPS://app.example.com:443/shop"
    found = await browser.finish(domain=FRESH, **power(same, powerRootPathAccess=["/assets"]))
    assert found["power"]["status"] == "success", found
    assert set(await powered(partner)) == {LIVE, FRESH}


async def test_a_full_token_sets_what_it_likes_and_changes_what_is_enrolled(partner: Partner) -> None:
    server = Browser(partner, partner.token())
    found = await server.finish(domain=LIVE, **power("https://other.example/x"))
    assert found["power"]["status"] == "success", found
    assert (await powered(partner))[LIVE] == "https://other.example/x"


async def test_a_registered_configuration_is_named_by_its_id_or_by_the_token(partner: Partner) -> None:
    config = power("https://other.example/x", powerRootPathAccess=["/static"])
    configuration_id = await register(partner, config)
    assert await register(partner, config) == configuration_id, "the same again is the same one"
    by_token = Browser(partner, partner.token(scope="connect", configurationId=configuration_id))
    by_id = Browser(partner, partner.token(scope="connect"))

    found = await by_token.finish(domain=FRESH, locale="de", hostRequired=True)
    assert found["power"]["status"] == "success", found
    assert (await powered(partner))[FRESH] == "https://other.example/x"
    begun = await by_id.begin(configurationId=configuration_id, domain=FRESH, **config)
    assert begun.status == 201, "what is equal passes"
    for fields in (
        power(EVIL),
        {"power": False},
        {"monitor": True},
        {"wwwRedirect": True},
        secure(redirectTo="evil.test"),
    ):
        refused = await by_id.begin(configurationId=configuration_id, domain=FRESH, **fields)
        assert (refused.status, refused.body["code"]) == (403, "outside_configuration"), fields
    for claim in cast(
        "tuple[Any, ...]", ("", [configuration_id], {}, 0, False)
    ):  # of a wrong type or form, it names none that there is
        odd = Browser(partner, partner.token(scope="connect", configurationId=claim))
        assert (await odd.begin(domain=FRESH)).body["code"] == "configuration_not_found", claim
        odd = Browser(partner, partner.token(scope="connect", share=claim))
        assert (await odd.begin(domain=FRESH)).body["code"] == "link_ended", claim
    other = await register(partner, power("https://other.example/y"))
    refused = await by_token.begin(configurationId=other, domain=FRESH)
    assert (refused.status, refused.body["code"]) == (403, "configuration")
    unbound = await by_id.begin(domain=FRESH, **power(OWN))
    hidden = await by_token.call("GET", f"/connect/flows/{unbound.body['id']}")
    assert (hidden.status, hidden.body["code"]) == (404, "flow_not_found")


@pytest.mark.parametrize("path", ["/connect/configurations", "/sharing/connect"])
@pytest.mark.parametrize("before", ["0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59-23:59", "2026-01-01", "x"])
async def test_a_list_before_no_time_that_can_be_is_refused(partner: Partner, path: str, before: str) -> None:
    refused = await partner.call("GET", path, params={"before": before})
    assert (refused.status, refused.body["message"]) == (400, "Invalid 'before' parameter")


async def test_configurations_are_a_servers_alone_and_an_applications_own(world: World, partner: Partner) -> None:
    other = await world.service.partner()
    configuration_id = await register(partner, power(OWN), expiresInDays=7)
    browser = Browser(partner, partner.token(scope="connect"))
    for method, path in (
        ("POST", "/connect/configurations"),
        ("GET", "/connect/configurations"),
        ("GET", f"/connect/configurations/{configuration_id}"),
        ("DELETE", f"/connect/configurations/{configuration_id}"),
    ):
        refused = await browser.call(method, path, config=power(EVIL))
        assert (refused.status, refused.body["code"]) == (403, "scope"), path
    for method in ("GET", "DELETE"):
        answer = await other.call(method, f"/connect/configurations/{configuration_id}")
        assert (answer.status, answer.body["code"]) == (404, "configuration_not_found")
    foreign = Browser(other, other.token(scope="connect"))
    answer = await foreign.begin(configurationId=configuration_id, domain=FRESH)
    assert (answer.status, answer.body["code"]) == (404, "configuration_not_found")

    listed = (await partner.call("GET", "/connect/configurations")).body["configurations"]
    assert [(each["id"], each["config"]) for each in listed] == [(configuration_id, power(OWN))]
    assert listed[0]["expires_at"] is not None
    assert (await partner.call("GET", f"/connect/configurations/{configuration_id}")).body == listed[0]
    audited = {each["action"] for each in (await partner.call("GET", "/audit")).body["entries"]}
    assert "configuration.register" in audited
    too_large = {"whiteLabel": {"logo": "x" * 17_000}}
    for config in (power(OWN) | {"userId": "u"}, power(OWN) | {"prefilledDomain": APEX}, {}, power(OWN) | too_large):
        refused = await partner.call("POST", "/connect/configurations", json={"config": config})
        assert refused.status == 400, config


# Names that are enrolled -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("config", [power(OWN), secure()])
async def test_a_browser_changes_no_name_that_is_enrolled(
    browser: Browser, partner: Partner, config: dict[str, Any]
) -> None:
    before = await powered(partner)
    found = await browser.finish(domain=LIVE, **config)
    [enrolment] = [each for name, each in found.items() if name != "error"]
    assert (enrolment["status"], enrolment["code"]) == ("failed", "already_enrolled")
    assert await powered(partner) == before
    assert (await partner.call("GET", "/ssl", params={"page": 0})).body["items"] == []


async def test_a_name_enrolled_while_the_flow_runs_is_not_changed(browser: Browser, partner: Partner) -> None:
    begun = await browser.begin(domain=FRESH, **power(OWN))
    await browser.until(begun.body["id"], "planned")
    assert (await partner.post(FRESH, url=f"{OWN}/of-another")).status == 200
    found = await browser.finish_begun(begun.body["id"])
    assert found["power"]["code"] == "already_enrolled"
    assert (await powered(partner))[FRESH] == f"{OWN}/of-another"


async def test_a_flow_that_would_change_nothing_succeeds(browser: Browser, partner: Partner) -> None:
    assert (await browser.finish(domain=FRESH, **power(OWN)))["power"]["status"] == "success"
    assert (await browser.finish(domain=FRESH, **power(OWN)))["power"]["status"] == "success"


async def test_a_flow_of_the_servers_whose_domain_a_browser_chose_changes_nothing_either(
    browser: Browser, partner: Partner
) -> None:
    begun = await partner.call("POST", "/connect/flows", json=power("https://other.example/x") | {"userId": "user-7"})
    chosen = await browser.call("POST", f"/connect/flows/{begun.body['id']}/domain", domain=LIVE)
    assert chosen.status == 200
    found = await browser.finish_begun(begun.body["id"])
    assert found["power"]["code"] == "already_enrolled"


async def test_monitoring_that_is_there_is_neither_changed_nor_ended(browser: Browser, partner: Partner) -> None:
    records = [{"type": "CNAME", "host": "fresh", "value": TARGET, "ttl": 300}]
    body = {"domain": APEX, "subdomain": "fresh", "dnsRecords": records, "userId": "the-owner"}
    assert (await partner.call("POST", "/monitor/domains", json=body)).status == 201
    query = {"subdomain": "fresh"}

    found = await browser.finish(domain=FRESH, monitor=True, dnsRecords=[RECORD])
    assert (found["monitor"]["status"], found["monitor"]["unchanged"]) == ("success", True)
    shown = (await partner.call("GET", f"/monitor/domains/{APEX}", params=query)).body
    assert (shown["source"], shown["job_id"]) == ("api", None)
    other = {"type": "CNAME", "host": "live", "value": TARGET, "ttl": 300}
    found = await browser.finish(domain=FRESH, monitor=True, dnsRecords=[RECORD, other])
    assert (found["monitor"]["status"], found["monitor"]["code"]) == ("failed", "already_enrolled")
