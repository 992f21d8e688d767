"""What an application says of a domain: notes by which it is found, rules for visitors, what responses carry."""

from __future__ import annotations

from typing import Any

import pytest

from common.db import domains, events
from common.domain_settings import DomainSettings
from common.enrolment import changes
from tests.integration.api.conftest import Service
from tests.integration.api.partner import Partner

SHOP = "shop.customer.test"
NOTES = {"customer_id": "4711", "plan": "pro", "name": "Müller & Söhne"}


async def found(partner: Partner, path: str = "/power", **query: str) -> list[str]:
    answer = await partner.call("GET", path, params=query)
    assert answer.status == 200, answer.body
    return [each["domain"] for each in answer.body["items"]]


async def notes(partner: Partner) -> dict[str, str]:
    [item] = (await partner.get()).body["items"]
    metadata: dict[str, str] = item["metadata"]
    return metadata


async def test_notes_are_shown_found_by_replaced_and_ended(service: Service) -> None:
    partner, other = await service.partner(), await service.partner()
    service.point(SHOP)
    assert (await partner.post(SHOP, metadata=NOTES)).status == 200
    assert await notes(partner) == NOTES
    for key, text in NOTES.items():
        assert await found(partner, **{f"metadata.{key}": text}) == [SHOP]
        assert await found(other, **{f"metadata.{key}": text}) == []
    assert await found(partner, "/ssl", **{"metadata.plan": "pro"}) == []
    assert await found(partner, **{"metadata.plan": "pro", "status": "inactive"}) == []
    assert (await partner.put(SHOP, applicationUrl="https://new.example.com")).status == 200
    assert await notes(partner) == NOTES
    assert (await partner.put(SHOP, metadata={"plan": "free"})).status == 200
    assert await notes(partner) == {"plan": "free"}
    assert await found(partner, **{"metadata.plan": "pro"}) == []
    assert await found(partner, **{"metadata.plan": "free"}) == [SHOP]
    assert (await partner.put(SHOP, metadata={})).status == 200
    assert (await notes(partner), await found(partner, **{"metadata.plan": "free"})) == ({}, [])
    assert (await partner.put(SHOP, metadata=NOTES)).status == 200
    assert (await partner.delete(SHOP)).status == 200
    assert await found(partner, **{"metadata.plan": "pro"}) == []


async def test_domains_with_a_note_are_read_in_parts(service: Service, partner: Partner) -> None:
    names = [f"{label}.customer.test" for label in ("a", "b", "c")]
    for name in (*names, "d.customer.test"):
        service.point(name)
        assert (await partner.post(name, metadata={"plan": "pro" if name in names else "free"})).status == 200
    first = (await partner.get(**{"metadata.plan": "pro", "size": "2"})).body
    assert [each["domain"] for each in first["items"]] == names[:2]
    rest = (await partner.get(**{"metadata.plan": "pro", "size": "2", "after": first["next"]})).body
    assert ([each["domain"] for each in rest["items"]], rest["next"]) == (names[2:], None)


async def test_a_secured_domains_notes_change_without_a_renewal(service: Service, partner: Partner) -> None:
    service.point(SHOP)
    async with service.database.transaction() as connection:  # as POST /ssl would, without an origin to ask
        settings = DomainSettings("https://origin.example.com", metadata=NOTES)
        await changes.enrol(connection, SHOP, "secure", partner.id, settings)
    changed = await partner.call("PUT", "/ssl", json={"domain": SHOP, "metadata": {"plan": "free"}})
    assert (changed.status, changed.message) == (200, "Domain successfully updated.")
    assert await found(partner, "/ssl", **{"metadata.plan": "free"}) == [SHOP]


