"""`errorStatus`: refused changes of Power and Secure as HTTP has them, for applications that ask, and else 502."""

from __future__ import annotations

from typing import Any

import pytest

from tests.integration.api.conftest import Service
from tests.integration.api.partner import Partner

SHOP = "shop.customer.test"
ORIGIN = "https://origin.example.com"
CALLS: list[tuple[int, str, str, str, Any]] = [
    (400, "invalid_parameter", "POST", "/power", {"domain": SHOP}),
    (400, "invalid_body", "POST", "/ssl", []),
    (400, "root", "POST", "/power", {"domain": "customer.test", "applicationUrl": ORIGIN}),
    (404, "domain_not_valid", "DELETE", "/power", {"domain": "never.customer.test"}),
    (404, "domain_not_valid", "PUT", "/ssl", {"domain": "never.customer.test"}),
    (409, "nxdomain", "POST", "/power", {"domain": "nowhere.customer.test", "applicationUrl": ORIGIN}),
    (409, "enrolled", "POST", "/power", {"domain": SHOP, "applicationUrl": ORIGIN}),
]


@pytest.mark.parametrize("chosen", ["http", "502"])
async def test_a_refused_change_has_the_status_that_the_application_chose(
    service: Service, partner: Partner, chosen: str
) -> None:
    assert (await partner.call("GET", "/application")).body["errorStatus"] == "502"
    assert (await partner.call("PUT", "/application", json={"errorStatus": chosen})).status == 200
    assert (await partner.call("GET", "/application")).body["errorStatus"] == chosen
    service.point(SHOP)
    assert (await partner.post(SHOP, ORIGIN)).status == 200
    for status, code, method, path, body in CALLS:
        refused = await partner.call(method, path, json=body)
        assert (refused.status, refused.body["code"]) == (status if chosen == "http" else 502, code), (method, body)


async def test_too_many_enrolments_are_a_429(service: Service, partner: Partner) -> None:
    await partner.call("PUT", "/application", json={"errorStatus": "http"})
    service.point(SHOP)
    for _ in range(6):
        assert (await partner.post(SHOP)).status == 200
        assert (await partner.delete(SHOP)).status == 200
    refused = await partner.post(SHOP)
    assert (refused.status, refused.body["code"]) == (429, "enrolled_too_often")
    assert (
        86_000 < int(refused.headers["Retry-After"]) <= 86_400
    )  # a day after the second of the six, as the first is free


async def test_a_status_that_there_is_not_is_refused(service: Service) -> None:
    refused = await (await service.partner()).call("PUT", "/application", json={"errorStatus": "teapot"})
    assert (refused.status, refused.message) == (400, "Invalid 'errorStatus' parameter")
