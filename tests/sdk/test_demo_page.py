"""The partner's page of `frontage demo`, in Chromium and Firefox: the real API, monitor, DNS and edge."""

from __future__ import annotations

import asyncio
import re
import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import aiohttp
import pytest
from playwright.async_api import Browser, Page, expect
from playwright.async_api import TimeoutError as NotClicked

from bench.demo.running_demo import RunningDemo, find_running_demo
from bench.lab.powerdns import find_powerdns
from tests.acceptance.demo_process import Demo, environment
from tests.browser import SESSION_LOOP, axe, screenshot
from tests.sdk.firefox import PROGRAM, Firefox
from tests.sdk.scripted_api import shows
from tests.waiting import until

pytestmark = [SESSION_LOOP, pytest.mark.timeout(600)]

NAME = "modal.customer.localhost"
ELSEWHERE = "shop.elsewhere.localhost"
AT_PROVIDER = "shop.lab-domains.localhost"
AT_POWERDNS = "shop.powerdns.localhost"
_DEMO_SECONDS = 580
_LIVE_SECONDS = 120


@pytest.fixture(scope="module")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    path = tmp_path_factory.mktemp("demo")
    env = environment(path / "state")
    with Demo.started(env=env, cwd=path, ends_after_seconds=_DEMO_SECONDS) as demo:
        demo.env = env
        demo.read_until("Ctrl-C ends")
        yield demo


async def test_a_name_in_use_is_freed_by_hand_and_ends_live_with_https(chromium: Browser, demo: Demo) -> None:
    zone = demo.line_after("The customers' DNS zone, to change with PUT and DELETE").removeprefix("curl ")
    async with aiohttp.ClientSession(raise_for_status=True) as session:
        await session.put(zone, data=f"{NAME} A 192.0.2.1")
        page = await (await chromium.new_context()).new_page()
        page.set_default_timeout(60_000)
        await page.goto(demo.line_after("A partner's page with the connect modal"))
        await screenshot(page, "demo-page")
        await page.get_by_role("button", name="Connect your domain").click()
        await page.locator("#domain").fill(f"https://{NAME}/")
        await page.keyboard.press("Enter")
        await shows(page, "conflicts")
        await screenshot(page, "demo-conflicts")
        await expect(page.locator("del").filter(has_text="192.0.2.1")).to_be_visible()
        assert await axe(page) == []
        await page.get_by_role("button", name="Agree to these changes").click()
        await page.locator("[data-way=manual]").click()
        await shows(page, "manual")
        await screenshot(page, "demo-manual")
        await expect(page.get_by_text("apps.partner.localhost").first).to_be_visible()
        await session.delete(zone, data=f"{NAME} A 192.0.2.1")
        await session.put(zone, data=f"{NAME} CNAME apps.partner.localhost")
        check_now = page.get_by_role("button", name="Check now")
        if await check_now.is_visible():
            with suppress(NotClicked):  # the flow's own look was first, and took the button away
                await check_now.click(timeout=10_000)
        async with asyncio.timeout(_LIVE_SECONDS):
            await page.wait_for_selector("dialog[data-step=done]", timeout=_LIVE_SECONDS * 1000)
        link = page.get_by_role("link", name=f"Open {NAME}")
        await expect(link).to_be_visible()
        await screenshot(page, "demo-done")
        port = urlsplit(demo.line_after("In a browser")).port
        await expect(link).to_have_attribute("href", f"https://{NAME}:{port}/")
        await page.get_by_role("button", name="Done").click()
        await expect(page.locator("#outcome")).to_contain_text('"lastStatus": "FINISHED_SUCCESSFULLY"')
        await expect(page.locator("#outcome")).to_contain_text('"success": true')


