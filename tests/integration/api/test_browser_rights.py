"""What a browser's token and a sharing link can do, and what ends it: real requests, a monitor, and real zones."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, cast

import pytest

from api.services.application_secrets import rotate_client_secret
from bench.lab.knot import Knot, find_knot
from common.db.applications import update_application
from tests.integration.api.connecting import APEX, KEY, PARENT, World, open_world, zone_file
from tests.integration.api.partner import Answer, Partner
from tests.waiting import until

LIVE, FRESH = f"live.{APEX}", f"fresh.{APEX}"
OWN, EVIL = "https://app.example.com/shop", "http://203.0.113.66"
TARGET = "target-1.partner.test"
RECORD: dict[str, Any] = {"type": "CNAME", "host": "{SUBDOMAIN}", "value": "{CNAME_TARGET}", "ttl": 300}
ZONE = (
    (APEX, "NS", f"ns.{APEX}."),
    (f"ns.{APEX}", "A", "127.0.0.1"),
    (LIVE, "CNAME", f"{TARGET}."),
    (FRESH, "CNAME", f"{TARGET}."),
)


def power(url: str, **fields: Any) -> dict[str, Any]:
    return {"power": True, "dnsRecords": [RECORD | {"applicationUrl": url, **fields}]}


def secure(**fields: Any) -> dict[str, Any]:
    return {"dnsRecords": [RECORD | {"ssl": True, **fields}]}


@dataclass(slots=True)
class Browser:
    """A page that holds one token."""

    partner: Partner
    token: str

    @property
    def headers(self) -> dict[str, str]:
        return {"applicationId": self.partner.id, "Authorization": f"Bearer {self.token}"}

    async def call(self, method: str, path: str, **body: Any) -> Answer:
        options: dict[str, Any] = {} if method == "GET" else {"json": body}
        return await self.partner.call(method, path, headers=self.headers, **options)

    async def begin(self, **body: Any) -> Answer:
        return await self.call("POST", "/connect/flows", **body)

    async def until(self, flow_id: str, *states: str) -> dict[str, Any]:
        seen: dict[str, Any] = {}

        async def is_there() -> bool:
            answer = await self.partner.call("GET", f"/connect/flows/{flow_id}")
            seen.update(answer.body)
            return answer.body["state"] in states

        await until(is_there, f"a flow that is {states}")
        return seen

    async def finish(self, **body: Any) -> dict[str, Any]:
        """Connect a name whose records are live already; returns the flow's enrolments by product."""
        begun = await self.begin(**body)
        assert begun.status == 201, begun.body
        return await self.finish_begun(begun.body["id"])

    async def finish_begun(self, flow_id: str) -> dict[str, Any]:
        while (planned := await self.until(flow_id, "planned", "unchecked"))["state"] == "unchecked":
            await self.call("POST", f"/connect/flows/{flow_id}/plan")
        digest = planned["plan"]["digest"]
        applied = await self.call("POST", f"/connect/flows/{flow_id}/apply", way="manual", digest=digest)
        assert applied.status == 200, applied.body
        finished = await self.until(flow_id, "finished", "closed")
        return {each["product"]: each for each in finished["enrolments"]} | {"error": finished["error"]}


async def register(partner: Partner, config: dict[str, Any], **fields: Any) -> str:
    answer = await partner.call("POST", "/connect/configurations", json={"config": config, **fields})
    assert answer.status == 201, answer.body
    configuration_id: str = answer.body["id"]
    return configuration_id


async def share(partner: Partner, config: dict[str, Any], **fields: Any) -> str:
    answer = await partner.call("POST", "/sharing/connect", json={"config": config, **fields})
    assert answer.status == 201, answer.body
    share_id: str = answer.body["id"]
    return share_id


async def open_link(partner: Partner, share_id: str) -> Answer:
    return await partner.call("GET", f"/share/{share_id}", headers={"Accept": "application/json"})


async def through_link(partner: Partner, share_id: str) -> Browser:
    return Browser(partner, (await open_link(partner, share_id)).body["token"])


async def powered(partner: Partner) -> dict[str, str]:
    items = (await partner.call("GET", "/power", params={"page": 0})).body["items"]
    return {each["domain"]: each["applicationUrl"] for each in items}


@pytest.fixture
async def world(dsn: str, tmp_path: Path, probe_port: int) -> AsyncIterator[World]:
    if find_knot() is None:
        pytest.skip("knot is not installed")
    zones = {"test": zone_file(PARENT), APEX: zone_file(ZONE)}
    async with (
        Knot.serve(zones, keys={KEY["key_name"]: KEY["key_secret"]}) as knot,
        open_world(dsn, tmp_path, probe_port, knot.address) as world,
    ):
        yield world


