"""The root of an application whose origin redirects it to the same path with, or without, its last slash."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path

import pytest

from common import signatures
from tests.component.origins import sends
from tests.component.peers import Edge, Origin, Script, Wire, edge, origin

HOST = b"Host: shop.example.com\r\n"


def get(target: bytes = b"/", method: bytes = b"GET") -> bytes:
    return b"%b %b HTTP/1.1\r\n%b\r\n" % (method, target, HOST)


class Shop:
    """An origin that redirects `wrong` to the location that `place` makes, and answers anything else with its target.
    `asked` are the targets that it was asked for."""

    def __init__(self, wrong: bytes, place: Callable[[bytes], bytes], status: bytes = b"301 Moved") -> None:
        self.wrong = wrong
        self.place = place
        self.status = status
        self.asked: list[bytes] = []
        self.heads: list[bytes] = []

    async def __call__(self, wire: Wire) -> None:
        while True:
            head, _ = await wire.response()
            self.heads.append(head)
            method, target, _ = head.split(b" ", 2)
            self.asked.append(target)
            path, mark, query = target.partition(b"?")
            if path == self.wrong:
                answer = b"HTTP/1.1 %b\r\nLocation: %b\r\n" % (self.status, self.place(mark + query))
                body = b"<h1>moved</h1>"
            else:
                answer, body = b"HTTP/1.1 200 OK\r\n", target
            head_only = method == b"HEAD"
            await wire.send(answer + b"Content-Length: %d\r\n\r\n%b" % (len(body), b"" if head_only else body))


def with_slash(suffix: bytes) -> bytes:
    return b"/shop/" + suffix


def enrol(proxy: Edge, there: Origin, path: str = "/shop") -> None:
    proxy.replica.enrol("shop.example.com", there.url + path)
    proxy.change()


async def ask(proxy: Edge, request: bytes) -> tuple[bytes, bytes]:
    client = await proxy.connect()
    await client.send(request)
    return await client.response()


@pytest.mark.parametrize("status", [b"301 M", b"302 F", b"307 T", b"308 P"])
@pytest.mark.parametrize(
    "place",
    [
        with_slash,
        lambda suffix: b"https://shop.example.com/shop/" + suffix,
        lambda suffix: b"http://shop.example.com/shop/" + suffix,
        lambda suffix: b"//shop.example.com/shop/" + suffix,
        lambda suffix: b"shop/" + suffix,
        lambda suffix: b"./shop/" + suffix,
        lambda suffix: b"/" + suffix,  # of an application that knows the customer's domain, or not its own prefix
    ],
)
async def test_a_directory_without_its_slash_is_asked_for_with_it(
    tmp_path: Path, status: bytes, place: Callable[[bytes], bytes]
) -> None:
    shop = Shop(b"/shop", place, status)
    async with origin(shop) as there, edge(tmp_path) as proxy:
        enrol(proxy, there)
        client = await proxy.connect()
        for target in (b"/?a=/b", b"/?a=/b", b"/", b"/cart"):
            await client.send(get(target))
            assert (await client.response())[1] == b"/shop" + target
        assert shop.asked == [b"/shop?a=/b", b"/shop/?a=/b", b"/shop/?a=/b", b"/shop/", b"/shop/cart"]
        assert len(there.connections) == 1


async def test_the_origins_own_name_in_the_location_is_the_root_too(tmp_path: Path) -> None:
    """As nginx, Apache and Django build it."""
    shop = Shop(b"/shop", lambda suffix: there.url.encode() + b"/shop/" + suffix)
    async with origin(shop) as there, edge(tmp_path) as proxy:
        enrol(proxy, there)
        assert (await ask(proxy, get(b"/?q")))[1] == b"/shop/?q"
        assert (await ask(proxy, get()))[1] == b"/shop/"
        assert shop.asked == [b"/shop?q", b"/shop/?q", b"/shop/"]


async def test_an_origin_that_wants_no_slash_is_asked_without(tmp_path: Path) -> None:
    for place in (lambda suffix: b"/shop" + suffix, lambda suffix: b"../shop" + suffix):
        shop = Shop(b"/shop/", place, b"308 Permanent Redirect")
        async with origin(shop) as there, edge(tmp_path) as proxy:
            enrol(proxy, there, "/shop/")
            for _ in range(2):
                assert (await ask(proxy, get()))[1] == b"/shop"
            assert shop.asked == [b"/shop/", b"/shop", b"/shop"]


async def test_head_is_asked_again_and_connections_that_remember_the_request_learn_once(tmp_path: Path) -> None:
    shop = Shop(b"/none", with_slash)
    async with origin(shop) as there, edge(tmp_path) as proxy:
        enrol(proxy, there)
        old = await proxy.connect()
        await old.send(get())
        assert (await old.response())[1] == b"/shop"
        shop.wrong = b"/shop"  # the origin has changed
        client = await proxy.connect()
        await client.send(get(method=b"HEAD"))
        assert (await client.head()).startswith(b"HTTP/1.1 200 ")
        for _ in range(3):  # the old connection has remembered how to ask
            await old.send(get())
            assert (await old.response())[1] == b"/shop/"
        assert shop.asked == [b"/shop", b"/shop", b"/shop/", b"/shop", b"/shop/", b"/shop/", b"/shop/"]


async def test_what_was_learnt_is_corrected_by_the_origin_and_forgotten_with_the_route(tmp_path: Path) -> None:
    shop = Shop(b"/shop", with_slash)
    async with origin(shop) as there, edge(tmp_path) as proxy:
        enrol(proxy, there)
        await ask(proxy, get())
        shop.wrong, shop.place = b"/shop/", lambda suffix: b"/shop" + suffix
        for _ in range(2):
            assert (await ask(proxy, get()))[1] == b"/shop"
        assert shop.asked[2:] == [b"/shop/", b"/shop", b"/shop"]
        shop.wrong, shop.place = b"/shop", with_slash
        await ask(proxy, get())
        shop.wrong = b"/none"
        proxy.replica.records["route", "power/shop.example.com"]["root_path_access"] = ["/static"]
        proxy.replica.touch()
        proxy.change()
        assert (await ask(proxy, get()))[1] == b"/shop"


async def test_an_origin_that_redirects_to_and_fro_is_asked_twice_and_its_redirect_passes(tmp_path: Path) -> None:
    asked: list[bytes] = []

    async def script(wire: Wire) -> None:
        while True:
            target = (await wire.head()).split()[1]
            asked.append(target)
            other = b"/shop" if target == b"/shop/" else b"/shop/"
            await wire.send(b"HTTP/1.1 302 Found\r\nLocation: %b\r\nContent-Length: 0\r\n\r\n" % other)

    async with origin(script) as there, edge(tmp_path) as proxy:
        enrol(proxy, there)
        for n in (1, 2):
            head, _ = await ask(proxy, get())
            assert head.startswith(b"HTTP/1.1 302 Found\r\nLocation: /\r\n")
            assert asked == [b"/shop", b"/shop/"] * n


@pytest.mark.parametrize(
    ("status", "is_learnt"), [(b"301 M", True), (b"302 F", False), (b"303 S", False), (b"308 P", True)]
)
async def test_a_post_is_never_sent_twice_but_its_redirect_is_learnt_from(
    tmp_path: Path, status: bytes, is_learnt: bool
) -> None:
    """302 and 303 are what a form that was stored answers, and its page is the root."""
    shop = Shop(b"/shop", with_slash, status)
    post = b"POST / HTTP/1.1\r\n" + HOST + b"Content-Length: 3\r\n\r\nabc"
    async with origin(shop) as there, edge(tmp_path) as proxy:
        enrol(proxy, there)
        head, _ = await ask(proxy, post)
        assert head.startswith(b"HTTP/1.1 %b\r\nLocation: /\r\n" % status)
        assert shop.asked == [b"/shop"]
        head, body = await ask(proxy, post)
        assert (body == b"/shop/") is is_learnt


@pytest.mark.parametrize(
    "location",
    [
        b"/shop",
        b"/shop/?other",
        b"/shop/#top",
        b"/shop/login",
        b"?",
        b"shop",
        b"/shop//",
    ],
)
async def test_other_redirects_of_the_root_pass(tmp_path: Path, location: bytes) -> None:
    """To the very address that was asked, too: it may set a cookie on the way."""
    shop = Shop(b"/shop", lambda _: location)
    async with origin(shop) as there, edge(tmp_path) as proxy:
        enrol(proxy, there)
        head, _ = await ask(proxy, get())
        assert head.startswith(b"HTTP/1.1 301 ")
        assert shop.asked == [b"/shop"]


async def test_two_locations_pass_and_a_body_of_the_redirect_that_is_under_way_ends_its_connection(
    tmp_path: Path,
) -> None:
    two = sends(b"HTTP/1.1 301 M\r\nLocation: /shop/\r\nLocation: /shop/\r\nContent-Length: 0\r\n\r\n", closes=True)

    async def slow(wire: Wire) -> None:
        if (await wire.head()).split()[1] == b"/shop":
            await wire.send(b"HTTP/1.1 301 M\r\nLocation: /shop/\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhel")
            await wire.rest()
        else:
            await wire.send(b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok")

    scripts: list[Script] = [two, slow]
    for script in scripts:
        async with origin(script) as there, edge(tmp_path) as proxy:
            enrol(proxy, there)
            head, _ = await ask(proxy, get())
            assert head.startswith(b"HTTP/1.1 301 " if script is two else b"HTTP/1.1 200 ")
            assert len(there.connections) == (1 if script is two else 2)


async def test_a_signed_request_is_signed_for_the_path_that_is_asked(tmp_path: Path) -> None:
    shop = Shop(b"/shop", with_slash)
    async with origin(shop) as there, edge(tmp_path, FRONTAGE_EDGE_ACCESS_LOG="off") as proxy:
        enrol(proxy, there)
        envelope = proxy.keyring.seal(b"key-1", "application/app/signature-key")
        proxy.replica.records["application", "app"]["signature_key"] = base64.encodebytes(envelope).decode()
        proxy.replica.touch()
        proxy.change()
        assert (await ask(proxy, get()))[1] == b"/shop/"
        for head, target in zip(shop.heads, (b"/shop", b"/shop/"), strict=True):
            (value,) = [
                line.partition(b": ")[2] for line in head.split(b"\r\n") if line.startswith(b"X-Service-Signature")
            ]
            at = int(value[2:].partition(b",")[0])
            assert value == signatures.sign(
                (b"key-1",), at=at, method=b"GET", domain=b"shop.example.com", target=target
            )
