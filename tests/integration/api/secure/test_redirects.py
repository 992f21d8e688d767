"""``redirectTo`` of POST and PUT: what is stored, what is refused, and no circle."""

from __future__ import annotations

import asyncio

import pytest

from tests.integration.api.conftest import Service
from tests.integration.api.secure.parts import DOMAIN, ROOT, refusal, stored_redirect
from tests.integration.api.secured import Ssl


@pytest.mark.parametrize(
    ("sent", "stored"),
    [("www.Customer.test", "https://www.customer.test"), ("http://example.com/in", "http://example.com/in")],
)
async def test_a_redirect_needs_no_origin(service: Service, ssl_partner: Ssl, sent: str, stored: str) -> None:
    service.point(DOMAIN)

    assert (await ssl_partner.post(DOMAIN, applicationUrl=None, redirectTo=sent)).status == 200

    assert await stored_redirect(service, DOMAIN) == stored
    assert (await ssl_partner.get()).body["items"][0]["applicationUrl"] == ""


async def test_redirects_that_are_none_are_refused(service: Service, ssl_partner: Ssl) -> None:
    service.point(DOMAIN)
    for redirect in ("", "192.0.2.1", "/path", "com", "a.example?x", "javascript:alert(1)", "x" * 3000, 1, ["a.b"]):
        answer = await ssl_partner.post(DOMAIN, redirectTo=redirect)
        assert refusal(answer) == (502, "Invalid 'redirectTo' parameter"), redirect
    assert (await ssl_partner.get()).body["total"] == 0


async def test_redirects_that_lead_back_are_refused(service: Service, ssl_partner: Ssl) -> None:
    names = [f"{letter}.customer.test" for letter in "abc"]
    for name in names:
        service.point(name)
    a, b, c = names
    assert refusal(await ssl_partner.post(a, redirectTo="http://A.customer.test.:81/x")) == (
        502,
        "Invalid 'redirectTo' parameter",
    )
    assert (await ssl_partner.post(a, redirectTo=b)).status == 200
    assert (await ssl_partner.post(b, redirectTo=c)).status == 200

    answer = await ssl_partner.post(c, redirectTo=a)

    assert (*refusal(answer), answer.body["code"]) == (502, "Invalid 'redirectTo' parameter", "loop")
    assert (await ssl_partner.post(c, redirectTo="elsewhere.test")).status == 200


async def test_two_redirects_at_once_close_no_circle(service: Service, ssl_partner: Ssl) -> None:
    for round_ in range(5):
        a, b = f"a{round_}.customer.test", f"b{round_}.customer.test"
        service.point(a)
        service.point(b)

        answers = await asyncio.gather(ssl_partner.post(a, redirectTo=b), ssl_partner.post(b, redirectTo=a))

        assert sorted(answer.status for answer in answers) == [200, 502]


async def test_put_ends_no_redirect_that_has_no_origin_behind_it(service: Service, ssl_partner: Ssl) -> None:
    service.point(DOMAIN)
    await ssl_partner.post(DOMAIN, applicationUrl=None, redirectTo="www.customer.test")
    answer = await ssl_partner.put(DOMAIN, redirectTo="")
    assert refusal(answer) == (502, "Invalid 'applicationUrl' parameter")
    assert (await ssl_partner.put(DOMAIN, redirectTo="", applicationUrl=ssl_partner.origin)).status == 200


async def test_two_changes_at_once_close_no_circle(service: Service, ssl_partner: Ssl) -> None:
    a, b = f"a.{ROOT}", f"b.{ROOT}"
    for name in (a, b):
        service.point(name)
        await ssl_partner.post(name)
    answers = await asyncio.gather(ssl_partner.put(a, redirectTo=b), ssl_partner.put(b, redirectTo=a))
    assert sorted(answer.status for answer in answers) == [200, 502]
