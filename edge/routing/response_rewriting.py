"""The response's head as the client gets it: addresses mapped back, framing and connection stated by us."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Final, NamedTuple

from edge.http.dates import has_date
from edge.http.request import RequestHead
from edge.http.response import ResponseHead
from edge.routing import mapping
from edge.routing.route import Route

_NO_LENGTH_STATUSES: Final = (204, 304)  # RFC 9110 §8.6
_ORIGIN: Final = re.compile(rb"\r\norigin:[ \t]*([!-~]*)", re.IGNORECASE)  # RFC 6454 §7


class RewrittenHead(NamedTuple):
    """A response's head as the client gets it."""

    head: bytes  # to the empty line
    keep_alive: bool  # whether the client's connection can serve another request
    is_repeatable: bool  # the same for equal heads from the origin, equal methods and equal `keep_alive`


def rewrite(
    response: ResponseHead,
    request: RequestHead,
    route: Route,
    scheme: bytes,
    date_field: Callable[[], bytes],
    *,
    keep_alive: bool,
) -> RewrittenHead:
    """Return the response's head as the client gets it.

    `scheme` is how the client reached the domain; `keep_alive`: the client and this edge would go on.
    """
    kept = response.kept
    is_dated = has_date(kept)
    if not is_dated:  # RFC 9110 §6.6.1: a recipient with a clock adds it
        kept += date_field()
    has_addresses = mapping.has_addresses(kept)
    if has_addresses:
        kept = _mapped(kept, request, route, scheme)
    if response.status == 101:
        ending = b"\r\nConnection: Upgrade\r\nUpgrade: %b\r\n\r\n" % response.upgrade
        return RewrittenHead(response.status_line + kept + ending, False, False)
    if response.body < 0 and request.minor == 0:  # only the end of the connection ends the body
        keep_alive = False
    return RewrittenHead(
        response.status_line
        + kept
        + framing_lines(response, request)
        + connection_lines(response, request, keep_alive=keep_alive),
        keep_alive,
        is_dated and not has_addresses and request.minor != 0,
    )


def rewrite_interim(response: ResponseHead, request: RequestHead, route: Route, scheme: bytes) -> bytes:
    """Return an interim response's head as the client gets it: early hints have links (RFC 8297)."""
    kept = response.kept
    if mapping.has_addresses(kept):
        kept = _mapped(kept, request, route, scheme)
    return response.status_line + kept + b"\r\n\r\n"


def asked_from(request: RequestHead) -> bytes:
    """Return the request's ``Origin``, b"" without one."""
    stated = _ORIGIN.search(request.kept)
    return b"" if stated is None else stated[1]


def _mapped(block: bytes, request: RequestHead, route: Route, scheme: bytes) -> bytes:
    return mapping.map_back(route, block, scheme, request.fields.host_as_received, asked_from(request))


def framing_lines(response: ResponseHead, request: RequestHead) -> bytes:
    """Return the fields that frame the body."""
    if response.stated_length:
        return b"\r\nContent-Length: " + response.stated_length
    if response.body > 0:
        return b"\r\nContent-Length: %d" % response.body
    if response.body < 0:
        return b"\r\nTransfer-Encoding: chunked" if request.minor else b""
    has_length = request.method != b"HEAD" and response.status not in _NO_LENGTH_STATUSES
    return b"\r\nContent-Length: 0" if has_length else b""


def connection_lines(response: ResponseHead, request: RequestHead, *, keep_alive: bool) -> bytes:
    """Return the last lines, and the empty one."""
    if response.status == 426 and response.upgrade:  # RFC 9110 §15.5.22: it names the protocols
        return b"\r\nUpgrade: %b\r\nConnection: upgrade%b\r\n\r\n" % (
            response.upgrade,
            b"" if keep_alive else b", close",
        )
    if not keep_alive:
        return b"\r\nConnection: close\r\n\r\n"
    return b"\r\n\r\n" if request.minor else b"\r\nConnection: keep-alive\r\n\r\n"
