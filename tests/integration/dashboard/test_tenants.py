"""What a role may see and do: one organisation's pages are closed to another's members, whatever they send."""

from __future__ import annotations

import pytest

from common.db import domains, policies, users
from common.db.applications import get_application, update_application
from common.domain_settings import DomainSettings
from tests.integration.api.partner import Partner
from tests.integration.dashboard.conftest import Browser, Dashboard

SHOP = "shop.customer.test"
PAGES = (
    "",
    "/checks",
    "/settings",
    "/secrets",
    "/delete",
    "/audit",
    "/webhooks",
    "/webhooks/evt_" + "0" * 34,
    "/domains/new",
    "/domains/shop.customer.test",
    "/domains/shop.customer.test/diagnosis",
    "/domains/shop.customer.test/live",
    "/monitored/www.customer.test",
    "/monitored/www.customer.test/live",
    "/webhooks/live",
    "/live",
)
FORMS = {
    "/settings": {"section": "maintenance", "maintenance": "on"},
    "/secrets": {"kind": "client", "wanted": "rotate"},
    "/delete": {"typed": "A partner"},
    "/webhooks": {"action": "test"},
    "/domains/new": {"domain": "shop.customer.test", "product": "power", "application_url": "https://o.example"},
    "/domains/shop.customer.test": {"action": "remove_power", "typed": "shop.customer.test"},
    "/monitored/www.customer.test": {"action": "remove", "typed": "www.customer.test"},
}


async def test_another_organisations_application_is_not_there(dashboard: Dashboard) -> None:
    ours, theirs = await dashboard.organisation("Ours"), await dashboard.organisation("Theirs")
    partner = await dashboard.partner(theirs)
    browser = await dashboard.signed_in("eve@ours.example", ours, "owner")
    csrf = (await browser.get()).csrf
    base = f"/dashboard/applications/{partner.id}"
    for path in PAGES:
        assert (await browser.get(base + path)).status == 404, path
    for path, form in FORMS.items():
        assert (await browser.post(base + path, csrf=csrf, **form)).status == 404, path
    for path in ("/dashboard/applications", "/dashboard/domains", "/dashboard/audit", "/dashboard"):
        page = await browser.get(path)
        assert page.status == 200
        assert partner.id not in page.text
    assert (await browser.get(f"/dashboard/domains?application={partner.id}")).status == 404
    assert (await browser.get(f"/dashboard/organisations/{theirs.id}")).status == 404


async def test_an_application_of_no_organisation_is_the_operators(dashboard: Dashboard) -> None:
    partner = await dashboard.partner()
    member = await dashboard.signed_in("ada@acme.example", await dashboard.organisation(), "owner")
    operator = await dashboard.signed_in("ops@example.com")
    path = f"/dashboard/applications/{partner.id}"
    assert (await member.get(path)).status == 404
    assert (await operator.get(path)).status == 200


@pytest.mark.parametrize("path", ["/operations", "/operations/live", "/organisations"])
async def test_the_installation_is_shown_to_operators_only(dashboard: Dashboard, path: str) -> None:
    member = await dashboard.signed_in("ada@acme.example", await dashboard.organisation(), "owner")
    assert (await member.get(f"/dashboard{path}")).status == 404


async def test_a_viewer_looks_and_changes_nothing(dashboard: Dashboard) -> None:
    organisation = await dashboard.organisation()
    partner = await dashboard.partner(organisation)
    viewer = await dashboard.signed_in("vic@acme.example", organisation, "viewer")
    csrf, base = (await viewer.get()).csrf, f"/dashboard/applications/{partner.id}"
    shown = await viewer.get(base)
    assert shown.status == 200
    assert f"{base}/settings" not in shown.text
    for path in ("/settings", "/secrets", "/delete", "/domains/new"):
        page = await viewer.get(base + path)
        assert page.status == 403, path
        assert "Your role in this organisation" in page.words
    for path, form in FORMS.items():
        assert (await viewer.post(base + path, csrf=csrf, **form)).status == 403, path
    form = {"email": "vic@acme.example", "role": "owner"}
    assert (await viewer.post(f"/dashboard/organisations/{organisation.id}/members", csrf=csrf, **form)).status == 403


