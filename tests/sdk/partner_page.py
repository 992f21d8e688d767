"""A partner's page with the SDK over a real installation: the API, the monitor's steps, and the DNS of `World`."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from playwright.async_api import Browser, Page, Request

from bench.lab.partner import PartnerSite
from tests.integration.api.connecting import CNAME, World

LIVE_MS = 120_000
SPF = "v=spf1 include:partner.test -all"
CONFIG: dict[str, Any] = {
    "applicationName": "Acme Shops",
    "power": True,
    "dnsRecords": [
        CNAME,
        {"type": "TXT", "host": "@", "value": SPF, "ttl": 300},
    ],
}
_CONNECT = """config => {
    window.events = [];
    for (const name of ["onFrontageStepChange", "onSuccess", "onFrontageClose"]) {
        window.addEventListener(name, ({ detail }) => events.push([name, detail]));
    }
    frontage.connectDomain({
        ...config,
        applicationId: document.body.dataset.application,
        getToken: async () => (await (await fetch("/token", { method: "POST" })).json()).token,
    });
}"""


@dataclass
class PartnerPage:
    """Made by `partner_page`. `requests`: of the page, in their order."""

    page: Page
    world: World
    site: PartnerSite
    requests: list[Request] = field(default_factory=list)

    async def set_site(self, config: dict[str, Any] = CONFIG) -> None:
        """Give the partner's server its settings, the client secret among them, and what it registers."""
        known = {
            "api": self.world.service.url,
            "applicationId": self.world.partner.id,
            "clientSecret": self.world.partner.secret,
            "origin": "https://app.example.com",
            "configurations": {"power": {key: value for key, value in config.items() if key != "prefilledDomain"}},
            "dns": "unused",
            "key": "unused:unused",
            "powerdns": "",
        }
        async with self.world.service.session.put(f"{self.site.url}/settings", json=known) as answer:
            assert answer.status == 204

    async def connect(self, **config: Any) -> None:
        await self.set_site(CONFIG | config)
        await self.page.evaluate(_CONNECT, CONFIG | config)

    async def events(self, name: str) -> list[Any]:
        """Details of the window's events of that name."""
        found: list[Any] = await self.page.evaluate(
            "name => events.filter(([each]) => each === name).map(([, detail]) => detail)", name
        )
        return found

    def sent(self, method: str, ending: str) -> list[Request]:
        """Requests whose path ends so."""
        return [each for each in self.requests if each.method == method and each.url.endswith(ending)]


@asynccontextmanager
async def partner_page(chromium: Browser, world: World, **options: Any) -> AsyncIterator[PartnerPage]:
    """`options` of the browser's context."""
    async with PartnerSite.serve() as site:
        context = await chromium.new_context(**options)
        page = await context.new_page()
        page.set_default_timeout(LIVE_MS)
        made = PartnerPage(page, world, site)
        page.on("request", lambda request: made.requests.append(request))  # noqa: PLW0108 - Playwright marks listeners
        try:
            await made.set_site()
            await page.goto(site.url)
            yield made
        finally:
            await context.close()
