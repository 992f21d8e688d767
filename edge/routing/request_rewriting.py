"""The request's head as it goes on to the origin: stated anew around the fields that are forwarded unchanged.

What the origin learns about the client and the domain is stated here. A client can neither forge it nor nominate it
away: incoming copies were cut out with the head, and ours are appended after that.
"""

from __future__ import annotations

from typing import Final

from common import signatures
from edge.http import fields, trailers
from edge.http.framing import CHUNKED
from edge.http.request import FieldFacts, RequestHead
from edge.routing.decide import PSEUDONYM
from edge.routing.route import Route, Signing

_VIA: Final = (b"1.0 " + PSEUDONYM, b"1.1 " + PSEUDONYM, b"2.0 " + PSEUDONYM)  # by `RequestHead.minor`
_METHODS_WITH_A_BODY: Final = (b"POST", b"PUT", b"PATCH")  # RFC 9110 §8.6: state a length of 0 too


class Surroundings:
    """What stands before and behind the forwarded fields.

    It is the same for all requests that differ in those alone, and for all clients.
    """

    __slots__ = ("_before_length", "after", "before")

    def __init__(self, route: Route, head: RequestHead) -> None:
        self.before: Final = b" HTTP/1.1\r\nHost: " + (route.origin_host or _customer_host(head.fields))
        own = _own_fields(route, head)
        self.after: Final = own + _framing_fields(route, head)
        self._before_length: Final = own + b"\r\nContent-Length: "

    def compose(self, head: RequestHead, target: bytes, client_fields: bytes) -> bytes:
        """Return the whole head, for `target` at the origin.

        `client_fields` are `edge.http.forwarded.Client`'s.
        """
        return b"".join((head.method, b" ", target, self.before, head.kept, client_fields, self.after))

    def compose_upload(self, head: RequestHead, target: bytes, client_fields: bytes, length: bytes) -> bytes:
        """Return the head of a request that differs in the length of its body, too, and whose `can_vary_in_length`."""
        before, own = self.before, self._before_length
        return b"".join((head.method, b" ", target, before, head.kept, client_fields, own, length, b"\r\n\r\n"))


def sign(signing: Signing, head: RequestHead, composed: bytes, at: int) -> bytes:
    """Return the composed head, signed at that time (unix seconds). Only what the origin can see is signed."""
    target = composed.split(b" ", 2)[1]
    value = signatures.sign(
        signing.keys(at), at=at, method=head.method, domain=head.fields.host.encode(), target=target
    )
    return b"%bX-Service-Signature: %b\r\n\r\n" % (composed[:-2], value)


def retarget(route: Route, head: RequestHead, composed: bytes, target: bytes, at: int) -> bytes:
    """Return the composed head, signed where the route signs, for another target at the origin."""
    method, _, rest = composed.split(b" ", 2)
    composed = b"%b %b %b" % (method, target, rest)
    if route.signing is None:
        return composed
    return sign(route.signing, head, fields.without(composed, (b"x-service-signature",)), at)


def _own_fields(route: Route, head: RequestHead) -> bytes:
    facts = head.fields
    parts = [
        b"\r\nX-Forwarded-Host: ",
        facts.host_as_received,
        b"\r\nx-service-forwarded-host: ",
        facts.host.encode(),
        b"\r\nVia: " + facts.via + b", " if facts.via else b"\r\nVia: ",
        _VIA[head.minor],
    ]
    if route.service_auth:
        parts += (b"\r\nX-Service-Auth: ", route.service_auth)
    parts.append(route.metadata)
    return b"".join(parts)


def _framing_fields(route: Route, head: RequestHead) -> bytes:
    """Return the fields of the body and of this hop, and the empty line that ends the head."""
    facts = head.fields
    parts = []
    if facts.body == CHUNKED:
        parts.append(chunked_fields(facts))
    elif facts.body or head.method in _METHODS_WITH_A_BODY:
        parts.append(b"\r\nContent-Length: %d" % facts.body)
    if facts.expects_continue and facts.body and not route.buffer_uploads_bytes:
        parts.append(b"\r\nExpect: 100-continue")
    if facts.takes_trailers:
        parts += (b"\r\nTE: trailers\r\nConnection: TE", b", Upgrade" if facts.upgrade else b"")
    elif facts.upgrade:
        parts.append(b"\r\nConnection: Upgrade")
    if facts.upgrade:
        parts += (b"\r\nUpgrade: ", facts.upgrade)
    parts.append(b"\r\n\r\n")
    return b"".join(parts)


def chunked_fields(facts: FieldFacts) -> bytes:
    """Return the fields that frame a chunked body, as they stand in the head for the origin."""
    names = trailers.announced(facts.trailer)
    return b"\r\nTransfer-Encoding: chunked" + (b"\r\nTrailer: " + names if names else b"")


def _customer_host(facts: FieldFacts) -> bytes:
    """Return the host as the client asked for it, in canonical form: origins compare names byte by byte."""
    return facts.host.encode() if facts.host_port is None else b"%b:%d" % (facts.host.encode(), facts.host_port)
