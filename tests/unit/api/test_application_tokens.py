"""Minting is unpredictable and of the promised form; web addresses given on the command line are parsed strictly."""

from __future__ import annotations

import base64
from datetime import UTC, datetime

import jwt
import pytest
import typer

from api.cli.application_options import application_url, webhook_url
from api.rules.application_tokens import mint_api_token, mint_client_secret, mint_service_auth, mint_webhook_secret


def test_secrets_differ_each_time_and_carry_256_bits() -> None:
    assert mint_client_secret() != mint_client_secret()
    assert mint_service_auth() != mint_service_auth()
    assert len(base64.b64decode(mint_webhook_secret().removeprefix("whsec_"), validate=True)) == 32


def test_token_names_the_application_and_ends_after_an_hour() -> None:
    now = datetime.now(UTC).replace(microsecond=0)
    claims = jwt.decode(mint_api_token("ab12", "s" * 32, now), "s" * 32, algorithms=["HS256"])
    assert claims["applicationId"] == "ab12"
    assert claims["exp"] - now.timestamp() == 3600


@pytest.mark.parametrize(
    "url", ["http://a.example", "https://a.example:8443/shop/", "http://[::1]:80/%2e", "HTTP://LOCALHOST:80", None]
)
def test_application_urles_are_kept_as_written(url: str | None) -> None:
    assert application_url(url) == url


@pytest.mark.parametrize(
    "url",
    [
        "", "a.example", "ftp://a.example", "http://", "https://:80/", "http://u@a.example", "http://u:p@a.example",
        "http://a.example/?q", "http://a.example/?", "http://a.example/#f", "http://a.example/ b", "http://a.example/é",
        "http://a.example:99999", "http://a.example:x", "http://a.example/\r\nHost: b", "http://[::1",
    ],
)  # fmt: skip
def test_other_application_urles_are_refused(url: str) -> None:
    with pytest.raises(typer.BadParameter, match=r"."):
        application_url(url)


def test_a_webhook_url_is_kept_as_deliveries_ask_it() -> None:
    assert webhook_url("https://Bücher.example/in?key=1") == "https://xn--bcher-kva.example/in?key=1"
    assert webhook_url(None) is None
    with pytest.raises(typer.BadParameter):
        webhook_url("https://h.example/#part")
