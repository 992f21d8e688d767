"""Flows at the root of a zone, where a CNAME cannot stand or a provider flattens it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import orjson
import pytest
from aiohttp import web

from bench.lab.knot import Knot, find_knot
from bench.lab.powerdns import PowerDns, find_powerdns
from bench.lab.serving import serving
from common.addresses import tenant_policy
from common.connect.zone_inspection import read_back
from common.dns import Resolver
from common.flows.plan import SetKey
from tests.integration.api.conftest import SERVER
from tests.integration.api.connecting import APEX, CONFIG, CUSTOMER, PARENT, World, open_world, zone_file
from tests.integration.api.ways.test_writing import TARGET
from tests.waiting import SECONDS


async def test_a_root_gets_our_addresses_alone(world: World, knot: Knot) -> None:
    await knot.add(APEX, "@", "A", "198.51.100.9")
    await knot.add(APEX, "@", "AAAA", "2001:db8::9")
    root = {
        "type": "A",
        "host": "@",
        "value": "{SERVICE_SERVERS}",
        "ttl": 300,
        "applicationUrl": "https://app.example.com",
    }
    flow = await world.planned(APEX, dnsRecords=[root])
    assert sorted(flow.changes) == [
        ("remove", "@", "AAAA", ["2001:db8::9"], []),
        ("replace", "@", "A", ["198.51.100.9"], ["192.0.2.10"]),
    ]
    await flow.apply("dynamic_update", **world.key)
    finished = await flow.until("finished")
    assert {each["product"]: each["status"] for each in finished["enrolments"]} == {
        "power": "success",
        "monitor": "success",
    }


async def served(world: World, host: str) -> tuple[str, str | None, str | None, list[str] | None]:
    """How edges serve a name: the product, its origin, where it redirects to, and its root paths."""
    async with world.service.database.connection() as connection:
        row = await connection.fetchrow(
            "select product, application_url, redirect_to, root_path_access from domains where domain = $1", host
        )
    assert row is not None, host
    return tuple(row)


async def test_a_root_that_is_to_have_a_cname_gets_two_addresses_and_keeps_all_else(
    dsn: str, tmp_path: Path, probe_port: int, knot: Knot
) -> None:
    servers: dict[str, Any] = {"SERVICE_SERVERS": "192.0.2.10,192.0.2.11,192.0.2.12"}
    async with open_world(dsn, tmp_path, probe_port, knot.address, **servers) as world:
        flow = await world.planned(APEX)
        assert flow.changes == [("add", "@", "A", [], ["192.0.2.10", "192.0.2.11"])]
        assert (await flow.apply("dynamic_update", **world.key)).body["state"] == "propagating"
        finished = await flow.until("finished")
        assert [(each["type"], each["status"]) for each in finished["records"]] == [("A", "propagated")] * 2
        assert [(each["name"], each["status"]) for each in finished["enrolments"]] == [(APEX, "success")] * 2
        assert (await world.values(APEX, "MX"), await world.values(APEX, "NS")) == (
            [f"10 mail.{APEX}."],
            [f"ns.{APEX}."],
        )
        assert (await flow.act("undo", credentials=world.key)).body["state"] == "undone"
        assert await world.values(APEX, "A") == []


async def test_a_root_cname_that_no_product_serves_is_written_by_no_way(world: World) -> None:
    record = {"type": "CNAME", "host": "@", "value": "elsewhere.test", "ttl": 300}
    flow = await world.planned(APEX, power=False, dnsRecords=[record])
    assert flow.body["plan"]["changes"] == []
    assert "takes no CNAME to elsewhere.test at the root" in flow.body["plan"]["blocked"][0]


async def test_a_provider_that_flattens_a_cname_at_the_root_keeps_it(dsn: str, tmp_path: Path, probe_port: int) -> None:
    if find_knot() is None:
        pytest.skip("knot is not installed")
    server = "ada.ns.cloudflare.com"
    parent = tuple(record for record in PARENT if record[0] != APEX)
    zone = ((APEX, "NS", f"{server}."), (APEX, "A", "198.51.100.9"), (APEX, "MX", "10 mail.test."))
    zones = {
        "test": zone_file((*parent, (APEX, "NS", f"{server}."))),
        APEX: zone_file(zone),
        "ns.cloudflare.com": zone_file((("ns.cloudflare.com", "NS", f"{server}."), (server, "A", "127.0.0.1"))),
    }
    async with Knot.serve(zones) as knot, open_world(dsn, tmp_path, probe_port, knot.address) as world:
        flow = await world.planned(APEX)
        assert flow.body["provider"]["id"] == "cloudflare"
        assert sorted(flow.changes) == [
            ("add", "@", "CNAME", [], [TARGET]),
            ("remove", "@", "A", ["198.51.100.9"], []),
        ]
        await knot.remove(APEX, "@", "A")
        await knot.add(APEX, "@", "A", SERVER)  # as the provider answers once it has the CNAME
        settings = world.service.settings
        resolver = Resolver(settings.dns_servers, tenant_policy(settings), authority_port=knot.address.port)
        keys: list[SetKey] = [(APEX, "CNAME"), (APEX, "A")]
        wanted = {keys[0]: frozenset({TARGET}), keys[1]: frozenset[str]()}
        assert await read_back(resolver, wanted, within_seconds=SECONDS, alias=(APEX, TARGET)) == wanted
        await flow.act("plan")
        await flow.until_planned()
        assert flow.body["plan"]["isEmpty"], flow.changes
        await flow.apply("manual")
        finished = await flow.until("finished")
    assert [(each["type"], each["status"]) for each in finished["records"]] == [("CNAME", "propagated")]
    assert [(each["product"], each["status"]) for each in finished["enrolments"]] == [
        ("power", "success"),
        ("monitor", "success"),
    ]


async def test_www_is_powered_and_the_root_redirects_to_it(world: World) -> None:
    record = CONFIG["dnsRecords"][0] | {"powerRootPathAccess": ["/static", "/feed"]}
    flow = await world.planned(f"www.{APEX}", monitor=False, wwwRedirect=True, dnsRecords=[record])
    assert sorted(flow.changes) == [
        ("add", "@", "A", [], [SERVER]),
        ("add", "www", "CNAME", [], [TARGET]),
    ]
    await flow.apply("dynamic_update", **world.key)
    finished = await flow.until("finished")
    assert {each["name"]: (each["product"], each["status"]) for each in finished["enrolments"]} == {
        f"www.{APEX}": ("power", "success"),
        APEX: ("secure", "success"),
    }
    assert await served(world, f"www.{APEX}") == ("power", record["applicationUrl"], None, ["/static", "/feed"])
    assert await served(world, APEX) == ("secure", None, f"https://www.{APEX}", None)

    root = {"type": "A", "host": "@", "value": "{SERVICE_SERVERS}", "ttl": 300, "ssl": True}
    flow = await world.planned(
        APEX, power=False, monitor=False, dnsRecords=[root | {"redirectTo": "https://new.example/to"}]
    )
    assert flow.body["plan"]["isEmpty"], "its address is there"
    await flow.apply("manual")
    await flow.until("finished")
    assert await served(world, APEX) == ("secure", None, "https://new.example/to", None)


@asynccontextmanager
async def one_address_api(url: str) -> AsyncIterator[str]:
    """The API of a provider that takes only one address of a name: PowerDNS' behind a check. Yields its URL."""
    async with aiohttp.ClientSession() as session:

        async def serve(request: web.Request) -> web.Response:
            body = await request.read()
            sets = orjson.loads(body)["rrsets"] if request.method == "PATCH" else []
            if any(each["type"] == "A" and len(each.get("records", [])) > 1 for each in sets):
                return web.Response(status=422)
            headers = {"X-API-Key": request.headers["X-API-Key"], "Content-Type": "application/json"}
            async with session.request(request.method, url + request.raw_path, data=body, headers=headers) as answer:
                return web.Response(status=answer.status, body=await answer.read(), content_type="application/json")

        app = web.Application()
        app.router.add_route("*", "/{path:.*}", serve)
        async with serving(app, "127.0.0.1", 0) as address:
            yield f"http://{address}"