@pytest.mark.parametrize(
    "wrong",
    [
        {"": "a"},
        {"1st": "a"},
        {"a b": "a"},
        {"a" * 41: "a"},
        {"a_b": "1", "A-B": "2"},
        {"plan": "a\r\nX-Forged: 1"},
        {"plan": "\0"},
        {"plan": "x" * 2040},
        {"plan": 1},
        {"plan": {"deep": "1"}},
        ["plan"],
        "plan",
    ],
)
async def test_notes_that_cannot_be_kept_are_refused_and_change_nothing(
    service: Service, partner: Partner, wrong: Any
) -> None:
    service.point(SHOP)
    refused = await partner.post(SHOP, metadata=wrong)
    assert (refused.status, refused.message) == (502, "Invalid 'metadata' parameter")
    assert (await partner.get()).body["items"] == []


@pytest.mark.parametrize(
    ("query", "named"),
    [
        ({"metadata.plan": "a", "metadata.other": "b"}, "metadata.plan"),
        ({"metadata.plan": "a", "sort": "domain"}, "sort"),
        ({"metadata.plan": "a", "page": "0"}, "page"),
        ({"metadata.": "a"}, "metadata."),
        ({"metadata": "a"}, "metadata"),
        ({"metadata.plan": "\0"}, "metadata.plan"),
    ],
)
async def test_a_query_for_notes_that_is_not_understood_is_refused(
    service: Service, query: dict[str, str], named: str
) -> None:
    refused = await (await service.partner()).get(**query)
    assert (refused.status, refused.message) == (400, f"Invalid '{named}' parameter")


async def test_events_of_a_domain_have_its_notes(service: Service, partner: Partner) -> None:
    service.point(SHOP)
    await partner.post(SHOP, metadata=NOTES)
    async with service.database.transaction() as connection:
        for domain, subdomain in (("customer.test", "shop"), ("customer.test", None)):
            event = events.NewEvent(partner.id, "domain.power", domain, subdomain, {"power_status": "success"})
            await events.record(connection, event)
    of_apex, of_shop = (await partner.call("GET", "/webhooks/events")).body["items"]
    assert of_shop["payload"]["metadata"] == NOTES
    assert "metadata" not in of_apex["payload"]


async def test_the_keys_that_origins_get_are_chosen_for_the_application(partner: Partner) -> None:
    assert (await partner.call("GET", "/application")).body["metadataFields"] == []
    assert (await partner.call("PUT", "/application", json={"metadataFields": ["plan", "plan", "Id"]})).status == 200
    assert (await partner.call("GET", "/application")).body["metadataFields"] == ["plan", "Id"]
    for wrong in (["a b"], ["a_b", "a-b"], [f"k{n}" for n in range(11)]):
        refused = await partner.call("PUT", "/application", json={"metadataFields": wrong})
        assert (refused.status, refused.message) == (400, "Invalid 'metadataFields' parameter"), wrong


RULES = {
    "allow": ["192.0.2.0/24", "::ffff:198.51.100.7"],
    "deny": ["192.0.2.7"],
    "rateLimit": {"requests": 100, "seconds": 10},
    "minimumTls": "1.3",
}
KEPT = RULES | {"allow": ["192.0.2.0/24", "198.51.100.7/32"], "deny": ["192.0.2.7/32"]}


async def test_rules_for_visitors_are_shown_kept_and_ended(service: Service) -> None:
    async def shown() -> Any:
        return (await partner.get()).body["items"][0]["visitors"]

    partner = await service.partner()
    service.point(SHOP)
    assert (await partner.post(SHOP, visitors=RULES)).status == 200
    assert await shown() == KEPT
    assert (await partner.put(SHOP, metadata={"plan": "pro"})).status == 200
    assert await shown() == KEPT
    assert (await partner.put(SHOP, visitors={"deny": ["2001:db8::/32"]})).status == 200
    assert await shown() == {"allow": [], "deny": ["2001:db8::/32"], "rateLimit": None, "minimumTls": None}
    assert (await partner.put(SHOP, visitors={})).status == 200
    assert await shown() is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"deny": ["shop.example"]},
        {"deny": ["192.0.2.7/24"]},
        {"allow": "192.0.2.0/24"},
        {"allow": [f"192.0.2.{n}" for n in range(201)]},
        {"rateLimit": {"requests": 0}},
        {"rateLimit": {"requests": 1, "seconds": 3601}},
        {"rateLimit": 5},
        {"minimumTls": "1.1"},
        {"allowed": []},
    ],
)
async def test_rules_for_visitors_that_make_no_sense_are_refused(
    service: Service, partner: Partner, wrong: Any
) -> None:
    service.point(SHOP)
    refused = await partner.post(SHOP, visitors=wrong)
    assert (refused.status, refused.message) == (502, "Invalid 'visitors' parameter")
    assert (await partner.get()).body["items"] == []


