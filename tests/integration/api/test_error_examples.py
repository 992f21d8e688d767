"""The handbook's example of each code of an error: the request that is answered so, and the very answer."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from bench.lab.zone import Behaviour
from common.db import domains, policies
from common.domain_settings import DomainSettings
from tests.certificates import Authority, ec_key, pem, pem_of
from tests.integration.api.conftest import Service
from tests.integration.api.partner import Partner
from tests.reference import ERROR_EXAMPLES

SHOP = "shop.customer.test"
ORIGIN = "https://origin.example.com/shop"
POWER = {"domain": SHOP, "applicationUrl": ORIGIN}
CERTIFICATE = f"/domains/{SHOP}/certificate"
CA, KEY = Authority(), ec_key()
ID = "4f6c1a9e2b7d0385"
"""Stands for every id, which another run has others of."""

Setup = Callable[[Service, Partner], Awaitable[Any]]


async def nothing(_service: Service, _partner: Partner) -> None:
    """What a new application has."""


async def points(service: Service, _partner: Partner) -> None:
    service.point(SHOP)


async def powered(service: Service, partner: Partner) -> None:
    async with service.database.transaction() as connection:
        await domains.power(connection, SHOP, partner.id, DomainSettings(ORIGIN))


async def anothers(service: Service, partner: Partner) -> None:
    """Another application has the name, and its DNS leads here."""
    await powered(service, await service.partner())
    service.point(SHOP)


async def fails(service: Service, _partner: Partner) -> None:
    service.zone.misbehave(SHOP, Behaviour.SERVFAIL)


async def blocked(service: Service, _partner: Partner) -> None:
    async with service.database.transaction() as connection:
        await policies.put(connection, "domain", SHOP, policies.FORBIDDEN, "Phishing was reported")


async def suspended(service: Service, partner: Partner) -> None:
    async with service.database.transaction() as connection:
        await policies.put(connection, "application", partner.id, policies.FORBIDDEN, "Unpaid")


def own(leaf: Any, *more: Any, key: Any = KEY, password: bytes | None = None) -> dict[str, Any]:
    return {"certificate": pem(leaf, *more), "privateKey": None if key is None else pem_of(key, password)}


def record(kind: str, value: str) -> Setup:
    async def add(service: Service, _partner: Partner) -> None:
        service.zone.add(SHOP, kind, value)

    return add


LEAF = CA.leaf(KEY, SHOP)
CASES: dict[str, tuple[Setup, str, str, Any]] = {
    "token_missing": (nothing, "GET", "/power", None),
    "token_unsigned": (nothing, "GET", "/power", None),
    "token_expired": (nothing, "GET", "/power", None),
    "token_too_long": (nothing, "GET", "/power", None),
    "token_not_yet_valid": (nothing, "GET", "/power", None),
    "scope": (nothing, "GET", "/power", None),
    "key_needed": (nothing, "GET", "/organisations", None),
    "invalid_parameter": (nothing, "GET", "/power?size=many", None),
    "invalid_body": (nothing, "POST", "/monitor/domains", ["shop.customer.test"]),
    "nxdomain": (nothing, "POST", "/power", POWER),
    "servfail": (fails, "POST", "/power", POWER),
    "cname_chain": (record("CNAME", SHOP), "POST", "/power", POWER),
    "not_eligible": (record("A", "192.0.2.77"), "POST", "/power", POWER),
    "no_origin": (points, "POST", "/ssl", {"domain": SHOP}),
    "origin_path": (points, "POST", "/ssl", {"domain": SHOP, "applicationUrl": ORIGIN}),
    "origin_refused": (points, "POST", "/power", {"domain": SHOP, "applicationUrl": "http://10.0.0.1/"}),
    "origin_unreachable": (points, "POST", "/ssl", {"domain": SHOP, "applicationUrl": "https://origin.example.com"}),
    "domain_not_valid": (nothing, "PUT", "/power", POWER),
    "enrolled": (powered, "POST", "/power", POWER),
    "root": (nothing, "POST", "/power", {"domain": "customer.test", "applicationUrl": ORIGIN}),
    "reserved": (nothing, "POST", "/power", {"domain": "power.frontage.test", "applicationUrl": ORIGIN}),
    "loop": (points, "POST", "/ssl", {"domain": SHOP, "redirectTo": SHOP}),
    "domain_blocked": (blocked, "POST", "/power", POWER),
    "application_suspended": (suspended, "POST", "/power", POWER),
    "held_unknown": (anothers, "POST", "/power", POWER),
    "not_enrolled": (nothing, "POST", f"/domains/{SHOP}/status-link", {}),
    "link_not_found": (nothing, "DELETE", f"/domains/{SHOP}/status-link", None),
    "flow_not_found": (nothing, "GET", "/connect/flows/flow_4f6c1a9e2b7d0385", None),
    "no_own_certificate": (powered, "DELETE", CERTIFICATE, None),
    "certificate_invalid": (powered, "PUT", CERTIFICATE, {"certificate": "no PEM", "privateKey": pem_of(KEY)}),
    "certificate_chain_incomplete": (powered, "PUT", CERTIFICATE, own(LEAF)),
    "certificate_key_mismatch": (powered, "PUT", CERTIFICATE, own(LEAF, CA.intermediate, key=ec_key())),
    "certificate_name_mismatch": (
        *(powered, "PUT", CERTIFICATE),
        own(CA.leaf(KEY, "www.customer.test"), CA.intermediate),
    ),
    "certificate_expired": (powered, "PUT", CERTIFICATE, own(CA.leaf(KEY, SHOP, days=0.5), CA.intermediate)),
    "key_encrypted": (powered, "PUT", CERTIFICATE, own(LEAF, CA.intermediate, password=b"secret")),
    "key_invalid": (powered, "PUT", CERTIFICATE, own(LEAF, CA.intermediate) | {"privateKey": "no key"}),
}


def headers_for(code: str, partner: Partner) -> dict[str, str]:
    """Return the header fields that the case is about; else those of a good request."""
    tokens: dict[str, Callable[[], str]] = {
        "token_unsigned": lambda: "another's",
        "token_expired": lambda: partner.token(lifetime=timedelta(minutes=-5)),
        "token_too_long": lambda: partner.token(lifetime=timedelta(days=2)),
        "token_not_yet_valid": lambda: partner.token(nbf=4_000_000_000),
        "scope": lambda: partner.token(scope="connect"),
    }
    if code in tokens:
        return {"applicationId": partner.id, "Authorization": f"Bearer {tokens[code]()}"}
    return {} if code == "token_missing" else partner.headers


@pytest.mark.parametrize("code", CASES)
async def test_the_example_of_a_code_is_answered_so(service: Service, code: str) -> None:
    setup, method, path, body = CASES[code]
    partner = await service.partner()
    await setup(service, partner)
    answer = await partner.call(method, path, json=body, headers=headers_for(code, partner))
    assert answer.body.get("code") == code, answer
    answered = json.dumps(answer.body | {"request_id": ID}).replace(partner.id, ID)
    answered = re.sub(r"\b[0-9a-f]{16,}\b", ID, answered)
    answered = re.sub(r"\b\d{4}-\d\d-\d\d \d\d:\d\d UTC", "2026-11-25 12:00 UTC", answered)
    asked = body if path != CERTIFICATE or body is None else {"certificate": "…", "privateKey": "…"}
    shown = {"method": method, "path": path, "body": asked, "status": answer.status, "answer": json.loads(answered)}
    if "WRITE_ERROR_EXAMPLES" in os.environ:
        kept = json.loads(ERROR_EXAMPLES.read_text("utf-8")) if ERROR_EXAMPLES.exists() else {}
        kept = {each: (kept | {code: shown})[each] for each in CASES if each in kept | {code: shown}}
        ERROR_EXAMPLES.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", "utf-8")
    assert json.loads(ERROR_EXAMPLES.read_text("utf-8"))[code] == shown, "WRITE_ERROR_EXAMPLES=1 writes it anew"
