"""``redirectTo``: where a domain sends its visitors, and whether that is a loop (`common.enrolment.redirect_loops`)."""

from __future__ import annotations

from collections.abc import Callable

from common.enrolment.redirect_loops import RedirectChain
from edge.routing import paths
from edge.routing.route import RedirectTo, Route


def location(redirect_to: RedirectTo, target: bytes) -> bytes:
    """Return the address for a request of `target` (origin-form or ``*``), path and query kept byte for byte."""
    path = b"/" if target == b"*" else target
    return redirect_to.authority + (paths.join(redirect_to.base_path, path) if redirect_to.base_path else path)


def leads_back(route: Route, find_route: Callable[[str], Route | None]) -> bool:
    """Return whether the redirects of enrolled domains, followed from `route`, form a loop."""
    chain = RedirectChain(route.domain)
    following: Route | None = route
    while following is not None and following.redirect_to is not None:
        host = following.redirect_to.host
        if chain.loops_at(host):
            return True
        following = find_route(host)
    return False
