"""Settings of an application on the dashboard: what responses carry, and how the API refuses."""

from __future__ import annotations

import re

from tests.integration.dashboard.conftest import Dashboard


async def test_what_responses_carry_is_saved_shown_and_refused_without_the_customers_word(
    dashboard: Dashboard,
) -> None:
    ours = await dashboard.organisation()
    partner = await dashboard.partner(ours)
    browser = await dashboard.signed_in("dev@acme.example", ours)
    path = f"/dashboard/applications/{partner.id}/settings"

    async def stored() -> object:
        return (await partner.call("GET", "/application")).body["responsePolicy"]

    form = {
        "section": "responses",
        "hsts": "31536000",
        "nosniff": "on",
        "referrer_policy": "origin",
        "compression": "on",
    }
    saved = await browser.post(path, **form, fields="Permissions-Policy: camera=()\nX-Own: a: b")
    assert saved.status == 303, saved.words
    wanted = {
        "hsts": {"maxAge": 31_536_000, "includeSubDomains": False, "preload": False},
        "nosniff": True,
        "referrerPolicy": "origin",
        "compression": "on",
        "fields": {"Permissions-Policy": "camera=()", "X-Own": "a: b"},
    }
    assert await stored() == wanted
    assert "X-Own: a: b" in (await browser.get(path)).text
    for wrong, words in (
        ({"hsts_subdomains": "on"}, "bind names of your customers"),
        ({"fields": "Set-Cookie: a=b"}, "the origin's alone to send"),
        ({"fields": "no colon"}, "expected a line such as"),
        ({"hsts": "1"}, "expected one of"),
    ):
        refused = await browser.post(path, **form | wrong)
        assert refused.status == 422, wrong
        assert words.lower() in refused.words.lower(), refused.words
        assert await stored() == wanted
    agreed = await browser.post(path, **form, hsts_subdomains="on", customers_agree="on", fields="")
    assert agreed.status == 303
    assert (await browser.post(path, section="responses", hsts="", referrer_policy="", fields="")).status == 303
    assert await stored() is None


async def test_statuses_of_refusals_are_chosen_for_new_applications_and_later(dashboard: Dashboard) -> None:
    ours = await dashboard.organisation()
    partner = await dashboard.partner(ours)
    browser = await dashboard.signed_in("owner@acme.example", ours, "owner")
    path = f"/dashboard/applications/{partner.id}/settings"
    for chosen, status in (("on", "http"), ("", "502")):
        assert (await browser.post(path, section="api", error_status=chosen)).status == 303
        assert (await partner.call("GET", "/application")).body["errorStatus"] == status
    new = "/dashboard/applications/new"
    assert 'name="error_status" value="on" checked' in (await browser.get(new)).text
    for number, (chosen, status) in enumerate((("on", "http"), ("", "502"))):
        fields = {"name": f"New {number}", "cname_target": f"new-{number}.acme.example", "error_status": chosen}
        made = await browser.post(new, organisation=ours.id, application_url="", webhook_url="", **fields)
        assert made.status == 200, made.words
        async with dashboard.service.database.connection() as connection:
            found = await connection.fetchval("select error_status from applications where name = $1", fields["name"])
        assert found == status


async def test_an_application_for_tests_is_made_and_marked(dashboard: Dashboard) -> None:
    ours = await dashboard.organisation()
    browser = await dashboard.signed_in("owner@acme.example", ours, "owner")
    new = "/dashboard/applications/new"
    assert 'name="is_test" value="on">' in (await browser.get(new)).text
    refused = await browser.post(new, organisation=ours.id, name="Trial", cname_target="no name", is_test="on")
    assert 'name="is_test" value="on" checked' in refused.text
    for name, chosen in (("Trial", "on"), ("Shops", "")):
        fields = {"cname_target": f"{name}.acme.example", "application_url": "", "webhook_url": "", "is_test": chosen}
        made = await browser.post(new, organisation=ours.id, name=name, **fields)
        assert made.status == 200, made.words
    listed = (await browser.get("/dashboard/applications")).text
    assert re.findall(r'<a class="name"[^>]*>(\w+)</a> <span class="badge ?">Test<', listed) == ["Trial"]
