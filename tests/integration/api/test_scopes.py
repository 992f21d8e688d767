"""Tokens for browsers: what a token with a scope opens, and which endpoints answer pages of other origins."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

import jwt
import pytest

from tests.integration.api.conftest import Service
from tests.integration.api.partner import Answer, Partner

APEX = "shop.test"


async def mint(partner: Partner, **fields: Any) -> Answer:
    body = {"applicationId": partner.id, "secret": partner.secret, **fields}
    return await partner.call("POST", "/token", json=body, headers={})


def bearer(partner: Partner, token: str) -> dict[str, str]:
    return {"applicationId": partner.id, "Authorization": f"Bearer {token}"}


def point(service: Service) -> None:
    """The zone is there; the lab's name server stands in for its servers."""
    service.zone.add(APEX, "A", "192.0.2.1")


async def test_a_connect_token_opens_the_domain_check_and_nothing_else(service: Service, partner: Partner) -> None:
    point(service)
    minted = (await mint(partner, scope="connect")).body["auth_token"]

    for token in (minted, partner.token(scope="connect")):
        headers = bearer(partner, token)
        answer = await partner.call("POST", "/checkdomain", json={"domain": APEX}, headers=headers)
        assert answer.status == 200
        for method, path in (
            ("GET", "/power"),
            ("DELETE", "/power"),
            ("POST", "/ssl"),
            ("GET", "/monitor/domains"),
            ("POST", "/webhooks/test"),
            ("GET", f"/domains/www.{APEX}/diagnosis"),
        ):
            refused = await partner.call(method, path, json={}, headers=headers)
            assert (refused.status, refused.message, refused.body["code"]) == (403, "Forbidden", "scope"), path


@pytest.mark.parametrize("scope", ["", "Connect", "connect all", ["connect"], 1, False])
async def test_an_unknown_scope_opens_nothing(partner: Partner, scope: object) -> None:
    headers = bearer(partner, partner.token(scope=scope))

    assert (await partner.call("GET", "/power", headers=headers)).status == 403
    assert (await partner.call("POST", "/checkdomain", json={"domain": APEX}, headers=headers)).status == 403


async def test_a_token_for_one_domain_is_refused_for_another(service: Service, partner: Partner) -> None:
    point(service)
    service.zone.add("other.test", "A", "192.0.2.1")
    minted = (await mint(partner, scope="connect", domain="Shop.test.", userId="u1")).body["auth_token"]

    for token in (minted, partner.token(scope="connect", domain=APEX)):
        for path, fields in (("/checkdomain", {}), ("/checkrecords", {"dnsRecords": [A_RECORD]})):
            own = await partner.call("POST", path, json={"domain": APEX, **fields}, headers=bearer(partner, token))
            assert own.status == 200
            foreign = await partner.call(
                "POST", path, json={"domain": "other.test", **fields}, headers=bearer(partner, token)
            )
            assert (foreign.status, foreign.body["code"]) == (403, "domain")


A_RECORD = {"type": "A", "host": "@", "value": "192.0.2.1", "ttl": 300}


async def test_a_connect_token_says_what_it_is_for_and_ends_within_the_hour(partner: Partner) -> None:
    answer = await mint(partner, scope="connect", domain=APEX, userId="u1", expiresIn=60)

    claims = jwt.decode(answer.body["auth_token"], partner.secret, algorithms=["HS256"])
    assert {name: claims[name] for name in ("applicationId", "scope", "domain", "userId")} == {
        "applicationId": partner.id,
        "scope": "connect",
        "domain": APEX,
        "userId": "u1",
    }
    assert claims["exp"] - datetime.now(UTC).timestamp() <= 60
    longest = jwt.decode(
        (await mint(partner, scope="connect")).body["auth_token"], partner.secret, algorithms=["HS256"]
    )
    assert longest["exp"] - longest["iat"] == 3600


@pytest.mark.parametrize(
    ("fields", "named"),
    [
        ({"scope": "admin"}, "scope"),
        ({"scope": 1}, "scope"),
        ({"domain": APEX}, "domain"),  # a full token has no such bound
        ({"scope": "connect", "domain": f"www.{APEX}"}, "domain"),
        ({"scope": "connect", "expiresIn": 3601}, "expiresIn"),
        ({"scope": "connect", "expiresIn": 0}, "expiresIn"),
        ({"scope": "connect", "userId": ""}, "userId"),
    ],
)
async def test_a_token_that_cannot_be_as_asked_is_refused(service: Service, fields: Any, named: str) -> None:
    answer = await mint(await service.partner(), **fields)

    assert (answer.status, answer.message) == (400, f"Invalid '{named}' parameter")


# Other origins --------------------------------------------------------------------------------------------------

PREFLIGHT = {
    "Origin": "https://partner.example",
    "Access-Control-Request-Method": "POST",
    "Access-Control-Request-Headers": "applicationid,authorization,content-type",
}


@pytest.mark.parametrize("path", ["/checkdomain", "/checkrecords"])
async def test_a_preflight_request_is_answered_without_a_token_and_without_credentials(
    service: Service, path: str
) -> None:
    async with service.session.options(service.url + path, headers=PREFLIGHT) as response:
        assert response.status == 204
        allowed = {name.lower() for name in response.headers["Access-Control-Allow-Headers"].split(", ")}
        assert allowed == {"applicationid", "authorization", "content-type"}
        assert response.headers["Access-Control-Allow-Origin"] == "*"
        assert response.headers["Access-Control-Allow-Methods"] == "POST"
        assert "Access-Control-Allow-Credentials" not in response.headers


async def test_answers_and_errors_of_browser_endpoints_can_be_read_by_pages(service: Service, partner: Partner) -> None:
    point(service)
    origin = {"Origin": "https://partner.example"}

    good = await partner.call("POST", "/checkdomain", json={"domain": APEX}, headers=partner.headers | origin)
    unauthorized = await partner.call("POST", "/checkdomain", json={"domain": APEX}, headers=origin)
    bad = await partner.call("POST", "/checkrecords", json={}, headers=partner.headers | origin)

    assert [answer.status for answer in (good, unauthorized, bad)] == [200, 401, 400]
    for answer in (good, unauthorized, bad):
        assert answer.headers["Access-Control-Allow-Origin"] == "*"
        assert "Access-Control-Allow-Credentials" not in answer.headers


@pytest.mark.parametrize("path", ["/power", "/ssl", "/monitor/domains", "/token", "/webhooks/test", "/nothing"])
async def test_no_other_endpoint_answers_pages_of_other_origins(service: Service, path: str) -> None:
    async with service.session.options(service.url + path, headers=PREFLIGHT) as response:
        assert response.status in (401, 404, 405)
        assert not [name for name in response.headers if name.lower().startswith("access-control-")]
    async with service.session.post(service.url + path, headers={"Origin": "https://partner.example"}) as response:
        assert not [name for name in response.headers if name.lower().startswith("access-control-")]