@pytest.fixture
async def partner(world: World) -> Partner:
    """With an origin of its own, and a customer whose domain is live."""
    async with world.service.database.transaction() as connection:
        await update_application(connection, world.partner.id, application_url=OWN)
    answer = await world.partner.post(LIVE, url=f"{OWN}/of-the-customer")
    assert answer.status == 200, answer.body
    return world.partner


@pytest.fixture
def browser(partner: Partner) -> Browser:
    return Browser(partner, partner.token(scope="connect", userId="user-7"))


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


# Sharing links -----------------------------------------------------------------------------------------------------


async def test_a_link_without_a_domain_has_its_own_origin_and_changes_nothing_that_is_enrolled(
    partner: Partner,
) -> None:
    link = await through_link(partner, await share(partner, power("https://other.example/x")))
    found = await link.finish(domain=FRESH)
    assert found["power"]["status"] == "success", found
    assert (await powered(partner))[FRESH] == "https://other.example/x"
    assert (await link.finish(domain=LIVE))["power"]["code"] == "already_enrolled"
    refused = await link.begin(domain=FRESH, **power(EVIL))
    assert (refused.status, refused.body["code"]) == (403, "outside_configuration")


async def test_the_token_of_a_link_opens_the_links_flows_alone(browser: Browser, partner: Partner) -> None:
    first = await share(partner, power(OWN))
    second = await share(partner, power("https://other.example/x") | {"prefilledDomain": FRESH})
    link = await through_link(partner, first)
    theirs = await browser.begin(domain=FRESH, **power(OWN))
    hidden = await link.call("GET", f"/connect/flows/{theirs.body['id']}")
    assert (hidden.status, hidden.body["code"]) == (404, "flow_not_found")
    refused = await link.begin(domain=FRESH, share=second)
    assert (refused.status, refused.body["code"]) == (403, "link")
    elsewhere = await browser.begin(domain="other.test", share=second)
    assert (elsewhere.status, elsewhere.body["code"]) == (403, "domain")
    elsewhere = await browser.begin(domain="other.test", share=second, prefilledDomain="other.test")
    assert elsewhere.body["code"] == "outside_configuration"


async def test_a_link_of_several_domains_opens_no_other(browser: Browser, partner: Partner) -> None:
    several = power("https://other.example/x") | {"prefilledDomain": [f"shop.{APEX}", "second.test"]}
    link = await through_link(partner, await share(partner, several))
    refused = await link.begin(domain="other.test")
    assert (refused.status, refused.body["code"]) == (403, "domain")
    chosen = await link.begin(domain=FRESH)
    assert chosen.status == 201, chosen.body
    path = f"/connect/flows/{(await link.begin()).body['id']}/domain"
    refused = await link.call("POST", path, domain="other.test")
    assert (refused.status, refused.body["code"]) == (403, "domain")
    assert (await link.call("POST", path, domain="second.test")).status == 200


@pytest.mark.parametrize("user_id", ["", "\0", "\ud800", "x" * 1025, ["user-7"], {"id": 7}, True, 7.5])
async def test_a_token_for_a_user_that_cannot_be_kept_opens_nothing(partner: Partner, user_id: Any) -> None:
    """It would open the flows of all users, and the page could name any."""
    refused = await Browser(partner, partner.token(scope="connect", userId=user_id)).begin(**power(OWN))
    assert (refused.status, refused.body["code"]) == (403, "user")
    full = partner.headers | {"Authorization": f"Bearer {partner.token(userId=user_id)}"}
    assert (await partner.call("POST", "/connect/flows", json=power(OWN), headers=full)).status == 201


async def test_a_token_for_a_user_that_is_a_number_is_that_users(partner: Partner) -> None:
    seventh = Browser(partner, partner.token(scope="connect", userId=7))
    begun = await seventh.begin(**power(OWN), userId="user-8")
    assert begun.body["user_id"] == "7"
    path = f"/connect/flows/{begun.body['id']}"
    assert (await Browser(partner, partner.token(scope="connect", userId="7")).call("GET", path)).status == 200
    assert (await Browser(partner, partner.token(scope="connect", userId=8)).call("GET", path)).status == 404


