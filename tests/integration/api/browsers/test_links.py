"""What a sharing link can do, and what ends it: real requests, a monitor, and real zones."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.integration.api.browsers.parts import (
    EVIL,
    FRESH,
    LIVE,
    OWN,
    RECORD,
    Browser,
    open_link,
    power,
    powered,
    share,
    through_link,
)
from tests.integration.api.connecting import APEX, World
from tests.integration.api.partner import Partner


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
