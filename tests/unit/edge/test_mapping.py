"""Addresses of the origin become the customer's (the inverse of rewriting)."""

from __future__ import annotations

from dataclasses import replace

import pytest

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
        (ROUTE, "Location: http://shop.example.com/app/x", "Location: http://shop.example.com/app/x"),
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
        (
            ROUTE,
            "Set-Cookie: a=b; Domain=.origin.test; Path=/app; HttpOnly",
            "Set-Cookie: a=b; Domain=shop.example.com; Path=/; HttpOnly",
        ),
        (ROUTE, "set-cookie: a=/app; path=/app/x", "set-cookie: a=/app; path=/x"),
        (ROUTE, "Set-Cookie: a=b; Path=/; Domain=other.test", "Set-Cookie: a=b; Path=/; Domain=other.test"),
    ],
)
def test_addresses_are_mapped_back(route: Route, before: str, after: str) -> None:
    block = f"\r\nServer: o\r\n{before}\r\nVary: *".encode()
    assert has_addresses(block)
    mapped = map_back(route, block, b"https", b"shop.example.com:8443")
    assert mapped == f"\r\nServer: o\r\n{after}\r\nVary: *".encode()


def test_blocks_without_addresses_are_left_alone() -> None:
    assert not has_addresses(b"\r\nServer: o\r\nX-Location: /app")
