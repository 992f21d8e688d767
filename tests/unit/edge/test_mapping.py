"""Addresses of the origin become the customer's (the inverse of rewriting)."""

from __future__ import annotations

from dataclasses import replace
from urllib.parse import urljoin, urlsplit

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.routing import paths
from edge.routing.mapping import has_addresses, map_back
from edge.routing.route import Origin, Route

ROUTE = Route(
    "shop.example.com",
    "power",
    "app",
    Origin("http", "origin.test", 8000, "origin.test"),
    b"/app",
    (b"/static",),
    b"",
    b"origin.test:8000",
)
PLAIN = Route(
    "shop.example.com",
    "power",
    "app",
    Origin("https", "origin.test", 443, "origin.test"),
    b"",
    (),
    b"",
    b"origin.test",
)
BESIDE = replace(PLAIN, origin=Origin("https", "origin.example.com", 443, "origin.example.com"))
DEEP = replace(ROUTE, base_path=b"/one/two/")
MENDED = replace(ROUTE, root_paths=(b"/app", b"/static"))
ASKED_AS_CUSTOMER = replace(ROUTE, origin_host=b"")


@pytest.mark.parametrize(
    ("route", "before", "after"),
    [
        (ROUTE, "Location: http://origin.test:8000/app/x?y#z", "Location: https://shop.example.com:8443/x?y#z"),
        (ROUTE, "location: http://ORIGIN.test:8000/app", "location: https://shop.example.com:8443/"),
        (ROUTE, "Location: http://origin.test:8000/app?q", "Location: https://shop.example.com:8443/?q"),
        (ROUTE, "Location: https://origin.test/app/x", "Location: https://shop.example.com:8443/x"),
        (ROUTE, "Location: //origin.test:8000/app/x", "Location: //shop.example.com:8443/x"),
        (ROUTE, "Location: /app/x", "Location: /x"),
        (ROUTE, "Location: /static/x", "Location: /static/x"),
        (ROUTE, "Location: x/y", "Location: x/y"),
        (ROUTE, "Location: /elsewhere", "Location: /elsewhere"),
        (ROUTE, "Location: /apple", "Location: /apple"),
        (ROUTE, "Location: http://origin.test:8000/elsewhere", "Location: http://origin.test:8000/elsewhere"),
        (ROUTE, "Location: http://origin.test:9000/app/x", "Location: http://origin.test:9000/app/x"),
        (ROUTE, "Location: http://login.test/app/", "Location: http://login.test/app/"),
        (ROUTE, "Location: http://shop.example.com/app/x", "Location: https://shop.example.com:8443/x"),
        (ROUTE, "Location: https://SHOP.example.com:8443/app", "Location: https://shop.example.com:8443/"),
        (ROUTE, "Location: https://shop.example.com:443/app?q", "Location: https://shop.example.com:8443/?q"),
        (ROUTE, "Location: //shop.example.com/app/x", "Location: //shop.example.com:8443/x"),
        (ROUTE, "Location: http://shop.example.com/app/app/x", "Location: https://shop.example.com:8443/app/x"),
        (ROUTE, "Location: http://shop.example.com/static/x", "Location: https://shop.example.com:8443/static/x"),
        (ROUTE, "Location: http://shop.example.com/x", "Location: http://shop.example.com/x"),
        (ROUTE, "Location: http://shop.example.com:81/app/x", "Location: http://shop.example.com:81/app/x"),
        (ROUTE, "Location: http://www.shop.example.com/app/x", "Location: http://www.shop.example.com/app/x"),
        (ROUTE, "Location: /app//evil.test/", "Location: https://shop.example.com:8443//evil.test/"),
        (ROUTE, "Location: /app/\\evil.test/", "Location: https://shop.example.com:8443/\\evil.test/"),
        (ROUTE, "Location: /app/static/x", "Location: /app/static/x"),
        (ROUTE, "Location: /app/../x", "Location: /app/../x"),
        (PLAIN, "Location: http://shop.example.com/x", "Location: https://shop.example.com:8443/x"),
        (ASKED_AS_CUSTOMER, "Location: http://shop.example.com/app/x", "Location: https://shop.example.com:8443/x"),
        (ASKED_AS_CUSTOMER, "Location: http://shop.example.com:8443/app", "Location: https://shop.example.com:8443/"),
        (ASKED_AS_CUSTOMER, "Location: //origin.test:8000/app/x", "Location: //shop.example.com:8443/x"),
        (ASKED_AS_CUSTOMER, "Location: http://shop.example.com/y", "Location: http://shop.example.com/y"),
        (PLAIN, "Location: https://origin.test", "Location: https://shop.example.com:8443/"),
        (PLAIN, "Location: https://origin.test:443/x", "Location: https://shop.example.com:8443/x"),
        (PLAIN, "Content-Location: http://origin.test/x", "Content-Location: https://shop.example.com:8443/x"),
        (ROUTE, "Refresh: 5; url=http://origin.test:8000/app/x", "Refresh: 5; url=https://shop.example.com:8443/x"),
        (ROUTE, "Refresh: 0;URL='/app/x'", "Refresh: 0;URL='/x'"),
        (ROUTE, "Refresh: 5", "Refresh: 5"),
        (ROUTE, "Refresh: 5; url='/app/x", "Refresh: 5; url='/app/x"),
        (ROUTE, "Refresh: 5;x" + 60_000 * " " + "y", "Refresh: 5;x" + 60_000 * " " + "y"),
        (
            ROUTE,
            "Set-Cookie: a=b; Domain=.origin.test; Path=/app; HttpOnly",
            "Set-Cookie: a=b; Domain=shop.example.com; Path=/; HttpOnly",
        ),
        (ROUTE, "set-cookie: a=/app; path=/app/x", "set-cookie: a=/app; path=/x"),
        (ROUTE, "Set-Cookie: a=b; Path=/; Domain=other.test", "Set-Cookie: a=b; Path=/; Domain=other.test"),
        (ROUTE, "Set-Cookie: a=b; Domain=.test; HttpOnly", "Set-Cookie: a=b; HttpOnly"),
        (BESIDE, "Set-Cookie: a=b; Domain=example.com", "Set-Cookie: a=b; Domain=example.com"),
        (ROUTE, "Set-Cookie: a=b; Domain=", "Set-Cookie: a=b; Domain="),
        (ROUTE, "Set-Cookie: a=b; Path=/static/x", "Set-Cookie: a=b; Path=/static/x"),
        (ROUTE, "Set-Cookie: a=b; Path=/apple", "Set-Cookie: a=b; Path=/apple"),
        (ROUTE, "Set-Cookie: a=b; Path=x", "Set-Cookie: a=b; Path=x"),
        (DEEP, "Set-Cookie: a=b; Path=/one", "Set-Cookie: a=b; Path=/"),
        (DEEP, "Set-Cookie: a=b; Path=/one/two", "Set-Cookie: a=b; Path=/"),
        (DEEP, "Set-Cookie: a=b; Path=/one/two/x", "Set-Cookie: a=b; Path=/x"),
        (MENDED, "Set-Cookie: a=b; Path=/app", "Set-Cookie: a=b; Path=/"),
        (MENDED, "Set-Cookie: a=b; Path=/app/admin", "Set-Cookie: a=b; Path=/"),
        (MENDED, "Location: /app/login", "Location: /app/login"),
        (
            ROUTE,
            "Link: <http://origin.test:8000/app/a.css>; rel=preload, </app/b.js>;rel=preload, <c>, <http://cdn.test/d>",
            "Link: <https://shop.example.com:8443/a.css>; rel=preload, </b.js>;rel=preload, <c>, <http://cdn.test/d>",
        ),
        (ROUTE, 'Link: </app/a>; title="1 < 2", </app/b>', 'Link: </a>; title="1 < 2", </b>'),
        (
            ROUTE,
            "Access-Control-Allow-Origin: http://origin.test:8000",
            "Access-Control-Allow-Origin: https://shop.example.com:8443",
        ),
        (ROUTE, "Access-Control-Allow-Origin: null", "Access-Control-Allow-Origin: null"),
        (
            ROUTE,
            "Access-Control-Allow-Origin: https://page.test",
            "Access-Control-Allow-Origin: https://page.test",
        ),
    ],
)
def test_addresses_are_mapped_back(route: Route, before: str, after: str) -> None:
    block = f"\r\nServer: o\r\n{before}\r\nVary: *".encode()
    assert has_addresses(block)
    mapped = map_back(route, block, b"https", b"shop.example.com:8443")
    assert mapped == f"\r\nServer: o\r\n{after}\r\nVary: *".encode()


