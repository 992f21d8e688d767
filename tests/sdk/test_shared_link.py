"""Sharing links in Chromium: the real API, monitor and DNS, and pages that know nothing but the link."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import jwt
import pytest
from aiohttp import web
from playwright.async_api import Browser, BrowserContext, Page, Request, expect

from bench.lab.knot import Knot, find_knot
from bench.lab.ports import free_ports
from bench.lab.serving import serving
from tests.browser import SESSION_LOOP, axe, screenshot
from tests.conftest import fresh_database
from tests.integration.api.connecting import APEX, CONFIG, CUSTOMER, PARENT, World, open_world, zone_file
from tests.sdk.scripted_api import shows

pytestmark = [
    SESSION_LOOP,
    pytest.mark.timeout(300),
    pytest.mark.skipif(find_knot() is None, reason="without Debian's knot"),
]

SHOP = f"shop.{APEX}"
TARGET = "target-1.partner.test"
SHARED: dict[str, Any] = CONFIG | {"applicationName": "Acme Shops", "prefilledDomain": SHOP}
_LIVE_MS = 120_000
_OPEN_LINK = """link => {
    window.events = [];
    window.called = [];
    for (const name of ["onFrontageStepChange", "onSuccess", "onFrontageClose"]) {
        addEventListener(name, ({ detail }) => events.push([name, detail]));
    }
    const onSuccess = (detail) => called.push(detail);
    frontage.loadSharedFlow(link, { onSuccess }).then(detail => { window.outcome = detail });
}"""


@dataclass
class Stage:
    """`url`: a colleague's page with the SDK, at an origin of its own. `requests`: of all pages of the context."""

    world: World
    knot: Knot
    url: str
    context: BrowserContext
    requests: list[Request] = field(default_factory=list)

    async def share(self, **config: Any) -> dict[str, Any]:
        answer = await self.world.partner.call("POST", "/sharing/connect", json={"config": SHARED | config})
        assert answer.status == 201, answer.body
        link: dict[str, Any] = answer.body
        return link

    async def open_page(self, url: str) -> Page:
        page = await self.context.new_page()
        page.set_default_timeout(_LIVE_MS)
        await page.goto(url)
        return page

    async def lead_shop_to_us(self) -> None:
        """What the person does at the DNS provider."""
        await self.knot.remove(APEX, "shop", "A")
        await self.knot.add(APEX, "shop", "CNAME", f"{TARGET}.")

    def tokens(self) -> list[str]:
        """Of requests for flows, in their order."""
        sent = [each for each in self.requests if "/connect/flows" in each.url and each.method != "OPTIONS"]
        return [each.headers["authorization"].removeprefix("Bearer ") for each in sent]


@asynccontextmanager
async def stage(chromium: Browser, server_dsn: str, state_dir: Path, **options: Any) -> AsyncIterator[Stage]:
    """`options` of the browser's context."""
    api, probe_port = free_ports(2)
    listen = f"127.0.0.1:{api}"
    zones = {"test": zone_file(PARENT), APEX: zone_file(CUSTOMER)}
    site = web.Application()
    site.router.add_get("/", _colleagues_page(f"http://{listen}"))
    async with (
        fresh_database(server_dsn) as dsn,
        Knot.serve(zones) as knot,
        open_world(dsn, state_dir, probe_port, knot.address, API_LISTEN=listen) as world,
        serving(site, "127.0.0.1", 0) as address,
    ):
        context = await chromium.new_context(**options)
        made = Stage(world, knot, f"http://{address}/", context)

        def keep(request: Request) -> None:
            made.requests.append(request)

        context.on("request", keep)
        try:
            yield made
        finally:
            await context.close()


def _colleagues_page(api: str) -> Any:
    html = (
        '<!doctype html><html lang="en"><head><title>Intranet</title>'
        f'<script src="{api}/sdk/v1/frontage.js"></script></head><body><main><h1>Intranet</h1></main></body></html>'
    )

    async def show(_: web.Request) -> web.Response:
        return web.Response(text=html, content_type="text/html")

    return show