async def test_a_key_that_makes_requests_idempotent_is_a_links_and_a_configurations_own(partner: Partner) -> None:
    config = (await partner.call("POST", "/connect/configurations", json={"config": power(OWN)})).body["id"]
    first, second = [await through_link(partner, await share(partner, power(OWN))) for _ in range(2)]
    by_config = Browser(partner, partner.token(scope="connect", configurationId=config))
    ids = set()
    for each in (first, second, by_config):
        headers = each.headers | {"Idempotency-Key": "one"}
        answer = await partner.call("POST", "/connect/flows", json={}, headers=headers)
        assert (answer.status, "Idempotent-Replayed" in answer.headers) == (201, False)
        ids.add(answer.body["id"])
    assert len(ids) == 3


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("whiteLabel", {"copy": {"title": "\0"}}),
        ("whiteLabel", {"\0": 1}),
        ("whiteLabel", {"logo": json.loads("[" * 900 + "]" * 900)}),
        ("dnsRecords", [RECORD | {"note": ["\0"]}]),
        ("dnsRecords", [RECORD | {"applicationUrl": OWN, "powerRootPathAccess": ["/\0"]}]),
    ],
)
async def test_what_no_database_keeps_is_refused(browser: Browser, partner: Partner, key: str, value: Any) -> None:
    given = power(OWN) | {key: value}
    refused = await browser.begin(**given)
    assert (refused.status, refused.message) == (400, f"Invalid '{key}' parameter")
    for path in ("/sharing/connect", "/connect/configurations"):
        assert (await partner.call("POST", path, json={"config": given})).status == 400


async def derived(browser: Browser, days: int, **body: Any) -> str:
    begun = await browser.begin(**body)
    assert begun.status == 201, begun.body
    answer = await browser.call("POST", f"/connect/flows/{begun.body['id']}/share", expiresInDays=days)
    assert answer.status == 201, answer.body
    share_id: str = answer.body["id"]
    return share_id


async def test_a_link_made_by_a_links_flow_ends_and_is_revoked_with_it(partner: Partner) -> None:
    first = await share(partner, power("https://other.example/x"), expiresInDays=1)
    ends = (await open_link(partner, first)).body["expires_at"]
    chain = [first]
    for _ in range(4):
        chain.append(await derived(await through_link(partner, chain[-1]), 30, domain=FRESH))
    opened = [await open_link(partner, each) for each in chain]
    assert {each.body["expires_at"] for each in opened} == {ends}
    tokens = [Browser(partner, each.body["token"]) for each in opened]
    flows = [(await each.begin(domain=FRESH)).body["id"] for each in tokens]

    assert (await partner.call("DELETE", f"/sharing/connect/{first}")).status == 200

    assert {(await open_link(partner, each)).status for each in chain} == {404}
    for token, flow_id in zip(tokens, flows, strict=True):
        refused = await token.call("GET", f"/connect/flows/{flow_id}")
        assert (refused.status, refused.body["code"]) == (403, "link_ended"), "at once, not at the token's end"
        assert (await token.until(flow_id, "closed"))["error"]["code"] == "link_revoked"


async def test_a_revoked_link_ends_a_flow_that_waits_for_its_records(world: World, partner: Partner) -> None:
    share_id = await share(partner, power(OWN))
    link = await through_link(partner, share_id)
    begun = await link.begin(domain=f"absent.{APEX}")
    planned = await link.until(begun.body["id"], "planned")
    path = f"/connect/flows/{begun.body['id']}"
    await link.call("POST", f"{path}/apply", way="manual", digest=planned["plan"]["digest"])
    await partner.call("DELETE", f"/sharing/connect/{share_id}")
    assert (await link.until(begun.body["id"], "closed"))["error"]["code"] == "link_revoked"
    check = await partner.call("POST", f"{path}/check", json={})
    assert (check.status, check.body["code"]) == (409, "flow_closed")


async def test_a_links_token_ends_with_the_link(world: World, partner: Partner) -> None:
    import jwt

    share_id = await share(partner, power(OWN), expiresInDays=1)
    async with world.service.database.transaction() as connection:
        await connection.execute("update shares set expires_at = now() + interval '90 seconds' where id = $1", share_id)
    token = (await open_link(partner, share_id)).body["token"]
    claims = jwt.decode(token, partner.secret, algorithms=["HS256"])
    assert claims["exp"] - claims["iat"] <= 90


# Rotations ---------------------------------------------------------------------------------------------------------


async def rotate(world: World, partner: Partner, *, keeps_links: bool = False, ends_old: bool = False) -> None:
    async with world.service.database.transaction() as connection:
        secret = await rotate_client_secret(connection, world.service.keyring, partner.id, keeps_links=keeps_links)
        assert secret is not None
        partner.secret = secret
        if ends_old:
            await connection.execute("update applications set previous_expires_at = now() where id = $1", partner.id)


