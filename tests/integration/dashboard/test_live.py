"""Parts of pages that are sent anew: they end with the rights of their user, and outlive a database that is away."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from dataclasses import fields, replace
from typing import Any

import aiohttp
import pytest

from api.bounds import Bounds, LiveIntervals
from api.dashboard import live
from api.dashboard.handlers import home
from api.rights import Roles
from common import monitored_changes
from common.accounts import Role
from common.db import events, monitor_nodes, sessions, users, webhook_endpoints
from common.db.applications import update_application
from common.db.events import NewEvent
from common.db.monitored_domains import Labels, MonitoredKey
from common.db.users import Organisation
from common.errors import DatabaseUnavailable
from common.records import parse_record
from tests.integration.api.installation import end_monitors, lease_monitor
from tests.integration.dashboard.conftest import Browser, Dashboard
from tests.integration.dashboard.test_tenants import SHOP, power
from tests.waiting import until

OFTEN = LiveIntervals(**dict.fromkeys((each.name for each in fields(LiveIntervals)), 0.02))


@pytest.fixture
def bounds() -> Bounds:
    return Bounds(live=OFTEN)


DOMAIN = f"/applications/{{}}/domains/{SHOP}/live"


async def followed(browser: Browser, application_id: str, path: str = DOMAIN) -> aiohttp.ClientResponse:
    """A stream, by default of a domain, of which the first part has come."""
    response = await browser.session.get(f"{browser.url}/dashboard{path.format(application_id)}")
    assert response.content_type == "text/event-stream"
    await read_until(response, "event: content")
    return response


async def read_until(stream: aiohttp.ClientResponse, *texts: str) -> None:
    """Events, until each text was in one."""
    missing = {text.encode() for text in texts}
    while missing:
        event = await stream.content.readuntil(b"\n\n")
        missing -= {text for text in missing if text in event}


@pytest.mark.parametrize("end", ["session", "membership"])
async def test_a_stream_ends_with_the_rights_of_its_user(dashboard: Dashboard, end: str) -> None:
    organisation = await dashboard.organisation()
    partner = await dashboard.partner(organisation)
    await power(dashboard, partner)
    browser = await dashboard.signed_in("vic@acme.example", organisation, "viewer")
    stream = await followed(browser, partner.id)
    async with dashboard.service.database.transaction() as connection:
        user = await users.find_user(connection, "vic@acme.example")
        assert user is not None
        if end == "session":
            await sessions.end_all(connection, user.id)
        else:
            await users.remove_membership(connection, user.id, organisation.id)
    async with stream:
        await stream.content.read()  # until it ends


async def test_a_stream_goes_on_when_the_database_was_away(
    dashboard: Dashboard, monkeypatch: pytest.MonkeyPatch
) -> None:
    partner = await dashboard.partner()
    await power(dashboard, partner)
    browser = await dashboard.signed_in("ops@x.test")
    stream = await followed(browser, partner.id)
    asked, found = 0, live.find_visitor  # type: ignore[attr-defined]

    async def sometimes(*arguments: Any) -> object:
        nonlocal asked
        asked += 1
        if asked < 3:
            raise DatabaseUnavailable("away")
        return await found(*arguments)

    monkeypatch.setattr(live, "find_visitor", sometimes)
    await until(lambda: asked >= 3, "questions while the database is away")
    await read_until(stream, "event: state\ndata: off")
    await read_until(stream, "event: state\ndata: on")
    async with dashboard.service.database.transaction() as connection:
        await connection.execute("delete from orders")
    async with stream:
        await read_until(stream, "none is ordered")


WATCHED = "www.watched.test"
NEW_TARGET = "new.partner.test"
UNCHECKED = "update monitored_domains set state = 'present', last_checked_at = now()"
MISSING = "update monitored_domains set state = 'missing', records_present = '[]', records_missing = dns_records"


async def monitor(dashboard: Dashboard, application_id: str, state: str = UNCHECKED) -> None:
    records = (parse_record({"type": "A", "host": "www", "value": "192.0.2.1", "ttl": 300}),)
    async with dashboard.service.database.transaction() as connection:
        await monitored_changes.add(connection, MonitoredKey(application_id, "watched.test", "www"), records, Labels())
        await connection.execute(state)


@pytest.mark.parametrize(
    ("path", "shown"),
    [
        ("/live", ["Records missing", 'data-into="totals"', 'data-into="attention-card"']),
        ("/domains/live?product=monitor", [f"{WATCHED}</a>", "Records missing"]),
        ("/applications/{}/live", ['data-into="totals"', NEW_TARGET]),
        (
            f"/applications/{{}}/monitored/{WATCHED}/live",
            ['"monitored-state"><span class="badge bad">Records missing', "Missing"],
        ),
    ],
)
async def test_what_a_page_shows_is_sent_anew_when_it_changes(
    dashboard: Dashboard, path: str, shown: list[str]
) -> None:
    partner = await dashboard.partner(organisation := await dashboard.organisation())
    await monitor(dashboard, partner.id)
    browser = await dashboard.signed_in("vic@acme.example", organisation, "viewer")
    stream = await followed(browser, partner.id, path)
    async with dashboard.service.database.transaction() as connection:
        await connection.execute(MISSING)
        await update_application(connection, partner.id, cname_target=NEW_TARGET)
    async with stream:
        await read_until(stream, *shown)


async def test_deliveries_and_the_diagnosis_are_sent_anew(dashboard: Dashboard) -> None:
    partner = await dashboard.partner()
    await power(dashboard, partner)
    browser = await dashboard.signed_in("ops@x.test")
    async with dashboard.service.database.transaction() as connection:
        await update_application(connection, partner.id, webhook_url="https://hooks.partner.example/")
    async with (
        await followed(browser, partner.id) as domain,
        await followed(browser, partner.id, "/applications/{}/webhooks/live") as deliveries,
    ):
        async with dashboard.service.database.transaction() as connection:
            event = NewEvent(partner.id, "domain.power", "customer.test", "shop", {"reason": "renewed"})
            await events.record(connection, event)
        await read_until(domain, 'data-into="diagnosis-body"', "renewed")
        await read_until(deliveries, "Pending")
        async with dashboard.service.database.transaction() as connection:
            await webhook_endpoints.note_failure(connection, partner.id, "no connection could be made")
        await read_until(deliveries, 'data-into="endpoint-status"', "Failing", "No connection could be made.")


async def test_the_answer_to_a_delivery_is_sent(dashboard: Dashboard) -> None:
    partner = await dashboard.partner()
    browser = await dashboard.signed_in("ops@x.test")
    async with dashboard.service.database.transaction() as connection:
        await update_application(connection, partner.id, webhook_url="https://hooks.partner.example/")
        event = await events.record(connection, NewEvent(partner.id, "webhook.test", None, None, {}))
    async with await followed(browser, partner.id, f"/applications/{{}}/webhooks/{event}/live") as stream:
        await end_monitors(dashboard.service.database)
        await read_until(stream, "No running monitor sends webhooks now")
        async with dashboard.service.database.transaction() as connection:
            entry = {"at": "2026-03-04T05:06:07+00:00", "status": 503, "error": "HTTP 503"}
            await connection.execute(
                "update deliveries set status = 'failed', due_at = null, settled_at = now(), log = $1", [entry]
            )
        await read_until(stream, 'data-into="delivery-status"', "Failed", "Answered 503")


async def test_the_overview_says_which_work_is_done_for_no_domain(dashboard: Dashboard) -> None:
    partner = await dashboard.partner()
    browser = await dashboard.signed_in("ops@x.test")
    async with await followed(browser, partner.id, "/live") as stream:
        assert "All is well" in (await browser.get()).text
        await lease_monitor(dashboard.service.database, stopped=(monitor_nodes.CHECKING,))
        await read_until(stream, "No monitored record is checked now")
        await end_monitors(dashboard.service.database)
        await dashboard.service.edge.stop()
        async with dashboard.service.database.transaction() as connection:
            await connection.execute("update edge_nodes set lease_until = now()")
        await read_until(stream, "No certificate is issued now", "no edge reports to the database")
        assert "All is well" not in (await browser.get()).text


@pytest.fixture
def rendered(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The organisations of each rendering of the overview, as they are begun."""
    begun: list[str] = []
    standing = home.HomePage._standing

    async def counted(self: home.HomePage, roles: Roles) -> str:
        begun.append(",".join(roles.visible_organisation_ids or ["all"]))
        return await standing(self, roles)

    monkeypatch.setattr(home.HomePage, "_standing", counted)
    return begun


