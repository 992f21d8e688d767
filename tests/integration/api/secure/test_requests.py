"""Requests of Secure: names, parameters, bodies, pages of lists, and what PUT changes."""

from __future__ import annotations

from typing import Any

import pytest

from tests.integration.api.conftest import Service
from tests.integration.api.secure.parts import DOMAIN, NOT_VALID, ROOT, UNREACHABLE, UNRESOLVED, refusal, secure_live
from tests.integration.api.secured import Ssl, go_live, order_state, serve_origin


async def test_put_changes_origin_and_redirect_and_keeps_the_rest(service: Service, ssl_partner: Ssl) -> None:
    await secure_live(service, ssl_partner)
    async with serve_origin() as other:
        answer = await ssl_partner.put(DOMAIN, applicationUrl=other.url)
        assert (answer.status, answer.message) == (200, "Domain successfully updated.")
        assert other.asked, "the origin is asked as at POST"
        item = (await ssl_partner.get()).body["items"][0]
        assert item.items() >= {"domain": DOMAIN, "applicationUrl": other.url, "secureStatus": "active"}.items()

        assert (await ssl_partner.put(DOMAIN, redirectTo="www.customer.test")).status == 200
        item = (await ssl_partner.get()).body["items"][0]
        assert (item["applicationUrl"], item["redirectTo"]) == (other.url, "https://www.customer.test")
        assert (await ssl_partner.get(domain=DOMAIN)).body["redirectTo"] == "https://www.customer.test"

        assert (await ssl_partner.put(DOMAIN, redirectTo="")).status == 200
        assert "redirectTo" not in (await ssl_partner.get()).body["items"][0]
    assert await order_state(service, DOMAIN) == "issued"  # none of this cost an order


async def test_put_refuses_what_post_refuses_and_changes_nothing(service: Service, ssl_partner: Ssl) -> None:
    other = f"other.{ROOT}"
    for name in (DOMAIN, other):
        service.point(name)
    await ssl_partner.post(DOMAIN)
    await ssl_partner.post(other, redirectTo=DOMAIN)
    for fields, message in (
        ({"applicationUrl": "http://127.0.0.1:1"}, UNREACHABLE),
        ({"applicationUrl": "http://10.0.0.1"}, "Invalid 'applicationUrl' parameter"),
        ({"applicationUrl": "ftp://origin.test"}, "Invalid 'applicationUrl' parameter"),
        ({"redirectTo": DOMAIN}, "Invalid 'redirectTo' parameter"),
        ({"redirectTo": other}, "Invalid 'redirectTo' parameter"),
        ({"redirectTo": "javascript:alert(1)"}, "Invalid 'redirectTo' parameter"),
        ({"redirectTo": 1}, "Invalid 'redirectTo' parameter"),
    ):
        assert refusal(await ssl_partner.put(DOMAIN, **fields)) == (502, message), fields
    hints = [
        (await each(DOMAIN, redirectTo="ftp://a.test")).body["hint"] for each in (ssl_partner.put, ssl_partner.post)
    ]
    assert hints[0] == hints[1]
    shown = {"domain": DOMAIN, "applicationUrl": ssl_partner.origin, "secureStatus": "inactive"}
    [item] = [each for each in (await ssl_partner.get()).body["items"] if each["domain"] == DOMAIN]
    assert item.items() >= shown.items()
    assert "redirectTo" not in item


async def test_changes_answer_with_the_domain_where_that_is_preferred(service: Service, ssl_partner: Ssl) -> None:
    service.point(DOMAIN)
    headers = ssl_partner.partner.headers | {"Prefer": "return=representation"}
    for method, fields in (
        ("POST", {"applicationUrl": ssl_partner.origin}),
        ("PUT", {"redirectTo": "www.customer.test"}),
    ):
        answer = await ssl_partner.partner.call(method, "/ssl", json={"domain": DOMAIN} | fields, headers=headers)
        assert answer.headers["Preference-Applied"] == "return=representation"
        assert answer.body.items() >= (await ssl_partner.get()).body["items"][0].items()
    assert answer.body["redirectTo"] == "https://www.customer.test"


