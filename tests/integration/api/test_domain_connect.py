"""Flows by Domain Connect: the real API and knot, and a provider that keeps to the draft, or does not."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import pytest
from yarl import URL

from bench.lab.domain_connect import NAME, DomainConnectProvider, ProviderFault
from bench.lab.knot import Knot, find_knot
from tests.integration.api.connecting import APEX, Flow, World, open_world
from tests.integration.api.domain_connecting import OUR_ID, connected, serve_provider
from tests.waiting import until

SHOP = f"shop.{APEX}"
TARGET = "target-1.partner.test"


@dataclass(slots=True)
class Person:
    """A browser that goes where the flow's URL leads, and back."""

    world: World
    provider: DomainConnectProvider

    async def consent_page(self, url: str) -> tuple[int, str]:
        async with self.world.service.session.get(URL(url, encoded=True)) as response:
            return response.status, await response.text()

    async def decide(self, url: str, decision: str = "connect") -> str:
        """Where the provider sends the browser back to, at this API."""
        form = {"decision": decision}
        async with self.world.service.session.post(
            URL(url, encoded=True), data=form, allow_redirects=False
        ) as response:
            assert response.status == 302, await response.text()
            location = response.headers["Location"]
        base = self.world.service.settings.base_url
        assert location.startswith(f"{base}/connect/return/"), location
        return self.world.service.url + location.removeprefix(base)

    async def come_back(self, url: str) -> tuple[int, str, str]:
        """Status, page, and its Content-Security-Policy."""
        async with self.world.service.session.get(url) as response:
            assert response.content_type == "text/html"
            return response.status, await response.text(), response.headers["Content-Security-Policy"]


@pytest.fixture
async def provided() -> AsyncIterator[tuple[Knot, DomainConnectProvider]]:
    if find_knot() is None:
        pytest.skip("knot is not installed")
    async with serve_provider() as provided:
        yield provided


@pytest.fixture
def knot(provided: tuple[Knot, DomainConnectProvider]) -> Knot:
    return provided[0]


@pytest.fixture
def provider(provided: tuple[Knot, DomainConnectProvider]) -> DomainConnectProvider:
    return provided[1]


@pytest.fixture
async def world(
    dsn: str, tmp_path: Path, probe_port: int, knot: Knot, provider: DomainConnectProvider
) -> AsyncIterator[World]:
    limits = {"API_REQUESTS_PER_SECOND": "10000", "API_REQUESTS_PER_SECOND_PER_ADDRESS": "10000"}
    async with connected(dsn, tmp_path, probe_port, knot, **limits) as world:
        yield world


@pytest.fixture
def person(world: World, provider: DomainConnectProvider) -> Person:
    return Person(world, provider)


async def offered(world: World, host: str = SHOP, **config: Any) -> Flow:
    """A flow with a plan, to which Domain Connect is open. A provider that did not answer in time is asked again."""
    flow = await world.planned(host, **config)
    while (flow.body["provider"]["domainConnect"] or {}).get("code") == "provider_unreachable":
        await replanned(flow)
    return flow


async def replanned(flow: Flow) -> None:
    await flow.act("plan")
    await flow.until_planned()


async def handed_over(world: World, host: str = SHOP, **config: Any) -> tuple[Flow, str]:
    """A flow whose person is to go to the provider, and the URL."""
    flow = await offered(world, host, **config)
    return flow, await hand_over(flow)


async def hand_over(flow: Flow) -> str:
    """The URL. Applying looks again: where the provider did not answer in time, the person tries again."""
    while (answer := await flow.apply("domain_connect")).status != 200:
        assert answer.body["code"] == "way_not_open", answer.body
        await replanned(flow)
    assert answer.body["state"] == "waiting", answer.body
    url: str = answer.body["handover"]["url"]
    return url


async def test_a_person_consents_at_the_provider_and_the_name_is_live(world: World, person: Person) -> None:
    flow = await offered(world)
    way = flow.body["ways"][0]
    assert (way["way"], way["provider"], way["template"]) == ("domain_connect", NAME, "subdomain")
    assert (way["width"], way["height"]) == (620, 700)
    assert flow.body["provider"]["domainConnect"] == {"isOpen": True}
    assert flow.body["provider"]["setupType"] == "automatic"

    url = await hand_over(flow)

    waiting = flow.body
    assert (waiting["state"], waiting["way"], waiting["setup_type"]) == ("waiting", "domain_connect", "automatic")
    assert waiting["handover"] == {"url": url, "returned": None, "error": None, "description": None}
    status, page = await person.consent_page(url)
    assert status == 200
    assert {SHOP, TARGET + ".", "192.0.2.1"} <= set(re.findall(r"<td>([^<]+)</td>", page)), "what it will write"
    back = await person.decide(url)
    status, page, policy = await person.come_back(back)
    assert (status, "You can close this window" in page) == (200, True)
    assert "script-src 'self'" in policy
    assert "<script>" not in page
    finished = await flow.until("finished")
    assert finished["handover"]["returned"] == "done"
    assert await world.values(SHOP, "CNAME") == [f"{TARGET}."]
    events = {each["type"]: each for each in await world.events()}
    assert set(events) == {"domain.flow.completed", "domain.added"}
    for event in events.values():
        assert (event["setup_type"], event["job_id"]) == ("automatic", finished["job_id"])
        assert event["provider"] == NAME, "what it states of itself, as no table knows it"
    refused = await flow.act("undo")
    assert (refused.status, refused.body["code"]) == (409, "nothing_written")


