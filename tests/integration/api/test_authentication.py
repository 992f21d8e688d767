"""Authentication over HTTP: which requests are accepted, which are refused, and when that ends."""

from __future__ import annotations

import base64
from datetime import timedelta

import jwt
import pytest

from api.rules import application_tokens as applications
from common.db.application_secrets import client_secret_identity, rotate_client_secret
from tests.integration.api.conftest import Service
from tests.integration.api.partner import Partner

DAY = timedelta(hours=24)


async def rotate(service: Service, partner: Partner, keep_previous_for: timedelta) -> str:
    secret = applications.mint_client_secret()
    sealed = service.keyring.seal(secret.encode(), client_secret_identity(partner.id))
    async with service.database.transaction() as connection:
        assert await rotate_client_secret(connection, partner.id, sealed, keep_previous_for)
    return secret


async def status(partner: Partner, **headers: str) -> int:
    answer = await partner.call("GET", headers=headers)
    if answer.status == 401:
        assert answer.message == "Unauthorized"
    if answer.status == 403:
        assert answer.message == "Forbidden"
    return answer.status


async def test_a_token_of_the_partners_own_making_opens(partner: Partner) -> None:
    bare = jwt.encode({"exp": 2**31}, partner.secret)

    assert await status(partner, **partner.headers) == 200
    assert await status(partner, applicationId=partner.id, Authorization=f"bearer {partner.token()}") == 200
    assert await status(partner, applicationId=partner.id, Authorization=f"Bearer {bare}") == 401  # years ahead


async def test_bad_credentials_are_unauthorized(partner: Partner) -> None:
    token = partner.token()
    header, payload, signature = token.split(".")
    unsigned = jwt.encode({"exp": 1}, "", algorithm="none").split(".")[0]
    nested = base64.urlsafe_b64encode(b"[" * 4000).rstrip(b"=").decode()
    bad_tokens = {
        "not a token": "x",
        "empty": "",
        "another secret": jwt.encode({"exp": 2**31}, "s" * 40),
        "no algorithm": f"{unsigned}.{payload}.",
        "another algorithm": jwt.encode({"exp": 2**31}, partner.secret, algorithm="HS384"),
        "cut": f"{header}.{payload}",
        "changed": f"{header}.{payload}.{signature[::-1]}",
        "nested header": f"{nested}.{payload}.{signature}",
        "nested payload": f"{header}.{nested}.{signature}",
        "expired": partner.token(lifetime=timedelta(seconds=-30)),
        "too far ahead": partner.token(lifetime=DAY + timedelta(minutes=1)),
        "never expires": jwt.encode({"applicationId": partner.id}, partner.secret),
        "expires in words": jwt.encode({"exp": "tomorrow"}, partner.secret),
        "not yet": partner.token(nbf=2**31),
    }

    for what, bad in bad_tokens.items():
        assert await status(partner, applicationId=partner.id, Authorization=f"Bearer {bad}") == 401, what
    assert await status(partner, applicationId=partner.id, Authorization=token) == 401
    assert await status(partner, applicationId=partner.id, Authorization="Basic YTpi") == 401
    assert await status(partner, applicationId=partner.id) == 401
    assert await status(partner, Authorization=f"Bearer {token}") == 401
    assert await status(partner, applicationId="nobody", Authorization=f"Bearer {token}") == 401
    assert await status(partner, applicationId="é'", Authorization=f"Bearer {token}") == 401
    assert await status(partner) == 401


async def test_small_differences_of_clocks_are_forgiven(partner: Partner) -> None:
    for lifetime in (timedelta(seconds=-2), DAY):
        token = partner.token(lifetime=lifetime)
        assert await status(partner, applicationId=partner.id, Authorization=f"Bearer {token}") == 200


