"""Secure orders a certificate: from POST to DELETE, and which names are eligible."""

from __future__ import annotations

import asyncio
from collections import Counter

import pytest

from bench.lab.zone import Behaviour
from tests.integration.api.conftest import SERVER, Service
from tests.integration.api.secure.parts import (
    ALREADY,
    DOMAIN,
    NOT_VALID,
    REVIEW,
    ROOT,
    STEP_ONE,
    UNRESOLVED,
    refusal,
    secure_live,
    set_application,
)
from tests.integration.api.secured import Origin, Ssl, go_live, issue, order_state


async def test_a_pointed_domain_is_secured_and_active_once_its_certificate_is_live(
    service: Service, ssl_partner: Ssl
) -> None:
    service.point(DOMAIN)
    assert (await ssl_partner.get(domain=DOMAIN)).body == {
        "eligible": True,
        "sslStatus": "inactive",
        "cnameTarget": "target-1.partner.test",
        "applicationUrl": "",
    }

    answer = await ssl_partner.post(DOMAIN)

    assert answer.status == 200
    assert set(answer.body) == {"message"}
    on_its_way = {
        "eligible": False,
        "sslStatus": "inactive",
        "cnameTarget": "target-1.partner.test",
        "applicationUrl": ssl_partner.origin,
    }
    for _ in range(2):  # ordered; then issued and not yet with every edge
        assert (await ssl_partner.get(domain=DOMAIN)).body == on_its_way
        assert refusal(await ssl_partner.post(DOMAIN)) == (502, REVIEW)
        assert (await ssl_partner.get()).body["items"][0]["secureStatus"] == "inactive"
        await issue(service, DOMAIN, ssl_partner.id)

    await go_live(service, DOMAIN, ssl_partner.id)
    assert (await ssl_partner.get(domain=DOMAIN)).body == on_its_way | {"sslStatus": "active"}
    assert refusal(await ssl_partner.post(DOMAIN)) == (502, ALREADY)
    listed = (await ssl_partner.get()).body
    [item] = listed["items"]
    assert item["certificate"].keys() == {"issuer", "expiresAt"}
    shown = ("id", "createdAt", "updatedAt", "certificate", "metadata", "visitors", "test", "responsePolicy")
    assert listed == {
        "items": [
            {"domain": DOMAIN, "applicationUrl": ssl_partner.origin, "secureStatus": "active"}
            | {name: item[name] for name in shown}
        ],
        "total": 1,
        "page": 0,
        "limit": 50,
        "count": 1,
        "pages": 1,
        "nextPage": None,
        "prevPage": None,
    }


async def test_what_is_secured_is_answered_without_dns(service: Service, ssl_partner: Ssl) -> None:
    service.point(DOMAIN)
    await ssl_partner.post(DOMAIN)
    service.zone.questions.clear()

    await ssl_partner.get(domain=DOMAIN)
    await go_live(service, DOMAIN, ssl_partner.id)
    await ssl_partner.get(domain=DOMAIN)

    assert service.zone.questions == []


async def test_delete_takes_domain_and_certificate(service: Service, ssl_partner: Ssl) -> None:
    await secure_live(service, ssl_partner)

    answer = await ssl_partner.delete(DOMAIN)

    assert (answer.status, set(answer.body)) == (200, {"message"})
    assert (await ssl_partner.get()).body["total"] == 0
    assert refusal(await ssl_partner.delete(DOMAIN)) == (502, NOT_VALID)
    assert refusal(await ssl_partner.put(DOMAIN)) == (502, NOT_VALID)
    assert (await ssl_partner.get(domain=DOMAIN)).body["eligible"] is True
    assert await order_state(service, DOMAIN) is None
    async with service.database.connection() as connection:
        assert await connection.fetchval("select released_at is not null from certificates")


async def test_secured_again_within_days_the_kept_certificate_is_adopted(service: Service, ssl_partner: Ssl) -> None:
    await secure_live(service, ssl_partner)
    await ssl_partner.delete(DOMAIN)

    assert (await ssl_partner.post(DOMAIN)).status == 200

    assert await order_state(service, DOMAIN) == "issued"
    assert (await ssl_partner.get(domain=DOMAIN)).body["sslStatus"] == "inactive"  # until edges have it


async def test_a_removal_may_ask_for_revocation(service: Service, ssl_partner: Ssl) -> None:
    await secure_live(service, ssl_partner)
    assert refusal(await ssl_partner.delete(DOMAIN, reason="boredom")) == (502, "Invalid 'reason' parameter")

    assert (await ssl_partner.delete(DOMAIN, reason="keyCompromise")).status == 200

    async with service.database.connection() as connection:
        assert await connection.fetchval("select reason from revocations where domain = $1", DOMAIN) == 1
    assert (await ssl_partner.post(DOMAIN)).status == 200
    assert await order_state(service, DOMAIN) == "running"  # what is revoked is not adopted