async def test_a_root_is_led_here_by_its_addresses(world: World, person: Person, knot: Knot) -> None:
    await knot.add(APEX, "@", "A", "198.51.100.9")
    await knot.add(APEX, "@", "AAAA", "2001:db8::9")
    root = {"type": "A", "host": "@", "value": "{SERVICE_SERVERS}", "ttl": 300, "applicationUrl": "https://a.example"}
    flow, url = await handed_over(world, APEX, dnsRecords=[root])
    assert flow.body["ways"][0]["template"] == "root"
    assert parse_qs(urlsplit(url).query)["groupId"] == ["first"]
    await person.come_back(await person.decide(url))
    await flow.until("finished")
    assert (await world.values(APEX, "A"), await world.values(APEX, "AAAA")) == (["192.0.2.10"], [])
    assert len(await world.values(APEX, "MX")) == 1, "all else stays"


async def test_a_merged_spf_text_is_written_as_the_plan_shows_it(world: World, person: Person) -> None:
    spf = {"type": "TXT", "host": "@", "value": "v=spf1 include:partner.test -all", "ttl": 300}
    flow, url = await handed_over(world, APEX, power=False, dnsRecords=[spf])
    [(action, _, _, _, [merged])] = flow.changes
    assert action == "merge"
    await person.come_back(await person.decide(url))
    await flow.until("finished")
    assert await world.values(APEX, "TXT") == [f'"{merged}"']


async def test_the_dns_alone_decides_even_if_nobody_comes_back(world: World, person: Person) -> None:
    flow, url = await handed_over(world)
    await person.decide(url)
    await flow.act("check")
    await flow.until("finished")
    assert flow.body["handover"]["returned"] is None


async def test_declining_is_noted_as_text_and_another_way_can_be_chosen(world: World, person: Person) -> None:
    flow, url = await handed_over(world)
    status, page, _ = await person.come_back(await person.decide(url, "cancel"))
    assert (status, "not now" in page) == (200, False), "nothing that the provider sent is on the page"
    body = await flow.read()
    assert body["state"] == "waiting"
    assert body["handover"] == {
        "url": url,
        "returned": "refused",
        "error": "access_denied",
        "description": "user_cancel: <b>not now</b>",
    }
    assert [each["type"] for each in await world.events()] == []
    await replanned(flow)
    assert flow.body["handover"] is None
    again = await hand_over(flow)
    await person.come_back(await person.decide(again))
    await flow.until("finished")


@pytest.mark.parametrize("fault", [ProviderFault.FAIL, ProviderFault.FAIL_AFTERWARDS, ProviderFault.LIE])
async def test_what_the_provider_reports_is_not_believed(world: World, person: Person, fault: ProviderFault) -> None:
    flow, url = await handed_over(world)
    person.provider.faults = frozenset({fault})
    assert (await person.come_back(await person.decide(url)))[0] == 200
    if fault is ProviderFault.FAIL_AFTERWARDS:
        await flow.until("finished")
        return
    body = await flow.read()
    assert (body["state"], body["handover"]["returned"]) == (
        "waiting",
        "error" if fault is ProviderFault.FAIL else "done",
    )
    assert body["enrolments"] == []
    assert await world.values(SHOP, "A") == ["192.0.2.1"]
    person.provider.faults = frozenset()
    await replanned(flow)
    await person.come_back(await person.decide(await hand_over(flow)))
    await flow.until("finished")


async def test_a_state_that_is_not_the_flows_changes_nothing(world: World, person: Person) -> None:
    flow, url = await handed_over(world)
    other, other_url = await handed_over(world, f"blog.{APEX}")
    person.provider.faults = frozenset({ProviderFault.BAD_STATE})
    before = await flow.read()
    assert (await person.come_back(await person.decide(url, "cancel")))[0] == 404
    swapped = (await person.decide(other_url, "cancel")).replace(other.body["id"], flow.body["id"])
    state = parse_qs(urlsplit(other_url).query)["state"][0]
    address = f"{world.service.url}/connect/return/{flow.body['id']}"
    for returned in (swapped, f"{address}?state={state}", address, f"{address}?state=", f"{address}x?state={state}"):
        assert (await person.come_back(returned))[0] == 404
    after = await flow.read()
    assert (after["handover"], after["state"]) == (before["handover"], "waiting")