async def test_a_developer_changes_settings_and_does_not_delete(dashboard: Dashboard) -> None:
    organisation = await dashboard.organisation()
    partner = await dashboard.partner(organisation)
    developer = await dashboard.signed_in("dev@acme.example", organisation, "developer")
    base = f"/dashboard/applications/{partner.id}"
    page = await developer.post(f"{base}/settings", section="maintenance", maintenance="on")
    assert page.status == 303
    async with dashboard.service.database.connection() as connection:
        application = await get_application(connection, partner.id)
    assert application is not None
    assert application.maintenance
    csrf = (await developer.get()).csrf
    assert (await developer.post(f"{base}/delete", csrf=csrf, typed="A partner")).status == 403
    operators = {"section": "operator", "tier": "enterprise", "organisation_id": ""}
    assert (await developer.post(f"{base}/settings", **operators)).status == 404


async def test_settings_of_uploads_and_of_the_connect_subscription_are_stored(dashboard: Dashboard) -> None:
    organisation = await dashboard.organisation()
    partner = await dashboard.partner(organisation)
    developer = await dashboard.signed_in("dev@acme.example", organisation, "developer")
    operator = await dashboard.signed_in("ops@example.com")
    path = f"/dashboard/applications/{partner.id}/settings"
    form = {"section": "origin", "send_host": "origin", "origin_server_name": "", "origin_verify": "on"}
    assert (await developer.post(path, **form, buffer_uploads_bytes="10M")).status == 303
    assert 'value="10M"' in (await developer.get(path)).text
    refused = await developer.post(path, **form, buffer_uploads_bytes="ten")
    assert refused.status == 422
    assert "such as 500000" in refused.words
    subscribed = {"section": "operator", "tier": "premium", "organisation_id": organisation.id, "connect": "on"}
    assert (await developer.post(path, **subscribed)).status == 404
    assert (await operator.post(path, **subscribed)).status == 303
    async with dashboard.service.database.connection() as connection:
        application = await get_application(connection, partner.id)
    assert application is not None
    assert (application.buffer_uploads_bytes, application.connect) == (10 << 20, True)


async def test_what_lacks_is_written_above_the_form_that_adds_a_domain(dashboard: Dashboard) -> None:
    partner = await dashboard.service.partner(step_one=False)
    operator = await dashboard.signed_in("ops@example.com")
    form = {"domain": SHOP, "product": "power", "application_url": "https://origin.example.com/a"}
    page = await operator.post(f"/dashboard/applications/{partner.id}/domains/new", **form)
    assert page.status == 422
    assert "Please complete step 1. Step 1 is the CNAME record" in page.words
    assert "what the DNS answers now." in page.words


async def power(dashboard: Dashboard, partner: Partner) -> None:
    async with dashboard.service.database.transaction() as connection:
        await domains.power(connection, SHOP, partner.id, DomainSettings("http://192.0.2.7/a"))


async def test_a_domain_has_root_paths_of_its_own_once_they_are_changed(dashboard: Dashboard) -> None:
    partner = await dashboard.partner()
    async with dashboard.service.database.transaction() as connection:
        await update_application(connection, partner.id, root_path_access=("/assets",))
    operator = await dashboard.signed_in("ops@example.com")
    base, origin = f"/dashboard/applications/{partner.id}/domains", "https://origin.example.com/a"
    dashboard.service.point(SHOP)
    form = {"domain": SHOP, "product": "power", "application_url": origin, "root_path_access": ""}
    assert (await operator.post(f"{base}/new", **form)).location == f"{base}/{SHOP}"

    async def own_paths() -> object:
        async with dashboard.service.database.connection() as connection:
            return await connection.fetchval("select root_path_access from domains where domain = $1", SHOP)

    change = {"action": "power", "url": origin}
    for sent, stored in (
        ({"root_path_access": "/assets"}, None),
        ({}, None),
        ({"root_path_access": "/a\r\n/b"}, ["/a", "/b"]),
    ):
        assert (await operator.post(f"{base}/{SHOP}", **change | sent)).status == 303
        assert await own_paths() == stored, sent
    page = await operator.get(f"{base}/{SHOP}")
    assert "/a\n/b</textarea>" in page.text
    refused = await operator.post(f"{base}/{SHOP}", **change | {"root_path_access": "/a?b"})
    assert (refused.status, await own_paths()) == (422, ["/a", "/b"])
    assert "/a?b</textarea>" in refused.text
    refused = await operator.post(f"{base}/{SHOP}", action="power", url="ftp://origin.example.com")
    assert 'value="ftp://origin.example.com" required aria-invalid="true" autofocus' in refused.text
    assert "Expected http:// or https://, a host" in refused.words


