"""The request signature, checked by what the handbook tells origins to check it with."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from common import signatures
from tests import node

PAGE = Path(__file__).parents[3] / "api/handbook/origins.md"
KEY, OTHER = signatures.mint_key(), signatures.mint_key()
DOMAIN, TARGET = "shop.example.com", "/app/x%20y?a=1&b=%2F"
Verifier = Callable[..., bool]


def snippet(language: str) -> str:
    printed = re.search(rf"<!-- verifier: {language} -->\n```\w+\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert printed is not None
    return printed[1]


def in_python(value: str | None, method: str, domain: str, target: str, key: str) -> bool:
    namespace: dict[str, Any] = {}
    exec(snippet("python"), namespace)
    headers = {"x-service-forwarded-host": domain} | ({"X-Service-Signature": value} if value is not None else {})
    return bool(namespace["came_through_us"](headers, method, target, key))


def in_node(value: str | None, method: str, domain: str, target: str, key: str) -> bool:
    headers = {"x-service-forwarded-host": domain} | ({"x-service-signature": value} if value is not None else {})
    request = json.dumps({"headers": headers, "method": method, "url": target})
    found = node.evaluate(f"{snippet('node')}\nreturn cameThroughUs({request}, {json.dumps(key)})")
    return {True: True, False: False}[found]


def signed(*keys: str, at: float | None = None) -> str:
    moment = int(time.time() if at is None else at)
    return signatures.sign(
        [key.encode() for key in keys],
        at=moment,
        method=b"GET",
        domain=DOMAIN.encode(),
        target=TARGET.encode(),
    ).decode()


@pytest.mark.parametrize("verify", [in_python, in_node])
class TestReadmesVerifiers:
    def test_accept_what_was_signed_with_either_key(self, verify: Verifier) -> None:
        assert verify(signed(KEY), "GET", DOMAIN, TARGET, KEY)
        assert verify(signed(OTHER, KEY), "GET", DOMAIN, TARGET, KEY)
        assert verify(signed(KEY, OTHER), "GET", DOMAIN, TARGET, KEY)

    def test_refuse_another_request(self, verify: Verifier) -> None:
        value = signed(KEY)
        assert not verify(value, "POST", DOMAIN, TARGET, KEY)
        assert not verify(value, "GET", "other.example.com", TARGET, KEY)
        assert not verify(value, "GET", DOMAIN, TARGET + "&c", KEY)
        assert not verify(value, "GET", DOMAIN, TARGET, OTHER)

    def test_refuse_another_time(self, verify: Verifier) -> None:
        old = signed(KEY, at=time.time() - 400)
        assert not verify(old, "GET", DOMAIN, TARGET, KEY)
        assert not verify(signed(KEY, at=time.time() + 400), "GET", DOMAIN, TARGET, KEY)
        fresh = f"t={int(time.time())},{old.partition(',')[2]}"
        assert not verify(fresh, "GET", DOMAIN, TARGET, KEY)

    @pytest.mark.parametrize("value", [None, "", "v1=", "t=,v1=", "t=1e9,v1=00", "t,v1", "t=-1,v1=ü", ",,=,"])
    def test_refuse_what_is_no_signature(self, verify: Verifier, value: str | None) -> None:
        assert not verify(value, "GET", DOMAIN, TARGET, KEY)

    def test_refuse_odd_values_at_the_right_time(self, verify: Verifier) -> None:
        for value in ("", "v1", "v1=", "v1=ü", "v1=zz", "v2=" + signed(KEY).partition("v1=")[2]):
            assert not verify(f"t={int(time.time())},{value}", "GET", DOMAIN, TARGET, KEY)


def test_keys_are_never_the_same() -> None:
    assert len({signatures.mint_key() for _ in range(100)}) == 100