async def test_a_state_counts_once(world: World, person: Person) -> None:
    flow, url = await handed_over(world)
    back = await person.decide(url, "cancel")
    assert [(await person.come_back(back))[0] for _ in range(2)] == [200, 404]
    await replanned(flow)
    await hand_over(flow)
    assert (await person.come_back(back))[0] == 404, "a new hand-over has another state"


async def test_a_changed_request_is_refused_by_its_signature(world: World, person: Person) -> None:
    _, url = await handed_over(world)
    status, _ = await person.consent_page(url.replace(TARGET, "evil.test"))
    assert status == 403
    assert (await person.consent_page(url))[0] == 200


async def closed(flow: Flow) -> str:
    """The code of the reason why Domain Connect is closed to a flow."""
    assert flow.body["ways"][0]["way"] != "domain_connect"
    reason = flow.body["provider"]["domainConnect"]
    assert (reason["isOpen"], reason["message"][-1:]) == (False, ".")
    code: str = reason["code"]
    return code


async def test_the_way_is_closed_with_the_reason(world: World, provider: DomainConnectProvider, knot: Knot) -> None:
    provider.faults = frozenset({ProviderFault.REFUSE_TEMPLATE})
    assert await closed(await offered(world)) == "template_not_supported"
    provider.faults = frozenset()
    caa = {"type": "CAA", "host": "@", "value": '0 issue "ca.test"', "ttl": 300}
    assert await closed(await offered(world, APEX, power=False, dnsRecords=[caa])) == "not_expressible"
    provider.name_servers = ["ns.elsewhere.test"]
    assert await closed(await offered(world)) == "other_name_servers"
    provider.name_servers = []
    await lead_to(knot, "https://lab.test")
    assert await closed(await offered(world)) == "settings_invalid"
    for text in ("10.0.0.1/v2", "nowhere.test"):  # an address that is not allowed, and a name without one
        await lead_to(knot, text)
        assert await closed(await world.planned()) == "provider_unreachable"


async def lead_to(knot: Knot, text: str) -> None:
    await knot.remove(APEX, "_domainconnect", "TXT")
    await knot.add(APEX, "_domainconnect", "TXT", f'"{text}"')


async def test_a_slow_provider_does_not_keep_the_person_waiting(world: World, provider: DomainConnectProvider) -> None:
    provider.faults = frozenset({ProviderFault.SLOW_SETTINGS})
    assert await closed(await world.planned()) == "provider_unreachable"


async def test_a_way_that_closed_since_the_plan_is_refused(world: World, provider: DomainConnectProvider) -> None:
    flow = await offered(world)
    provider.faults = frozenset({ProviderFault.REFUSE_TEMPLATE})
    refused = await flow.apply("domain_connect")
    assert (refused.status, refused.body["code"]) == (409, "way_not_open")
    assert (await flow.read())["state"] == "planned"


@pytest.mark.parametrize("environ", [{}, {"DOMAIN_CONNECT_PROVIDER_ID": OUR_ID}], ids=["no id", "no key"])
async def test_an_installation_without_an_id_or_a_key_offers_nothing(
    dsn: str, tmp_path: Path, probe_port: int, knot: Knot, provider: DomainConnectProvider, environ: dict[str, Any]
) -> None:
    async with open_world(dsn, tmp_path, probe_port, knot.address, **environ) as world:
        flow = await world.planned()
        assert await setup_type(world, SHOP_RECORD) == "manual"
    assert flow.body["provider"]["domainConnect"] is None
    assert flow.body["ways"][0]["way"] == "manual"
    assert provider.applied == 0


async def setup_type(world: World, *records: dict[str, Any]) -> str:
    """Asked again where the DNS did not answer in time."""
    body = {"domain": APEX, "dnsRecords": list(records)}

    async def answered() -> str:
        return str((await world.partner.call("POST", "/checkdomain", json=body)).body.get("setupType", ""))

    return await until(answered, "an answer")


async def until_automatic(world: World, *records: dict[str, Any]) -> None:
    """The provider may answer late on a busy machine, and is then asked again after a while."""

    async def is_automatic() -> bool:
        return await setup_type(world, *records) == "automatic"

    await until(is_automatic, "automatic")


SHOP_RECORD = {"type": "CNAME", "host": "shop", "value": "{CNAME_TARGET}", "ttl": 300}
NO_TEMPLATE_RECORD = {"type": "CAA", "host": "@", "value": '0 issue "ca.test"', "ttl": 300}
SERVERS = {"type": "NS", "host": "@", "value": "ns.new.test", "ttl": 300}


