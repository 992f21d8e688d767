"""Cross-origin requests: which routes the connect modal's pages call from a partner's site (Fetch standard, CORS).

Rules
    only the routes that a token with the scope `CONNECT_SCOPE` opens answer other origins; every origin, since the
        token decides, and never with credentials (no ``Access-Control-Allow-Credentials``); and sharing links, whose
        id decides
    a preflight request is answered without a token: browsers send none
"""

from __future__ import annotations

from typing import Final

from aiohttp import hdrs, web

CONNECT_SCOPE: Final = "connect"

_ROUTES: Final = frozenset({"/checkdomain", "/checkrecords"})
_SHARE: Final = "/share/{id}"
_PREFIX: Final = "/connect/flows"
_HEADERS: Final = "applicationId, Authorization, Content-Type"
_PREFLIGHT_SECONDS: Final = 7200  # the longest that browsers keep it


def is_connect_route(route: str) -> bool:
    """`route` as registered, parameters in braces."""
    return route in _ROUTES or route == _PREFIX or route.startswith(f"{_PREFIX}/")


def is_preflight(request: web.Request, route: str) -> bool:
    """Return whether a browser asks before it sends a request to a route of the modal."""
    return request.method == hdrs.METH_OPTIONS and is_connect_route(route)


class Preflight:
    """Answers the preflight requests of one route. `methods`: those that the route has."""

    def __init__(self, methods: list[str]) -> None:
        self._methods = ", ".join(sorted(methods))

    async def options(self, _: web.Request) -> web.Response:
        """Answer what pages of other origins may send."""
        return web.Response(
            status=204,
            headers={
                "Access-Control-Allow-Methods": self._methods,
                "Access-Control-Allow-Headers": _HEADERS,
                "Access-Control-Max-Age": str(_PREFLIGHT_SECONDS),
            },
        )


async def allow_origins(request: web.Request, response: web.StreamResponse) -> None:
    """Errors carry the header too: without it, the page could not read them."""
    resource = request.match_info.route.resource
    if resource is not None and (is_connect_route(resource.canonical) or resource.canonical == _SHARE):
        response.headers["Access-Control-Allow-Origin"] = "*"
        response.headers["Access-Control-Expose-Headers"] = "Retry-After"
