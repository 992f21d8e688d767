"""Lists that are sorted and searched: every name once and in order, and what an item shows beside the contract."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from urllib.parse import urlencode

import pytest

from api.schemas.list_cursor import to_text
from common.db import domains
from common.db.domain_list_query import NEVER, ListKey, Sort
from common.domain_settings import DomainSettings
from tests.integration.api.conftest import Service
from tests.integration.api.partner import Partner
from tests.integration.api.watching import WWW

NAMES = ("shop1.a.test", "shop2.b.test", "www.c.test", "shop3.d.test")


@pytest.fixture
async def partner(service: Service) -> Partner:
    """Of both products and Monitor, each name a day younger than the one before; `shop2` has left."""
    found = await service.partner()
    async with service.database.transaction() as connection:
        await connection.execute(
            "insert into domains (domain, product, application_id, application_url, created_at, redirect_to)"
            " select name, product, $2, 'https://o.test', date '2026-01-01' + place::int,"
            "  case product when 'secure' then 'https://to.test' end"
            " from unnest($1::text[]) with ordinality each_one (name, place), unnest(array['power', 'secure']) product",
            NAMES,
            found.id,
        )
        await connection.execute(
            "insert into certificates"
            " (domain, application_id, issuer, chain, private_key, not_before, not_after, live_at)"
            " select name, $2, 'Test CA', '', '', now(), now() + place * interval '1 day', now()"
            " from unnest($1::text[]) with ordinality each_one (name, place) where place <> 3",
            NAMES,
            found.id,
        )
        await connection.execute("update domains set departed_at = now() where domain = 'shop2.b.test'")
        await connection.execute(
            "insert into monitored_domains (id, application_id, domain, subdomain, dns_records, date_added)"
            " select 'mon_' || place, $2, split_part(name, '.', 2) || '.test', split_part(name, '.', 1), '[]',"
            "  date '2026-01-01' + place::int from unnest($1::text[]) with ordinality each_one (name, place)",
            NAMES,
            found.id,
        )
    return found


async def walk(partner: Partner, path: str, **query: str) -> list[Any]:
    found: list[Any] = []
    while True:
        body = (await partner.call("GET", f"{path}?{urlencode(query)}")).body
        found += body.get("items", body.get("domains"))
        if body["next"] is None:
            return found
        query["after"] = body["next"]


@pytest.mark.parametrize("path", ["/power", "/ssl"])
async def test_an_order_and_a_search_are_walked_by_after(partner: Partner, path: str) -> None:
    async def names(**query: str) -> list[str]:
        return [item["domain"] for item in await walk(partner, path, size="1", **query)]

    assert await names(sort="domain") == ["shop1.a.test", "shop2.b.test", "shop3.d.test", "www.c.test"]
    assert await names(sort="-createdAt") == list(reversed(NAMES))
    by_expiry = ["shop2.b.test", "shop1.a.test", "shop3.d.test", "www.c.test"]
    if path == "/ssl":  # is not active without a certificate
        by_expiry = ["shop2.b.test", "www.c.test", "shop1.a.test", "shop3.d.test"]
    assert await names(sort="expiresAt") == by_expiry
    assert await names(sort="-expiresAt") == by_expiry[::-1]
    assert await names(search="ShOp") == [name for name in NAMES if "shop" in name]
    assert await names(search="op", status="active", sort="-domain") == ["shop3.d.test", "shop1.a.test"]
    assert await names(search="absent") == []


async def test_items_show_ids_times_and_certificates(service: Service, partner: Partner) -> None:
    plain = (await partner.call("GET", "/ssl?size=200")).body["items"]
    listed = await walk(partner, "/ssl", sort="createdAt")
    assert listed == plain
    assert [item["id"][:4] for item in listed] == ["dom_"] * 4
    assert len({item["id"] for item in listed + await walk(partner, "/power", sort="domain")}) == 8
    assert listed[0]["redirectTo"] == "https://to.test"
    assert listed[0]["certificate"]["issuer"] == "Test CA"
    assert listed[2]["certificate"] is None
    assert listed[0]["createdAt"] == listed[0]["updatedAt"] == "2026-01-02T00:00:00+00:00"

    async with service.database.transaction() as connection:
        assert await domains.update(connection, NAMES[0], "secure", partner.id, DomainSettings(redirect_to=""))
    [changed] = await walk(partner, "/ssl", search="shop1")
    assert datetime.fromisoformat(changed["updatedAt"]) > datetime.fromisoformat(changed["createdAt"])
    assert changed["id"] == listed[0]["id"]
    assert "redirectTo" not in changed


async def test_monitored_domains_are_sorted_and_searched(partner: Partner) -> None:
    async def names(**query: str) -> list[str]:
        found = await walk(partner, "/monitor/domains", limit="1", **query)
        return [f"{item['subdomain']}.{item['domain']}" for item in found]

    assert await names(sort="domain") == sorted(NAMES)
    assert await names(sort="-date_added") == list(reversed(NAMES))
    assert await names(search="shop") == [name for name in NAMES if "shop" in name]
    first = (await partner.call("GET", "/monitor/domains?limit=1")).body
    assert not {"next", "created_at"} & {*first, *first["domains"][0]}, "the contract's own list"
    [item] = await walk(partner, "/monitor/domains", search="shop1")
    assert item["created_at"] == item["updated_at"] == "2026-01-02T00:00:00+00:00"
    body = {"domain": "a.test", "subdomain": "shop1", "dnsRecords": [WWW]}
    assert (await partner.call("PUT", "/monitor/domains", json=body)).status == 200
    assert (await walk(partner, "/monitor/domains", search="shop1"))[0]["updated_at"] > item["updated_at"]


async def test_what_is_not_understood_is_named(partner: Partner) -> None:
    moment = datetime.fromisoformat("2026-01-01T00:00:00+00:00")

    def cursor(sort: Sort, name: str = "a.test", at: datetime = moment) -> str | None:
        return to_text(ListKey(name, "power", "app", at, NEVER, is_well=True), sort)

    for path, name, query in (
        ("/power", "sort", {"sort": "name"}),
        ("/power", "search", {"search": "a\0"}),
        ("/power", "search", {"search": "x" * 254}),
        ("/power", "page", {"sort": "domain", "page": "1"}),
        ("/power", "after", {"after": "!"}),
        ("/power", "after", {"after": "bnVsbA"}),
        ("/power", "after", {"after": cursor("name")}),  # of another order
        ("/power", "after", {"after": cursor("added", "a\0.test")}),
        ("/power", "after", {"after": cursor("added", at=moment.replace(tzinfo=None))}),
        ("/power", "after", {"after": cursor("added", at=moment.replace(year=1))}),
        ("/monitor/domains", "sort", {"sort": "createdAt"}),
        ("/monitor/domains", "offset", {"search": "a", "offset": "1"}),
        ("/monitor/domains", "from_date", {"search": "a", "from_date": "2026-01-01"}),
    ):
        answer = await partner.call("GET", f"{path}?{urlencode(query)}")
        assert (answer.status, answer.message) == (400, f"Invalid '{name}' parameter"), query
    answer = await partner.call("GET", "/power?order=name")
    assert answer.status == 400
    assert all(known in answer.body["hint"] for known in ("sort", "search", "after", "page"))


async def test_an_end_of_anothers_list_opens_nothing(service: Service, partner: Partner) -> None:
    other = await service.partner()
    following = (await partner.call("GET", "/power?sort=domain&size=1")).body["next"]
    assert (await other.call("GET", f"/power?sort=domain&after={following}")).body["items"] == []
