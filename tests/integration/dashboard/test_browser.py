"""The dashboard in Debian's Chromium: signing in, an action, the keyboard, and axe-core's rules on every page.

Screenshots of each page, light, dark and on a phone, are left in ``tests/output/dashboard``.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from api.pages.handbook import CONTENTS
from common import monitored_changes
from common.accounts import hash_token, mint_random_token
from common.db import domains, events, sessions, status_links, traffic, webhook_endpoints
from common.db.applications import update_application
from common.db.events import NewEvent
from common.db.monitored_domains import Labels, MonitoredKey
from common.domain_settings import DomainSettings
from common.records import parse_record
from common.traffic import BYTES_DOWN, FIGURES, HTTP2, ORIGIN_ERRORS, SERVER_ERRORS, TrafficKey, TrafficReport
from tests.browser import SESSION_LOOP, axe, chromium, screenshot, started_chromium  # noqa: F401 - fixtures
from tests.conftest import fresh_database
from tests.integration.api.partner import Partner
from tests.integration.dashboard.conftest import PASSWORD, Dashboard, serving_dashboard

EMAIL = "ops@example.com"
LONG_EMAIL = "a.rather.long.name.of.an.operator@subsidiary.of.acme.example"
LONG_NAME = ".".join(["a" * 63, "b" * 63, "c" * 63, "d" * 50, "example"])
LONG_APPLICATION = "An-Application-Of-Many-Letters-And-No-Space-" + "x" * 50
EVIDENCE = [
    {"at": "2026-03-04T05:06:07+00:00", "role": "resolver", "server": "192.0.2.53:53"}
    | {"name": "www.watched.test", "type": "A", "outcome": "nxdomain"}
]
FAILED_ATTEMPT = {"at": "2026-03-04T05:06:07+00:00", "status": 500, "error": "answered 500 " + "x" * 200}
DARK = ("sign-in", "domain", "domains", "settings", "webhooks", "operations")  # every component is on one of them
AUTHENTICATOR = {
    "protocol": "ctap2",
    "transport": "internal",
    "hasResidentKey": True,
    "hasUserVerification": True,
    "isUserVerified": True,
    "automaticPresenceSimulation": True,
}
SLOW_MILLISECONDS = 60_000  # of a busy machine

pytestmark = [
    SESSION_LOOP,
    pytest.mark.timeout(600),  # twenty pages, three looks each,
]


@dataclass(slots=True)
class BrowsedDashboard(Dashboard):
    chromium: Browser


@pytest_asyncio.fixture(loop_scope="session")
async def dashboard(
    server_dsn: str,
    tmp_path: Path,
    chromium: Browser,  # noqa: F811
) -> AsyncIterator[BrowsedDashboard]:
    """In the browser's loop."""
    async with fresh_database(server_dsn) as dsn, serving_dashboard(dsn, tmp_path) as served:
        yield BrowsedDashboard(served.service, served.stack, chromium)


@asynccontextmanager
async def browsing(dashboard: BrowsedDashboard) -> AsyncIterator[Page]:
    """A page without cookies. At its end the browser has no complaint: no script failed, and nothing was asked for that
    the policy forbids."""
    complaints: list[str] = []
    context = await dashboard.chromium.new_context(base_url=dashboard.service.settings.base_url)
    try:
        page = await context.new_page()
        page.set_default_timeout(SLOW_MILLISECONDS)
        page.on("pageerror", lambda error: complaints.append(str(error)))
        page.on("console", lambda line: complaints.append(line.text) if "Content Security" in line.text else None)
        yield page
    finally:
        await context.close()
    assert complaints == []


async def sign_in_by_link(dashboard: Dashboard, page: Page, user_id: str) -> None:
    token = mint_random_token()
    async with dashboard.service.database.transaction() as connection:
        await sessions.create_link(connection, hash_token(token), user_id, sessions.LINK_LIFETIME)
    await page.goto(f"/dashboard/link/{token}")
    await page.get_by_role("button", name="Continue").press("Enter")
    await page.get_by_role("heading", name="Overview", exact=True).wait_for()