async def holder_of_shop(dashboard: Dashboard) -> str:
    async with dashboard.service.database.connection() as connection:
        [held] = await domains.find(connection, SHOP)
    return held.application_id


async def test_an_owner_transfers_a_domain_within_the_organisation(dashboard: Dashboard) -> None:
    ours, theirs = await dashboard.organisation("Ours"), await dashboard.organisation("Theirs")
    one, other, foreign = await dashboard.partner(ours), await dashboard.partner(ours), await dashboard.partner(theirs)
    await power(dashboard, one)
    owner = await dashboard.signed_in("ada@ours.example", ours, "owner")
    developer = await dashboard.signed_in("dev@ours.example", ours, "developer")
    path = f"/dashboard/applications/{one.id}/domains/{SHOP}"
    form = {"action": "transfer", "to": other.id, "url": "https://new.example/", "typed": SHOP}
    assert foreign.id not in (await owner.get(path)).text
    assert (await developer.post(path, **form)).status == 403
    assert (await owner.post(path, **form | {"typed": "other"})).status == 400
    for refused in ({"to": foreign.id}, {"to": "nobody"}, {"to": one.id}, {"url": "http://10.0.0.1"}, {"url": ""}):
        assert (await owner.post(path, **form | refused)).status == 422
        assert await holder_of_shop(dashboard) == one.id, refused
    assert (await owner.post(path, **form)).location != path
    assert await holder_of_shop(dashboard) == other.id
    assert (await owner.get(path)).status == 404


async def test_an_operator_transfers_a_domain_to_any_application(dashboard: Dashboard) -> None:
    one = await dashboard.partner(await dashboard.organisation("Ours"))
    other = await dashboard.partner(await dashboard.organisation("Theirs"))
    await power(dashboard, one)
    operator = await dashboard.signed_in("ops@example.com")
    path = f"/dashboard/applications/{one.id}/domains/{SHOP}"
    await operator.post(path, action="transfer", to=other.id, url="https://new.example/", typed=SHOP)
    assert await holder_of_shop(dashboard) == other.id


async def test_an_operator_blocks_a_domain_and_its_partner_reads_why(dashboard: Dashboard) -> None:
    ours = await dashboard.organisation("Ours")
    one = await dashboard.partner(ours)
    await power(dashboard, one)
    owner, operator = (
        await dashboard.signed_in("ada@ours.example", ours, "owner"),
        await dashboard.signed_in("ops@x.test"),
    )
    path = f"/dashboard/applications/{one.id}/domains/{SHOP}"
    form = {"action": "block", "reason": "Phishing was reported.", "status": "451"}
    assert (await owner.post(path, **form)).status in (403, 404)
    assert 'id="block"' not in (await owner.get(path)).text
    assert (await operator.post(path, **form | {"reason": " "})).status == 422
    await operator.post(path, **form)
    page = (await owner.get(path)).words
    assert "This domain is blocked by the operator: every request is answered 451. Phishing was reported." in page
    for listed in ("/dashboard", "/dashboard/domains", "/dashboard/domains?status=problem"):
        assert '<span class="badge bad">Blocked</span>' in (await owner.get(listed)).text, listed
    assert "All is well" not in (await owner.get("/dashboard")).words
    assert '<span class="badge bad">Power: blocked</span>' in (await owner.get(path)).text
    assert ",blocked," in (await owner.get("/dashboard/domains/export")).text
    assert (await owner.post(path, action="unblock")).status in (403, 404)
    await operator.post(path, action="unblock")
    assert "blocked by the operator" not in (await owner.get(path)).words
    assert "Blocked" not in (await owner.get("/dashboard/domains")).words


async def test_a_suspended_application_says_so_on_each_of_its_pages(dashboard: Dashboard) -> None:
    ours = await dashboard.organisation("Ours")
    one = await dashboard.partner(ours)
    await power(dashboard, one)
    owner = await dashboard.signed_in("ada@ours.example", ours, "owner")
    path = f"/dashboard/applications/{one.id}"
    names = ("", "/webhooks", "/settings", "/secrets", "/audit", "/delete", f"/domains/{SHOP}")
    words = "This application is suspended by the operator: every request is answered 403"
    for is_suspended in (True, False):
        async with dashboard.service.database.transaction() as connection:
            if is_suspended:
                await policies.put(connection, "application", one.id, policies.FORBIDDEN, "Phishing was reported.")
            else:
                await policies.remove(connection, "application", one.id)
        for name in names:
            shown = (await owner.get(path + name)).words
            assert (words in shown, "Phishing was reported." in shown) == (is_suspended, is_suspended), name
        assert ("Suspended" in (await owner.get("/dashboard/applications")).words) is is_suspended


