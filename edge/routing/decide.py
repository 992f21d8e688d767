"""The decision about one request whose domain is known and takes requests: forward it, redirect it, or refuse it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, NamedTuple

from common.probe import CHALLENGE_PROBE_PATH, PROBE_PATH
from edge.http.error_responses import LOOP, Rejected
from edge.http.request import RequestHead
from edge.routing import paths, redirects
from edge.routing.challenge import is_challenge
from edge.routing.route import Route

# RFC 9110 §7.6.3: how we sign a forwarded request, to know it when it comes back.
PSEUDONYM: Final = b"frontage"
# An application may itself live on a customer's domain of another application; three times through us is no design.
MAX_PASSES: Final = 3

WELL_KNOWN: Final = b"/.well-known/"  # RFC 8615; what we answer ourselves lies below it
PROBE_PREFIX: Final = PROBE_PATH.encode()
CHALLENGE_PROBE_PREFIX: Final = CHALLENGE_PROBE_PATH.encode()


class Redirect(NamedTuple):
    """The address that the client is sent to, for good (308 keeps method and body)."""

    location: bytes
    is_upgrade: bool  # to HTTPS at the same domain, whose certificate must be there


class Ports(NamedTuple):
    """The ports on which this edge listens, as far as redirects care."""

    http: int
    https: int


def decide(
    route: Route,
    head: RequestHead,
    *,
    secure: bool,
    redirects_to_https: bool,
    ports: Ports,
    find_route: Callable[[str], Route | None],
) -> bytes | Redirect:
    """Return the target to ask the origin for, or a redirect.

    Raises: `Rejected` for a path that climbs, and a request that keeps coming back to us.
    """
    if head.fields.via and head.fields.via.lower().count(b" " + PSEUDONYM) >= MAX_PASSES:
        raise Rejected(LOOP)
    if route.redirect_to is not None:
        if redirects.leads_back(route, find_route):
            raise Rejected(LOOP)
        return Redirect(redirects.location(route.redirect_to, head.target), is_upgrade=False)
    if not secure and redirects_to_https and not is_challenge(head):
        return Redirect(_https_location(head, ports), is_upgrade=True)
    return paths.rewrite(route, head.target)


def _https_location(head: RequestHead, ports: Ports) -> bytes:
    """Return the address of the request over HTTPS.

    A Host that carries our plain port gets our TLS port, otherwise none: then something in front maps ports.
    """
    has_our_port = head.fields.host_port is not None and head.fields.host_port == ports.http
    port = b":%d" % ports.https if has_our_port and ports.https != 443 else b""
    return b"https://" + head.fields.host.encode() + port + (b"/" if head.target == b"*" else head.target)
