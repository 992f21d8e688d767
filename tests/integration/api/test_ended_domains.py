"""Domains that ended: a partner sees which customers' records are loose ends."""

from __future__ import annotations

from typing import Any

from tests.integration.api.conftest import Service
from tests.integration.api.partner import Partner

STAYS, GONE, AGAIN = "stays.customer.test", "gone.customer.test", "again.customer.test"


async def listed(partner: Partner, **query: Any) -> list[tuple[str, bool | None]]:
    answer = await partner.call("GET", "/domains/ended", params=query)
    assert answer.status == 200, answer.body
    return [(each["domain"], each["leads_here"]) for each in answer.body["items"]]


async def test_ended_domains_are_listed_with_where_their_dns_leads(service: Service) -> None:
    partner, other = await service.partner(), await service.partner()
    for name in (STAYS, GONE, AGAIN):
        service.point(name)
        assert (await partner.post(name)).status == 200
        assert await listed(partner) == []
    for name in (STAYS, GONE, AGAIN):
        assert (await partner.delete(name)).status == 200
    assert (await partner.post(AGAIN)).status == 200
    service.zone.remove(GONE)
    assert await listed(partner) == [(GONE, False), (STAYS, True)]
    assert await listed(partner, after=GONE) == [(STAYS, True)]
    part = (await partner.call("GET", "/domains/ended", params={"limit": 1})).body
    assert (part["count"], part["next"]) == (1, GONE)
    assert await listed(other) == []
    for query in ({"limit": "51"}, {"after": ".."}, {"page": "1"}):
        assert (await partner.call("GET", "/domains/ended", params=query)).status == 400, query
