"""Flows from a plan to live records and back, over knot (RFC 2136, TSIG) and PowerDNS (its API)."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import dns.name
import dns.tsig
import orjson
import pytest
from aiohttp import web

from bench.connect_faults.faults import WriteFault
from bench.connect_faults.proxies import Forward, update_proxy
from bench.lab.knot import Knot, find_knot
from bench.lab.powerdns import PowerDns, find_powerdns
from bench.lab.serving import serving
from common.addresses import tenant_policy
from common.connect.plan import journal_of
from common.connect.zone_inspection import read_back
from common.db import certificates, connect_flows, preparations
from common.db.applications import update_application
from common.db.listener import Listener
from common.db.monitored_domains import CHANNEL
from common.db.session import Connection
from common.dns import Resolver
from common.domain_settings import DomainSettings
from common.enrolment import changes
from common.flow_states import State
from common.flows.plan import SetKey
from tests.integration.api import preparing
from tests.integration.api.conftest import SERVER
from tests.integration.api.connecting import APEX, CONFIG, CUSTOMER, KEY, PARENT, Flow, World, open_world, zone_file
from tests.integration.api.partner import Answer
from tests.integration.api.secured import go_live, serve_origin
from tests.integration.monitor import parts
from tests.waiting import SECONDS, until

SHOP = f"shop.{APEX}"
TARGET = "target-1.partner.test"


@pytest.fixture
async def knot() -> AsyncIterator[Knot]:
    if find_knot() is None:
        pytest.skip("knot is not installed")
    zones = {"test": zone_file(PARENT), APEX: zone_file(CUSTOMER)}
    async with Knot.serve(zones, keys={KEY["key_name"]: KEY["key_secret"]}) as knot:
        yield knot


@pytest.fixture
async def world(dsn: str, tmp_path: Path, probe_port: int, knot: Knot) -> AsyncIterator[World]:
    async with open_world(dsn, tmp_path, probe_port, knot.address) as world:
        yield world


async def test_a_plan_is_written_by_rfc_2136_enrolled_and_taken_back(world: World) -> None:
    flow = await world.planned()
    assert sorted(flow.changes) == [
        ("add", "shop", "CNAME", [], [TARGET]),
        ("remove", "shop", "A", ["192.0.2.1"], []),
    ]

    applied = await flow.apply("dynamic_update", **world.key)

    assert (applied.status, applied.body["state"]) == (200, "propagating"), applied.body
    assert await world.values(SHOP, "CNAME") == [f"{TARGET}."]
    async with world.service.database.connection() as connection:
        row = await connection.fetchval("select row_to_json(f)::text from connect_flows f")
    assert KEY["key_secret"] not in row, "credentials are used and forgotten"
    finished = await flow.until("finished")
    assert [(each["product"], each["status"]) for each in finished["enrolments"]] == [
        ("power", "success"),
        ("monitor", "success"),
    ]
    assert finished["enrolments"][0]["url"] == world.service.settings.https_url(SHOP)
    assert (finished["setup_type"], finished["propagation"]["status"]) == ("automatic", "success")
    events = {each["type"]: each for each in await world.events()}
    assert set(events) == {"domain.flow.completed", "domain.added"}
    assert events["domain.flow.completed"]["propagation_status"] == "pending"
    added = events["domain.added"]
    assert (added["power_status"], added["secure_status"], added["monitor_status"]) == ("success", "exempt", "success")
    assert (added["job_id"], added["user_id"]) == (finished["job_id"], "user-7")
    powered = await world.partner.call("GET", "/power", params={"page": 0})
    assert [each["domain"] for each in powered.body["items"]] == [SHOP]
    monitored = (await world.partner.call("GET", f"/monitor/domains/{APEX}", params={"subdomain": "shop"})).body
    assert (monitored["source"], monitored["job_id"]) == ("connect", finished["job_id"])
    query = {"request_id": applied.headers["X-Request-Id"]}
    audit = (await world.partner.call("GET", "/audit", params=query)).body
    assert {(each["action"], each["subject"], each["way"]) for each in audit["entries"]} == {
        ("power.enrol", SHOP, "api"),
        ("monitor.add", SHOP, "api"),
    }
    assert {"change", "order", "event"} <= {each["kind"] for each in audit["caused"]}, "what a monitor did of it"

    undone = await flow.act("undo", credentials=world.key)

    assert undone.body["state"] == "undone", undone.body
    assert await world.values(SHOP, "CNAME") == []
    assert await world.values(SHOP, "A") == ["192.0.2.1"]
    told = [each for each in await world.events() if each["type"] == "domain.flow.undone"]
    assert [(each["domain"], each["subdomain"], each["job_id"]) for each in told] == [
        (APEX, "shop", finished["job_id"])
    ]
    async with world.service.database.connection() as connection:
        asked = await connection.fetchval("select recheck_requested_at from orders where domain = $1", SHOP)
    assert asked is not None, "a monitor looks at once whether the domain still leads here"


async def test_no_step_waits_for_the_monitors_next_poll(dsn: str, tmp_path: Path, probe_port: int, knot: Knot) -> None:
    async with open_world(dsn, tmp_path, probe_port, knot.address, poll_seconds=3600.0) as world:
        listener = Listener(dsn, world.runner.wake, channel=CHANNEL)
        listening = asyncio.create_task(listener.run())
        try:
            flow = await world.planned()
            await flow.apply("dynamic_update", **world.key)
            await flow.until("finished")
        finally:
            listening.cancel()
            await asyncio.gather(listening, return_exceptions=True)


async def test_a_zone_that_changed_since_gets_a_new_plan_and_nothing_is_written(world: World, knot: Knot) -> None:
    flow = await world.planned()
    await knot.add(APEX, "shop", "TXT", '"new"')

    refused = await flow.apply("dynamic_update", **world.key)

    assert (refused.status, refused.body["code"]) == (409, "zone_changed")
    assert await world.values(SHOP, "A") == ["192.0.2.1"]
    flow.body = refused.body["flow"]
    assert ("remove", "shop", "TXT", ["new"], []) in flow.changes
    assert (await flow.apply("dynamic_update", **world.key)).body["state"] == "propagating"


@pytest.mark.parametrize(
    ("credentials", "code"),
    [
        ({"key_secret": "d3Jvbmc="}, "wrong_token"),
        ({"key_name": "unknown"}, "wrong_token"),
        ({"server": "192.0.2.7.example"}, "provider_unreachable"),
        ({"server": "10.0.0.1"}, "address_refused"),
        ({"server": "ns1.customer.example:port"}, "address_refused"),
        ({"key_secret": ""}, "credentials_missing"),
    ],
)
async def test_what_went_wrong_is_said_and_nothing_is_written(
    world: World, credentials: dict[str, str], code: str
) -> None:
    flow = await world.planned()
    given = {name: value for name, value in (world.key | credentials).items() if value}
    halted = await flow.apply("dynamic_update", **given)
    assert (halted.body["state"], halted.body["error"]["code"]) == ("halted", code), halted.body["error"]
    assert [each["status"] for each in halted.body["written"]] == ["not_written", "not_written"]
    assert await world.values(SHOP, "A") == ["192.0.2.1"]
    await flow.act("plan")
    await flow.until("planned")
    assert (await flow.apply("dynamic_update", **world.key)).body["state"] == "propagating"


async def test_undo_shows_what_others_changed_and_leaves_it_alone(world: World, knot: Knot) -> None:
    spf = {"type": "TXT", "host": "@", "value": "v=spf1 include:partner.test -all", "ttl": 300}
    flow = await world.planned(APEX, power=False, dnsRecords=[spf])
    assert [each[0] for each in flow.changes] == ["merge"], flow.changes
    await flow.apply("dynamic_update", **world.key)
    merged = await world.values(APEX, "TXT")
    assert merged == ['"v=spf1 include:mail.test include:partner.test -all"']
    await flow.until("finished")
    await knot.add(APEX, "@", "TXT", '"others"')

    refused = await flow.act("undo", credentials=world.key)

    assert (refused.status, refused.body["code"]) == (409, "written_changed")
    undone = await flow.act("undo", credentials=world.key, digest=refused.body["plan"]["digest"])
    assert undone.body["state"] == "undone", undone.body
    assert await world.values(APEX, "TXT") == ['"others"', '"v=spf1 include:mail.test -all"']


@pytest.mark.parametrize("written", [0, 1, 2], ids=["nothing", "half", "all"])
async def test_a_write_whose_process_died_is_settled_by_what_is_in_the_zone(
    world: World, knot: Knot, written: int
) -> None:
    """kill -9 of the API between its note of what it is about to write, and the end: the lease lapses."""
    flow = await world.planned()
    database = world.service.database
    async with database.transaction() as connection:
        row = await connect_flows.find(connection, flow.body["id"], world.partner.id)
        assert row is not None
        assert row.plan is not None
        journal = journal_of(row.plan, ())
        if written >= 1:
            await knot.remove(APEX, "shop", "A")
        if written >= 2:
            await knot.add(APEX, "shop", "CNAME", f"{TARGET}.")
        await connect_flows.begin(
            connection, row, lease_seconds=0.0, state=State.APPLYING, way="dynamic_update", journal=journal
        )

    settled = await flow.until("halted", "finished")

    if written == 2:
        assert settled["state"] == "finished"
    else:
        assert (settled["state"], settled["error"]["code"]) == ("halted", "interrupted")
        await flow.act("plan")
        await flow.until("planned")
        assert (await flow.apply("dynamic_update", **world.key)).body["state"] == "propagating"
        await flow.until("finished")
    assert await world.values(SHOP, "CNAME") == [f"{TARGET}."]
    assert (await flow.act("undo", credentials=world.key)).body["state"] == "undone"
    assert (await world.values(SHOP, "A"), await world.values(SHOP, "CNAME")) == (["192.0.2.1"], [])
    kinds = [each["type"] for each in await world.events()]
    assert sorted(kinds) == ["domain.added", "domain.flow.completed", "domain.flow.undone"], "each once"


async def test_a_change_that_a_provider_makes_late_is_taken_back_with_the_rest(world: World, knot: Knot) -> None:
    flow = await world.planned()
    wrong = await flow.apply("dynamic_update", **world.key | {"key_secret": "d3Jvbmc="})
    assert (wrong.body["state"], {each["status"] for each in wrong.body["written"]}) == ("halted", {"not_written"})
    await knot.remove(APEX, "shop", "A")  # a part of it comes after all
    await flow.act("plan")
    await flow.until_planned()
    assert flow.changes == [("add", "shop", "CNAME", [], [TARGET])]
    applied = await flow.apply("dynamic_update", **world.key)
    assert (applied.body["state"], {each["status"] for each in applied.body["written"]}) == ("propagating", {"written"})
    await flow.until("finished")
    assert (await flow.act("undo", credentials=world.key)).body["state"] == "undone"
    assert (await world.values(SHOP, "A"), await world.values(SHOP, "CNAME")) == (["192.0.2.1"], [])


async def test_a_write_that_a_monitor_has_settled_meanwhile_is_no_server_error(world: World, knot: Knot) -> None:
    """The API stood still after the write until its lease had lapsed."""
    flow = await world.planned()
    key = dns.tsig.Key(dns.name.from_text(KEY["key_name"]), KEY["key_secret"], dns.tsig.HMAC_SHA256)

    async def stand_still(_: str, forward: Forward) -> WriteFault:
        await forward()
        async with world.service.database.transaction() as connection:
            await connection.execute("update connect_flows set lease_until = clock_timestamp()")
        await Flow(world, flow.body).until("propagating", "enrolling", "finished")
        return WriteFault.CUT_BEFORE

    async with update_proxy(knot.address, key, stand_still) as proxy:
        refused = await flow.apply("dynamic_update", **world.key | {"server": str(proxy)})

    assert (refused.status, refused.body["code"]) == (409, "flow_busy"), refused.body
    await flow.until("finished")


async def test_records_that_are_not_live_in_time_are_reported_with_a_link(world: World) -> None:
    flow = await world.planned()
    await flow.apply("manual")
    async with world.service.database.transaction() as connection:
        await connection.execute("update connect_flows set since = since - interval '72 hours', due_at = now()")
    timed_out = await flow.until("timed_out")
    assert timed_out["propagation"]["status"] == "timeout"
    event = next(each for each in await world.events() if each["type"] == "domain.propagation.timeout")
    assert [each["host"] for each in event["data"]["records_non_propagated"]] == ["shop"]
    path = event["connect_link"].removeprefix(world.service.settings.base_url)
    link = await world.partner.call("GET", path, headers={"Accept": "application/json"})
    assert link.body["config"]["prefilledDomain"] == SHOP


async def test_a_token_of_a_link_opens_flows_of_its_domain_alone(world: World) -> None:
    config = CONFIG | {"prefilledDomain": SHOP}
    shared = (await world.partner.call("POST", "/sharing/connect", json={"config": config})).body
    opened = await world.partner.call("GET", f"/share/{shared['id']}", headers={"Accept": "application/json"})
    headers = {"applicationId": world.partner.id, "Authorization": f"Bearer {opened.body['token']}"}

    begun = await world.partner.call("POST", "/connect/flows", json={"share": shared["id"]}, headers=headers)

    assert (begun.status, begun.body["host"], begun.body["job_id"]) == (201, SHOP, shared["job_id"])
    other = await world.begin("shop.other.test")
    read = await world.partner.call("GET", f"/connect/flows/{other.body['id']}", headers=headers)
    assert read.status == 403
    assert (await world.partner.call("GET", "/power", headers=headers)).status == 403


async def test_records_set_by_hand_are_found(world: World, knot: Knot) -> None:
    flow = await world.planned()
    waiting = await flow.apply("manual")
    assert (waiting.body["state"], waiting.body["setup_type"]) == ("waiting", "manual")
    await knot.remove(APEX, "shop", "A")
    await knot.add(APEX, "shop", "CNAME", f"{TARGET}.")
    await flow.act("check")
    await flow.until("finished")


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


SECURE = {"type": "CNAME", "host": "{SUBDOMAIN}", "value": "{CNAME_TARGET}", "ttl": 300, "ssl": True}


async def test_a_flow_secures_what_post_ssl_would(world: World) -> None:
    async with serve_origin() as origin:
        flow = await world.planned(power=False, monitor=False, dnsRecords=[SECURE | {"applicationUrl": origin.url}])
        await flow.apply("dynamic_update", **world.key)
        finished = await flow.until("finished")
    assert [(each["product"], each["status"]) for each in finished["enrolments"]] == [("secure", "success")]
    assert origin.asked == [("HEAD", origin.url.removeprefix("http://"))], "the origin was asked first, as by POST /ssl"
    assert finished["enrolments"][0]["certificate"] == "ordering", "finished is not yet HTTPS"
    await go_live(world.service, SHOP, world.partner.id)
    assert (await flow.read())["enrolments"][0]["certificate"] == "live"


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({}, "no_origin"),
        ({"applicationUrl": "http://10.0.0.1"}, "origin_refused"),
        ({"applicationUrl": "http://127.0.0.1:1"}, "origin_unreachable"),
        ({"redirectTo": SHOP}, "loop"),
    ],
)
async def test_a_flow_secures_nothing_that_post_ssl_would_refuse(
    world: World, fields: dict[str, str], code: str
) -> None:
    flow = await world.planned(power=False, monitor=False, dnsRecords=[SECURE | fields])
    await flow.apply("dynamic_update", **world.key)
    finished = await flow.until("finished")
    assert [(each["product"], each["status"], each.get("code")) for each in finished["enrolments"]] == [
        ("secure", "failed", code)
    ]
    assert (await world.partner.call("GET", "/ssl", params={"page": 0})).body["items"] == []


async def test_what_failed_to_be_enrolled_is_tried_again_when_asked(world: World) -> None:
    flow = await world.planned(power=False, monitor=True, dnsRecords=[SECURE])
    await flow.apply("dynamic_update", **world.key)
    finished = await flow.until("finished")
    statuses = [(each["product"], each["status"], each.get("code")) for each in finished["enrolments"]]
    assert statuses == [("secure", "failed", "no_origin"), ("monitor", "success", None)]
    async with serve_origin() as origin:
        async with world.service.database.transaction() as connection:
            await update_application(connection, world.partner.id, application_url=origin.url)
        assert (await flow.act("check")).body["enrolments"][0]["status"] in ("pending", "success")
        await flow.act("check")  # once more changes nothing
        finished = await flow.until("finished")
    assert [(each["product"], each["status"]) for each in finished["enrolments"]] == [
        ("secure", "success"),
        ("monitor", "success"),
    ]
    assert "code" not in finished["enrolments"][0]
    assert (await flow.act("check")).body["version"] == finished["version"], "nothing is left to try"
    assert [each["domain"] for each in (await world.partner.call("GET", "/ssl", params={"page": 0})).body["items"]] == [
        SHOP
    ]
    assert sorted(each["type"] for each in await world.events()) == ["domain.added", "domain.flow.completed"]


async def test_a_secured_record_has_an_origin_without_a_path(world: World) -> None:
    record = SECURE | {"applicationUrl": "https://app.example.com/shop"}
    body = CONFIG | {"power": False, "dnsRecords": [record], "domain": SHOP}
    refused = await world.partner.call("POST", "/connect/flows", json=body)
    assert (refused.status, refused.body["message"]) == (400, "Invalid 'dnsRecords[0].applicationUrl' parameter")


async def test_a_plan_is_written_by_a_providers_api(dsn: str, tmp_path: Path, probe_port: int) -> None:
    if find_powerdns() is None:
        pytest.skip("PowerDNS is not installed")
    async with (
        PowerDns.serve({"test": PARENT, APEX: CUSTOMER}) as provider,
        open_world(dsn, tmp_path, probe_port, provider.address) as world,
    ):
        flow = await world.planned()
        token = {"pdns_server": provider.api_url, "auth_token": provider.key}
        wrong = await flow.apply("provider_api", **token | {"auth_token": "wrong"})
        assert (wrong.body["state"], wrong.body["error"]["code"]) == ("halted", "wrong_token"), wrong.body
        await flow.act("plan")
        await flow.until("planned")

        applied = await flow.apply("provider_api", **token)

        assert applied.body["state"] == "propagating", (applied.body["error"], applied.body["written"])
        await flow.until("finished")
        assert (await flow.act("undo", credentials=token)).body["state"] == "undone"
        assert await world.values(SHOP, "A") == ["192.0.2.1"]


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


async def test_a_provider_api_merges_an_spf_record_with_a_network(dsn: str, tmp_path: Path, probe_port: int) -> None:
    """dns-lexicon's PowerDNS ends the content of a record at a slash: the old record stayed beside the new one."""
    if find_powerdns() is None:
        pytest.skip("PowerDNS is not installed")
    old = '"v=spf1 ip4:192.0.2.0/24 -all"'
    zone = (*(record for record in CUSTOMER if record[1] != "TXT"), (APEX, "TXT", old))
    async with (
        PowerDns.serve({"test": PARENT, APEX: zone}) as provider,
        open_world(dsn, tmp_path, probe_port, provider.address) as world,
    ):
        spf = {"type": "TXT", "host": "@", "value": "v=spf1 include:partner.test -all", "ttl": 300}
        flow = await world.planned(APEX, power=False, dnsRecords=[spf])
        token = {"pdns_server": provider.api_url, "auth_token": provider.key}

        applied = await flow.apply("provider_api", **token)

        assert applied.body["state"] == "propagating", (applied.body["error"], applied.body["written"])
        assert await world.values(APEX, "TXT") == ['"v=spf1 ip4:192.0.2.0/24 include:partner.test -all"']
        await flow.until("finished")
        assert (await flow.act("undo", credentials=token)).body["state"] == "undone"
        assert await world.values(APEX, "TXT") == [old]


