"""The page "Connecting": support finds a customer who is stuck, and sees where people give up."""

from __future__ import annotations

from tests.integration.api.test_connect import begin
from tests.integration.api.test_flow_list import begin_at_each_step
from tests.integration.dashboard.conftest import Dashboard
from tests.unit.stored_flow import STORED_FLOW


async def test_support_finds_a_stuck_customer_by_domain_user_and_step(dashboard: Dashboard) -> None:
    ours = await dashboard.organisation()
    partner = await dashboard.partner(ours)
    await begin_at_each_step(dashboard.service, partner)
    browser = await dashboard.signed_in("help@acme.example", ours, "viewer")
    path = f"/dashboard/applications/{partner.id}/connecting"
    page = (await browser.get(path)).words
    assert "Most stopped at “Reading what changes”: 1 (14.3 %) of 7 flows." in page
    for query, shown in (("domain=d.test", "user-records"), ("userId=user-plan", "b.test"), ("step=writing", "c.test")):
        found = (await browser.get(f"{path}?{query}")).words
        assert shown in found, query
        assert "user-live" not in found, query
    assert "user-live" in (await browser.get(f"{path}?open=false")).words
    assert f'href="{path}?domain=d.test"' in (await browser.get("/dashboard/search?q=d.test")).text
    wrong = await browser.get(f"{path}?domain=..")
    assert (wrong.status, "user-live" in wrong.words) == (200, True)
    other = await dashboard.signed_in("eve@other.example", await dashboard.organisation("Other"))
    assert (await other.get(path)).status == 404


async def test_support_reads_what_to_tell_a_stuck_customer(dashboard: Dashboard) -> None:
    ours = await dashboard.organisation()
    partner = await dashboard.partner(ours)
    flow = (await begin(partner, userId="user-7")).body["id"]
    columns = ("domain", "subdomain", "requested", "looked", "plan", "way", "statuses", "error", "since")
    stands = {each: STORED_FLOW[each] for each in columns} | {"state": "halted"}
    async with dashboard.service.database.transaction() as connection:
        for column, value in stands.items():
            await connection.execute(f"update connect_flows set {column} = $2 where id = $1", flow, value)
    browser = await dashboard.signed_in("help@acme.example", ours, "viewer")
    path = f"/dashboard/applications/{partner.id}/connecting"
    assert f'href="{path}/{flow}"' in (await browser.get(path)).text
    page = (await browser.get(f"{path}/{flow}")).words
    for words in ("What to tell the customer: Make a new one.", "It is wrong.", "apps.test", "5 old.test", "user-7"):
        assert words in page, words
    assert "Not looked for yet" in page
    assert (await browser.get(f"{path}/flw_none")).status == 404
    other = await dashboard.signed_in("eve@other.example", await dashboard.organisation("Other"))
    assert (await other.get(f"{path}/{flow}")).status == 404


async def test_a_partner_sees_which_records_of_ended_domains_are_loose_ends(dashboard: Dashboard) -> None:
    ours = await dashboard.organisation()
    partner = await dashboard.partner(ours)
    dashboard.service.point("left.customer.test")
    assert (await partner.post("left.customer.test")).status == 200
    assert (await partner.delete("left.customer.test")).status == 200
    browser = await dashboard.signed_in("help@acme.example", ours, "viewer")
    path = f"/dashboard/applications/{partner.id}/ended"
    assert "left.customer.test" in (page := (await browser.get(path)).words)
    assert "Still leads here" in page
    assert "left.customer.test" not in (await browser.get(f"{path}?after=left.customer.test")).words
    assert (await browser.get(f"{path}?after=..")).status == 404
    assert f"{path}" in (await browser.get(f"/dashboard/domains?application={partner.id}")).text
