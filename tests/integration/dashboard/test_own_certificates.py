"""A domain's page: a certificate that its partner brings, requests and ends."""

from __future__ import annotations

import re
from html import unescape

from cryptography import x509

from tests.certificates import Authority, ec_key, pem, pem_of
from tests.integration.dashboard.conftest import Dashboard

DOMAIN = "shop.customer.test"


async def test_it_is_brought_shown_and_ended_and_its_key_is_never_shown(dashboard: Dashboard) -> None:
    organisation = await dashboard.organisation()
    partner = await dashboard.partner(organisation)
    dashboard.service.point(DOMAIN)
    await partner.post(DOMAIN)
    browser = await dashboard.signed_in("dev@acme.example", organisation)
    path = f"/dashboard/applications/{partner.id}/domains/{DOMAIN}"
    authority, key = Authority(), ec_key()
    secret = pem_of(key)
    wrong = pem(authority.leaf(key, "other.example"), authority.intermediate)
    page = await browser.post(path, action="bring", certificate=wrong, private_key=secret)
    assert (page.status, "is for other.example, and not for" in page.words) == (422, True)
    assert wrong.split()[-5] in page.text, "what was typed stays"
    assert secret.split()[4] not in page.text

    leaf = authority.leaf(key, DOMAIN)
    chain = pem(leaf, authority.intermediate)
    assert (await browser.post(path, action="bring", certificate=chain, private_key=secret)).status == 303
    page = await browser.get(path)
    assert "Your own" in page.words
    assert f"{leaf.serial_number:x}" in page.words
    assert (await browser.post(path, action="request")).status == 303
    found = re.search(r'id="signing-request">([^<]+)<', (await browser.get(path)).text)
    assert found
    leaf = authority.leaf(x509.load_pem_x509_csr(unescape(found[1]).encode()), DOMAIN)
    await browser.post(path, action="bring", certificate=pem(leaf, authority.intermediate), private_key="")
    assert f"{leaf.serial_number:x}" in (await browser.get(path)).words
    assert (await browser.post(path, action="use_ours")).status == 303
    assert "Your own" not in (await browser.get(path)).words.replace("Your own certificate", "")