ZONE = "acme.frontage.test"


@pytest.mark.parametrize("by_browser", [True, False])
async def test_a_site_that_is_up_is_prepared_before_its_records_change(
    dsn: str, tmp_path: Path, probe_port: int, knot: Knot, by_browser: bool
) -> None:
    async with (
        open_world(dsn, tmp_path, probe_port, knot.address, ACME_DNS_ZONE=ZONE) as world,
        AsyncExitStack() as stack,
    ):
        for runner in preparing.runners(world.service, tmp_path):
            await stack.enter_async_context(parts.running(runner))
        flow = await world.planned()
        async with world.service.database.transaction() as connection:
            await connection.execute("update connect_flows set by_browser = $1", by_browser)
        path = f"/connect/flows/{flow.body['id']}/prepare"
        assert (await world.partner.call("GET", path)).body == {"isOffered": True, "isNeeded": False, "domains": []}
        answer = await world.partner.call("POST", path, json={})
        assert answer.status == 200, answer.body
        [prepared] = answer.body["domains"]
        record = prepared["record"]
        assert (prepared["state"], record["host"], record["state"]) == ("waiting", f"_acme-challenge.{SHOP}", "missing")
        assert (await world.partner.call("POST", path, json={})).body["domains"][0]["record"] == record
        await knot.add(APEX, "_acme-challenge.shop", record["type"], f"{record['value']}.")

        async def is_prepared() -> bool:
            [shown] = (await world.partner.call("GET", path)).body["domains"]
            return bool(shown["state"] == "prepared")

        await until(is_prepared, "a flow's domain that is prepared")
        assert (await world.partner.call("POST", path, json={})).status == 200, "it is no change"
        applied = await flow.apply("dynamic_update", **world.key)
        assert applied.status == 200, applied.body
        finished = await flow.until("finished")
        assert [each["status"] for each in finished["enrolments"]] == ["success", "success"]
        shown = (await world.partner.call("GET", "/power", params={"domain": SHOP})).body
        assert shown["powerStatus"] == "active"
        assert (await world.partner.call("GET", path)).body["isOffered"] is False