async def test_an_owner_adds_a_member_who_gets_a_link(dashboard: Dashboard) -> None:
    organisation = await dashboard.organisation()
    owner = await dashboard.signed_in("ada@acme.example", organisation, "owner")
    path = f"/dashboard/organisations/{organisation.id}"
    page = await owner.post(f"{path}/members", of=path, email="new@acme.example", role="viewer")
    assert page.status == 200
    link = page.text.split('id="sign-in-link">')[1].split("<")[0]
    newcomer = await dashboard.browser()
    await newcomer.post(link.removeprefix(dashboard.service.url).removeprefix(dashboard.service.settings.base_url))
    assert "new@acme.example" in (await newcomer.get()).words


async def test_an_organisation_keeps_an_owner(dashboard: Dashboard) -> None:
    organisation = await dashboard.organisation()
    owner = await dashboard.signed_in("ada@acme.example", organisation, "owner")
    path = f"/dashboard/organisations/{organisation.id}"
    page = await owner.post(f"{path}/members", of=path, email="ada@acme.example", role="viewer")
    assert page.status == 422
    assert "ada@acme.example is the only owner of Acme: make another member an owner first" in page.words
    async with dashboard.service.database.connection() as connection:
        [member] = await users.list_members(connection, organisation.id)
    page = await owner.post(f"{path}/members/remove", of=path, user=member.user.id)
    assert (page.status, "is the only owner of Acme" in page.words) == (422, True)


async def test_a_member_is_removed_once_that_is_confirmed(dashboard: Dashboard) -> None:
    organisation = await dashboard.organisation()
    owner = await dashboard.signed_in("ada@acme.example", organisation, "owner")
    user_id = await dashboard.user("bob@acme.example", organisation, "viewer")
    path = f"/dashboard/organisations/{organisation.id}"
    asked = await owner.post(f"{path}/members/remove", of=path, user=user_id)
    assert (asked.status, "Remove bob@acme.example?" in asked.words) == (200, True)
    assert "Only the operator can undo that" in asked.words
    done = await owner.post(f"{path}/members/remove", of=path, user=user_id, sure="yes")
    assert (done.status, done.location) == (303, path)
    assert "bob@acme.example is no longer a member." in (await owner.get(path)).words


async def test_every_member_leaves_and_removes_nobody_else(dashboard: Dashboard) -> None:
    organisation = await dashboard.organisation()
    owner_id = await dashboard.user("ada@acme.example", organisation, "owner")
    viewer = await dashboard.signed_in("bob@acme.example", organisation, "viewer")
    path = f"/dashboard/organisations/{organisation.id}"
    assert (await viewer.post(f"{path}/members/remove", of=path, user=owner_id, sure="yes")).status == 403
    async with dashboard.service.database.connection() as connection:
        [bob] = [
            each.user.id for each in await users.list_members(connection, organisation.id) if each.role == "viewer"
        ]
    asked = await viewer.post(f"{path}/members/remove", of=path, user=bob)
    assert "Leave Acme?" in asked.words
    done = await viewer.post(f"{path}/members/remove", of=path, user=bob, sure="yes")
    assert (done.status, done.location) == (303, "/dashboard")
    words = (await viewer.get()).words
    assert "You have left Acme." in words
    assert "Ask the operator to add you to one" in words
    assert (await viewer.get(path)).status == 404


async def test_an_account_that_is_there_is_added_by_operators_only(dashboard: Dashboard) -> None:
    """Else the owner who made it, and holds a link for it, could follow it into another organisation."""
    ours, theirs = await dashboard.organisation("Ours"), await dashboard.organisation("Theirs")
    await dashboard.user("bob@theirs.example", theirs, "owner")
    owner, operator = (
        await dashboard.signed_in("eve@ours.example", ours, "owner"),
        await dashboard.signed_in("o@x.test"),
    )
    path, form = f"/dashboard/organisations/{ours.id}", {"email": "bob@theirs.example", "role": "viewer"}
    refused = await owner.post(f"{path}/members", of=path, **form)
    assert refused.status == 422
    assert "ask the operator" in refused.words
    added = await operator.post(f"{path}/members", of=path, **form)
    assert (added.status, "A link for bob@theirs.example" in added.words) == (200, True)


