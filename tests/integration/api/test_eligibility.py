"""GET /power?domain=…, with a real name server and a real CDN before the edge."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web

from bench.lab.zone import Behaviour
from common.probe import PROBE_PATH, probe_answer
from tests.integration.api.conftest import SERVER, Service
from tests.integration.api.partner import Partner

DOMAIN = "shop.customer.test"
UNRESOLVED = "Domain provided couldn't be resolved."


async def test_a_domain_that_leads_to_the_cname_target_is_eligible(service: Service, partner: Partner) -> None:
    service.point(DOMAIN)

    answer = await partner.get(domain=DOMAIN)

    assert answer.status == 200
    assert answer.body == {
        "eligible": True,
        "powerStatus": "inactive",
        "cnameTarget": "target-1.partner.test",
        "applicationUrl": "",
        "powerRootPathAccess": [],
    }


async def test_chains_before_and_after_the_cname_target_count(service: Service) -> None:
    partner = await service.partner(step_one=False)
    service.zone.add(DOMAIN, "CNAME", "Alias.Customer.Test")
    service.zone.add("alias.customer.test", "CNAME", "target-1.partner.test")
    service.zone.add("target-1.partner.test", "CNAME", "more.partner.test")
    service.zone.add("more.partner.test", "CNAME", "secure.frontage.localhost")  # either target serves both

    assert (await partner.get(domain=DOMAIN)).body["eligible"] is True


async def test_a_name_without_the_cname_is_not_eligible(service: Service) -> None:
    partner, _ = await service.partner(), await service.partner()
    service.zone.add("plain.customer.test", "A", "192.0.2.99")
    service.zone.add("elsewhere.customer.test", "CNAME", "www.elsewhere.test")
    service.zone.add("direct.customer.test", "CNAME", "power.frontage.test")
    service.point("foreign.customer.test", partner=2)

    for name in ("plain", "elsewhere", "direct", "foreign"):
        answer = await partner.get(domain=f"{name}.customer.test")
        assert (answer.status, answer.body["eligible"]) == (200, False), name
        assert answer.body["cnameTarget"] == "target-1.partner.test"


async def test_without_step_one_nothing_is_eligible(service: Service) -> None:
    partner = await service.partner(step_one=False)
    service.point(DOMAIN)

    answer = await partner.get(domain=DOMAIN)

    assert (answer.status, answer.body["eligible"]) == (200, False)


@pytest.mark.parametrize(
    ("behaviour", "code"),
    [(None, "nxdomain"), (Behaviour.SERVFAIL, "servfail"), (Behaviour.TIMEOUT, "timeout")],
)
async def test_what_could_not_be_resolved_says_why(
    service: Service, partner: Partner, behaviour: Behaviour | None, code: str
) -> None:
    service.zone.misbehave(DOMAIN, behaviour)

    answer = await partner.get(domain=DOMAIN)

    assert (answer.status, answer.message, answer.body["code"]) == (400, UNRESOLVED, code)
    assert answer.body["request_id"]


async def test_could_not_ask_is_never_absent(service: Service, partner: Partner) -> None:
    service.point(DOMAIN)
    service.zone.misbehave("target-1.partner.test", Behaviour.SERVFAIL)

    answer = await partner.get(domain=DOMAIN)

    assert (answer.status, answer.body["code"]) == (400, "servfail")


async def test_cnames_without_an_end_have_a_code_of_their_own(service: Service, partner: Partner) -> None:
    service.zone.add(DOMAIN, "CNAME", "b.customer.test")
    service.zone.add("b.customer.test", "CNAME", DOMAIN)

    answer = await partner.get(domain=DOMAIN)

    assert (answer.status, answer.message, answer.body["code"]) == (400, UNRESOLVED, "cname_chain")


async def test_a_record_added_after_a_look_is_seen_at_the_next(service: Service, partner: Partner) -> None:
    assert (await partner.get(domain=DOMAIN)).body["code"] == "nxdomain"

    service.point(DOMAIN)

    assert (await partner.get(domain=DOMAIN)).body["eligible"] is True
    assert (await partner.post(DOMAIN)).status == 200


async def test_a_powered_domain_is_answered_without_dns(service: Service, partner: Partner) -> None:
    service.point(DOMAIN)
    await partner.post(DOMAIN, powerRootPathAccess=["/static"])
    service.zone.questions.clear()

    answer = await partner.get(domain=DOMAIN)

    assert answer.body == {
        "eligible": False,
        "powerStatus": "active",
        "cnameTarget": "target-1.partner.test",
        "applicationUrl": "https://origin.example.com",
        "powerRootPathAccess": ["/static"],
    }
    assert service.zone.questions == []


async def test_a_root_is_eligible_when_all_its_addresses_are_ours(service: Service, partner: Partner) -> None:
    service.zone.add("customer.test", "A", SERVER)
    service.zone.add("customer.test", "AAAA", "2001:db8::10")
    service.zone.add(DOMAIN, "A", "192.0.2.99")

    assert (await partner.get(domain="customer.test")).body["eligible"] is True
    assert (await partner.get(domain=DOMAIN, rootDomain="true")).body["eligible"] is True
    assert (await partner.get(domain=DOMAIN, rootDomain="false")).body["eligible"] is False

    service.zone.add("customer.test", "A", "192.0.2.99")
    assert (await partner.get(domain="customer.test")).body["eligible"] is False


async def test_a_root_that_cannot_be_resolved_says_why(service: Service, partner: Partner) -> None:
    assert (await partner.get(domain="customer.test")).body["code"] == "nxdomain"

    service.zone.misbehave("customer.test", Behaviour.SERVFAIL)
    assert (await partner.get(domain=DOMAIN, rootDomain="true")).body["code"] == "servfail"


async def test_a_question_about_a_root_that_names_no_domain_is_no_list(partner: Partner) -> None:
    for path in ("/power", "/ssl"):
        answer = await partner.call("GET", path, params={"rootDomain": "true"})

        assert (answer.status, answer.message) == (400, "Invalid 'domain' parameter")


async def test_root_domain_is_true_or_false(partner: Partner) -> None:
    answer = await partner.get(domain=DOMAIN, rootDomain="yes")

    assert (answer.status, answer.message) == (400, "Invalid 'rootDomain' parameter")


@pytest.mark.parametrize(
    "name", ["", "customer", "a..b.test", "127.0.0.1", "*.customer.test", "shop\x00.test", "ü" * 300]
)
async def test_names_that_are_none_cannot_be_resolved(partner: Partner, name: str) -> None:
    answer = await partner.get(domain=name)

    assert (answer.status, answer.message, answer.body["code"]) == (400, UNRESOLVED, "invalid")


async def test_one_domain_at_a_time(partner: Partner) -> None:
    answer = await partner.call("GET", "/power?domain=a.customer.test&domain=b.customer.test")

    assert (answer.status, answer.message) == (400, "Invalid 'domain' parameter")


# Behind a CDN ---------------------------------------------------------------------------------------------


async def test_behind_a_cdn_our_edges_answer_makes_eligible(
    service: Service, partner: Partner, probe_port: int
) -> None:
    service.zone.add(DOMAIN, "A", "127.0.0.1")

    assert (await partner.get(domain=DOMAIN)).body["eligible"] is False  # nobody answers yet

    async with cdn(service, probe_port):
        found = (await partner.get(domain=DOMAIN)).body
        assert found["eligible"] is False  # it leads here, and does not say whose it is
        assert f"_frontage.{DOMAIN} with the value application={partner.id}" in found["hint"]
        service.zone.add(f"_frontage.{DOMAIN}", "TXT", f"application={partner.id}")
        assert (await partner.get(domain=DOMAIN)).body["eligible"] is True
        assert (await partner.post(DOMAIN)).status == 200


async def test_behind_a_cdn_step_one_is_still_needed(service: Service, probe_port: int) -> None:
    partner = await service.partner(step_one=False)
    service.zone.add(DOMAIN, "A", "127.0.0.1")

    async with cdn(service, probe_port):
        assert (await partner.get(domain=DOMAIN)).body["eligible"] is False
        assert (await partner.post(DOMAIN)).message == "Please complete step 1."


@pytest.mark.parametrize("manner", ["wrong", "redirect", "endless", "error"])
async def test_no_other_answer_will_do(service: Service, partner: Partner, probe_port: int, manner: str) -> None:
    service.zone.add(DOMAIN, "A", "127.0.0.1")

    async with cdn(service, probe_port, manner):
        assert (await partner.get(domain=DOMAIN)).body["eligible"] is False


async def test_a_probe_does_not_reach_addresses_the_policy_refuses(
    service: Service, partner: Partner, probe_port: int
) -> None:
    service.zone.add(DOMAIN, "AAAA", "::1")  # only 127.0.0.0/8 is allowed

    async with cdn(service, probe_port, host="::1") as seen:
        assert (await partner.get(domain=DOMAIN)).body["eligible"] is False
        assert seen == []


@asynccontextmanager
async def cdn(service: Service, port: int, manner: str = "honest", host: str = "127.0.0.1") -> AsyncIterator[list[str]]:
    """Passes probes on to an edge, or does worse. What it was asked is yielded."""
    seen: list[str] = []

    async def answer(request: web.Request) -> web.StreamResponse:
        seen.append(request.path)
        proof = probe_answer(service.keyring, request.host.partition(":")[0], request.match_info["nonce"])
        assert proof is not None
        if manner == "redirect" and "again" not in request.query:
            raise web.HTTPFound(f"{request.path}?again")
        if manner == "error":
            return web.Response(status=404, body=proof)
        if manner == "endless":
            response = web.StreamResponse()
            await response.prepare(request)
            await response.write(proof + b"x" * 100_000)
            return response
        return web.Response(body=proof if manner in ("honest", "redirect") else proof[::-1])

    app = web.Application()
    app.router.add_get(PROBE_PATH + "{nonce}", answer)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    try:
        await web.TCPSite(runner, host, port).start()
        yield seen
    finally:
        await runner.cleanup()
