"""What becomes of one request: forwarded to an origin, or answered by the edge itself.

    forward          route, upstream head            an origin answers
    reply            a small response of our own     a redirect, the API's probe, an HTTP-01 challenge, OPTIONS
    error response   (`edge.http.error_responses`)   the request is refused

Whatever asks the replica or a key is behind `Lookup`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from edge.http import max_forwards
from edge.http.error_responses import (
    ALLOW,
    AWAITING_CERTIFICATE,
    BODY_TOO_LARGE,
    MISDIRECTED,
    NOT_ENROLLED,
    ErrorResponse,
    Rejected,
    status_phrase,
)
from edge.http.forwarded import Client
from edge.http.request import RequestHead
from edge.http.request_ids import without_id
from edge.routing.challenge import is_challenge
from edge.routing.decide import CHALLENGE_PROBE_PREFIX, PROBE_PREFIX, WELL_KNOWN, Ports, Redirect, decide
from edge.routing.request_rewriting import Surroundings
from edge.routing.route import Route
from edge.routing.visitors import VisitRates, refuse_visitor

# Clients keep a permanent redirect for ever unless its lifetime is stated, and redirectTo may change.
_REDIRECT_LIFETIME: Final = b"\r\nCache-Control: max-age=300"


@dataclass(slots=True)
class Forward:
    """A request to forward. Never changed; a slotted class for the same reason as `RequestHead`."""

    head: Final[RequestHead]
    route: Final[Route]
    surroundings: Final[Surroundings]
    upstream_head: Final[bytes]  # unsigned, without a request id


class Reply(NamedTuple):
    """A small response of the edge's own. `fields` is a block of fields without Date, Content-Length and Connection."""

    status: int
    fields: bytes
    body: bytes = b""

    def render(self, fields: bytes, *, close: bool, head_only: bool) -> bytes:
        """Return the whole response, with more fields: Date, and others."""
        return b"HTTP/1.1 %d %b%b%b\r\nContent-Length: %d%b\r\n\r\n%b" % (
            self.status,
            status_phrase(self.status).encode(),
            self.fields,
            fields,
            len(self.body),
            b"\r\nConnection: close" if close else b"",
            b"" if head_only else self.body,
        )


Outcome: TypeAlias = Forward | Reply | ErrorResponse


@dataclass(frozen=True, slots=True)
class Lookup:
    """The look-ups that a decision may need."""

    find_route: Callable[[str], Route | None]
    is_awaiting_certificate: Callable[[str], bool]
    challenge_answer: Callable[[RequestHead], bytes | None]
    probe_answer: Callable[[str, str], bytes | None]  # for a host and a nonce
    rates: VisitRates


@dataclass(frozen=True, slots=True)
class Listening:
    """How the edge listens on one of its two ports."""

    secure: bool
    redirects_to_https: bool
    ports: Ports
    max_body_bytes: int | None
    assigns_request_ids: bool


def respond(head: RequestHead, lookup: Lookup, listening: Listening, client: Client, server_name: str) -> Outcome:
    """Return what becomes of a request. `server_name` is the name that TLS was made for, "" without TLS."""
    try:
        return _respond(head, lookup, listening, client, server_name)
    except Rejected as error:
        return error.response


def _respond(head: RequestHead, lookup: Lookup, listening: Listening, client: Client, server_name: str) -> Outcome:
    """Return what becomes of a request that is not refused.

    Raises: `Rejected`.
    """
    if head.target.startswith(WELL_KNOWN) and (body := _own_resource(head, lookup, listening)) is not None:
        return Reply(200, b"\r\nContent-Type: text/plain", body)
    route = lookup.find_route(head.fields.host)
    if route is None:
        return NOT_ENROLLED
    if route.refusal is not None:  # before any other rule, and on the plain port too: HTTPS would only refuse it again
        return route.refusal
    if route.visitors is not None:
        refused = refuse_visitor(route.visitors, lookup.rates, route.domain, client.origin(head.fields.forwarded_for))
        if refused is not None:
            return refused
    if server_name and server_name != head.fields.host:
        # RFC 9110 §7.4: the certificate shown for one owner's name proves nothing about another owner's.
        shown = lookup.find_route(server_name)
        if shown is None or shown.application_id != route.application_id or shown.needs_tls13 < route.needs_tls13:
            return MISDIRECTED
    if head.fields.body and is_too_large(head.fields.body, listening.max_body_bytes, route.buffer_uploads_bytes):
        return BODY_TOO_LARGE
    decision = _decide(route, head, lookup, listening)
    if isinstance(decision, Redirect):
        if decision.is_upgrade and lookup.is_awaiting_certificate(head.fields.host):
            return AWAITING_CERTIFICATE
        return Reply(308, b"\r\nLocation: " + decision.location + (b"" if decision.is_upgrade else _REDIRECT_LIFETIME))
    if head.method == b"OPTIONS":
        further = max_forwards.count_down(head)
        if further is None:
            return Reply(200, b"\r\n" + ALLOW)
        head = further
    if listening.assigns_request_ids and not client.is_trusted:
        head = without_id(head)
    surroundings = Surroundings(route, head)
    client_fields = client.fields(head.fields.forwarded_for, head.fields.forwarded_proto, head.fields.host_port)
    return Forward(head, route, surroundings, surroundings.compose(head, decision, client_fields))


def is_too_large(body: int, *limits: int | None) -> bool:
    """Return whether a body of a stated length is above a limit, of which None and 0 are none."""
    return any(limit and body > limit for limit in limits)


def _decide(route: Route, head: RequestHead, lookup: Lookup, listening: Listening) -> bytes | Redirect:
    """Return the target to ask the origin for, or a redirect.

    Raises: `Rejected`.
    """
    return decide(
        route,
        head,
        secure=listening.secure,
        redirects_to_https=listening.redirects_to_https,
        ports=listening.ports,
        find_route=lookup.find_route,
    )


def _own_resource(head: RequestHead, lookup: Lookup, listening: Listening) -> bytes | None:
    """Return the body of a resource of our own: the API's probe, or a challenge that the edge answers."""
    if is_challenge(head):
        if head.target.startswith(CHALLENGE_PROBE_PREFIX):
            return lookup.probe_answer(head.fields.host, head.path[len(CHALLENGE_PROBE_PREFIX) :].decode("ascii"))
        return lookup.challenge_answer(head)
    if not listening.secure and head.target.startswith(PROBE_PREFIX):
        return lookup.probe_answer(head.fields.host, head.path[len(PROBE_PREFIX) :].decode("ascii"))
    return None
