"""Flows from a plan to live records and back, over knot (RFC 2136, TSIG) and PowerDNS (its API)."""

from __future__ import annotations

import asyncio
from pathlib import Path

import dns.name
import dns.tsig
import pytest

from bench.connect_faults.faults import WriteFault
from bench.connect_faults.proxies import Forward, update_proxy
from bench.lab.knot import Knot
from bench.lab.powerdns import PowerDns, find_powerdns
from common.connect.plan import journal_of
from common.db import connect_flows
from common.db.listener import Listener
from common.db.monitored_domains import CHANNEL
from common.flow_states import State
from tests.integration.api.connecting import APEX, CONFIG, CUSTOMER, KEY, PARENT, Flow, World, open_world

SHOP = f"shop.{APEX}"
TARGET = "target-1.partner.test"


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
    ("credentials", "code", "fields"),
    [
        ({"key_secret": "d3Jvbmc="}, "wrong_token", ["key_secret"]),
        ({"key_name": "unknown"}, "wrong_token", ["key_name", "key_algorithm"]),
        ({"key_algorithm": "hmac-sha512"}, "wrong_token", ["key_name", "key_algorithm"]),
        ({"key_algorithm": "hmac-sha265"}, "credentials_missing", ["key_algorithm"]),
        ({"key_name": "a..b"}, "credentials_missing", ["key_name"]),
        ({"key_secret": "a"}, "wrong_token", ["key_secret"]),
        ({"server": "192.0.2.7.example"}, "provider_unreachable", ["server"]),
        ({"server": "10.0.0.1"}, "address_refused", ["server"]),
        ({"server": "ns1.customer.example:port"}, "address_refused", ["server"]),
        ({"key_secret": ""}, "credentials_missing", ["key_secret"]),
    ],
)
async def test_what_went_wrong_is_said_and_nothing_is_written(
    world: World, credentials: dict[str, str], code: str, fields: list[str]
) -> None:
    flow = await world.planned()
    given = {name: value for name, value in (world.key | credentials).items() if value}
    halted = await flow.apply("dynamic_update", **given)
    assert (halted.body["state"], halted.body["error"]["code"]) == ("halted", code), halted.body["error"]
    assert halted.body["error"]["fields"] == fields
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


async def test_a_plan_is_written_by_a_providers_api(dsn: str, tmp_path: Path, probe_port: int) -> None:
    if find_powerdns() is None:
        pytest.skip("PowerDNS is not installed")
    async with (
        PowerDns.serve({"test": PARENT, APEX: CUSTOMER}) as provider,
        open_world(dsn, tmp_path, probe_port, provider.address) as world,
    ):
        flow = await world.planned()
        token = {"pdns_server": provider.api_url, "auth_token": provider.key}
        elsewhere = await flow.apply("provider_api", **token | {"pdns_server_id": "elsewhere"})
        assert (elsewhere.body["state"], elsewhere.body["error"]["code"]) == ("halted", "credentials_missing")
        assert elsewhere.body["error"]["fields"] == ["pdns_server_id"]
        await flow.act("plan")
        await flow.until("planned")
        wrong = await flow.apply("provider_api", **token | {"auth_token": "wrong"})
        assert (wrong.body["state"], wrong.body["error"]["code"]) == ("halted", "wrong_token"), wrong.body
        await flow.act("plan")
        await flow.until("planned")

        applied = await flow.apply("provider_api", **token)

        assert applied.body["state"] == "propagating", (applied.body["error"], applied.body["written"])
        await flow.until("finished")
        assert (await flow.act("undo", credentials=token)).body["state"] == "undone"
        assert await world.values(SHOP, "A") == ["192.0.2.1"]


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
