"""``redirectTo``, and circles of it."""

from __future__ import annotations

import pytest

from edge.http import request
from edge.http.error_responses import LOOP, Rejected
from edge.http.request import HeadLimits, RequestHead
from edge.routing import redirects
from edge.routing.decide import Ports, Redirect, decide
from edge.routing.route import Origin, RedirectTo, Route

NOWHERE = Origin("http", "", 0, "")


def secured(domain: str, onto: str | None, base: bytes = b"") -> Route:
    to = RedirectTo(onto, b"https://" + onto.encode(), base) if onto else None
    origin = NOWHERE if onto else Origin("http", "origin.example", 80, "origin.example")
    return Route(domain, "secure", "app", origin, b"", (), b"", b"", redirect_to=to)


def head(target: bytes = b"/", host: bytes = b"a.example") -> RequestHead:
    return request.parse(b"GET %b HTTP/1.1\r\nHost: %b\r\n\r\n" % (target, host), HeadLimits(100, 32_768, 8_192))


@pytest.mark.parametrize(
    ("base", "target", "expected"),
    [
        (b"", b"/", b"https://b.example/"),
        (b"", b"/?q=1", b"https://b.example/?q=1"),
        (b"", b"/a/%2F%41//b?x=%20&y", b"https://b.example/a/%2F%41//b?x=%20&y"),
        (b"", b"//evil.example/", b"https://b.example//evil.example/"),
        (b"", b"*", b"https://b.example/"),
        (b"/in", b"/", b"https://b.example/in"),
        (b"/in/", b"/x?y", b"https://b.example/in/x?y"),
        (b"/in", b"/x", b"https://b.example/in/x"),
    ],
)
def test_path_and_query_are_kept(base: bytes, target: bytes, expected: bytes) -> None:
    onto = RedirectTo("b.example", b"https://b.example", base)
    assert redirects.location(onto, target) == expected


@pytest.mark.parametrize("secure", [True, False])
def test_both_schemes_go_straight_there(secure: bool) -> None:
    route = secured("a.example", "b.example")
    decision = decide(
        route, head(b"/x"), secure=secure, redirects_to_https=True, ports=Ports(80, 443), find_route=lambda _: None
    )
    assert decision == Redirect(b"https://b.example/x", is_upgrade=False)


@pytest.mark.parametrize(
    ("chain", "is_loop"),
    [
        ({"a.example": "a.example"}, True),
        ({"a.example": "b.example", "b.example": "a.example"}, True),
        ({"a.example": "b.example", "b.example": "c.example", "c.example": "b.example"}, True),
        ({"a.example": "b.example", "b.example": "elsewhere.example"}, False),
        ({"a.example": "b.example", "b.example": None}, False),
        ({"a.example": "elsewhere.example"}, False),
    ],
)
def test_circles_of_enrolled_domains_are_found(chain: dict[str, str | None], is_loop: bool) -> None:
    routes = {domain: secured(domain, onto) for domain, onto in chain.items()}
    assert redirects.leads_back(routes["a.example"], routes.get) is is_loop


def test_a_chain_without_end_is_a_circle_to_us() -> None:
    def find(domain: str) -> Route:
        number = int(domain.partition(".")[0])
        return secured(domain, f"{number + 1}.example")

    assert redirects.leads_back(find("0.example"), find)


def test_a_circle_is_refused() -> None:
    routes = {"a.example": secured("a.example", "b.example"), "b.example": secured("b.example", "a.example")}
    with pytest.raises(Rejected) as caught:
        decide(
            routes["a.example"],
            head(),
            secure=True,
            redirects_to_https=True,
            ports=Ports(80, 443),
            find_route=routes.get,
        )
    assert caught.value.response is LOOP
