"""A domain's page: what its responses carry, stated in the form and shown again."""

from __future__ import annotations

from typing import Any

import pytest

from tests.integration.dashboard.conftest import Dashboard

DOMAIN = "shop.customer.test"
FORM = {
    "action": "power",
    "url": "https://origin.example.com/",
    "hsts": "31536000",
    "nosniff": "off",
    "referrer_policy": "off",
    "compression": "on",
    "response_fields": "X-Robots-Tag: noindex\nX-Old:",
}


async def test_what_responses_carry_is_stated_kept_and_ended(dashboard: Dashboard) -> None:
    async def kept() -> Any:
        return (await partner.get()).body["items"][0]["responsePolicy"]

    organisation = await dashboard.organisation()
    partner = await dashboard.partner(organisation)
    dashboard.service.point(DOMAIN)
    await partner.post(DOMAIN)
    browser = await dashboard.signed_in("dev@acme.example", organisation)
    path = f"/dashboard/applications/{partner.id}/domains/{DOMAIN}"
    assert (await browser.post(path, **FORM)).status == 303
    expected = {
        "hsts": {"maxAge": 31_536_000, "includeSubDomains": False, "preload": False},
        "nosniff": False,
        "referrerPolicy": "off",
        "compression": "on",
        "fields": {"X-Robots-Tag": "noindex", "X-Old": ""},
    }
    assert await kept() == expected
    page = await browser.get(path)
    assert '<option value="31536000" selected>' in page.text
    assert all(line in page.text for line in ("X-Robots-Tag: noindex", "X-Old: "))
    earlier = {name: FORM[name] for name in ("action", "url")}  # the form of before an upgrade
    assert (await browser.post(path, **earlier)).status == 303
    assert await kept() == expected
    inherited = dict.fromkeys(("hsts", "nosniff", "referrer_policy", "compression", "response_fields"), "")
    assert (await browser.post(path, **earlier, **inherited)).status == 303
    assert await kept() is None


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"hsts_subdomains": "on"}, "send customersAgree"),
        ({"hsts": "soon"}, "Hsts: expected seconds"),
        ({"response_fields": "Set-Cookie: a=b"}, "is the origin's alone to send"),
        ({"response_fields": "no colon"}, "expected a line such as"),
    ],
)
async def test_what_is_refused_is_said_beside_the_fields(
    dashboard: Dashboard, changed: dict[str, str], words: str
) -> None:
    organisation = await dashboard.organisation()
    partner = await dashboard.partner(organisation)
    dashboard.service.point(DOMAIN)
    await partner.post(DOMAIN)
    browser = await dashboard.signed_in("dev@acme.example", organisation)
    page = await browser.post(f"/dashboard/applications/{partner.id}/domains/{DOMAIN}", **FORM | changed)
    assert (page.status, words in page.words) == (422, True), page.words
    assert (await partner.get()).body["items"][0]["responsePolicy"] is None