async def furnish(dashboard: Dashboard, partner: Partner) -> str:
    """Something of every kind. Returns an event's id."""
    records = [parse_record({"type": "A", "host": "www", "value": "192.0.2.1", "ttl": 300})]
    dashboard.service.point("shop.customer.test")
    async with dashboard.service.database.transaction() as connection:
        await update_application(connection, partner.id, webhook_url="https://hooks.partner.example/frontage")
        await domains.power(
            connection, "shop.customer.test", partner.id, DomainSettings("http://192.0.2.7/a", ("/static",))
        )
        await monitored_changes.add(
            connection, MonitoredKey(partner.id, "watched.test", "www"), tuple(records), Labels("u1")
        )
        event_id = await events.record(
            connection, NewEvent(partner.id, "domain.power", "customer.test", "shop", {"power_status": "success"})
        )
        await webhook_endpoints.note_failure(connection, partner.id, "answered 500")
        await domains.power(connection, LONG_NAME, partner.id, DomainSettings("http://192.0.2.7/a", ("/" + "x" * 120,)))
        await update_application(
            connection, partner.id, name=LONG_APPLICATION, cname_target=LONG_NAME.replace("a", "t")
        )
        await connection.execute(
            "update monitored_domains set state = 'missing', last_checked_at = now(), evidence = $1,"
            " records_present = '[]', records_missing = dns_records",
            EVIDENCE,
        )
        await connection.execute("update deliveries set log = $1", [FAILED_ATTEMPT])
        for minutes in range(0, 60, 5):
            await traffic.write_report(connection, datetime.now(UTC) - timedelta(minutes=minutes), counted(partner))
    return event_id


def counted(partner: Partner) -> TrafficReport:
    report, counts = TrafficReport(), [0] * FIGURES
    counts[3:8] = 200, 120, 40, 12, 3
    counts[BYTES_DOWN], counts[SERVER_ERRORS], counts[ORIGIN_ERRORS], counts[HTTP2] = 4_200_000, 20, 11, 300
    report.add(TrafficKey(partner.id, "shop.customer.test"), counts)
    report.add(TrafficKey(partner.id, ""), counts)
    return report


async def test_password_signs_in_and_a_wrong_one_does_not(dashboard: BrowsedDashboard) -> None:
    await dashboard.user(EMAIL, password=True)
    async with browsing(dashboard) as page:
        await page.goto("/dashboard/domains")
        await page.get_by_label("E-mail address").fill(EMAIL)
        await page.get_by_label("Password").fill("something else")
        await page.keyboard.press("Enter")
        await page.get_by_role("alert").wait_for()
        await page.get_by_label("Password").fill(PASSWORD)
        await page.keyboard.press("Enter")
        await page.get_by_role("heading", name="Domains", exact=True).wait_for()
        await page.get_by_role("button", name="Sign out").click()
        await page.get_by_role("heading", name="Sign in", exact=True).wait_for()
        await page.goto("/dashboard")
        assert "/dashboard/sign-in" in page.url


async def test_a_passkey_is_registered_signs_in_and_is_removed(dashboard: BrowsedDashboard) -> None:
    await dashboard.user(EMAIL, password=True)
    async with browsing(dashboard) as page:
        devices = await page.context.new_cdp_session(page)
        await devices.send("WebAuthn.enable")
        await devices.send("WebAuthn.addVirtualAuthenticator", {"options": AUTHENTICATOR})
        await page.goto("/dashboard/account")
        await page.get_by_label("E-mail address").fill(EMAIL)
        await page.get_by_label("Password").fill(PASSWORD)
        await page.keyboard.press("Enter")
        await page.get_by_label("Name of the passkey").fill("Work laptop")
        await page.keyboard.press("Enter")
        await page.get_by_text("Work laptop signs you in from now on.").wait_for()
        await page.get_by_label("Name of the passkey").fill("The same again")
        await page.keyboard.press("Enter")
        await page.get_by_text("This device has a passkey for the account already.").wait_for()
        broken = await broken_rules(page, "account-passkey")
        await page.get_by_role("button", name="Sign out").click()
        await page.get_by_role("button", name="Sign in with a passkey").click()
        await page.get_by_role("heading", name="Overview", exact=True).wait_for()
        async with dashboard.service.database.transaction() as connection:
            await connection.execute("update sessions set created_at = created_at - interval '1 hour'")
        await page.goto("/dashboard/account")
        await page.get_by_role("link", name="Confirm").first.click()  # of passkeys, and of API keys
        broken |= await broken_rules(page, "confirm")
        await page.get_by_role("button", name="Confirm with a passkey").click()
        await page.get_by_role("button", name="Remove").click()
        await page.get_by_text("Work laptop signs in no more.").wait_for()
    assert {name: rules for name, rules in broken.items() if rules} == {}


