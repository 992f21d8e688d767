"""Webhook signatures, checked by the library for them and by what the handbook tells receivers to check them with."""

from __future__ import annotations

import base64
import json
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from api.rules.application_tokens import mint_webhook_secret
from monitor.webhooks.signing import signed_headers
from tests import node

PAGE = Path(__file__).parents[3] / "api/handbook/webhooks.md"
SECRET, OTHER = mint_webhook_secret(), mint_webhook_secret()
BODY = '{"id":"evt_1","domain":"bücher.example"}'.encode()
Headers = dict[str, str]
Verifier = Callable[[Headers, bytes, str], bool]


def snippet(language: str) -> str:
    marked = rf"<!-- webhook verifier: {language} -->\n```\w+\n(.*?)```"
    printed = re.search(marked, PAGE.read_text("utf-8"), re.DOTALL)
    assert printed is not None
    return printed[1]


def by_library(headers: Headers, body: bytes, secret: str) -> bool:
    try:
        Webhook(secret).verify(body, headers)
    except (WebhookVerificationError, ValueError):
        return False
    return True


def in_python(headers: Headers, body: bytes, secret: str) -> bool:
    namespace: dict[str, Any] = {}
    exec(snippet("python"), namespace)
    return bool(namespace["is_ours"](headers, body, secret))


def in_node(headers: Headers, body: bytes, secret: str) -> bool:
    received = f"Buffer.from({json.dumps(base64.b64encode(body).decode())}, 'base64')"
    given = f"{json.dumps(headers)}, {received}, {json.dumps(secret)}"
    found = node.evaluate(f"{snippet('node')}\nreturn isOurs({given})")
    return {True: True, False: False}[found]


def signed(*secrets: str, body: bytes = BODY, ago: timedelta = timedelta()) -> Headers:
    return signed_headers("evt_1", body, secrets, datetime.now(UTC) - ago)


@pytest.mark.parametrize("verify", [by_library, in_python, in_node])
class TestVerifiers:
    def test_accept_what_was_signed_with_either_secret(self, verify: Verifier) -> None:
        assert verify(signed(SECRET), BODY, SECRET)
        assert verify(signed(OTHER, SECRET), BODY, SECRET)
        assert verify(signed(SECRET, OTHER), BODY, SECRET)

    def test_refuse_another_body_id_or_secret(self, verify: Verifier) -> None:
        headers = signed(SECRET)
        assert not verify(headers, BODY + b" ", SECRET)
        assert not verify(headers | {"webhook-id": "evt_2"}, BODY, SECRET)
        assert not verify(headers, BODY, OTHER)

    def test_refuse_another_time(self, verify: Verifier) -> None:
        old = signed(SECRET, ago=timedelta(seconds=400))
        assert not verify(old, BODY, SECRET)
        assert not verify(signed(SECRET, ago=timedelta(seconds=-400)), BODY, SECRET)
        assert not verify(old | {"webhook-timestamp": signed(SECRET)["webhook-timestamp"]}, BODY, SECRET)

    @pytest.mark.parametrize("value", ["", "v1,", "v1,AAAA", "v1,ü", "v2,AAAA"])
    def test_refuse_what_is_no_signature(self, verify: Verifier, value: str) -> None:
        assert not verify(signed(SECRET) | {"webhook-signature": value or "v1,"}, BODY, SECRET)

    def test_refuse_without_headers(self, verify: Verifier) -> None:
        assert not verify({}, BODY, SECRET)
