"""The request as it goes on to the origin: its head, stated anew around the fields that were kept.

What the origin is told about client and domain (SPEC 4.7) is stated here and cannot be forged or nominated away:
incoming copies were cut out with the head, and ours are appended after that.
"""

from __future__ import annotations

from edge.http.framing import CHUNKED
from edge.http.request import RequestHead
from edge.routing.decide import PSEUDONYM
from edge.routing.route import Route

_METHODS_WITH_A_BODY = (b"POST", b"PUT", b"PATCH")  # RFC 9110 §8.6: state a length of 0 too


def compose(route: Route, head: RequestHead, target: bytes, client_fields: bytes) -> bytes:
    """The whole head, for `target` at the route's origin; `client_fields` are `edge.http.forwarded.Client`'s."""
    parts = [
        head.method,
        b" ",
        target,
        b" HTTP/1.1\r\nHost: ",
        route.origin.authority,
        head.kept,
        client_fields,
        b"\r\nX-Forwarded-Host: ",
        head.host_as_received,
        b"\r\nx-service-forwarded-host: ",
        head.host.encode(),
        b"\r\nVia: ",
        head.via + b", " if head.via else b"",
        b"1.%d " % head.minor,
        PSEUDONYM,
    ]
    if route.service_auth:
        parts += (b"\r\nX-Service-Auth: ", route.service_auth)
    if head.body == CHUNKED:
        parts.append(b"\r\nTransfer-Encoding: chunked")
    elif head.body or head.method in _METHODS_WITH_A_BODY:
        parts.append(b"\r\nContent-Length: %d" % head.body)
    if head.expects_continue and head.body:
        parts.append(b"\r\nExpect: 100-continue")
    if head.upgrade:
        parts += (b"\r\nConnection: Upgrade\r\nUpgrade: ", head.upgrade)
    parts.append(b"\r\n\r\n")
    return b"".join(parts)
