"""Sites that are prepared, certificate and all, before their records change."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack
from pathlib import Path

import pytest

from bench.lab.knot import Knot
from common.db import certificates, preparations
from common.db.session import Connection
from common.domain_settings import DomainSettings
from common.enrolment import changes
from tests.integration.api import preparing
from tests.integration.api.connecting import APEX, CONFIG, World, open_world
from tests.integration.api.partner import Answer
from tests.integration.api.ways.test_writing import SHOP
from tests.integration.monitor import parts
from tests.waiting import SECONDS, until

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


async def test_a_name_that_is_enrolled_while_it_is_being_prepared_stays_as_it_was_enrolled(
    dsn: str, tmp_path: Path, probe_port: int, knot: Knot
) -> None:
    """As the server's own requests at once: the later one of them finds what the earlier one made."""
    given = DomainSettings("https://app.example.com/enrolled")
    wanted = {"product": "power", "applicationUrl": "https://app.example.com/prepared"}
    async with open_world(dsn, tmp_path, probe_port, knot.address, ACME_DNS_ZONE=ZONE) as world:
        database, application = world.service.database, world.partner.id
        async with database.transaction() as connection:
            await certificates.lock_domain(connection, SHOP)
            await changes.enrol(connection, SHOP, "power", application, given)
            asked = asyncio.create_task(world.partner.call("POST", f"/domains/{SHOP}/prepare", json=wanted))
            await locks_are_waited_for(connection, asked)
        answer = await asked
        assert (answer.status, answer.body["hint"]) == (409, f"{SHOP} is enrolled, and its DNS leads here")
        async with database.connection() as connection:
            assert await connection.fetchval("select count(*) from preparations") == 0


async def locks_are_waited_for(connection: Connection, asked: asyncio.Task[Answer]) -> None:
    """Wait until another connection waits for a lock of this one, or the call is answered without."""
    async with asyncio.timeout(SECONDS):
        while not asked.done() and not await connection.fetchval(
            # not of pg_stat_activity, which shows a transaction what it did at the first look
            "select exists (select from pg_locks where not granted and pg_backend_pid() = any(pg_blocking_pids(pid)))"
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
