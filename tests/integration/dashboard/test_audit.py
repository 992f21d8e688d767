"""Every change is in the audit log, with who made it and by which way, and without secrets."""

from __future__ import annotations

import csv
import io
import json
from functools import partial

import pytest

from api.dashboard.tables import write_table
from common.actors import Actor, acting
from common.db import audit
from common.db.audit import AuditEntry
from tests.integration.dashboard.conftest import Dashboard


async def entries(dashboard: Dashboard, application_id: str) -> list[AuditEntry]:
    async with dashboard.service.database.connection() as connection:
        return await audit.list_entries(connection, before=None, limit=100, application_id=application_id)


async def test_a_change_by_the_api_names_the_application_and_the_request(dashboard: Dashboard) -> None:
    organisation = await dashboard.organisation()
    partner = await dashboard.partner(organisation)
    dashboard.service.point("shop.customer.test")
    assert (await partner.post("shop.customer.test")).status == 200
    assert (await partner.put("shop.customer.test", applicationUrl="https://other.example.com")).status == 200
    assert (await partner.put("shop.customer.test", applicationUrl="https://other.example.com")).status == 200
    assert (await partner.delete("shop.customer.test")).status == 200
    removed, updated, enrolled = await entries(dashboard, partner.id)
    assert [each.action for each in (enrolled, updated, removed)] == ["power.enrol", "power.update", "power.remove"]
    assert {(each.way, each.actor, each.subject) for each in (enrolled, updated, removed)} == {
        ("api", partner.id, "shop.customer.test")
    }
    assert updated.before == {"application_url": "https://origin.example.com"}
    assert updated.after == {"application_url": "https://other.example.com"}
    assert len({each.request_id for each in (enrolled, updated, removed)}) == 3
    answer = await partner.call("GET", "/audit")
    assert [each["id"] for each in answer.body["entries"]] == [removed.id, updated.id, enrolled.id]
    other = await dashboard.partner()
    assert (await other.call("GET", "/audit")).body["entries"] == []
    by_request = {"request_id": updated.request_id}
    assert [each["id"] for each in (await partner.call("GET", "/audit", params=by_request)).body["entries"]] == [
        updated.id
    ]
    assert (await other.call("GET", "/audit", params=by_request)).body["entries"] == []
    assert (await partner.call("GET", "/audit", params={"request_id": "x"})).status == 400
    browser = await dashboard.signed_in("dev@acme.example", organisation)
    page = await browser.get(f"/dashboard/audit?request={updated.request_id}")
    assert "power.update" in page.words
    assert "power.enrol" not in page.words
    removal = await browser.get(f"/dashboard/audit?request={removed.request_id}")
    assert "What the request caused" in removal.words
    assert "route power/shop.customer.test" in removal.words
    stranger = await dashboard.signed_in("eve@other.example", await dashboard.organisation("Other"))
    assert "power.update" not in (await stranger.get(f"/dashboard/audit?request={updated.request_id}")).words
    assert (await browser.get("/dashboard/audit?request=%00")).status == 404


async def test_what_was_refused_is_not_recorded(dashboard: Dashboard) -> None:
    partner = await dashboard.partner()
    assert (await partner.post("nowhere.customer.test")).status == 502
    assert await entries(dashboard, partner.id) == []


async def test_a_change_by_the_dashboard_names_the_user_and_no_secret(dashboard: Dashboard) -> None:
    organisation = await dashboard.organisation()
    partner = await dashboard.partner(organisation)
    browser = await dashboard.signed_in("dev@acme.example", organisation)
    path = f"/dashboard/applications/{partner.id}/secrets"
    page = await browser.post(path, kind="service_auth", wanted="on")
    secret = page.text.split('id="secret-1">')[1].split("<")[0]
    found = await entries(dashboard, partner.id)
    assert [(each.way, each.actor, each.action) for each in found] == [
        ("dashboard", "dev@acme.example", "application.set")
    ]
    assert secret not in json.dumps([found[0].before, found[0].after])
    shown = await browser.get("/dashboard/audit")
    assert "application.set" in shown.words
    assert "dev@acme.example" in shown.words


async def test_an_organisation_sees_its_own_entries_only(dashboard: Dashboard) -> None:
    ours, theirs = await dashboard.organisation("Ours"), await dashboard.organisation("Theirs")
    partner = await dashboard.partner(theirs)
    dashboard.service.point("shop.customer.test")
    await partner.post("shop.customer.test")
    member, other = await dashboard.signed_in("a@ours.test", ours), await dashboard.signed_in("b@theirs.test", theirs)
    assert "shop.customer.test" not in (await member.get("/dashboard/audit")).words
    assert "shop.customer.test" in (await other.get("/dashboard/audit")).words
    assert "shop.customer.test" not in (await member.get("/dashboard/audit?subject=shop.customer.test")).text.replace(
        'value="shop.customer.test"', ""
    )


async def test_the_log_is_narrowed_by_kind_and_person_and_exported(dashboard: Dashboard) -> None:
    organisation = await dashboard.organisation()
    partner = await dashboard.partner(organisation)
    browser = await dashboard.signed_in("dev@acme.example", organisation)
    dashboard.service.point("shop.customer.test")
    await partner.post("shop.customer.test")
    await browser.post(f"/dashboard/applications/{partner.id}/secrets", kind="service_auth", wanted="on")
    every = await browser.get("/dashboard/audit")
    assert "A partner" in every.words, "an application is called by its name"
    for query, found, other in (
        ("kind=power", "power.enrol", "application.set"),
        ("kind=application&actor=dev@acme.example", "application.set", "power.enrol"),
        (f"actor={partner.id}", "power.enrol", "application.set"),
        ("kind=application&actor=nobody@acme.example", "Nothing found", "power.enrol"),
    ):
        words = (await browser.get(f"/dashboard/audit?{query}")).words
        assert found in words, query
        assert other not in words, query
    answer = await partner.call("GET", "/audit", params={"kind": "power"})
    assert [each["action"] for each in answer.body["entries"]] == ["power.enrol"]
    assert (await partner.call("GET", "/audit", params={"kind": "Power."})).status == 400
    table = await browser.get("/dashboard/audit/export?kind=power")
    assert table.headers["Content-Type"] == "text/csv; charset=utf-8"
    heads, row = csv.reader(io.StringIO(table.text))
    assert dict(zip(heads, row, strict=True))["subject"] == "shop.customer.test"
    stranger = await dashboard.signed_in("eve@other.example", await dashboard.organisation("Other"))
    assert len(list(csv.reader(io.StringIO((await stranger.get("/dashboard/audit/export")).text)))) == 1
    assert (await stranger.get(f"/dashboard/applications/{partner.id}/audit/export")).status == 404


async def test_a_filter_looks_through_a_bounded_part_and_goes_on(dashboard: Dashboard) -> None:
    async with dashboard.service.database.transaction() as connection:
        with acting(Actor("command", "root")):
            for action in ("domain.old", "user.a", "user.b", "user.c"):
                await audit.record(connection, action, "it")
        list_part = partial(audit.list_part, connection, limit=5, subject="it", kind="domain", scanned=2)
        first, following = await list_part(before=None)
        assert (first, following is not None) == ([], True)
        second, last = await list_part(before=following)
        assert [each.action for each in second] == ["domain.old"]
        third, end = await list_part(before=last)
        assert (third, end) == ([], None)


@pytest.mark.parametrize("cell", ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1"])
def test_a_cell_is_no_formula(cell: str) -> None:
    assert write_table(("head",), [(cell,)]).splitlines()[1].lstrip('"').startswith("'")
