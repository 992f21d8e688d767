"""Flows of the connect modal, up to the point where a monitor takes over."""

from __future__ import annotations

from typing import Any

import orjson
import pytest

from tests.integration.api.conftest import Service
from tests.integration.api.connecting import CNAME
from tests.integration.api.partner import Answer, Partner

CONFIG: dict[str, Any] = {"power": True, "dnsRecords": [CNAME]}


async def begin(partner: Partner, **fields: Any) -> Answer:
    return await partner.call("POST", "/connect/flows", json=CONFIG | fields)


async def act(partner: Partner, flow: dict[str, Any], action: str, **body: Any) -> Answer:
    return await partner.call("POST", f"/connect/flows/{flow['id']}/{action}", json=body)


async def test_a_flow_begins_with_the_choice_of_a_domain(partner: Partner) -> None:
    begun = await begin(partner, colour="blue")
    assert begun.status == 201, begun.body
    flow = begun.body
    assert (flow["state"], flow["domain"], flow["records"]) == ("choosing", None, [])
    assert flow["warnings"] == ["colour is not a key of the configuration: it is ignored"]
    chosen = await act(partner, flow, "domain", domain="customer.test", subdomain="Shop")
    assert (chosen.body["state"], chosen.body["host"]) == ("checking", "shop.customer.test")
    assert [(each["host"], each["value"]) for each in chosen.body["records"]] == [("shop", "target-1.partner.test")]
    read = await partner.call("GET", f"/connect/flows/{flow['id']}")
    assert read.body["version"] == chosen.body["version"] > flow["version"]


@pytest.mark.parametrize(
    ("fields", "key", "hint"),
    [
        ({"power": "yes"}, "power", "true or false"),
        ({"dnsRecords": []}, "dnsRecords", "at least one record"),
        ({"dnsRecords": [{"type": "CNAME"}]}, "dnsRecords[0].host", "expected a value: a record has"),
        ({"dnsRecords": [CONFIG["dnsRecords"][0] | {"ttl": 0}]}, "dnsRecords[0].ttl", "greater than 0"),
        ({"domain": "192.0.2.1"}, "domain", "a domain name"),
    ],
)
async def test_a_wrong_key_is_named_with_what_was_expected(
    service: Service, fields: dict[str, Any], key: str, hint: str
) -> None:
    refused = await begin(await service.partner(), **fields)
    assert (refused.status, refused.message) == (400, f"Invalid '{key}' parameter")
    assert hint in refused.body["hint"]


async def test_flows_are_their_applications_own(service: Service) -> None:
    mine, other = await service.partner(), await service.partner()
    flow = (await begin(mine, domain="shop.customer.test")).body
    assert (await other.call("GET", f"/connect/flows/{flow['id']}")).status == 404
    assert (await act(other, flow, "close")).status == 404


async def test_power_needs_the_subscription_to_the_modal(service: Service, partner: Partner) -> None:
    async with service.database.transaction() as connection:
        await connection.execute("update applications set connect = false")
    refused = await begin(partner)
    assert (refused.status, refused.body["code"]) == (403, "connect_subscription_required")
    assert (await begin(partner, power=False)).status == 201


async def test_a_closed_flow_stays_closed(partner: Partner) -> None:
    flow = (await begin(partner, domain="shop.customer.test")).body
    assert (await act(partner, flow, "close")).body["state"] == "closed"
    assert (await act(partner, flow, "close")).status == 200
    refused = await act(partner, flow, "plan")
    assert (refused.status, refused.body["code"]) == (409, "flow_closed")


async def test_events_show_the_flow_and_its_changes(service: Service, partner: Partner) -> None:
    flow = (await begin(partner)).body
    url = f"{service.url}/connect/flows/{flow['id']}/events"
    async with service.session.get(url, headers=partner.headers) as stream:
        assert stream.content_type == "text/event-stream"
        assert await next_event(stream) == ("choosing", flow["version"])
        await act(partner, flow, "domain", domain="shop.customer.test")
        assert (await next_event(stream))[0] == "checking"
        await act(partner, flow, "close")
        assert (await next_event(stream))[0] == "closed"
        assert b"data" not in await stream.content.read(), "the stream ends with the flow"


async def next_event(stream: Any) -> tuple[str, int]:
    async for line in stream.content:
        if line.startswith(b"data: "):
            flow = orjson.loads(line.removeprefix(b"data: "))
            return flow["state"], flow["version"]
    raise AssertionError("the stream ended")


async def test_a_token_for_browsers_makes_no_link_that_outlives_the_usual_one(partner: Partner) -> None:
    flow = (await begin(partner)).body
    browser = {"applicationId": partner.id, "Authorization": f"Bearer {partner.token(scope='connect')}"}
    path = f"/connect/flows/{flow['id']}/share"
    for headers, days, status in ((browser, 31, 400), (browser, 30, 201), (partner.headers, 31, 201)):
        answer = await partner.call("POST", path, json={"expiresInDays": days}, headers=headers)
        assert answer.status == status, (headers, days)


async def test_a_shared_configuration_is_found_by_its_link_until_it_is_revoked(
    service: Service, partner: Partner
) -> None:
    shared = await partner.call("POST", "/sharing/connect", json={"config": CONFIG, "expiresInDays": 3})
    assert shared.status == 201
    share_id = shared.body["id"]
    assert shared.body["link"].endswith(f"/share/{share_id}")
    opened = await partner.call("GET", f"/share/{share_id}", headers={"Accept": "application/json"})
    assert opened.body["config"] == CONFIG
    flow = (await partner.call("POST", "/connect/flows", json={"share": share_id})).body
    assert flow["job_id"] == shared.body["job_id"]
    listed = await partner.call("GET", "/sharing/connect")
    assert [each["id"] for each in listed.body["links"]] == [share_id]
    other = await service.partner()
    assert (await other.call("DELETE", f"/sharing/connect/{share_id}")).status == 404
    assert (await partner.call("DELETE", f"/sharing/connect/{share_id}")).status == 200
    gone = await partner.call("GET", f"/share/{share_id}", headers={"Accept": "application/json"})
    assert (gone.status, gone.body["code"]) == (404, "link_not_found")
