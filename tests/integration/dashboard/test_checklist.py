"""The first steps of an application tick themselves, and its page has programs with its own id."""

from __future__ import annotations

from common.db import events
from tests.integration.dashboard.conftest import Dashboard

STEPS = {
    "Your server calls the API": False,
    "The first domain": False,
    "The modal on a page of yours": False,
    "A webhook is tested": False,
}


def steps(page: str) -> dict[str, bool]:
    return {step: f'{step}</strong><span class="visually-hidden">: done' in page for step in STEPS}


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


async def test_programs_have_the_applications_own_id(dashboard: Dashboard) -> None:
    ours = await dashboard.organisation("Ours")
    partner = await dashboard.partner(ours)
    page = (await (await dashboard.signed_in("dev@x.test", ours)).get(f"/dashboard/applications/{partner.id}")).text
    for language in ("curl", "Node", "Python", "PHP", "Go"):
        assert f"<summary>{language}</summary>" in page
        assert partner.id in page.partition(f'id="sample-2-{language}"')[2].partition("</pre>")[0]