async def test_nothing_is_prepared_where_nothing_is_up_or_the_application_does_not_lead(
    dsn: str, tmp_path: Path, probe_port: int, knot: Knot
) -> None:
    async with open_world(dsn, tmp_path, probe_port, knot.address, ACME_DNS_ZONE=ZONE) as world:
        new = await world.planned(f"new.{APEX}")
        refused = await world.partner.call("POST", f"/connect/flows/{new.body['id']}/prepare", json={})
        assert (refused.status, refused.body["code"]) == (409, "not_preparable")
        flow = await world.planned()
        async with world.service.database.transaction() as connection:
            await connection.execute("update connect_flows set vouched = false")
        path = f"/connect/flows/{flow.body['id']}/prepare"
        assert (await world.partner.call("GET", path)).body == {"isOffered": False, "isNeeded": False, "domains": []}
        assert (await world.partner.call("POST", path, json={})).status == 409


async def test_a_browser_prepares_no_name_that_is_enrolled_though_its_dns_has_left(
    dsn: str, tmp_path: Path, probe_port: int, knot: Knot
) -> None:
    async with open_world(dsn, tmp_path, probe_port, knot.address, ACME_DNS_ZONE=ZONE) as world:
        flow = await world.planned()
        path = f"/connect/flows/{flow.body['id']}/prepare"
        async with world.service.database.transaction() as connection:
            await connection.execute(
                "insert into domains (domain, product, application_id, application_url, departed_at)"
                " values ($1, 'power', $2, 'https://app.example.com/of-the-customer', now())",
                SHOP,
                world.partner.id,
            )
        assert (await world.partner.call("GET", path)).body["isOffered"] is True, "the server's flow may change it"
        async with world.service.database.transaction() as connection:
            await connection.execute("update connect_flows set by_browser = true")
        assert (await world.partner.call("GET", path)).body["isOffered"] is False
        assert (await world.partner.call("POST", path, json={})).status == 409