async def test_a_good_token_at_another_applications_door_is_forbidden(service: Service) -> None:
    one, other = await service.partner(), await service.partner()

    async def at_others_door(token: str) -> int:
        return await status(one, applicationId=other.id, Authorization=f"Bearer {token}")

    assert await at_others_door(one.token()) == 403
    assert await at_others_door(jwt.encode({"exp": 2**31}, one.secret)) == 401  # does not say whose it is
    assert await at_others_door(one.token(lifetime=timedelta(hours=-1))) == 401
    assert await at_others_door(one.token(applicationId="nobody")) == 401
    assert await at_others_door(one.token(applicationId={"a": 1})) == 401
    assert await at_others_door(other.token(applicationId=one.id)) == 200  # only `exp` is required


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE"])
async def test_authentication_comes_before_everything_else(service: Service, method: str) -> None:
    one, other = await service.partner(), await service.partner()

    answer = await one.call(method, headers={}, data=b"{not json" if method != "GET" else None)
    assert (answer.status, answer.message) == (401, "Unauthorized")

    headers = {"applicationId": other.id, "Authorization": f"Bearer {one.token()}"}
    answer = await one.call(method, headers=headers, data=b"{not json" if method != "GET" else None)
    assert (answer.status, answer.message) == (403, "Forbidden")


async def test_a_rotation_ends_old_tokens_at_once_or_after_its_grace(service: Service, partner: Partner) -> None:
    old = partner.headers

    partner.secret = await rotate(service, partner, keep_previous_for=timedelta(hours=1))
    assert await status(partner, **old) == 200
    assert await status(partner, **partner.headers) == 200

    partner.secret = await rotate(service, partner, keep_previous_for=timedelta(0))
    assert await status(partner, **old) == 401
    assert await status(partner, **partner.headers) == 200


# POST /token ----------------------------------------------------------------------------------------------


async def test_a_secret_is_exchanged_for_a_token(partner: Partner) -> None:
    body = {"applicationId": partner.id, "secret": partner.secret, "more": [1]}
    answer = await partner.call("POST", "/token", headers={}, json=body)

    assert answer.status == 200
    assert set(answer.body) == {"auth_token"}
    token = answer.body["auth_token"]
    claims = jwt.decode(token, partner.secret, algorithms=["HS256"])
    assert claims["exp"] - claims["iat"] == 3600
    assert await status(partner, applicationId=partner.id, Authorization=f"Bearer {token}") == 200


async def test_a_token_of_the_previous_secret_ends_with_it(service: Service, partner: Partner) -> None:
    body = {"applicationId": partner.id, "secret": partner.secret}
    await rotate(service, partner, keep_previous_for=timedelta(hours=1))
    token = (await partner.call("POST", "/token", headers={}, json=body)).body["auth_token"]
    assert await status(partner, applicationId=partner.id, Authorization=f"Bearer {token}") == 200

    await rotate(service, partner, keep_previous_for=timedelta(0))

    assert (await partner.call("POST", "/token", headers={}, json=body)).status == 401
    assert await status(partner, applicationId=partner.id, Authorization=f"Bearer {token}") == 401


async def test_a_wrong_secret_gets_no_token(partner: Partner) -> None:
    for application_id, secret in ((partner.id, "wrong"), ("nobody", partner.secret), ("\x00", ""), (partner.id, "é")):
        body = {"applicationId": application_id, "secret": secret}
        answer = await partner.call("POST", "/token", headers={}, json=body)
        assert (answer.status, answer.message) == (401, "Unauthorized")


async def test_a_bad_token_request_is_400(partner: Partner) -> None:
    for body, message in (
        (b"", "Invalid request body"),
        (b"[]", "Invalid request body"),
        (b"{}", "Invalid 'applicationId' parameter"),
        (b'{"applicationId": "a"}', "Invalid 'secret' parameter"),
        (b'{"applicationId": 1, "secret": "a"}', "Invalid 'applicationId' parameter"),
    ):
        answer = await partner.call("POST", "/token", headers={"Content-Type": "application/json"}, data=body)
        assert (answer.status, answer.message) == (400, message)