async def test_a_name_in_use_is_moved_with_a_key_and_moved_back(chromium: Browser, demo: Demo) -> None:
    zone = demo.line_after("The customers' DNS zone, to change with PUT and DELETE").removeprefix("curl ")
    context = await chromium.new_context(ignore_https_errors=True)  # the demo's own CA
    page = await context.new_page()
    page.set_default_timeout(60_000)
    await page.goto(demo.line_after("A partner's page with the connect modal"))
    key = await page.locator("#by-key dd").all_inner_texts()
    await page.get_by_role("button", name=f"Connect {ELSEWHERE}").click()
    await shows(page, "conflicts")
    await expect(page.locator("del").filter(has_text="192.0.2.1")).to_be_visible()
    await page.get_by_role("button", name="Agree to these changes").click()
    await shows(page, "way")
    await page.locator("dialog details summary").click()
    await screenshot(page, "demo-ways")
    await page.locator("[data-way=dynamic_update]").click()
    await _fill_key(page, key)
    await screenshot(page, "demo-key")
    assert await axe(page) == []
    await page.get_by_role("button", name="Set up now").click()
    await page.locator("dialog[data-step=records], dialog[data-step=done]").wait_for()
    await context.set_offline(True)
    await context.set_offline(False)
    await page.wait_for_selector("dialog[data-step=done]", timeout=_LIVE_SECONDS * 1000)
    await expect(page.get_by_role("link", name=f"Open {ELSEWHERE}")).to_be_visible()
    await screenshot(page, "demo-moved")
    async with context.expect_page() as opened:
        await page.get_by_role("link", name=f"Open {ELSEWHERE}").click()
    shop = await opened.value
    await expect(shop).to_have_url(re.compile(ELSEWHERE))
    await expect(shop.locator("body")).to_contain_text("Version A of the application")
    await page.bring_to_front()
    await page.get_by_role("button", name="Undo the changes").click()
    await _fill_key(page, key)
    await page.get_by_role("button", name="Undo now").click()
    await shows(page, "undone")
    await screenshot(page, "demo-moved-back")
    async with aiohttp.ClientSession(raise_for_status=True) as session, session.get(zone) as response:
        lines = (await response.text()).splitlines()
    assert [line for line in lines if line.startswith(ELSEWHERE)] == [f"{ELSEWHERE} A 192.0.2.1"]
    await expect(page.locator("dialog > [role=status]")).to_have_text("")
    await page.keyboard.press("Escape")
    await expect(page.locator("#outcome")).to_contain_text('"lastStatus": "UNDONE"')
    running = find_running_demo(demo.env)
    assert running is not None

    async def is_inactive() -> bool:
        return bool((await _call(running, f"/power?domain={ELSEWHERE}"))["powerStatus"] == "inactive")

    await until(is_inactive, "a partner that learns of the undo")
    events = (await _call(running, "/webhooks/events?limit=200"))["items"]
    assert [each["type"] for each in events].count("domain.flow.undone") == 1


async def test_a_name_at_a_domain_connect_provider_is_secured_by_consent(chromium: Browser, demo: Demo) -> None:
    context = await chromium.new_context(ignore_https_errors=True)
    page = await context.new_page()
    page.set_default_timeout(60_000)
    await page.goto(demo.line_after("A partner's page with the connect modal"))
    await page.get_by_role("button", name=f"Connect {AT_PROVIDER}").click()
    await shows(page, "conflicts")
    await page.get_by_role("button", name="Agree to these changes").click()
    await page.locator("[data-way=domain_connect]").click()
    async with context.expect_page() as opening:
        await page.get_by_role("button", name="Go to Lab Domains").click()
    window = await opening.value
    async with window.expect_event("close"):
        await window.get_by_role("button", name="Connect", exact=True).click(no_wait_after=True)
    await page.wait_for_selector("dialog[data-step=done]", timeout=_LIVE_SECONDS * 1000)
    async with context.expect_page() as opened:
        await page.get_by_role("link", name=f"Open {AT_PROVIDER}").click()
    await expect((await opened.value).locator("body")).to_contain_text(AT_PROVIDER)