async def test_an_owner_makes_no_link_for_a_user_of_other_organisations(dashboard: Dashboard) -> None:
    """Else the owner of one organisation could sign in as a member of another, or as an operator."""
    ours, theirs = await dashboard.organisation("Ours"), await dashboard.organisation("Theirs")
    user_id = await dashboard.user("bob@theirs.example", theirs, "owner")
    await dashboard.join(user_id, ours, "viewer")
    owner = await dashboard.signed_in("eve@ours.example", ours, "owner")
    path = f"/dashboard/organisations/{ours.id}"
    page = await owner.post(f"{path}/members/link", of=path, user=user_id)
    assert page.status == 422
    assert "/dashboard/link/" not in page.text


async def rotated(browser: Browser, application_id: str) -> str:
    path = f"/dashboard/applications/{application_id}/secrets"
    page = await browser.post(path, kind="client", wanted="rotate")
    assert page.status == 200
    return page.text.split('id="secret-1">')[1].split("<")[0]


async def test_a_secret_is_shown_once_and_works_beside_the_one_before(dashboard: Dashboard) -> None:
    organisation = await dashboard.organisation()
    partner = await dashboard.partner(organisation)
    browser = await dashboard.signed_in("dev@acme.example", organisation, "developer")
    secret = await rotated(browser, partner.id)
    assert (await partner.call("GET", "/power")).status == 200  # signed with the secret before
    before, partner.secret = partner.secret, secret
    assert (await partner.call("GET", "/power")).status == 200
    for path in PAGES[:7]:
        text = (await browser.get(f"/dashboard/applications/{partner.id}{path}")).text
        assert secret not in text
        assert before not in text


async def test_a_user_makes_an_api_key_that_is_shown_once(dashboard: Dashboard) -> None:
    organisation = await dashboard.organisation()
    viewer = await dashboard.signed_in("eve@acme.example", organisation, "viewer")
    form = {"name": '<b>"Deploy"</b>', "permission": "own", "days": "30"}
    page = await viewer.post("/dashboard/account/keys", of="/dashboard/account", **form)
    key = page.text.split('id="secret-1">')[1].split("<")[0]
    account = await viewer.get("/dashboard/account")
    assert key not in account.text
    assert "<b>" not in account.text
    headers = {"Authorization": f"Bearer {key}"}
    service = dashboard.service
    async with service.session.get(f"{service.url}/organisations/{organisation.id}", headers=headers) as response:
        assert (response.status, (await response.json())["role"]) == (200, "viewer")
    for wrong in ({"permission": "king"}, {"days": "36500"}):
        assert (await viewer.post("/dashboard/account/keys", of="/dashboard/account", **form | wrong)).status == 400
    async with service.database.transaction() as connection:  # as if the sign-in were long ago
        await connection.execute("update sessions set created_at = created_at - interval '1 hour'")
    refused = await viewer.post("/dashboard/account/keys", of="/dashboard/account", **form)
    assert refused.location == "/dashboard/account/confirm"
    key_id = account.text.split('name="key" value="')[1].split('"')[0]
    await viewer.post("/dashboard/account/keys/revoke", of="/dashboard/account", key=key_id)
    async with service.session.get(f"{service.url}/account", headers=headers) as response:
        assert response.status == 401


async def test_the_form_shows_the_txt_record_that_proves_a_taken_cname_target(dashboard: Dashboard) -> None:
    organisation = await dashboard.organisation()
    partner = await dashboard.partner(organisation)
    other = await dashboard.partner(await dashboard.organisation("Other"))
    target = (await other.call("GET", "/application")).body["cnameTarget"]
    browser = await dashboard.signed_in("dev@acme.example", organisation)
    path = f"/dashboard/applications/{partner.id}/settings"

    refused = await browser.post(path, section="general", name="A partner", cname_target=target)
    assert refused.status == 422
    assert f"create the TXT record _frontage.{target} with the value application={partner.id}" in refused.words
    assert (await other.call("GET", "/application")).body["cnameTarget"] == target
