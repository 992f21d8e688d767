"""Secured domains belong to one application, and both products share a domain's certificate."""

from __future__ import annotations

import asyncio

from tests.integration.api.conftest import Service
from tests.integration.api.secure.parts import ALREADY, DOMAIN, NOT_VALID, REVIEW, refusal, secure_live
from tests.integration.api.secured import Ssl, order_state


async def test_another_applications_domain_is_out_of_reach(service: Service, ssl_partner: Ssl) -> None:
    other = Ssl(await service.partner(), ssl_partner.origin)
    service.point(DOMAIN)
    await ssl_partner.post(DOMAIN)
    service.zone.replace(DOMAIN, "CNAME", "target-2.partner.test")

    assert refusal(await other.post(DOMAIN)) == (502, "This domain has been already powered.")
    assert refusal(await other.partner.post(DOMAIN)) == (502, "This domain has been already powered.")
    assert refusal(await other.put(DOMAIN)) == (502, NOT_VALID)
    assert refusal(await other.delete(DOMAIN)) == (502, NOT_VALID)
    assert (await other.get()).body["total"] == 0
    assert (await other.get(domain=DOMAIN)).body == {
        "eligible": False,
        "sslStatus": "inactive",
        "cnameTarget": "",
        "applicationUrl": "",
    }


async def test_both_products_share_one_certificate(service: Service, ssl_partner: Ssl) -> None:
    power = ssl_partner.partner
    await secure_live(service, ssl_partner)

    assert (await power.post(DOMAIN)).status == 200  # no certificate to order
    async with service.database.connection() as connection:
        [event] = await connection.fetch("select type, subdomain, fields from events")
        expires_at = await connection.fetchval("select not_after from certificates where domain = $1", DOMAIN)
    fields = {"power_status": "success", "certificate_expires_at": expires_at.isoformat()}
    assert tuple(event) == ("domain.power", "shop", fields)
    assert await order_state(service, DOMAIN) == "issued"
    assert (await power.get(domain=DOMAIN)).body["applicationUrl"] == "https://origin.example.com"
    assert (await ssl_partner.get(domain=DOMAIN)).body["applicationUrl"] == ssl_partner.origin

    assert (await ssl_partner.delete(DOMAIN)).status == 200
    assert (await power.get(domain=DOMAIN)).body["powerStatus"] == "active"
    async with service.database.connection() as connection:
        assert await connection.fetchval("select released_at is null from certificates")

    # The certificate that Power has is a valid one.
    assert refusal(await ssl_partner.post(DOMAIN)) == (502, ALREADY)
    found = (await ssl_partner.get(domain=DOMAIN)).body
    assert (found["eligible"], found["sslStatus"]) == (False, "active")
    assert refusal(await ssl_partner.put(DOMAIN)) == (502, NOT_VALID)
    assert refusal(await ssl_partner.delete(DOMAIN)) == (502, NOT_VALID)

    assert (await power.delete(DOMAIN)).status == 200
    async with service.database.connection() as connection:
        assert await connection.fetchval("select released_at is not null from certificates")


async def test_both_products_at_once_order_one_certificate(service: Service, ssl_partner: Ssl) -> None:
    service.point(DOMAIN)

    answers = await asyncio.gather(ssl_partner.post(DOMAIN), ssl_partner.partner.post(DOMAIN))

    statuses = {answer.status for answer in answers}
    assert statuses == {200} or (answers[1].status, refusal(answers[0])) == (200, (502, REVIEW))
    async with service.database.connection() as connection:
        assert await connection.fetchval("select count(*) from orders") == 1
