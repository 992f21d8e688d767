"""The webhooks page: what waits is sent at once, what failed is sent again, and how many deliveries that were."""

from __future__ import annotations

from common.accounts import Role
from common.db import events, webhook_endpoints
from common.db.applications import update_application
from common.db.events import NewEvent
from tests.integration.dashboard.conftest import Browser, Dashboard


async def page_of_deliveries(dashboard: Dashboard, failures: list[str]) -> tuple[Browser, str]:
    """One delivery of each status; no monitor of the test sends any."""
    partner = await dashboard.partner()
    async with dashboard.service.database.transaction() as connection:
        await update_application(connection, partner.id, webhook_url="https://hooks.partner.example/")
        for status in failures:
            event = await events.record(connection, NewEvent(partner.id, "webhook.test", None, None, {}))
            await connection.execute(
                "update deliveries set status = $2, failures = 1, due_at = case when $2 = 'pending'"
                " then now() + interval '1 hour' end, settled_at = case when $2 = 'failed' then now() end"
                " where event_id = $1",
                event,
                status,
            )
        await webhook_endpoints.note_failure(connection, partner.id, "answered 500")
    return await dashboard.signed_in("ops@example.com"), f"/dashboard/applications/{partner.id}/webhooks"


async def words_after(browser: Browser, path: str, **form: str) -> str:
    answer = await browser.post(path, **form)
    assert answer.status == 303, answer
    return (await browser.get(answer.location)).words


async def test_what_waits_is_sent_at_once_and_counted(dashboard: Dashboard) -> None:
    browser, path = await page_of_deliveries(dashboard, ["pending", "pending"])
    page = await browser.get(path)
    assert "Answered 500. What was not delivered waits, and is tried again by itself." in page.words
    assert "2 deliveries that had waited are sent now." in await words_after(browser, path, action="enable")
    async with dashboard.service.database.connection() as connection:
        waiting = "select count(*) from deliveries where status = 'pending' and due_at > now()"
        assert await connection.fetchval(waiting) == 0
    assert "Nothing had waited for it." in await words_after(browser, path, action="enable")


async def test_what_failed_for_good_is_sent_again_and_counted(dashboard: Dashboard) -> None:
    browser, path = await page_of_deliveries(dashboard, ["pending", "failed"])
    form = {"action": "replay_failed", "hours": "1"}
    assert "1 failed delivery is sent again." in await words_after(browser, path, **form)
    assert "Nothing of that time has failed for good" in await words_after(browser, path, **form)


async def test_a_viewer_sees_a_payload_without_its_link(dashboard: Dashboard) -> None:
    acme = await dashboard.organisation()
    partner = await dashboard.partner(acme)
    async with dashboard.service.database.transaction() as connection:
        new = NewEvent(partner.id, "domain.record_missing", "a.example", None, {"connect_link": "https://x/share/1"})
        event = await events.record(connection, new)
    cases: list[tuple[Role, bool]] = [("viewer", False), ("developer", True)]
    for role, is_shown in cases:
        browser = await dashboard.signed_in(f"{role}@acme.example", acme, role)
        page = await browser.get(f"/dashboard/applications/{partner.id}/webhooks/{event}")
        assert (page.status, "connect_link" in page.text, "https://x/share/1" in page.text) == (200, True, is_shown)


async def test_a_viewer_sees_the_url_without_its_query(dashboard: Dashboard) -> None:
    acme = await dashboard.organisation()
    partner = await dashboard.partner(acme)
    async with dashboard.service.database.transaction() as connection:
        await update_application(connection, partner.id, webhook_url="https://hooks.partner.example/in?key=5ecret")
    cases: list[tuple[Role, bool]] = [("viewer", False), ("developer", True)]
    for role, is_shown in cases:
        browser = await dashboard.signed_in(f"{role}@acme.example", acme, role)
        for path in ("", "/webhooks"):
            page = await browser.get(f"/dashboard/applications/{partner.id}{path}")
            assert page.status == 200
            assert ("hooks.partner.example/in?…" in page.text, "5ecret" in page.text) == (not is_shown, is_shown)


async def test_a_disabled_endpoint_is_to_be_enabled_first(dashboard: Dashboard) -> None:
    browser, path = await page_of_deliveries(dashboard, ["pending"])
    async with dashboard.service.database.transaction() as connection:
        await connection.execute("update webhook_endpoints set disabled_at = now()")
    assert "Enable it first." in await words_after(browser, path, action="test")