@pytest.mark.parametrize("bounds", [Bounds(live=replace(OFTEN, overview=3600.0))], ids=["rarely"])
async def test_members_of_an_organisation_share_a_rendering_and_others_do_not(
    dashboard: Dashboard, rendered: list[str]
) -> None:
    ours, theirs = await dashboard.organisation("Ours"), await dashboard.organisation("Theirs")
    await monitor(dashboard, (await dashboard.partner(ours)).id, MISSING)
    async with AsyncExitStack() as stack:
        visitors: tuple[tuple[str, Organisation | None, Role], ...] = (
            ("vic", ours, "viewer"),
            ("val", ours, "viewer"),
            ("dev", ours, "developer"),
            ("eve", theirs, "viewer"),
            ("ops", None, "developer"),
        )
        for name, organisation, role in visitors:
            browser = await dashboard.signed_in(f"{name}@x.test", organisation, role)
            stream = await stack.enter_async_context(await browser.session.get(f"{browser.url}/dashboard/live"))
            if name != "val":  # who came later waits for the next rendering
                await read_until(stream, "All is well" if name == "eve" else WATCHED)
    assert rendered == [ours.id, ours.id, theirs.id, "all"]


async def test_a_stream_shows_no_more_of_an_organisation_that_its_user_has_left(dashboard: Dashboard) -> None:
    ours, theirs = await dashboard.organisation("Ours"), await dashboard.organisation("Theirs")
    await monitor(dashboard, (await dashboard.partner(theirs)).id, MISSING)
    user_id = await dashboard.user("vic@x.test", ours, "viewer")
    await dashboard.join(user_id, theirs, "viewer")
    browser = await dashboard.signed_in_again(user_id)
    stream = await browser.session.get(f"{browser.url}/dashboard/live")
    async with stream:
        await read_until(stream, WATCHED)
        async with dashboard.service.database.transaction() as connection:
            await users.remove_membership(connection, user_id, theirs.id)
        await read_until(stream, "All is well")


async def test_nothing_is_rendered_once_all_pages_are_closed(dashboard: Dashboard) -> None:
    partner = await dashboard.partner()
    await power(dashboard, partner)
    browser = await dashboard.signed_in("ops@x.test")
    stream = await followed(browser, partner.id)
    assert live_parts() != set()
    stream.close()
    await until(lambda: live_parts() == set(), "the end of the parts")


def live_parts() -> set[asyncio.Task[object]]:
    return {task for task in asyncio.all_tasks() if task.get_name().startswith("live part")}