async def test_a_domain_is_added_seen_and_removed_by_keyboard(dashboard: BrowsedDashboard) -> None:
    partner = await dashboard.partner()
    dashboard.service.point("shop.customer.test")
    async with browsing(dashboard) as page:
        await sign_in_by_link(dashboard, page, await dashboard.user(EMAIL))
        await page.goto(f"/dashboard/applications/{partner.id}/domains/new")
        await page.get_by_label("Domain", exact=True).fill("shop.customer.test")
        await page.get_by_label("Origin (applicationUrl)").fill("https://origin.example.com/a")
        await page.keyboard.press("Enter")
        await page.get_by_role("heading", name="shop.customer.test", exact=True).wait_for()
        await page.locator("[data-load] .note").wait_for()  # the diagnosis has come
        async with dashboard.service.database.transaction() as connection:
            await connection.execute("update domains set departed_at = now()")
        await page.get_by_text("Power: DNS moved away").wait_for()  # without a reload
        button = page.get_by_role("button", name="Stop serving")
        assert await button.is_disabled()
        await page.get_by_label("Type shop.customer.test to confirm").fill("shop.customer.test")
        assert await button.is_enabled()
        await page.keyboard.press("Enter")
        await page.get_by_role("heading", name="Domains", exact=True).wait_for()
        async with dashboard.service.database.connection() as connection:
            assert await domains.find(connection, "shop.customer.test") == []


async def test_the_keyboard_reaches_the_page_past_the_navigation(dashboard: BrowsedDashboard) -> None:
    async with browsing(dashboard) as page:
        await sign_in_by_link(dashboard, page, await dashboard.user(EMAIL))
        await page.goto("/dashboard/applications")
        await page.keyboard.press("Tab")
        assert await page.evaluate("document.activeElement.textContent") == "Skip to the page"
        await page.keyboard.press("Enter")
        assert await page.evaluate("document.activeElement.id") == "main"
        await page.set_viewport_size({"width": 390, "height": 844})
        menu, link = page.get_by_role("button", name="Menu"), page.get_by_role("link", name="Audit log")
        await menu.press("Enter")
        await link.focus()
        await page.keyboard.press("Escape")
        await expect(link).to_be_hidden()
        await expect(menu).to_be_focused()


async def test_what_is_pressed_with_the_mouse_is_replaced_once_it_is_released(dashboard: BrowsedDashboard) -> None:
    async with browsing(dashboard) as page:
        await sign_in_by_link(dashboard, page, await dashboard.user(EMAIL))
        await page.evaluate("document.getElementById('main').innerHTML = '<div id=part><p>old</p></div>'")
        part = page.locator("#part")
        await part.hover()
        await page.mouse.down()
        for content in ("new", "newest"):
            await page.evaluate(f"update('<template data-into=part><p>{content}</p></template>')")
        await expect(part).to_have_text("old")
        await page.mouse.up()
        await expect(part).to_have_text("newest")


async def tab_to(page: Page, name: str) -> None:
    """Press Tab until the element of this label or text has the focus."""
    for _ in range(80):
        await page.keyboard.press("Tab")
        focused = await page.evaluate(
            "(element => [element.labels?.[0]?.textContent, element.ariaLabel, element.textContent]"
            ".map(text => text?.trim()))(document.activeElement)"
        )
        if name in focused:
            return
    raise AssertionError(f"no Tab leads to {name}")


async def test_an_api_key_is_made_and_revoked_with_tab_enter_and_space(dashboard: BrowsedDashboard) -> None:
    async with browsing(dashboard) as page:
        await sign_in_by_link(dashboard, page, await dashboard.user(EMAIL))
        await tab_to(page, "Account")
        await page.keyboard.press("Enter")
        await page.get_by_role("heading", name="API keys").wait_for()
        await tab_to(page, "Name of the key")
        await page.keyboard.type("Deployment")
        await tab_to(page, "Make key")
        await page.keyboard.press("Space")
        await page.get_by_text("fkey_").first.wait_for()
        await screenshot(page, "dashboard/key-made")
        await tab_to(page, "I have copied it")
        await page.keyboard.press("Enter")
        await page.get_by_role("cell", name="Deployment").wait_for()
        await tab_to(page, "Revoke")
        await screenshot(page, "dashboard/key-revoke")
        await page.keyboard.press("Space")
        await page.get_by_text("Deployment is revoked: it opens nothing from now on.").wait_for()
        await page.get_by_text("You have no API key").wait_for()