async def test_a_domain_check_counts_a_provider_that_has_a_template_for_the_records(
    world: World, provider: DomainConnectProvider
) -> None:
    await until_automatic(world)
    await until_automatic(world, SHOP_RECORD)
    assert await setup_type(world, NO_TEMPLATE_RECORD) == "manual", "no template expresses it"
    provider.faults = frozenset({ProviderFault.REFUSE_TEMPLATE})
    assert await setup_type(world, SHOP_RECORD) == "automatic", "the provider was asked a moment ago"
    body = {"domain": APEX, "dnsRecords": [SERVERS, SHOP_RECORD]}
    answer = (await world.partner.call("POST", "/checkdomain", json=body)).body
    assert answer["authoritativeDnsProvider"]["setupType"] == answer["setupType"] == "manual", "nor name servers"


@pytest.mark.parametrize("fault", [ProviderFault.REFUSE_TEMPLATE, ProviderFault.SLOW_SETTINGS, None])
async def test_a_domain_check_does_not_count_a_provider_that_would_not_do_it(
    world: World, provider: DomainConnectProvider, fault: ProviderFault | None
) -> None:
    if fault is None:
        provider.name_servers = ["ns.elsewhere.test"]
    else:
        provider.faults = frozenset({fault})
    assert await setup_type(world, SHOP_RECORD) == "manual"


PHISH = {"type": "CNAME", "host": "login", "value": "phish.evil.test", "ttl": 300}


async def seen_by(world: World, headers: dict[str, str], **config: Any) -> Flow:
    """A planned flow of a browser."""
    answer = await world.partner.call("POST", "/connect/flows", headers=headers, json={"domain": SHOP, **config})
    assert answer.status == 201, answer.body
    flow = Flow(world, answer.body)
    await flow.until_planned()
    while (flow.body["provider"]["domainConnect"] or {}).get("code") == "provider_unreachable":
        await replanned(flow)
    return flow


def scoped(world: World, **claims: Any) -> dict[str, str]:
    token = world.partner.token(scope="connect", **claims)
    return {"applicationId": world.partner.id, "Authorization": f"Bearer {token}"}


async def test_our_signature_stands_for_no_record_that_a_browser_brings(world: World) -> None:
    ours = {"type": "CNAME", "host": "{SUBDOMAIN}", "value": "{CNAME_TARGET}", "ttl": 300}
    proof = {"type": "TXT", "host": "_frontage.shop", "value": f"application={world.partner.id}", "ttl": 300}
    for records, is_open in (
        ([ours], True),
        ([{"type": "A", "host": "@", "value": "{SERVICE_SERVERS}", "ttl": 300}], True),
        ([proof], True),
        ([PHISH], False),
        ([ours, PHISH], False),
        ([proof | {"value": "application=another"}], False),
        ([proof | {"host": "_dmarc"}], False),
        ([{"type": "TXT", "host": "@", "value": "v=spf1 include:evil.test -all", "ttl": 300}], False),
        ([{"type": "MX", "host": "@", "value": "mx.evil.test", "ttl": 300, "priority": "10"}], False),
        ([{"type": "A", "host": "www", "value": "203.0.113.66", "ttl": 300}], False),
    ):
        flow = await seen_by(world, scoped(world), dnsRecords=records)
        shown = flow.body["provider"]["domainConnect"]
        assert (shown.get("code") != "not_vouched") is is_open, records
        if not is_open:
            refused = await flow.act("apply", way="domain_connect", digest=flow.digest)
            assert (refused.status, refused.body["code"]) == (409, "way_not_open")
            assert "manual" in {each["way"] for each in flow.body["ways"]}, "another way is there"


async def test_our_signature_stands_for_records_of_a_registered_configuration_and_a_servers_link(world: World) -> None:
    config = {"dnsRecords": [PHISH]}
    registered = await world.partner.call("POST", "/connect/configurations", json={"config": config})
    flow = await seen_by(world, scoped(world, configurationId=registered.body["id"]))
    assert flow.body["provider"]["domainConnect"] == {"isOpen": True}
    link = await world.partner.call("POST", "/sharing/connect", json={"config": config})
    flow = await seen_by(world, scoped(world), share=link.body["id"])
    assert flow.body["provider"]["domainConnect"] == {"isOpen": True}
    passed_on = await seen_by(world, scoped(world), dnsRecords=[PHISH])
    path = f"/connect/flows/{passed_on.body['id']}/share"
    link = await world.partner.call("POST", path, headers=scoped(world), json={})
    flow = await seen_by(world, scoped(world), share=link.body["id"])
    assert flow.body["provider"]["domainConnect"]["code"] == "not_vouched", (
        "a link of a browser's flow vouches for nothing"
    )