async def test_a_shared_configuration_goes_live_from_another_origin_without_the_partner(
    chromium: Browser, server_dsn: str, tmp_path: Path
) -> None:
    async with stage(chromium, server_dsn, tmp_path) as on:
        link = await on.share()
        page = await on.open_page(on.url)
        await page.evaluate(_OPEN_LINK, link["link"])
        await shows(page, "conflicts")
        await expect(page.locator("del").filter(has_text="192.0.2.1")).to_be_visible()
        await expect(page.get_by_text("Acme Shops").first).to_be_visible()
        assert await axe(page) == []
        await page.get_by_role("button", name="Agree to these changes").click()
        await page.locator("[data-way=manual]").click()
        await shows(page, "manual")
        await expect(page.get_by_text(TARGET).first).to_be_visible()
        await on.lead_shop_to_us()
        await shows(page, "done")
        await page.get_by_role("button", name="Done").click()
        closed: Any = await (await page.wait_for_function("window.outcome")).json_value()

        assert (closed["success"], closed["lastStatus"]) == (True, "FINISHED_SUCCESSFULLY")
        events = await page.evaluate("events")
        [success] = [detail for name, detail in events if name == "onSuccess"]
        assert (success["domain"], success["setupType"], success["jobId"]) == (SHOP, "manual", link["job_id"])
        assert await page.evaluate("called") == [success]
        assert [detail for name, detail in events if name == "onFrontageClose"] == [closed]
        steps = [detail["step"] for name, detail in events if name == "onFrontageStepChange"]
        assert [each for each in steps if each in ("conflicts", "way", "manual", "done")] == [
            "conflicts",
            "way",
            "manual",
            "done",
        ]
        powered = await on.world.partner.get()
        assert [each["domain"] for each in powered.body["items"]] == [SHOP]
        completed = next(each for each in await on.world.events() if each["type"] == "domain.flow.completed")
        assert completed["user_id"] == "user-7"


async def test_the_links_token_opens_its_own_flows_alone_and_is_renewed_from_the_link(
    chromium: Browser, server_dsn: str, tmp_path: Path
) -> None:
    async with stage(chromium, server_dsn, tmp_path) as on:
        link = await on.share()
        page = await on.open_page(on.url)
        await page.evaluate(_OPEN_LINK, link["link"])
        await shows(page, "conflicts")
        [token] = set(on.tokens())
        claims = jwt.decode(token, options={"verify_signature": False})
        assert (claims["scope"], claims["domain"], claims["userId"]) == ("connect", APEX, "user-7")
        headers = {"applicationId": on.world.partner.id, "Authorization": f"Bearer {token}"}
        for method, path in (("GET", "/power"), ("GET", "/sharing/connect"), ("DELETE", "/power")):
            body = {"json": {"domain": SHOP}} if method == "DELETE" else {}
            assert (await on.world.partner.call(method, path, headers=headers, **body)).status == 403
        opened = [each for each in on.requests if each.url == link["link"]]
        assert [each.headers.get("authorization") for each in opened] == [None]

        await page.clock.set_fixed_time(datetime.fromtimestamp(claims["exp"], UTC) - timedelta(seconds=30))
        await page.get_by_role("button", name="Agree to these changes").click()
        await page.locator("[data-way=manual]").click()
        await shows(page, "manual")

        assert len([each for each in on.requests if each.url == link["link"]]) > 1, "asked again before it expires"


async def test_a_token_that_the_api_knows_to_have_expired_is_replaced_once(
    chromium: Browser, server_dsn: str, tmp_path: Path
) -> None:
    """The person's clock is slow: the browser takes the token for good, the API refuses it."""
    async with stage(chromium, server_dsn, tmp_path) as on:
        partner = on.world.partner
        config = {key: value for key, value in SHARED.items() if key not in ("prefilledDomain", "userId")}
        registered = await partner.call("POST", "/connect/configurations", json={"config": config})
        claims = {"scope": "connect", "configurationId": registered.body["id"]}
        expired = partner.token(lifetime=timedelta(minutes=-10), **claims)
        fresh = partner.token(userId="user-7", **claims)
        page = await on.open_page(on.url)
        await page.clock.set_fixed_time(datetime.now(UTC) - timedelta(hours=2))
        await page.evaluate(
            """([config, fresh]) => {
                window.asked = 0;
                frontage.connectDomain({ ...config, getToken: async () => { asked++; return fresh; } });
            }""",
            [SHARED | {"applicationId": partner.id, "token": expired}, fresh],
        )
        await shows(page, "conflicts")
        assert await page.evaluate("asked") == 1
        assert (on.tokens()[0], set(on.tokens()[1:])) == (expired, {fresh})


