"""The lab's partner: a page with the modal's button, and a server that keeps the secret to itself."""

from __future__ import annotations

import aiohttp
from aiohttp import web

from bench.lab.partner import PartnerSite
from bench.lab.serving import serving


async def test_the_page_gets_tokens_of_the_scope_connect_and_never_the_secret() -> None:
    asked: list[dict[str, str]] = []
    registered: list[dict[str, object]] = []

    async def register(request: web.Request) -> web.Response:
        assert request.headers["Authorization"] == "Bearer a-token"
        registered.append((await request.json())["config"])
        return web.json_response({"id": f"cfg_{len(registered)}"}, status=201)

    async def mint(request: web.Request) -> web.Response:
        asked.append(await request.json())
        return web.json_response({"auth_token": "a-token"})

    api = web.Application()
    api.router.add_post("/token", mint)
    api.router.add_post("/connect/configurations", register)
    async with (
        serving(api, "127.0.0.1", 0) as address,
        PartnerSite.serve() as site,
        aiohttp.ClientSession() as session,
    ):
        async with session.get(f"{site.url}/") as response:
            assert response.status == 503
        settings = {
            "api": f"http://{address}",
            "applicationId": 'app"><script>',
            "clientSecret": "secret",
            "origin": "http://origin.example",
            "dns": "127.0.0.1:5353",
            "key": "customer:c2VjcmV0",
            "powerdns": "a-key@http://127.0.0.1:8081",
        }
        async with session.put(f"{site.url}/settings", json=settings) as response:
            assert response.status == 204
        async with session.get(f"{site.url}/") as response:
            page = await response.text()
        assert f'<script src="http://{address}/sdk/v1/frontage.js"></script>' in page
        assert '"secret"' not in page
        assert "clientSecret" not in page
        assert "<dd>c2VjcmV0</dd>" in page
        assert 'app"><script>' not in page
        assert "<dd>http://127.0.0.1:8081</dd>" in page
        assert "<dd>a-key</dd>" in page
        async with session.put(f"{site.url}/settings", json=settings | {"powerdns": ""}) as response:
            assert response.status == 204
        async with session.get(f"{site.url}/") as response:
            assert "PowerDNS does not run here" in await response.text()
        async with session.post(f"{site.url}/token") as response:
            assert await response.json() == {"token": "a-token"}
        async with session.post(f"{site.url}/token", params={"product": "all"}) as response:
            assert response.status == 400
    secret = {"applicationId": 'app"><script>', "secret": "secret"}
    of_page = {"scope": "connect", "userId": "user-7", "configurationId": f"cfg_{len(registered)}"}
    assert asked[-1] == secret | of_page
    assert [each for each in asked if "scope" in each] == [asked[-1]], "full tokens stay on the server"
    assert {str(each["dnsRecords"]).count("http://origin.example") for each in registered} == {1}
