"""The automatic ways with a key in Chromium: the real API and monitor over knot (RFC 2136) and PowerDNS (its API)."""

from __future__ import annotations

from collections.abc import AsyncIterator
from datetime import timedelta

import pytest
import pytest_asyncio
from playwright.async_api import Browser, Page, expect

from api.rules import application_tokens as minting
from bench.lab.knot import Knot, find_knot
from bench.lab.ports import free_ports
from bench.lab.powerdns import PowerDns, find_powerdns
from common.db.application_secrets import client_secret_identity, rotate_client_secret
from tests.browser import SESSION_LOOP, axe, screenshot
from tests.conftest import fresh_database
from tests.integration.api.conftest import SERVER
from tests.integration.api.connecting import APEX, CUSTOMER, KEY, PARENT, World, open_world, zone_file
from tests.integration.api.secured import go_live
from tests.sdk.partner_page import CONFIG, PartnerPage, partner_page
from tests.sdk.scripted_api import shows

pytestmark = [
    SESSION_LOOP,
    pytest.mark.timeout(300),
    pytest.mark.skipif(find_knot() is None or find_powerdns() is None, reason="without Debian's knot and pdns-server"),
]

SHOP = f"shop.{APEX}"
BEFORE = {("shop", "A"): ["192.0.2.1"], ("shop", "CNAME"): [], ("@", "TXT"): ['"v=spf1 include:mail.test -all"']}
AFTER = {
    ("shop", "A"): [],
    ("shop", "CNAME"): ["target-1.partner.test."],
    ("@", "TXT"): ['"v=spf1 include:mail.test include:partner.test -all"'],
}
SETTLED = "settled.test"
"""Its wildcard leads every name to the application."""
SETTLED_ZONE: tuple[tuple[str, str, str], ...] = (
    (SETTLED, "NS", f"ns.{APEX}."),
    (f"*.{SETTLED}", "CNAME", "target-1.partner.test."),
)