async def test_spellings_of_a_name_are_one_domain(service: Service, ssl_partner: Ssl) -> None:
    service.point("xn--bcher-kva.customer.test")

    assert (await ssl_partner.post("BÜCHER.Customer.Test.")).status == 200

    await go_live(service, "xn--bcher-kva.customer.test", ssl_partner.id)
    assert refusal(await ssl_partner.post("xn--bcher-kva.customer.test")) == (502, ALREADY)
    assert (await ssl_partner.get(domain="bücher.customer.test")).body["sslStatus"] == "active"
    assert (await ssl_partner.put("Bücher.customer.test.")).status == 200
    assert (await ssl_partner.delete("bücher.CUSTOMER.test")).status == 200


async def test_of_many_posts_at_once_one_succeeds(service: Service, ssl_partner: Ssl) -> None:
    service.point(DOMAIN)

    answers = await asyncio.gather(*(ssl_partner.post(DOMAIN) for _ in range(20)))

    assert Counter(answer.status for answer in answers) == {200: 1, 502: 19}
    assert {answer.message for answer in answers if answer.status != 200} == {REVIEW}
    assert (await ssl_partner.get()).body["total"] == 1


async def test_what_is_not_eligible_is_not_secured(service: Service, ssl_partner: Ssl) -> None:
    service.zone.add("plain.customer.test", "A", "192.0.2.99")
    service.zone.misbehave("broken.customer.test", Behaviour.SERVFAIL)

    assert (await ssl_partner.get(domain="plain.customer.test")).body["eligible"] is False
    for name in ("plain.customer.test", "absent.customer.test", "broken.customer.test"):
        assert refusal(await ssl_partner.post(name)) == (502, REVIEW)

    assert (await ssl_partner.get()).body["total"] == 0


@pytest.mark.parametrize(
    ("behaviour", "code"),
    [(None, "nxdomain"), (Behaviour.SERVFAIL, "servfail"), (Behaviour.TIMEOUT, "timeout")],
)
async def test_what_could_not_be_resolved_says_why(
    service: Service, ssl_partner: Ssl, behaviour: Behaviour | None, code: str
) -> None:
    service.zone.misbehave(DOMAIN, behaviour)

    answer = await ssl_partner.get(domain=DOMAIN)

    assert (*refusal(answer), answer.body["code"]) == (400, UNRESOLVED, code)


async def test_step_one_comes_first(service: Service, origin: Origin) -> None:
    partner = Ssl(await service.partner(step_one=False), origin.url)
    service.point(DOMAIN)
    assert refusal(await partner.post(DOMAIN)) == (502, STEP_ONE)

    service.zone.add("target-1.partner.test", "CNAME", "elsewhere.test")
    assert refusal(await partner.post(DOMAIN)) == (502, STEP_ONE)

    service.zone.replace("target-1.partner.test", "CNAME", "secure.frontage.localhost")
    assert (await partner.post(DOMAIN)).status == 200


async def test_a_target_of_secures_own_is_the_one_that_counts(service: Service, ssl_partner: Ssl) -> None:
    await set_application(service, ssl_partner.id, secure_cname_target="ssl.partner.test")
    service.zone.add("ssl.partner.test", "CNAME", "secure.frontage.localhost")
    service.point("power.customer.test")
    service.zone.add(DOMAIN, "CNAME", "ssl.partner.test")

    assert (await ssl_partner.get(domain="power.customer.test")).body["eligible"] is False
    found = (await ssl_partner.get(domain=DOMAIN)).body
    assert (found["eligible"], found["cnameTarget"]) == (True, "ssl.partner.test")
    assert (await ssl_partner.post(DOMAIN)).status == 200


async def test_a_root_is_secured_when_all_its_addresses_are_ours(service: Service, ssl_partner: Ssl) -> None:
    service.zone.add(ROOT, "A", SERVER)
    service.zone.add(ROOT, "A", "192.0.2.99")
    assert (await ssl_partner.get(domain=DOMAIN, rootDomain="true")).body["eligible"] is False
    assert refusal(await ssl_partner.post(ROOT)) == (502, REVIEW)

    service.zone.remove(ROOT, "A", "192.0.2.99")
    service.zone.add(ROOT, "AAAA", "2001:db8::10")
    assert (await ssl_partner.get(domain=DOMAIN, rootDomain="true")).body["eligible"] is True
    assert (await ssl_partner.post(ROOT)).status == 200
    assert (await ssl_partner.put(ROOT)).status == 200
    assert (await ssl_partner.delete(ROOT)).status == 200
