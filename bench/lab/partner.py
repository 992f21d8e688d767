"""The partner's own site: a page with the connect modal's button, and the server behind it that mints its tokens.

``PUT /settings`` with `_SETTINGS` makes it one partner's; until then the page is 503. ``dns`` and ``key`` are what a
customer knows of their own zone: its server's address, and the key that signs updates, as ``name:secret``. ``powerdns``
is the same of a zone at PowerDNS, as ``key@url``, or empty where there is none. The client secret stays here:
``POST /token?product=power`` gives the page a token with the scope ``connect``, for one customer and the registered
configuration of that product, which leads to the partner's origin. ``configurations`` of the settings are others by
product.
"""

from __future__ import annotations

import contextlib
import html
import json
from collections.abc import AsyncIterator, Mapping
from importlib import resources
from string import Template
from typing import Any

import aiohttp
from aiohttp import web

from bench.lab.serving import serving

_TOKEN_SECONDS = 10.0
_CUSTOMER = "user-7"
_SETTINGS = ("api", "applicationId", "clientSecret", "origin", "dns", "key", "powerdns")
_RECORD = {"type": "CNAME", "host": "{SUBDOMAIN}", "value": "{CNAME_TARGET}", "ttl": 300}
_BY_POWERDNS = Template("""<section id="by-api">
<h3>shop.powerdns.localhost</h3>
<p>On PowerDNS, a name server with an API: under “For experts”, choose the API token.</p>
<dl>
<dt>URL of the API</dt><dd>$url</dd>
<dt>API key</dt><dd>$key</dd>
</dl>
<button type="button" data-domain="shop.powerdns.localhost">Connect shop.powerdns.localhost</button>
</section>""")
_WITHOUT_POWERDNS = (
    "<p>A domain at PowerDNS, changed by its API, is left out: PowerDNS does not run here (on Debian: "
    "<code>apt install pdns-server pdns-backend-sqlite3</code>).</p>"
)


class PartnerSite:
    """The partner's own site. Created and closed by `serve`.

    Mutable state: the settings that it was given.
    """

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self.url = ""
        self._session = session
        self._settings: Mapping[str, str] | None = None
        self._configurations: Mapping[str, Mapping[str, Any]] = {}
        self._page = Template((resources.files("bench.lab") / "partner.html").read_text("utf-8"))

    @classmethod
    @contextlib.asynccontextmanager
    async def serve(cls, host: str = "127.0.0.1", port: int = 0) -> AsyncIterator[PartnerSite]:
        """Serve within the block."""
        async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=_TOKEN_SECONDS)) as session:
            site = cls(session)
            app = web.Application()
            app.router.add_put("/settings", site._set)
            app.router.add_get("/", site._show)
            app.router.add_post("/token", site._mint)
            async with serving(app, host, port) as address:
                site.url = f"http://{address}"
                yield site

    async def _set(self, request: web.Request) -> web.Response:
        given = await request.json()
        self._settings = {name: str(given[name]) for name in _SETTINGS}
        self._configurations = given.get("configurations") or _own_configurations(self._settings["origin"])
        return web.Response(status=204)

    async def _show(self, _: web.Request) -> web.Response:
        settings = self._given()
        ids = {f"{product}Configuration": await self._register(product) for product in self._configurations}
        shown = {name: html.escape(settings[name], quote=True) for name in _SETTINGS if name != "clientSecret"}
        shown["keyName"], shown["keySecret"] = shown["key"].split(":", 1)
        if shown["powerdns"]:
            api_key, url = shown["powerdns"].split("@", 1)
            shown["powerdns"] = _BY_POWERDNS.substitute(key=api_key, url=url)
        else:
            shown["powerdns"] = _WITHOUT_POWERDNS
        text = self._page.substitute({"secureConfiguration": ""} | shown | ids)
        return web.Response(text=text, content_type="text/html")

    async def _mint(self, request: web.Request) -> web.Response:
        """Mint a token that leads domains to the partner's own origin, and nowhere else."""
        product = request.query.get("product", "power")
        if product not in self._configurations:
            raise web.HTTPBadRequest(text="no such product\n")
        registered = await self._register(product)
        token = await self._token(scope="connect", userId=_CUSTOMER, configurationId=registered)
        return web.Response(text=json.dumps({"token": token}), content_type="application/json")

    async def _register(self, product: str) -> str:
        """Return the id of the product's configuration.

        It is the same for the same configuration, however often it is registered.
        """
        settings = self._given()
        headers = {"applicationId": settings["applicationId"], "Authorization": f"Bearer {await self._token()}"}
        body = {"config": self._configurations[product]}
        return str((await self._post("/connect/configurations", body, 201, headers))["id"])

    async def _token(self, **claims: str) -> str:
        settings = self._given()
        body = {"applicationId": settings["applicationId"], "secret": settings["clientSecret"], **claims}
        return str((await self._post("/token", body, 200))["auth_token"])

    async def _post(
        self, path: str, body: Mapping[str, Any], status: int, headers: Mapping[str, str] | None = None
    ) -> dict[str, Any]:
        async with self._session.post(f"{self._given()['api']}{path}", json=body, headers=headers) as response:
            if response.status != status:
                raise web.HTTPBadGateway(text=f"the API answered {path} with {response.status}\n")
            answer: dict[str, Any] = await response.json()
        return answer

    def _given(self) -> Mapping[str, str]:
        if self._settings is None:
            raise web.HTTPServiceUnavailable(text="no settings yet\n")
        return self._settings


def _own_configurations(origin: str) -> dict[str, Mapping[str, Any]]:
    return {
        "power": {"power": True, "dnsRecords": [_RECORD | {"applicationUrl": f"{origin}/a"}]},
        "secure": {"dnsRecords": [_RECORD | {"applicationUrl": origin, "ssl": True}]},
    }
