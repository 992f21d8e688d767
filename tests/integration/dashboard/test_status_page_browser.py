"""The page that a partner shows its customer, in Chromium: the records to set are copied by mouse and by keyboard."""

from __future__ import annotations

import pytest
from playwright.async_api import Page, expect

from common.db import status_links
from tests.browser import SESSION_LOOP, axe, chromium, screenshot, started_chromium
from tests.integration.dashboard.test_browser import BrowsedDashboard, browsing, dashboard

__all__ = ["chromium", "dashboard", "started_chromium"]

pytestmark = [SESSION_LOOP, pytest.mark.timeout(300)]
SHOP = "shop.customer.test"
LOOKS = {
    "desktop": ("light", 1280),
    "dark": ("dark", 1280),
    "phone": ("light", 375),
    "phone-dark": ("dark", 375),
}


async def open_page(dashboard: BrowsedDashboard, page: Page, query: str = "") -> None:
    """Open the page of a domain whose DNS has left: its record is to be set again."""
    partner = await dashboard.partner()
    dashboard.service.point(SHOP)
    assert (await partner.post(SHOP)).status == 200
    async with dashboard.service.database.transaction() as connection:
        await connection.execute("update domains set departed_at = now()")
        link = await status_links.put(connection, partner.id, SHOP, days=1)
    await page.goto(f"/status/{link.id}{query}")


async def test_each_field_of_a_record_is_copied(dashboard: BrowsedDashboard) -> None:
    async with browsing(dashboard) as page:
        await page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        await open_page(dashboard, page)
        await expect(page.locator("td .copy")).to_have_count(3)
        await page.get_by_role("button", name="Copy: Type").click()
        assert await page.evaluate("navigator.clipboard.readText()") == "CNAME"
        await page.keyboard.press("Tab")
        await page.keyboard.press("Tab")
        await expect(page.get_by_role("button", name="Copy: Value")).to_be_focused()
        await page.keyboard.press("Enter")
        await expect(page.get_by_role("status")).to_have_text("Copied: Value")
        copied = await page.evaluate("navigator.clipboard.readText()")
        assert copied == await page.locator("td code").last.inner_text() != ""
        for look, (scheme, width) in LOOKS.items():
            await page.emulate_media(color_scheme=scheme)  # type: ignore[arg-type]
            await page.set_viewport_size({"width": width, "height": 800})
            assert await page.evaluate("document.documentElement.scrollWidth") <= width
            assert await axe(page) == [], look
            await screenshot(page, f"status-page-{look}")


async def test_its_buttons_speak_the_customers_language(dashboard: BrowsedDashboard) -> None:
    async with browsing(dashboard) as page:
        await open_page(dashboard, page, "?lang=ar")
        await expect(page.locator("td .copy")).to_have_text(["نسخ"] * 3)
        await page.set_viewport_size({"width": 375, "height": 800})
        assert await axe(page) == []
        await screenshot(page, "status-page-ar-phone")