async def test_empty_objects_at_an_enrolment_state_nothing(service: Service, partner: Partner) -> None:
    service.point(SHOP)
    assert (await partner.post(SHOP, metadata={}, visitors={}, responsePolicy={})).status == 200
    by_hand = domains.NewDomain(
        "www.customer.test", "secure", DomainSettings("https://o.example.com", None, "", {}, {}, {})
    )
    async with service.database.transaction() as connection:
        await domains.enrol_by_hand(connection, partner.id, [by_hand])
        contents = await connection.fetch("select routed_content(d) as content from domains d order by product")
    assert len(contents) == 2
    assert not [row for row in contents if {"metadata", "visitors", "response_policy"} & row["content"].keys()]
    for path in ("/power", "/ssl"):
        [item] = (await partner.call("GET", path)).body["items"]
        assert (item["metadata"], item["visitors"], item["responsePolicy"]) == ({}, None, None)


STATED = {
    "hsts": {"maxAge": 31536000, "includeSubDomains": True, "customersAgree": True},
    "nosniff": False,
    "referrerPolicy": "off",
    "fields": {"X-Robots-Tag": "noindex", "X-Old": ""},
}


@pytest.mark.parametrize("product", ["power", "secure"])
async def test_what_a_domain_s_responses_carry_is_shown_kept_and_ended(service: Service, product: str) -> None:
    async def shown() -> Any:
        [item] = (await partner.call("GET", path)).body["items"]
        return item["responsePolicy"]

    async def put(**fields: Any) -> Any:
        changed = await partner.call("PUT", path, json={"domain": SHOP, **fields})
        assert changed.status == 200, changed.body
        return await shown()

    partner = await service.partner()
    path = "/power" if product == "power" else "/ssl"
    service.point(SHOP)
    async with service.database.transaction() as connection:  # as POST would, without an origin to ask
        settings = DomainSettings("https://origin.example.com")
        await changes.enrol(connection, SHOP, "power" if product == "power" else "secure", partner.id, settings)
    assert await shown() is None
    expected = {
        "hsts": {"maxAge": 31536000, "includeSubDomains": True, "preload": False},
        "nosniff": False,
        "referrerPolicy": "off",
        "compression": None,
        "fields": {"X-Robots-Tag": "noindex", "X-Old": ""},
    }
    assert await put(responsePolicy=STATED) == expected
    assert await put(metadata={"plan": "pro"}) == expected
    assert await put(responsePolicy={"hsts": "off"}) == dict.fromkeys(expected) | {"hsts": "off", "fields": {}}
    assert await put(responsePolicy={}) is None


@pytest.mark.parametrize(
    "wrong",
    [
        {"hsts": {"maxAge": 31536000, "includeSubDomains": True}},
        {"hsts": {"maxAge": 31536000, "preload": True}},
        {"hsts": "on"},
        {"fields": {"Set-Cookie": "a=b"}},
        {"referrerPolicy": "none"},
        {"other": 1},
    ],
)
async def test_what_no_response_may_carry_is_refused_for_a_domain_too(
    service: Service, partner: Partner, wrong: Any
) -> None:
    service.point(SHOP)
    refused = await partner.post(SHOP, responsePolicy=wrong)
    assert (refused.status, refused.message) == (502, "Invalid 'responsePolicy' parameter")
    assert (await partner.get()).body["items"] == []
