"""The whole automatic way by Domain Connect, in Chromium: the real API, monitor and DNS, and a provider's own pages."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path

import pytest
from playwright.async_api import Browser, Page, expect

from bench.lab.domain_connect import NAME, DomainConnectProvider
from bench.lab.knot import find_knot
from bench.lab.ports import free_ports
from tests.browser import SESSION_LOOP, axe, screenshot
from tests.conftest import fresh_database
from tests.integration.api.connecting import APEX
from tests.integration.api.domain_connecting import connected, serve_provider
from tests.sdk.partner_page import PartnerPage, partner_page
from tests.sdk.scripted_api import shows

pytestmark = [
    SESSION_LOOP,
    pytest.mark.timeout(300),
    pytest.mark.skipif(find_knot() is None, reason="without Debian's knot"),
]

SHOP = f"shop.{APEX}"


@dataclass(frozen=True, slots=True)
class Stage:
    on: PartnerPage
    provider: DomainConnectProvider


@asynccontextmanager
async def open_stage(chromium: Browser, server_dsn: str, state_dir: Path) -> AsyncIterator[Stage]:
    """The modal is open on the partner's page, over a zone in which the customer's name is in use."""
    api, probe_port = free_ports(2)
    async with (
        fresh_database(server_dsn) as dsn,
        serve_provider() as (knot, provider),
        connected(dsn, state_dir, probe_port, knot, API_LISTEN=f"127.0.0.1:{api}") as world,
        partner_page(chromium, world) as on,
    ):
        await on.connect()
        yield Stage(on, provider)


async def choose_domain_connect(page: Page) -> None:
    """From the first step to the one that says what will happen at the provider."""
    await page.locator("#domain").fill(SHOP)
    await page.keyboard.press("Enter")
    await shows(page, "conflicts")
    await screenshot(page, "domain-connect-conflicts")
    await page.get_by_role("button", name="Agree to these changes").click()
    await shows(page, "way")
    await screenshot(page, "domain-connect-way")
    await page.get_by_role("button", name=f"Automatically, at {NAME}").click()
    await shows(page, "credentials")


async def go_to_provider(page: Page) -> Page:
    async with page.context.expect_page() as opening:
        await page.get_by_role("button", name=f"Go to {NAME}").click()
    window = await opening.value
    await window.wait_for_selector("form")
    return window


async def decide(window: Page, decision: str) -> None:
    """The window closes by itself once the provider has sent it back."""
    async with window.expect_event("close"):
        await window.get_by_role("button", name=decision, exact=True).click(no_wait_after=True)


async def test_a_name_in_use_is_connected_with_a_merge_and_says_how_to_undo(
    chromium: Browser, server_dsn: str, tmp_path: Path
) -> None:
    async with open_stage(chromium, server_dsn, tmp_path) as stage:
        on, page = stage.on, stage.on.page
        await choose_domain_connect(page)
        await screenshot(page, "domain-connect-agree")
        await expect(page.get_by_text(f"Later, only {NAME} can take these changes back")).to_be_visible()
        assert await axe(page) == []

        window = await go_to_provider(page)

        await shows(page, "login")
        await screenshot(page, "domain-connect-login")
        assert await axe(page) == []
        assert await window.evaluate("window.opener") is None
        await screenshot(window, "domain-connect-consent")
        await expect(window.get_by_text("v=spf1 include:mail.test include:partner.test -all")).to_be_visible()
        await decide(window, "Connect")
        await shows(page, "done")
        await screenshot(page, "domain-connect-done")
        assert await on.world.values(SHOP, "CNAME") == ["target-1.partner.test."]
        assert await on.world.values(APEX, "TXT") == ['"v=spf1 include:mail.test include:partner.test -all"']
        [success] = await on.events("onSuccess")
        assert (success["domain"], success["setupType"]) == (SHOP, "automatic")
        assert success["jobId"].startswith("job_")
        steps = [each["step"] for each in await on.events("onFrontageStepChange")]
        assert steps.index("credentials") < steps.index("login") < steps.index("done")

        await page.get_by_role("button", name="Undo the changes").click()

        await shows(page, "undo")
        await screenshot(page, "domain-connect-undo")
        await expect(page.get_by_text(f"{NAME} made these changes, and we cannot change them there")).to_be_visible()
        await expect(page.get_by_text("192.0.2.1")).to_be_visible()
        link = page.get_by_role("link", name=f"Go to {NAME}")
        await expect(link).to_have_attribute("href", f"http://{stage.provider.authority}/zones/{APEX}")
        assert await axe(page) == []
        await page.get_by_role("button", name="Back").last.click()
        await page.get_by_role("button", name="Done").click()
        [closed] = await on.events("onFrontageClose")
        assert (closed["lastStatus"], closed["setupType"]) == ("FINISHED_SUCCESSFULLY", "automatic")


async def test_declining_says_so_and_leaves_the_choice(chromium: Browser, server_dsn: str, tmp_path: Path) -> None:
    async with open_stage(chromium, server_dsn, tmp_path) as stage:
        on, page = stage.on, stage.on.page
        await choose_domain_connect(page)
        window = await go_to_provider(page)
        await decide(window, "Cancel")
        await expect(page.get_by_text(f"{NAME} reports that the change was not made.")).to_be_visible()
        await page.get_by_text("Details").click()
        await expect(page.get_by_text("user_cancel: <b>not now</b>")).to_be_visible()
        await screenshot(page, "domain-connect-declined")
        assert await axe(page) == []
        assert await on.world.values(SHOP, "A") == ["192.0.2.1"]
        await page.get_by_role("button", name="Choose another way").click()
        await shows(page, "conflicts")
        await page.get_by_role("button", name="Close").first.click()
        [closed] = await on.events("onFrontageClose")
        assert (closed["lastStatus"], closed["success"]) == ("EXISTING_RECORDS", False)