async def test_what_a_server_does_of_a_name_while_a_browser_prepares_it_stays(
    dsn: str, tmp_path: Path, probe_port: int, knot: Knot
) -> None:
    """The browser's checks have passed when the server's transaction, which was open meanwhile, is committed."""
    given = DomainSettings("https://app.example.com/of-the-customer")
    async with open_world(dsn, tmp_path, probe_port, knot.address, ACME_DNS_ZONE=ZONE) as world:
        flow, database, application = await world.planned(), world.service.database, world.partner.id
        path = f"/connect/flows/{flow.body['id']}/prepare"
        async with database.transaction() as connection:
            await connection.execute("update connect_flows set by_browser = true")

        async def prepare_meanwhile(act: Callable[[Connection], Awaitable[object]]) -> Answer:
            async with database.transaction() as connection:
                await certificates.lock_domain(connection, SHOP)
                await act(connection)
                asked = asyncio.create_task(world.partner.call("POST", path, json={}))
                await locks_are_waited_for(connection, asked)
            return await asked

        async def stored() -> list[str]:
            async with database.connection() as connection:
                rows = await connection.fetch("select application_url from preparations where domain = $1", SHOP)
            return [row["application_url"] for row in rows]

        async def request(connection: Connection) -> None:
            await preparations.request(connection, application, preparations.Wanted(SHOP, "power", given))

        assert (await prepare_meanwhile(request)).status == 200
        assert await stored() == [given.application_url]
        async with database.transaction() as connection:
            await preparations.delete(connection, SHOP, application)
        answer = await prepare_meanwhile(
            lambda connection: changes.enrol(connection, SHOP, "power", application, given)
        )
        assert (answer.status, answer.body["code"], await stored()) == (409, "not_preparable", [])
        async with database.connection() as connection:
            audited = await connection.fetch("select after from audit where action = 'domain.prepare'")
        assert audited == [], "nothing of the browser's was stored"