async def test_a_root_gets_one_address_where_the_provider_refuses_the_second(
    dsn: str, tmp_path: Path, probe_port: int
) -> None:
    if find_powerdns() is None:
        pytest.skip("PowerDNS is not installed")
    servers: dict[str, Any] = {"SERVICE_SERVERS": "192.0.2.10,192.0.2.11"}
    root = {"type": "A", "host": "@", "value": "{SERVICE_SERVERS}", "ttl": 300, "applicationUrl": "https://a.example"}
    zone = (*CUSTOMER, (APEX, "A", "198.51.100.9"))
    async with (
        PowerDns.serve({"test": PARENT, APEX: zone}) as provider,
        one_address_api(provider.api_url) as url,
        open_world(dsn, tmp_path, probe_port, provider.address, **servers) as world,
    ):
        flow = await world.planned(APEX, dnsRecords=[root])
        assert flow.changes == [("replace", "@", "A", ["198.51.100.9"], ["192.0.2.10", "192.0.2.11"])]
        token = {"pdns_server": url, "auth_token": provider.key}

        applied = await flow.apply("provider_api", **token)

        assert (applied.body["state"], applied.body["error"]) == ("propagating", None), applied.body
        assert [each["after"] for each in applied.body["written"]] == [["192.0.2.10"]]
        await world.look_again(flow)
        finished = await flow.until("finished")
        assert [(each["value"], each["status"]) for each in finished["records"]] == [("192.0.2.10", "propagated")]
        assert [(each["product"], each["status"]) for each in finished["enrolments"]] == [
            ("power", "success"),
            ("monitor", "success"),
        ]
        monitored = (await world.partner.call("GET", f"/monitor/domains/{APEX}")).body
        assert [each["value"] for each in monitored["dns_records"]] == ["192.0.2.10"]
        assert (await flow.act("undo", credentials=token)).body["state"] == "undone"
        assert await world.values(APEX, "A") == ["198.51.100.9"]


async def test_one_address_that_a_person_sets_at_the_root_is_enough(
    dsn: str, tmp_path: Path, probe_port: int, knot: Knot
) -> None:
    servers: dict[str, Any] = {"SERVICE_SERVERS": "192.0.2.10,192.0.2.11"}
    async with open_world(dsn, tmp_path, probe_port, knot.address, **servers) as world:
        flow = await world.planned(APEX)
        await flow.apply("manual")
        await knot.add(APEX, "@", "A", "192.0.2.11")
        await world.look_again(flow)
        finished = await flow.until("finished")
        assert [(each["value"], each["manual"]["value"]) for each in finished["records"]] == [("192.0.2.11",) * 2]
        assert {each["status"] for each in finished["enrolments"]} == {"success"}