def test_an_upgrade_to_https_of_the_customers_domain_stays_one() -> None:
    """Mapped to the client's scheme it would be the very address that was asked for."""
    mapped = map_back(ROUTE, b"\r\nLocation: https://shop.example.com/app/x", b"http", b"shop.example.com:8080")
    assert mapped == b"\r\nLocation: https://shop.example.com/x"


def test_an_allowed_origin_stays_if_it_is_the_page_that_asks() -> None:
    """A page of the application at its own address may use the customer's domain; browsers compare both fields."""
    block = b"\r\nAccess-Control-Allow-Origin: http://origin.test:8000"
    assert map_back(ROUTE, block, b"https", b"shop.example.com", b"http://origin.test:8000") == block
    mapped = map_back(ROUTE, block, b"https", b"SHOP.example.com:443", b"https://shop.example.com")
    assert mapped == b"\r\nAccess-Control-Allow-Origin: https://shop.example.com"


def test_hostile_blocks_are_mapped_up_to_a_bound() -> None:
    fields = b"\r\nContent-Location: /app/x" * 2000
    mapped = map_back(ROUTE, fields, b"https", b"shop.example.com")
    assert (mapped.count(b": /x"), mapped.count(b": /app/x")) == (256, 1744)
    links = map_back(ROUTE, b"\r\nLink: " + b"</app/x>" * 2000 + b"\r\nLink: </app/x>", b"https", b"shop.example.com")
    assert (links.count(b"</x>"), links.count(b"</app/x>")) == (256, 1745)
    cookie = map_back(ROUTE, b"\r\nSet-Cookie: a" + b";path=/app/x" * 2000, b"https", b"shop.example.com")
    assert (cookie.count(b"=/x"), cookie.count(b"=/app/x")) == (32, 1968)
    long = b"\r\nLocation: /app/" + b"x" * 9000
    assert map_back(ROUTE, long, b"https", b"shop.example.com") == long


