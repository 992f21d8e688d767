"""Addresses that an origin builds, through a real edge: from its own name, and from X-Forwarded-Host."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.component.peers import Wire, edge, origin, served

GET = b"GET /cart HTTP/1.1\r\nHost: shop.example.com\r\n\r\n"


def _forwarded(head: bytes) -> tuple[bytes, bytes]:
    """The scheme and the host that the origin is told."""
    fields = dict(line.split(b": ", 1) for line in head.split(b"\r\n")[1:-2])
    return fields[b"X-Forwarded-Proto"], fields[b"X-Forwarded-Host"]


@pytest.mark.parametrize(("prefix", "product"), [(b"/base", "power"), (b"", "power"), (b"", "secure")])
async def test_a_redirect_built_from_the_forwarded_host_leads_to_its_page(
    tmp_path: Path, prefix: bytes, product: str
) -> None:
    """As Flask behind `ProxyFix`, Django with `USE_X_FORWARDED_HOST` and Rails do."""

    async def script(wire: Wire) -> None:
        while True:
            head = await wire.head()
            if head.split()[1] == prefix + b"/cart":
                to = b"%b://%b%b/login?next=%%2Fcart" % (*_forwarded(head), prefix)
                await wire.send(b"HTTP/1.1 302 Found\r\nLocation: %b\r\nContent-Length: 0\r\n\r\n" % to)
            else:
                body = head.split()[1]
                await wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(body), body))

    async with origin(script) as there, edge(tmp_path) as proxy:
        proxy.replica.enrol("shop.example.com", there.url + prefix.decode())
        if product == "secure":
            proxy.replica.records["route", "secure/shop.example.com"] = proxy.replica.records.pop(
                ("route", "power/shop.example.com")
            ) | {"product": "secure"}
        proxy.change()
        client = await proxy.connect()
        await client.send(GET)
        head, _ = await client.response()
        location = head.partition(b"Location: ")[2].partition(b"\r\n")[0]
        assert location == b"https://shop.example.com/login?next=%2Fcart"
        await client.send(GET.replace(b"/cart", location.removeprefix(b"https://shop.example.com")))
        assert (await client.response())[1] == prefix + b"/login?next=%2Fcart"


async def test_links_of_early_hints_are_mapped(tmp_path: Path) -> None:
    async def script(wire: Wire) -> None:
        await wire.head()
        link = b"Link: <%b/base/a.css>; rel=preload, </base/b.js>\r\n\r\n" % there.url.encode()
        await wire.send(b"HTTP/1.1 103 Early Hints\r\n" + link + b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n" + link)

    async with origin(script) as there, edge(tmp_path) as proxy:
        proxy.replica.enrol("shop.example.com", there.url + "/base")
        proxy.change()
        client = await proxy.connect()
        await client.send(GET)
        mapped = b"Link: <https://shop.example.com/a.css>; rel=preload, </b.js>\r\n"
        assert await client.head() == b"HTTP/1.1 103 Early Hints\r\n" + mapped + b"\r\n"
        assert mapped in await client.head()


async def test_an_allowed_origin_is_the_domain_unless_the_applications_own_page_asks(tmp_path: Path) -> None:
    async def script(wire: Wire) -> None:
        while True:
            await wire.head()
            allowed = b"Access-Control-Allow-Origin: " + there.url.encode()
            await wire.send(b"HTTP/1.1 200 OK\r\n" + allowed + b"\r\nContent-Length: 0\r\n\r\n")

    async with served(script, tmp_path) as (there, proxy):
        client = await proxy.connect()
        for page in (b"https://shop.example.com", there.url.encode(), b"https://x.test"):
            await client.send(GET.replace(b"\r\n\r\n", b"\r\nOrigin: " + page + b"\r\n\r\n"))
            allowed = page if page == there.url.encode() else b"https://shop.example.com"
            assert b"Access-Control-Allow-Origin: " + allowed + b"\r\n" in await client.head()