async def locks_are_waited_for(connection: Connection, asked: asyncio.Task[Answer]) -> None:
    """Wait until another connection waits for a lock of this one, or the call is answered without."""
    async with asyncio.timeout(SECONDS):
        while not asked.done() and not await connection.fetchval(
            "select exists (select from pg_stat_activity where pg_backend_pid() = any(pg_blocking_pids(pid)))"
        ):
            await asyncio.sleep(0.01)


async def test_nothing_is_prepared_without_a_zone_of_the_operators(world: World) -> None:
    flow = await world.planned()
    path = f"/connect/flows/{flow.body['id']}/prepare"
    assert (await world.partner.call("GET", path)).body == {"isOffered": False, "isNeeded": False, "domains": []}


async def test_a_wildcard_is_connected_where_its_challenge_is_delegated(
    dsn: str, tmp_path: Path, probe_port: int, knot: Knot
) -> None:
    async with open_world(dsn, tmp_path, probe_port, knot.address, ACME_DNS_ZONE=ZONE) as world:
        wildcard = CONFIG["dnsRecords"][0] | {"host": "*"}
        flow = await world.planned(APEX, dnsRecords=[wildcard], monitor=False)
        path = f"/connect/flows/{flow.body['id']}/prepare"
        offered = {"isOffered": True, "isNeeded": True, "domains": []}
        assert (await world.partner.call("GET", path)).body == offered
        [prepared] = (await world.partner.call("POST", path, json={})).body["domains"]
        record = prepared["record"]
        assert (prepared["domain"], record["host"]) == (f"*.{APEX}", f"_acme-challenge.{APEX}")
        await knot.add(APEX, "_acme-challenge", record["type"], f"{record['value']}.")
        applied = await flow.apply("dynamic_update", **world.key)
        assert applied.status == 200, applied.body
        [enrolled] = (await flow.until("finished"))["enrolments"]
        assert (enrolled["name"], enrolled["status"]) == (f"*.{APEX}", "success"), enrolled
