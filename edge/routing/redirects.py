"""``redirectTo``: where a domain sends its visitors, and whether that leads them back. Pure."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from edge.routing import paths
from edge.routing.route import RedirectTo, Route

MOST_HOPS: Final = 10
"""Over enrolled domains; browsers give up after 20."""


def location(redirect_to: RedirectTo, target: bytes) -> bytes:
    """The address for a request of `target` (origin-form or ``*``), path and query kept byte for byte."""
    path = b"/" if target == b"*" else target
    return redirect_to.authority + (paths.join(redirect_to.base_path, path) if redirect_to.base_path else path)


def leads_back(route: Route, find_route: Callable[[str], Route | None]) -> bool:
    """Whether who follows the redirects of enrolled domains from here comes by the same domain twice.

    The API refuses what would make a circle; two changes together, or the end of Power on a name, may still close one.
    """
    seen = {route.domain}
    following: Route | None = route
    while following is not None and following.redirect_to is not None:
        host = following.redirect_to.host
        if host in seen or len(seen) > MOST_HOPS:
            return True
        seen.add(host)
        following = find_route(host)
    return False
