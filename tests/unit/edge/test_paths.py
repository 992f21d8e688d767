"""Paths between a customer's domain and an application."""

from __future__ import annotations

import pytest

from edge.http.error_responses import CLIMBING_PATH, Rejected
from edge.routing.paths import rewrite
from edge.routing.route import Origin, Route


def route(base: bytes = b"/app", *roots: bytes) -> Route:
    origin = Origin("http", "origin.example", 80, "origin.example")
    return Route("shop.example.com", "power", "app", origin, base, roots, b"", b"origin.example")


@pytest.mark.parametrize(
    ("base", "target", "expected"),
    [
        (b"/app", b"/", b"/app"),
        (b"/app/", b"/", b"/app/"),
        (b"/app", b"/?q=1", b"/app?q=1"),
        (b"/app", b"/x", b"/app/x"),
        (b"/app/", b"/x", b"/app/x"),
        (b"", b"/", b"/"),
        (b"/", b"/", b"/"),
        (b"/", b"/x", b"/x"),
        (b"", b"/x?y", b"/x?y"),
        (b"/app", b"//x//y", b"/app//x//y"),
        (b"/app", b"/%41%2B+%20?a=%2e%2e/..&b", b"/app/%41%2B+%20?a=%2e%2e/..&b"),
        (b"/app", b"/a..b/...", b"/app/a..b/..."),
        (b"/app", b"/./x", b"/app/./x"),
        (b"/app", b"*", b"*"),
        (b"/app", b"/a/../b", b"/app/a/../b"),
        (b"", b"/a/%2E./b?c", b"/a/%2E./b?c"),
        (b"/app", b"/a/b/../../c/..", b"/app/a/b/../../c/.."),
    ],
)
def test_targets_get_the_applications_path_and_pass_byte_for_byte(base: bytes, target: bytes, expected: bytes) -> None:
    assert rewrite(route(base), target) == expected


@pytest.mark.parametrize(
    "path",
    [
        b"/..",
        b"/../a",
        b"/a/../../b",
        b"/a//../../b",
        b"/a/./../../b",
        b"/a/.;x/../../b",
        b"/a/..;x/..;y/b/c",
        b"/%2e%2e/",
        b"/.%2E",
        b"/a%2f..%2fb",
        b"/a%2f../..",
        b"/a\\..\\b",
        b"/%5c..",
        b"/..;x=y/z",
    ],
)
def test_paths_that_climb_are_refused(path: bytes) -> None:
    with pytest.raises(Rejected) as caught:
        rewrite(route(b"/app", b"/a"), path)
    assert caught.value.response == CLIMBING_PATH


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        (b"/static", b"/static"),
        (b"/static/a.js?v=1", b"/static/a.js?v=1"),
        (b"/staticx", b"/app/staticx"),
        (b"/Static/a", b"/app/Static/a"),
        (b"/static/a/../b", b"/static/a/../b"),
        (b"/static/../admin", b"/app/static/../admin"),
        (b"/static/a/..%2e/b", b"/static/a/..%2e/b"),
    ],
)
def test_root_paths_match_whole_segments(path: bytes, expected: bytes) -> None:
    assert rewrite(route(b"/app", b"/static"), path) == expected