@pytest.mark.parametrize("ending", ["revoked", "expired"])
async def test_a_link_that_opens_nothing_rejects_and_shows_no_modal(
    chromium: Browser, server_dsn: str, tmp_path: Path, ending: str
) -> None:
    async with stage(chromium, server_dsn, tmp_path) as on:
        link = await on.share()
        if ending == "revoked":
            assert (await on.world.partner.call("DELETE", f"/sharing/connect/{link['id']}")).status == 200
        else:
            async with on.world.service.database.transaction() as connection:
                await connection.execute("update shares set expires_at = now()")
        page = await on.open_page(on.url)
        printed: list[str] = []
        page.on("console", lambda message: printed.append(message.text))
        load = "link => frontage.loadSharedFlow(link).catch(({ code, status, apiCode }) => [code, status, apiCode])"
        assert await page.evaluate(load, link["link"]) == ["link_not_found", 404, "link_not_found"]
        assert await page.evaluate("document.querySelector('frontage-connect')") is None
        assert any(text.startswith("Frontage: link_not_found: ") for text in printed)
        assert on.tokens() == []


async def test_the_links_own_page_opens_the_modal(chromium: Browser, server_dsn: str, tmp_path: Path) -> None:
    async with stage(chromium, server_dsn, tmp_path) as on:
        page = await on.open_page((await on.share())["link"])
        await shows(page, "conflicts")
        await screenshot(page, "shared-link")


@pytest.mark.parametrize(
    ("kind", "options"),
    [
        ("desktop", {}),
        ("dark", {"color_scheme": "dark"}),
        ("phone", {"viewport": {"width": 360, "height": 740}}),
        ("phone-dark", {"viewport": {"width": 360, "height": 740}, "color_scheme": "dark"}),
    ],
)
async def test_the_links_page_has_a_button_that_copies_each_value(
    chromium: Browser, server_dsn: str, tmp_path: Path, kind: str, options: dict[str, Any]
) -> None:
    granted = {"permissions": ["clipboard-read", "clipboard-write"]}
    async with stage(chromium, server_dsn, tmp_path, **options, **granted) as on:
        page = await on.open_page((await on.share())["link"])
        await shows(page, "conflicts")
        await page.get_by_role("button", name="Close").first.click()
        await page.wait_for_function("document.querySelector('frontage-connect') === null")
        values = await page.locator("td code").all_inner_texts()
        assert values == ["CNAME", "shop", TARGET, "300"]
        for label, value in zip(("Type", "Host", "Value", "TTL"), values, strict=True):
            button = page.get_by_role("button", name=f"Copy: {label}")
            await button.click()
            await expect(button).to_have_text("Copied")
            assert await page.evaluate("navigator.clipboard.readText()") == value
        await screenshot(page, f"shared-link-copied-{kind}")
        assert await axe(page) == []


async def test_without_javascript_the_links_page_has_the_records_to_create(
    chromium: Browser, server_dsn: str, tmp_path: Path
) -> None:
    async with stage(chromium, server_dsn, tmp_path, java_script_enabled=False) as on:
        mail = {"type": "MX", "host": "@", "value": "mx.{SLD}.partner.test", "ttl": 300, "priority": "20"}
        page = await on.open_page((await on.share(dnsRecords=[*CONFIG["dnsRecords"], mail]))["link"])
        await screenshot(page, "shared-link-without-javascript")
        assert await page.locator("button:visible").count() == 0
        rows = await page.locator("tbody tr").all_inner_texts()
        assert [row.split() for row in rows] == [
            ["CNAME", "shop", TARGET, "300"],
            ["MX", "@", "mx.customer.partner.test", "300", "20"],
        ]