@pytest.mark.skipif(find_powerdns() is None, reason="without Debian's pdns-server")
async def test_a_name_at_powerdns_is_moved_by_its_api_and_moved_back(chromium: Browser, demo: Demo) -> None:
    page = await (await chromium.new_context()).new_page()
    page.set_default_timeout(60_000)
    await page.goto(demo.line_after("A partner's page with the connect modal"))
    url, key = await page.locator("#by-api dd").all_inner_texts()
    await page.get_by_role("button", name=f"Connect {AT_POWERDNS}").click()
    await shows(page, "conflicts")
    await page.get_by_role("button", name="Agree to these changes").click()
    await page.locator("dialog details summary").click()
    await page.locator("[data-way=provider_api]").click()
    for button, step in (("Set up now", "done"), ("Undo now", "undone")):
        await page.get_by_label("URL of the API").fill(url)
        await page.get_by_label("API key").fill(key)
        await page.get_by_role("button", name=button).click()
        await page.wait_for_selector(f"dialog[data-step={step}]", timeout=_LIVE_SECONDS * 1000)
        if step == "done":
            await expect(page.get_by_role("link", name=f"Open {AT_POWERDNS}")).to_be_visible()
            await page.get_by_role("button", name="Undo the changes").click()


async def _fill_key(page: Page, key: list[str]) -> None:
    """As the partner's page shows it: name, secret and server."""
    for label, value in zip(("Name of the TSIG key", "Secret of the key", "Primary server"), key, strict=True):
        await page.get_by_label(label).fill(value)


@pytest.mark.skipif(shutil.which(PROGRAM) is None, reason="without Debian's firefox-esr")
async def test_the_main_path_in_firefox(demo: Demo, tmp_path: Path) -> None:
    async with Firefox.started(tmp_path) as firefox:
        await firefox.open(demo.line_after("A partner's page with the connect modal"))
        await firefox.evaluate(
            """(() => {
                window.inModal = selector =>
                    document.querySelector('frontage-connect')?.shadowRoot.querySelector(selector);
                window.when = test => new Promise(resolve => {
                    const look = () => test() ? resolve(true) : setTimeout(look, 50);
                    look();
                });
                document.getElementById('connect').click();
            })()"""
        )
        await firefox.evaluate("when(() => inModal('#domain'))")
        field = "inModal('#domain')"
        assert await firefox.evaluate(f"document.activeElement.shadowRoot.activeElement === {field}")
        await firefox.evaluate(f"{field}.value = 'firefox.customer.localhost', inModal('form').requestSubmit()")
        await firefox.evaluate("when(() => inModal('dialog[data-step=way]'))")
        style = "getComputedStyle(inModal('dialog'))"
        assert await firefox.evaluate(f"[{style}.borderRadius, {style}.position]") == ["14px", "fixed"]
        await firefox.evaluate("(inModal('[data-way=manual]') ?? inModal('.footer .primary')).click()")
        await firefox.evaluate("when(() => inModal('dialog[data-step=done] a.primary'))")
        href = await firefox.evaluate("inModal('a.primary').href")
        port = urlsplit(demo.line_after("In a browser")).port
        assert href == f"https://firefox.customer.localhost:{port}/"
        await firefox.evaluate("frontage.close()")
        outcome = "document.getElementById('outcome').textContent"
        await firefox.evaluate(f"when(() => {outcome} !== '')")
        assert '"lastStatus": "FINISHED_SUCCESSFULLY"' in await firefox.evaluate(outcome)


async def _call(running: RunningDemo, path: str) -> Any:
    """Ask the API as the demo's partner does."""
    known = {"applicationId": running.application_id, "secret": running.client_secret}
    async with aiohttp.ClientSession(running.api, raise_for_status=True) as session:
        async with session.post("/token", json=known) as response:
            token = (await response.json())["auth_token"]
        headers = {"applicationId": running.application_id, "Authorization": f"Bearer {token}"}
        async with session.get(path, headers=headers) as response:
            return await response.json()
