"""What stands beside every answer: the request's id, the rate limit, why a token opens nothing."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import jwt
import pytest

from api.auth import TokenFault
from common.accounts import mint_key
from tests.captured_logs import capture_logs
from tests.integration.api.conftest import Service
from tests.integration.api.partner import Partner
from tests.integration.api.people import person


def forged(partner: Partner) -> str:
    return jwt.encode({"exp": 2**31}, "another secret of thirty-two characters", algorithm="HS256")


@pytest.mark.parametrize("fault", TokenFault)
async def test_401_says_what_is_wrong_with_the_token(service: Service, partner: Partner, fault: TokenFault) -> None:
    expired = await person(service, "ops@x.test")
    async with service.database.transaction() as connection:
        await connection.execute("update user_keys set expires_at = now()")
    token = {
        TokenFault.MISSING: "",
        TokenFault.UNSIGNED: forged(partner),
        TokenFault.EXPIRED: partner.token(lifetime=timedelta(hours=-1)),
        TokenFault.TOO_LONG: partner.token(lifetime=timedelta(hours=25)),
        TokenFault.NOT_YET: partner.token(nbf=2**31),
        TokenFault.KEY_UNKNOWN: mint_key(),
        TokenFault.KEY_EXPIRED: expired.key,
    }[fault]
    headers = {"applicationId": partner.id} | ({"Authorization": f"Bearer {token}"} if token else {})
    answer = await partner.call("GET", headers=headers)
    assert (answer.status, answer.message, answer.body["code"]) == (401, "Unauthorized", fault.value)
    challenge = answer.headers["WWW-Authenticate"]
    assert challenge.startswith('Bearer realm="Frontage"')
    assert ("invalid_token" in challenge) == (fault is not TokenFault.MISSING)


async def test_an_application_that_does_not_exist_looks_like_a_wrong_signature(partner: Partner) -> None:
    headers = {"applicationId": "app_none", "Authorization": f"Bearer {partner.token()}"}
    assert (await partner.call("GET", headers=headers)).body["code"] in ("token_unsigned", None)


async def test_each_answer_has_the_id_of_its_one_log_line(partner: Partner) -> None:
    with capture_logs() as logs:
        answers = [await partner.get(), await partner.get(size="none"), await partner.call("GET", "/nowhere")]
    lines = [line for line in logs if line["event"] == "request"]
    assert [line["request_id"] for line in lines] == [answer.headers["X-Request-Id"] for answer in answers]
    assert [line["status"] for line in lines] == [200, 400, 404]
    assert lines[0]["route"] == "/power"
    assert lines[0]["application"] == partner.id
    assert partner.token() not in str(lines)


async def test_the_rate_limit_counts_down(partner: Partner) -> None:
    def left(answer: Any) -> int:
        return int(answer.headers["RateLimit"].removeprefix('"application";r='))

    first, second = left(await partner.get()), left(await partner.get())
    assert second <= first < 2000
    assert (await partner.get()).headers["RateLimit-Policy"] == '"application";q=2000;w=10'


async def test_a_query_parameter_that_is_not_known_is_refused_with_those_that_are(partner: Partner) -> None:
    answer = await partner.get(pagesize="5")
    assert (answer.status, answer.message) == (400, "Invalid 'pagesize' parameter")
    assert "after, domain, metadata.key, page, rootDomain, search, size, sort, status" in answer.body["hint"]
    answer = await partner.call("POST", "/monitor/domains/batch?force=1", json={"domains": []})
    assert answer.message == "Missing domains in the request body."  # a write goes by its body
    assert (await partner.call("GET", "/monitor/status?x=1")).body["hint"] == "this call takes no query parameters"
    answer = await partner.call("DELETE", "/monitor/domains/customer.example/records?subdmain=shop", json=[])
    assert (answer.status, answer.message, answer.body["hint"]) == (
        400,
        "Invalid 'subdmain' parameter",
        "known here: subdomain",
    )
    assert (await partner.call("GET", "/healthz?x=1", headers={})).status == 200
