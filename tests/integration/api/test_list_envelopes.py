"""Lists beyond the specification have one shape: `items`, `limit`, `count` and `next`, which `after` takes."""

from __future__ import annotations

import pytest

from tests.integration.api.conftest import Service
from tests.integration.api.partner import Partner

LISTS = {
    "/sharing/connect": "links",
    "/connect/configurations": "configurations",
    "/audit": "entries",
    "/webhooks/events": "events",
    "/webhooks/deliveries": "deliveries",
    "/connect/flows": None,
    "/domains/ended": None,
    "/power?sort=domain": None,
    "/ssl?metadata.plan=pro": None,
}
"""Each list, with the name that its items had in 1.0.0."""


async def fill(service: Service, partner: Partner) -> None:
    for number in range(3):
        config = {"dnsRecords": [{"type": "TXT", "host": "@", "value": f"v{number}", "ttl": 300}]}
        assert (await partner.call("POST", "/sharing/connect", json={"config": config})).status == 201
        assert (await partner.call("POST", "/connect/configurations", json={"config": config})).status == 201


@pytest.mark.parametrize(("path", "former"), LISTS.items())
async def test_every_list_has_the_same_envelope_and_is_read_in_parts(
    service: Service, partner: Partner, path: str, former: str | None
) -> None:
    await fill(service, partner)
    after: dict[str, str] = {}
    seen: list[str] = []
    while True:
        answer = await partner.call("GET", path, params={"size" if "?" in path else "limit": "2", **after})
        body = answer.body
        assert {"items", "limit", "count", "next"} <= body.keys()
        assert (body["limit"], body["count"]) == (2, len(body["items"]))
        assert former is None or body[former] == body["items"]
        seen += [each["id"] for each in body["items"]]
        if body["next"] is None:
            break
        after = {"after": body["next"]}
    assert len(seen) == len(set(seen))
    if former in ("links", "configurations"):
        assert len(seen) == 3


async def test_a_list_takes_one_of_its_two_cursors(partner: Partner) -> None:
    refused = await partner.call("GET", "/webhooks/events", params={"after": "x", "before": "x"})
    assert (refused.status, refused.message) == (400, "Invalid 'before' parameter")