async def test_the_search_opens_from_anywhere_and_leads_by_keyboard(dashboard: BrowsedDashboard) -> None:
    await furnish(dashboard, await dashboard.partner())
    async with browsing(dashboard) as page:
        await sign_in_by_link(dashboard, page, await dashboard.user(EMAIL))
        await page.keyboard.press("Control+k")
        await page.get_by_label("Search everything").fill("shop")
        await page.get_by_role("link", name="shop.customer.test").wait_for()
        await page.get_by_role("heading", name="Handbook").wait_for()
        await screenshot(page, "dashboard/search")
        assert await axe(page) == []
        await page.keyboard.press("Escape")
        await page.get_by_label("Search everything").wait_for(state="hidden")
        await page.get_by_role("button", name="Search").click()
        await page.get_by_label("Search everything").fill("shop.customer")
        await page.locator("[data-found='shop.customer'] a").first.wait_for()  # of the new text
        await page.keyboard.press("ArrowDown")
        await page.keyboard.press("Enter")
        await page.get_by_role("heading", name="shop.customer.test", exact=True).wait_for()


async def test_chosen_rows_stay_chosen_when_the_list_changes(dashboard: BrowsedDashboard) -> None:
    await furnish(dashboard, await dashboard.partner())
    async with browsing(dashboard) as page:
        await sign_in_by_link(dashboard, page, await dashboard.user(EMAIL))
        await page.goto("/dashboard/domains")
        await page.get_by_label("Choose shop.customer.test").check()
        await page.evaluate(
            "put(document.getElementById('domains'), document.getElementById('domains').cloneNode(true))"
        )
        await page.get_by_role("button", name="Stop serving chosen").click()
        await page.get_by_role("heading", name="Stop serving 1 domain?").wait_for()


async def test_a_phone_sorts_the_list_of_domains(dashboard: BrowsedDashboard) -> None:
    await furnish(dashboard, await dashboard.partner())
    async with browsing(dashboard) as page:
        await page.set_viewport_size({"width": 375, "height": 860})
        await sign_in_by_link(dashboard, page, await dashboard.user(EMAIL))
        await page.goto("/dashboard/domains?status=")
        await expect(page.locator("td .name").last).to_have_text("www.watched.test")
        await page.get_by_label("Order").select_option("By name, backwards")
        await expect(page.locator("td .name").first).to_have_text("www.watched.test")
        await expect(page.get_by_label("Order")).to_have_value("-name")


async def test_a_refused_form_has_the_keyboard_in_the_first_field_to_mend(dashboard: BrowsedDashboard) -> None:
    partner = await dashboard.partner()
    async with browsing(dashboard) as page:
        await sign_in_by_link(dashboard, page, await dashboard.user(EMAIL))
        await page.goto(f"/dashboard/applications/{partner.id}/settings")
        await page.get_by_label("Webhook URL").fill("no address")
        await page.keyboard.press("Enter")
        await page.get_by_text("Nothing was saved").wait_for()
        await expect(page.get_by_label("Webhook URL")).to_be_focused()
        await expect(page.get_by_label("Webhook URL")).to_be_in_viewport()


async def test_a_form_of_another_site_changes_nothing(dashboard: BrowsedDashboard) -> None:
    """The browser keeps the cookie to itself (SameSite=Lax), so that the session goes on."""
    async with browsing(dashboard) as page:
        await sign_in_by_link(dashboard, page, await dashboard.user(EMAIL))
        html = f'<form method="post" action="{dashboard.service.url}/dashboard/sign-out"><button>Win</button></form>'
        await page.route("http://evil.test/", lambda route: route.fulfill(body=html, content_type="text/html"))
        await page.goto("http://evil.test/")
        async with page.expect_navigation():
            await page.get_by_role("button", name="Win").click()
        await page.goto("/dashboard")
        await page.get_by_role("heading", name="Overview", exact=True).wait_for()