@pytest_asyncio.fixture(scope="module", loop_scope="session")
async def over_knot(server_dsn: str, tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[World]:
    """One installation; each test leaves the zone as it was."""
    above = (*PARENT, (SETTLED, "NS", f"ns.{APEX}."))
    zones = {"test": zone_file(above), APEX: zone_file(CUSTOMER), SETTLED: zone_file(SETTLED_ZONE)}
    api, probe_port = free_ports(2)
    async with (
        fresh_database(server_dsn) as dsn,
        Knot.serve(zones, keys={KEY["key_name"]: KEY["key_secret"]}) as knot,
        open_world(
            dsn, tmp_path_factory.mktemp("knot"), probe_port, knot.address, API_LISTEN=f"127.0.0.1:{api}"
        ) as world,
    ):
        yield world


def key_of(world: World) -> dict[str, str]:
    """What a person pastes, by the field's label."""
    return {
        "Name of the TSIG key": KEY["key_name"],
        "Secret of the key": KEY["key_secret"],
        "Primary server": str(world.name_server),
    }


async def zone_of(world: World) -> dict[tuple[str, str], list[str]]:
    names = {"@": APEX, "shop": SHOP}
    return {(host, kind): await world.values(names[host], kind) for host, kind in BEFORE}


async def agree(on: PartnerPage, picture: str) -> None:
    """From the first step to the choice of the way, through the plan with a conflict and a merge."""
    page = on.page
    await page.locator("#domain").fill(SHOP)
    await page.keyboard.press("Enter")
    await shows(page, "conflicts")
    await expect(page.locator("del").filter(has_text="192.0.2.1")).to_be_visible()
    await expect(page.get_by_text("v=spf1 include:mail.test include:partner.test -all")).to_be_visible()
    await screenshot(page, f"{picture}-conflicts")
    assert await axe(page) == []
    await page.get_by_role("button", name="Agree to these changes").click()
    await shows(page, "way")
    await page.locator("dialog details summary").click()
    await screenshot(page, f"{picture}-way")


async def fill_in(page: Page, credentials: dict[str, str]) -> None:
    for label, value in credentials.items():
        await page.get_by_label(label).fill(value)


async def set_up_and_undo(on: PartnerPage, way: str, credentials: dict[str, str]) -> None:
    page, world = on.page, on.world
    await on.connect()
    await agree(on, way)
    await page.locator(f"[data-way={way}]").click()
    await shows(page, "credentials")
    await fill_in(page, credentials)
    await screenshot(page, f"{way}-credentials")
    assert await axe(page) == []
    await page.get_by_role("button", name="Set up now").click()
    await shows(page, "done")
    link = page.get_by_role("link", name=f"Open {SHOP}")
    await expect(page.get_by_text("Being issued")).to_be_visible()
    await expect(link).to_have_count(0)
    await go_live(world.service, SHOP, world.partner.id)
    await expect(link).to_be_visible()
    await screenshot(page, f"{way}-done")
    assert await zone_of(world) == AFTER
    [success] = await on.events("onSuccess")
    assert (success["domain"], success["setupType"]) == (SHOP, "automatic")

    await page.get_by_role("button", name="Undo the changes").click()
    await shows(page, "undo")
    await fill_in(page, credentials)
    await screenshot(page, f"{way}-undo")
    assert await axe(page) == []
    await page.get_by_role("button", name="Undo now").click()
    await shows(page, "undone")
    await screenshot(page, f"{way}-undone")
    assert await zone_of(world) == BEFORE
    secrets = [value for label, value in credentials.items() if "ecret" in label or label == "API key"]
    kept = await page.evaluate("() => JSON.stringify([{...localStorage}, {...sessionStorage}, events])")
    assert secrets
    assert not any(value in kept for value in secrets), "used once, kept nowhere"


async def test_by_powerdns_with_a_conflict_a_merge_and_undo(
    chromium: Browser, server_dsn: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    api, probe_port = free_ports(2)
    state_dir = tmp_path_factory.mktemp("powerdns")
    async with (
        fresh_database(server_dsn) as dsn,
        PowerDns.serve({"test": PARENT, APEX: CUSTOMER}) as provider,
        open_world(dsn, state_dir, probe_port, provider.address, API_LISTEN=f"127.0.0.1:{api}") as world,
        partner_page(chromium, world) as on,
    ):
        await set_up_and_undo(on, "provider_api", {"URL of the API": provider.api_url, "API key": provider.key})


async def test_by_rfc_2136_with_a_conflict_a_merge_and_undo(chromium: Browser, over_knot: World) -> None:
    async with partner_page(chromium, over_knot) as on:
        await set_up_and_undo(on, "dynamic_update", key_of(over_knot))


async def test_a_root_domain_gets_the_records_for_roots(chromium: Browser, over_knot: World) -> None:
    root = {"type": "A", "host": "@", "value": "{SERVICE_SERVERS}", "ttl": 300, "applicationUrl": "https://app.test"}
    async with partner_page(chromium, over_knot) as on:
        page = on.page
        await on.connect(dnsRecords={"domain": [root], "subDomain": CONFIG["dnsRecords"]}, prefilledDomain=APEX)
        await shows(page, "way")
        await page.locator("dialog details summary").click()
        await page.locator("[data-way=dynamic_update]").click()
        await fill_in(page, key_of(over_knot))
        await page.get_by_role("button", name="Set up now").click()
        await shows(page, "done")
        await screenshot(page, "root-done")
        assert await over_knot.values(APEX, "A") == [SERVER]
        assert [each["domain"] for each in await on.events("onSuccess")] == [APEX]
        await page.get_by_role("button", name="Undo the changes").click()
        await fill_in(page, key_of(over_knot))
        await page.get_by_role("button", name="Undo now").click()
        await shows(page, "undone")
        assert await over_knot.values(APEX, "A") == []


async def test_a_name_that_a_wildcard_leads_to_us_is_connected_with_one_click(
    chromium: Browser, over_knot: World
) -> None:
    shop = f"shop.{SETTLED}"
    async with partner_page(chromium, over_knot) as on:
        page = on.page
        await on.connect(dnsRecords=CONFIG["dnsRecords"][:1], prefilledDomain=shop)
        await shows(page, "way")
        await expect(page.get_by_role("heading", name="All records are in place already")).to_be_visible()
        await page.get_by_role("button", name="Continue").click()
        await shows(page, "done")
        await screenshot(page, "wildcard-done")
        steps = [detail["step"] for detail in await on.events("onFrontageStepChange")]
        assert "manual" not in steps, "there is nothing to copy"
        assert [each["domain"] for each in await on.events("onSuccess")] == [shop]


async def rotate_secret(world: World, used_by: PartnerPage | None = None) -> None:
    """Every token that was signed before is refused from now on; its flows go on. The partner's server behind `used_by`
    has the new secret before: an open modal looks at its flow all the while, and must not get a token of the old one in
    between."""
    service, partner = world.service, world.partner
    partner.secret = minting.mint_client_secret()
    if used_by is not None:
        await used_by.set_site()
    sealed = service.keyring.seal(partner.secret.encode(), client_secret_identity(partner.id))
    async with service.database.transaction() as connection:
        assert await rotate_client_secret(connection, partner.id, sealed, timedelta(0), keeps_links=True)


async def test_a_token_that_is_refused_in_the_middle_is_replaced_once_and_nothing_is_doubled(
    chromium: Browser, over_knot: World
) -> None:
    """The plan is shown with one token; the API refuses it at the moment of the change, and again before undo."""
    credentials = key_of(over_knot)
    async with partner_page(chromium, over_knot) as on:
        page = on.page
        await on.connect()
        await agree(on, "token-refused")
        await page.locator("[data-way=dynamic_update]").click()
        await fill_in(page, credentials)
        assert len(on.sent("POST", "/token")) == 1
        await rotate_secret(over_knot, used_by=on)

        await page.get_by_role("button", name="Set up now").click()

        await shows(page, "done")
        assert len(on.sent("POST", "/token")) == 2
        statuses = [(await each.response()).status for each in on.sent("POST", "/apply")]
        assert statuses == [401, 200]
        assert len(on.sent("POST", "/connect/flows")) == 1
        assert await zone_of(over_knot) == AFTER
        assert len(await on.events("onSuccess")) == 1

        await rotate_secret(over_knot, used_by=on)
        await page.get_by_role("button", name="Undo the changes").click()
        await fill_in(page, credentials)
        await page.get_by_role("button", name="Undo now").click()
        await shows(page, "undone")
        assert len(on.sent("POST", "/token")) == 3
        assert await zone_of(over_knot) == BEFORE


async def test_a_token_that_cannot_be_renewed_is_a_clear_error_and_the_flow_goes_on_afterwards(
    chromium: Browser, over_knot: World
) -> None:
    async with partner_page(chromium, over_knot) as on:
        page = on.page
        await on.connect()
        await agree(on, "token-lost")
        await rotate_secret(over_knot)  # the partner's server still has the old one

        await page.locator("[data-way=manual]").click()

        await shows(page, "error")
        await screenshot(page, "token-lost")
        await expect(page.get_by_role("alert").filter(has_text="Your session has ended")).to_be_visible()
        assert await zone_of(over_knot) == BEFORE
        await on.set_site()
        await page.get_by_role("button", name="Try again").click()
        await shows(page, "conflicts")
        await page.get_by_role("button", name="Agree to these changes").click()
        await page.locator("[data-way=manual]").click()
        await shows(page, "manual")
        assert len(on.sent("POST", "/connect/flows")) == 1
