"""Secure at the edge: no rewriting, ``redirectTo``, and both products on one name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from tests.component.peers import Edge, Wire, edge, origin


def secure(proxy: Edge, domain: str, url: str | None, **fields: Any) -> None:
    proxy.replica.records["application", "app"] = {"id": "app", "application_url": url, "root_path_access": ["/static"]}
    proxy.replica.records["route", f"secure/{domain}"] = {"domain": domain, "application_id": "app", **fields}
    proxy.replica.records["certificate", domain] = {"domain": domain}
    proxy.replica.touch()
    proxy.change()


async def echo_target(wire: Wire) -> None:
    while True:
        target = (await wire.head()).split()[1]
        await wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(target), target))


async def get(client: Wire, target: bytes = b"/", host: bytes = b"shop.example.com") -> tuple[bytes, bytes]:
    await client.send(b"GET %b HTTP/1.1\r\nHost: %b\r\n\r\n" % (target, host))
    return await client.response()


async def test_paths_are_not_rewritten_whatever_the_application_url_says(tmp_path: Path) -> None:
    async with origin(echo_target) as there, edge(tmp_path) as proxy:
        secure(proxy, "shop.example.com", there.url + "/ignored")
        client = await proxy.connect()
        for target in (b"/", b"/x//y?z=%2e", b"/static/a", b"/%41"):
            assert (await get(client, target))[1] == target


async def test_the_domains_own_url_wins_over_the_applications(tmp_path: Path) -> None:
    async with origin(echo_target) as there, edge(tmp_path) as proxy:
        secure(proxy, "shop.example.com", "http://127.0.0.1:9", application_url=there.url)
        assert (await get(await proxy.connect(), b"/own"))[1] == b"/own"


@pytest.mark.parametrize("https", [True, False])
@pytest.mark.parametrize("method", [b"GET", b"POST", b"HEAD"])
async def test_redirect_to_sends_every_request_on(tmp_path: Path, https: bool, method: bytes) -> None:
    async with edge(tmp_path, secure=https) as proxy:
        secure(proxy, "shop.example.com", None, redirect_to="https://www.example.net:8443")
        client = await proxy.connect()
        for target in (b"/a/%20b?c=d&e", b"/"):
            await client.send(b"%b %b HTTP/1.1\r\nHost: shop.example.com\r\n\r\n" % (method, target))
            head = await client.head()
            assert head.startswith(
                b"HTTP/1.1 308 Permanent Redirect\r\nLocation: https://www.example.net:8443" + target + b"\r\n"
            )
            assert b"Cache-Control: max-age=" in head


async def test_plain_http_is_redirected_before_there_is_a_certificate(tmp_path: Path) -> None:
    async with edge(tmp_path, secure=False) as proxy:
        secure(proxy, "shop.example.com", None, redirect_to="https://www.example.net")
        del proxy.replica.records["certificate", "shop.example.com"]
        assert (await get(await proxy.connect()))[0].startswith(b"HTTP/1.1 308 ")


async def test_a_challenge_is_answered_where_all_else_is_redirected(tmp_path: Path) -> None:
    async with edge(tmp_path, secure=False) as proxy:
        proxy.replica.records["acme_key", "current"] = {"thumbprint": "thumb"}
        secure(proxy, "shop.example.com", None, redirect_to="https://www.example.net")
        del proxy.replica.records["certificate", "shop.example.com"]
        client = await proxy.connect()
        assert (await get(client, b"/.well-known/acme-challenge/token"))[1] == b"token.thumb"
        assert (await get(client, b"/.well-known/acme-challenge"))[0].startswith(b"HTTP/1.1 308 ")


async def test_maintenance_goes_before_a_redirect(tmp_path: Path) -> None:
    async with edge(tmp_path) as proxy:
        secure(proxy, "shop.example.com", None, redirect_to="https://www.example.net")
        proxy.replica.records["application", "app"]["maintenance"] = True
        proxy.replica.touch()
        proxy.change()
        assert (await get(await proxy.connect()))[0].startswith(b"HTTP/1.1 503 ")


async def test_a_circle_of_redirects_is_broken(tmp_path: Path) -> None:
    async with edge(tmp_path) as proxy:
        secure(proxy, "a.example.com", None, redirect_to="https://b.example.com")
        secure(proxy, "b.example.com", None, redirect_to="https://a.example.com")
        client = await proxy.connect()
        assert (await get(client, host=b"a.example.com"))[0].startswith(b"HTTP/1.1 508 ")

        secure(proxy, "b.example.com", None, redirect_to="https://elsewhere.example.com")
        assert (await get(client, host=b"a.example.com"))[0].startswith(b"HTTP/1.1 308 ")


async def test_powers_route_wins_until_it_goes(tmp_path: Path) -> None:
    async with origin(echo_target) as there, edge(tmp_path) as proxy:
        secure(proxy, "shop.example.com", None, application_url=there.url)
        proxy.replica.enrol("shop.example.com", there.url + "/power")
        proxy.change()
        client = await proxy.connect()
        assert (await get(client, b"/x"))[1] == b"/power/x"

        proxy.replica.remove("shop.example.com")
        proxy.change()
        assert (await get(client, b"/x"))[1] == b"/x"


@pytest.mark.parametrize(
    "redirect_to", ["https://", "ftp://a.example.com", "https://192.0.2.1", "https://a.example/?x"]
)
async def test_a_redirect_that_makes_no_sense_refuses_for_its_domain(tmp_path: Path, redirect_to: str) -> None:
    async with edge(tmp_path) as proxy:
        secure(proxy, "shop.example.com", None, redirect_to=redirect_to)
        assert (await get(await proxy.connect()))[0].startswith(b"HTTP/1.1 503 ")