NAMES_THAT_ARE_NONE: list[Any] = [
    "",
    "customer",
    "com",
    "a..customer.test",
    "*.customer.test",
    "shop.customer.test:443",
    "127.0.0.1",
    "[::1]",
    "shop\x00.customer.test",
    "shop.customer.test/",
    "a." * 125 + "abcd",
    "ü" * 30_000,
    "\u202eshop.customer.test",
    "https://shop.customer.test",
    None,
    True,
    1,
    1.5,
    [],
    ["shop.customer.test"],
    {"a": 1},
]


async def test_names_that_are_none_change_nothing(ssl_partner: Ssl) -> None:
    for name in NAMES_THAT_ARE_NONE:
        for answer in (await ssl_partner.post(name), await ssl_partner.put(name), await ssl_partner.delete(name)):
            assert refusal(answer) == (502, NOT_VALID), name
        if isinstance(name, str) and len(name) < 1000:
            answer = await ssl_partner.get(domain=name)
            assert (*refusal(answer), answer.body["code"]) == (400, UNRESOLVED, "invalid"), name


BAD_QUERIES = [
    ("page=-1", "page"),
    ("page=", "page"),
    ("page=%00", "page"),
    ("page=1&page=1", "page"),
    ("size=0", "size"),
    ("size=201", "size"),
    ("size=1e2", "size"),
    ("status=Active", "status"),
    ("status=active&status=active", "status"),
    ("domain=a.customer.test&domain=a.customer.test", "domain"),
    ("domain=a.customer.test&rootDomain=1", "rootDomain"),
    ("domain=a.customer.test&rootDomain=true&rootDomain=true", "rootDomain"),
]


async def test_a_bad_parameter_is_named(ssl_partner: Ssl) -> None:
    for query, named in BAD_QUERIES:
        answer = await ssl_partner.partner.call("GET", f"/ssl?{query}")
        assert refusal(answer) == (400, f"Invalid '{named}' parameter"), query


async def test_lists_come_in_pages_and_by_status(service: Service, ssl_partner: Ssl) -> None:
    names = [f"shop-{number}.customer.test" for number in range(5)]
    for name in names:
        service.point(name)
        assert (await ssl_partner.post(name)).status == 200
    await go_live(service, names[1], ssl_partner.id)

    middle = (await ssl_partner.get(page=1, size=2)).body
    assert [item["domain"] for item in middle["items"]] == names[2:4]
    assert (middle["total"], middle["pages"], middle["prevPage"], middle["nextPage"]) == (5, 3, 0, 2)
    active = (await ssl_partner.get(status="active")).body
    assert [item["domain"] for item in active["items"]] == [names[1]]
    assert (await ssl_partner.get(status="inactive", size=1)).body["total"] == 4
    assert (await ssl_partner.partner.get()).body["total"] == 0  # Power lists its own


@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "DELETE"])
async def test_only_who_may_is_answered(service: Service, ssl_partner: Ssl, method: str) -> None:
    anonymous = await ssl_partner.partner.call(method, "/ssl", json={}, headers={})
    assert refusal(anonymous) == (401, "Unauthorized")

    other = await service.partner()
    foreign = {"applicationId": other.id, "Authorization": f"Bearer {ssl_partner.partner.token()}"}
    assert refusal(await ssl_partner.partner.call(method, "/ssl", json={}, headers=foreign)) == (403, "Forbidden")


async def test_http_keeps_its_own_statuses(service: Service, ssl_partner: Ssl) -> None:
    call = ssl_partner.partner.call
    assert (await call("PATCH", "/ssl")).status == 405
    headers = ssl_partner.partner.headers | {"Content-Type": "text/plain"}
    assert (await call("POST", "/ssl", data=b"{}", headers=headers)).status == 415
    headers["Content-Type"] = "application/json"
    assert (await call("POST", "/ssl", data=b"1" * 300_000, headers=headers)).status == 413
    for body in (b"", b"[]", b"null", b"{", b'{"domain": "\xff"}', b"[" * 100_000):
        for method in ("POST", "PUT", "DELETE"):
            answer = await call(method, "/ssl", data=body, headers=headers)
            assert refusal(answer) == (502, "Invalid request body")