async def made_by_tokens(partner: Partner) -> tuple[str, str, str, str]:
    """A link, one derived from it, a configuration, and a waiting flow of a browser."""
    link = await share(partner, power(OWN))
    child = await derived(await through_link(partner, link), 30, domain=FRESH)
    configuration_id = await register(partner, power("https://other.example/x"))
    begun = await Browser(partner, partner.token(scope="connect")).begin(domain=FRESH, **power(OWN))
    return link, child, configuration_id, begun.body["id"]


async def test_a_rotation_ends_what_tokens_of_the_old_secret_made_once_that_secret_ends(
    world: World, partner: Partner
) -> None:
    link, child, configuration_id, flow_id = await made_by_tokens(partner)
    await rotate(world, partner)
    assert [(await open_link(partner, each)).status for each in (link, child)] == [200, 200], "for 24 hours"

    await rotate(world, partner)

    assert [(await open_link(partner, each)).status for each in (link, child)] == [404, 404]
    browser = Browser(partner, partner.token(scope="connect"))
    gone = await browser.begin(domain=FRESH, configurationId=configuration_id)
    assert (gone.status, gone.body["code"]) == (404, "configuration_not_found")
    for method, action in (("GET", ""), ("POST", "/plan"), ("POST", "/share")):
        refused = await browser.call(method, f"/connect/flows/{flow_id}{action}")
        assert (refused.status, refused.body["code"]) == (409, "secret_ended")
    assert (await partner.call("GET", "/sharing/connect")).body["links"] == []
    assert await register(partner, power("https://other.example/x")) == configuration_id, "registered again, it is back"
    assert (await browser.begin(domain=FRESH, configurationId=configuration_id)).status == 201


async def test_what_the_old_secret_made_in_its_last_hours_ends_with_it(world: World, partner: Partner) -> None:
    old = partner.secret
    await rotate(world, partner)
    new, partner.secret = partner.secret, old
    link, child, _, flow_id = await made_by_tokens(partner)
    partner.secret = new
    async with world.service.database.transaction() as connection:
        await connection.execute("update applications set previous_expires_at = now()")
    assert [(await open_link(partner, each)).status for each in (link, child)] == [404, 404]
    refused = await Browser(partner, partner.token(scope="connect")).call("GET", f"/connect/flows/{flow_id}")
    assert refused.body["code"] == "secret_ended"


async def test_a_rotation_keeps_them_on_purpose(world: World, partner: Partner) -> None:
    link, child, configuration_id, flow_id = await made_by_tokens(partner)
    await rotate(world, partner, keeps_links=True, ends_old=True)
    assert [(await open_link(partner, each)).status for each in (link, child)] == [200, 200]
    browser = Browser(partner, partner.token(scope="connect"))
    assert (await browser.begin(domain=FRESH, configurationId=configuration_id)).status == 201
    assert (await browser.finish_begun(flow_id))["power"]["status"] == "success"


async def test_a_removed_configuration_ends_its_links_and_flows(partner: Partner) -> None:
    configuration_id = await register(partner, power("https://other.example/x"))
    browser = Browser(partner, partner.token(scope="connect", configurationId=configuration_id))
    child = await derived(browser, 30, domain=FRESH)
    begun = await browser.begin(domain=FRESH)
    await browser.until(begun.body["id"], "planned")

    assert (await partner.call("DELETE", f"/connect/configurations/{configuration_id}")).status == 200

    assert (await open_link(partner, child)).status == 404
    assert (await browser.begin(domain=FRESH)).body["code"] == "configuration_not_found"
    assert (await browser.until(begun.body["id"], "closed"))["error"]["code"] == "configuration_removed"
    assert FRESH not in await powered(partner)


async def test_flows_from_before_the_bound_enrol_no_origin_of_a_browsers(
    world: World, browser: Browser, partner: Partner
) -> None:
    """A row that an older version wrote: the monitor asks again whose value it is."""
    begun = await browser.begin(domain=FRESH, **power(OWN))
    await browser.until(begun.body["id"], "planned")
    async with world.service.database.transaction() as connection:
        await connection.execute(
            "update connect_flows set requested = replace(requested::text, $1, $2)::jsonb", OWN, EVIL
        )
    found = await browser.finish_begun(begun.body["id"])
    assert (found["power"]["status"], found["power"]["code"]) == ("failed", "outside_configuration")
    assert FRESH not in await powered(partner)