_SEGMENTS = st.lists(st.sampled_from([b"app", b"static", b"x", b"", b"%2f"]), max_size=5)
_PATHS = st.builds(lambda segments, query: b"/" + b"/".join(segments) + query, _SEGMENTS, st.sampled_from([b"", b"?q"]))
_ROUTES = st.builds(
    lambda base, roots: replace(ROUTE, base_path=base, root_paths=tuple(roots)),
    st.sampled_from([b"", b"/app", b"/app/", b"/app/app", b"/static"]),
    st.lists(st.sampled_from([b"/app", b"/static", b"/app/x"]), max_size=2),
)
_NAMES = st.sampled_from(["", "http://origin.test:8000", "http://shop.example.com", "//shop.example.com"])


@given(route=_ROUTES, target=_PATHS, name=_NAMES)
def test_a_mapped_address_leads_to_what_the_origin_meant(route: Route, target: bytes, name: str) -> None:
    """Differential: what the client asks for next is rewritten to the address's own path, the root's slash apart."""
    stated = name.encode() + target
    if not name and stated[:2] == b"//":
        return  # it names a host
    mapped = map_back(route, b"\r\nLocation: " + stated, b"https", b"shop.example.com").split(b": ", 1)[1]
    if mapped == stated and route.base_path:
        return  # not reached; or covered by a root path, which is below
    asked = urlsplit(urljoin(b"https://shop.example.com/", mapped))
    assert asked.netloc == b"shop.example.com"
    back = paths.rewrite(
        route, mapped[mapped.index(b"/", 8) :] if b"://" in mapped else mapped.removeprefix(b"//shop.example.com")
    )
    base = route.base_path.removesuffix(b"/")
    assert back == target or (back.partition(b"?")[0].rstrip(b"/") == target.partition(b"?")[0].rstrip(b"/") == base)


@given(route=_ROUTES, path=_PATHS, asked=_PATHS)
def test_a_cookie_is_sent_wherever_the_origin_expects_it(route: Route, path: bytes, asked: bytes) -> None:
    path, asked = path.partition(b"?")[0], asked.partition(b"?")[0]
    mapped = map_back(route, b"\r\nSet-Cookie: a=b; Path=" + path, b"https", b"shop.example.com").split(b"Path=")[1]
    if _path_matches(paths.rewrite(route, asked), path):
        assert _path_matches(asked, mapped)


def _path_matches(asked: bytes, path: bytes) -> bool:
    """As RFC 6265 §5.1.4 has it."""
    return asked == path or (asked.startswith(path) and (path[-1:] == b"/" or asked[len(path)] == ord("/")))


def test_blocks_without_addresses_are_left_alone() -> None:
    assert not has_addresses(b"\r\nServer: o\r\nX-Location: /app\r\naccess-control-allow-origin: *")