async def test_every_page_keeps_the_rules_of_accessibility(dashboard: BrowsedDashboard) -> None:
    partner = await dashboard.partner()
    event_id = await furnish(dashboard, partner)
    async with dashboard.service.database.transaction() as connection:
        link = await status_links.put(connection, partner.id, "shop.customer.test", days=1)
    base = f"/dashboard/applications/{partner.id}"
    pages = {
        "status-page": f"/status/{link.id}",
        "status-page-arabic": f"/status/{link.id}?lang=ar",
        "home": "/dashboard",
        "applications": "/dashboard/applications",
        "application-new": "/dashboard/applications/new",
        "application": base,
        "connecting": f"{base}/connecting",
        "ended": f"{base}/ended",
        "settings": f"{base}/settings",
        "secrets": f"{base}/secrets",
        "delete": f"{base}/delete",
        "domains": "/dashboard/domains",
        "domains-none": "/dashboard/domains?text=nothing-like-this",
        "domain-new": f"{base}/domains/new",
        "domain": f"{base}/domains/shop.customer.test",
        "domain-long": f"{base}/domains/{LONG_NAME}",
        "monitored": f"{base}/monitored/www.watched.test",
        "webhooks": f"{base}/webhooks",
        "delivery": f"{base}/webhooks/{event_id}",
        "audit": "/dashboard/audit",
        "operations": "/dashboard/operations",
        "account": "/dashboard/account",
        "organisations": "/dashboard/organisations",
        "missing": "/dashboard/nothing",
        "docs-api": "/docs/api",
        "docs-quick-start": "/docs/quick-start",
    }
    found: dict[str, list[str]] = {}
    async with browsing(dashboard) as page:
        await page.goto("/dashboard/sign-in")
        found |= await broken_rules(page, "sign-in")
        await sign_in_by_link(dashboard, page, await dashboard.user(LONG_EMAIL))
        for name, path in pages.items():
            await page.goto(path)
            await expect(page.locator(".loading")).to_have_count(0, timeout=SLOW_MILLISECONDS)
            found |= await broken_rules(page, name)
    assert {name: rules for name, rules in found.items() if rules} == {}


async def test_the_handbook_on_a_phone_begins_with_its_text(dashboard: BrowsedDashboard) -> None:
    wide = []
    async with browsing(dashboard) as page:
        await page.set_viewport_size({"width": 375, "height": 812})
        for name in [name for group in CONTENTS.values() for name in group]:
            await page.goto(f"/docs/{name}")
            await expect(page.locator("h1")).to_be_in_viewport()
            if await page.evaluate("document.documentElement.scrollWidth") > 375:
                wide.append(name)
        await page.goto("/docs?q=certificate")
        await expect(page.locator(".hits li").first).to_be_in_viewport()
        assert await axe(page) == []
        await screenshot(page, "dashboard/handbook-phone")
        await page.get_by_role("link", name="Contents").press("Enter")
        await expect(page.get_by_role("navigation").get_by_role("link", name="Concepts")).to_be_in_viewport()
    assert wide == []


async def test_the_selected_tab_is_seen_on_a_phone(dashboard: BrowsedDashboard) -> None:
    partner = await dashboard.partner()
    async with browsing(dashboard) as page:
        await page.set_viewport_size({"width": 375, "height": 812})
        await sign_in_by_link(dashboard, page, await dashboard.user(EMAIL))
        await page.goto(f"/dashboard/applications/{partner.id}/audit")
        # all but its foot, which covers the line
        await expect(page.locator(".tabs [aria-current]")).to_be_in_viewport(ratio=0.9)


async def broken_rules(page: Page, name: str) -> dict[str, list[str]]:
    """In light, where colours differ most in dark, and that nothing is wider than a phone."""
    found: dict[str, list[str]] = {}
    for look, scheme, width in (("light", "light", 1280), ("dark", "dark", 1280), ("phone", "light", 375)):
        await page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
        await page.set_viewport_size({"width": width, "height": 860})
        await screenshot(page, f"dashboard/{name}-{look}")
        wide = await page.evaluate("document.documentElement.scrollWidth")
        found[f"{name}-{look}"] = [f"{wide} pixels wide"] if wide > width else []
        if look == "light" or (look == "dark" and name in DARK):
            found[f"{name}-{look}"] += await axe(page)
    await page.set_viewport_size({"width": 1280, "height": 860})
    return found
