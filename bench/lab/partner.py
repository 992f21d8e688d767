"""The partner's own site: a page with the connect modal's button, and the server behind it that mints its tokens.

``PUT /settings`` with `_SETTINGS` makes it one partner's; until then the page is 503. ``dns`` and ``key`` are what a
customer knows of their own zone: its server's address, and the key that signs updates, as ``name:secret``. ``powerdns``
is the same of a zone at PowerDNS, as ``key@url``, or empty where there is none. The client secret stays here:
``POST /token`` gives the page a token with the scope ``connect``, for one customer.
"""

from __future__ import annotations

import contextlib
import html
import json
from collections.abc import AsyncIterator, Mapping
from importlib import resources
from string import Template

import aiohttp
from aiohttp import web

from bench.lab.serving import serving

_TOKEN_SECONDS = 10.0
_CUSTOMER = "user-7"
_SETTINGS = ("api", "applicationId", "clientSecret", "origin", "dns", "key", "powerdns")
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
    """Created and closed by `serve`. Mutable state: the settings that it was given."""

    def __init__(self, session: aiohttp.ClientSession) -> None:
        self.url = ""
        self._session = session
        self._settings: Mapping[str, str] | None = None
        self._page = Template((resources.files("bench.lab") / "partner.html").read_text("utf-8"))

    @classmethod
    @contextlib.asynccontextmanager
    async def serve(cls, host: str = "127.0.0.1", port: int = 0) -> AsyncIterator[PartnerSite]:
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
        return web.Response(status=204)

    async def _show(self, _: web.Request) -> web.Response:
        settings = self._given()
        shown = {name: html.escape(settings[name], quote=True) for name in _SETTINGS if name != "clientSecret"}
        shown["keyName"], shown["keySecret"] = shown["key"].split(":", 1)
        if shown["powerdns"]:
            api_key, url = shown["powerdns"].split("@", 1)
            shown["powerdns"] = _BY_POWERDNS.substitute(key=api_key, url=url)
        else:
            shown["powerdns"] = _WITHOUT_POWERDNS
        return web.Response(text=self._page.substitute(shown), content_type="text/html")

    async def _mint(self, _: web.Request) -> web.Response:
        settings = self._given()
        body = {
            "applicationId": settings["applicationId"],
            "secret": settings["clientSecret"],
            "scope": "connect",
            "userId": _CUSTOMER,
        }
        async with self._session.post(f"{settings['api']}/token", json=body) as response:
            if response.status != 200:
                raise web.HTTPBadGateway(text="the API gave no token\n")
            token = (await response.json())["auth_token"]
        return web.Response(text=json.dumps({"token": token}), content_type="application/json")

    def _given(self) -> Mapping[str, str]:
        if self._settings is None:
            raise web.HTTPServiceUnavailable(text="no settings yet\n")
        return self._settings
