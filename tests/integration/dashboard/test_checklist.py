"""The first steps of an application tick themselves, and its page has programs with its own id."""

from __future__ import annotations

from common.db import events
from common.db.applications import update_application
from tests.integration.api.secured import serve_origin
from tests.integration.dashboard.conftest import Dashboard

ORIGIN = "The origin answers"
STEPS = {
    "Your server calls the API": False,
    "The first domain": False,
    "The modal on a page of yours": False,
    "A webhook is tested": False,
}


def steps(page: str) -> dict[str, bool]:
    return {step: is_done(page, step) for step in STEPS}


def is_done(page: str, step: str) -> bool:
    """Whether a step that is there is ticked."""
    assert f"{step}<" in page
    return f'{step}</strong><span class="visually-hidden">: done' in page


async def test_first_steps_tick_themselves(dashboard: Dashboard) -> None:
    ours = await dashboard.organisation("Ours")
    partner = await dashboard.partner(ours)
    browser = await dashboard.signed_in("dev@x.test", ours)
    checks = f"/dashboard/applications/{partner.id}/checks"
    assert steps((await browser.get(checks)).text) == STEPS
    dashboard.service.point("shop.customer.test")
    await partner.post("shop.customer.test")
    flow = {"domain": "customer.test", "dnsRecords": [{"type": "A", "host": "@", "value": "192.0.2.1", "ttl": 300}]}
    assert (await partner.call("POST", "/connect/flows", json=flow)).status == 201
    async with dashboard.service.database.transaction() as connection:
        await connection.execute(
            "insert into deliveries (event_id, application_id, status, settled_at) values ($1, $2, 'delivered', now())",
            await events.record(connection, events.NewEvent(partner.id, events.TEST, None, None, {})),
            partner.id,
        )
    assert steps((await browser.get(checks)).text) == dict.fromkeys(STEPS, True)


async def test_the_origin_is_ticked_once_it_is_set_and_answers(dashboard: Dashboard) -> None:
    async def set_origin(url: str) -> bool:
        async with dashboard.service.database.transaction() as connection:
            await update_application(connection, partner.id, application_url=url)
        return is_done((await browser.get(checks)).text, ORIGIN)

    ours = await dashboard.organisation("Ours")
    partner = await dashboard.partner(ours)
    browser = await dashboard.signed_in("dev@x.test", ours)
    checks = f"/dashboard/applications/{partner.id}/checks"
    assert not is_done((await browser.get(checks)).text, ORIGIN), "it has none"
    assert not await set_origin("http://127.0.0.1:1")
    async with serve_origin() as origin:
        assert await set_origin(origin.url)


async def test_programs_have_the_applications_own_id(dashboard: Dashboard) -> None:
    ours = await dashboard.organisation("Ours")
    partner = await dashboard.partner(ours)
    page = (await (await dashboard.signed_in("dev@x.test", ours)).get(f"/dashboard/applications/{partner.id}")).text
    for language in ("curl", "Node", "Python", "PHP", "Go"):
        assert f"<summary>{language}</summary>" in page
        assert partner.id in page.partition(f'id="sample-2-{language}"')[2].partition("</pre>")[0]
