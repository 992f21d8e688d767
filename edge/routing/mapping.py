"""A response's addresses, mapped back to the customer's domain: the inverse of a request's rewriting.

Mapped are the addresses in ``Location``, ``Content-Location``, ``Refresh`` and ``Link``, the origin in
``Access-Control-Allow-Origin``, and cookies (`edge.routing.cookies`). An address is mapped if it names the origin, or
the customer's domain with the application's path, as applications build it from ``X-Forwarded-Host``. An address the
domain cannot reach (outside the application's path) stays as it is.

Origins are not trusted: what is mapped of one block is bounded, the rest of it passes as it is.
"""

from __future__ import annotations

import re
from typing import Final

from edge.http import fields
from edge.routing import cookies
from edge.routing.paths import is_below
from edge.routing.route import Route

_ALLOWED_ORIGIN: Final = b"access-control-allow-origin"
_NAMES: Final = b"location content-location refresh link set-cookie"
_MAPPED_NAMES: Final = frozenset((*_NAMES.split(), _ALLOWED_ORIGIN))
_MAPPED: Final = fields.splitter(_NAMES + b" " + _ALLOWED_ORIGIN)
_MAY_BE_MAPPED: Final = re.compile(  # most origins that are allowed are all of them
    rb"\r\n(?:(?:%b):|(?:%b):[ \t]*[^*\s])" % (fields.any_of(_NAMES), fields.any_of(_ALLOWED_ORIGIN))
)
_URL: Final = re.compile(rb"(?:(https?):)?//([^/?#\\]*+)(.*)", re.IGNORECASE | re.DOTALL)
# The seconds, and what may stand before the address: everything behind them is the address, perhaps in quotes.
_REFRESH_LEAD: Final = re.compile(rb"[^;,]*+[;,]\s*+(?:url\s*+=\s*+)?", re.IGNORECASE)
_URL_PATH_END: Final = re.compile(rb"[?#]")
_LINK_TARGET: Final = re.compile(rb"<([^<>]*)>")  # RFC 8288 §3
_DEFAULT_PORTS: Final = {b"http": b":80", b"https": b":443"}

# A block has 64 KB. More than these no page has; each costs a microsecond or more.
_MOST_FIELDS: Final = 256
_MOST_LINKS: Final = 256
_MOST_ADDRESS_BYTES: Final = 8192  # as long as a request's target may be


def has_addresses(block: bytes) -> bool:
    """Return whether `map_back` has anything to look at."""
    return _MAY_BE_MAPPED.search(block) is not None


def map_back(route: Route, block: bytes, scheme: bytes, authority: bytes, asked_from: bytes = b"") -> bytes:
    """Return `block` as the client may use it.

    `scheme` and `authority` are how the client reached the domain; `asked_from` is the request's ``Origin``.
    """
    parts = _MAPPED.split(block, maxsplit=_MOST_FIELDS)
    out = [parts[0]]
    links = _MOST_LINKS
    for name, value, after in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
        lower = name.lower()
        if lower == b"link":
            mapped, count = _links(route, value, scheme, authority, links) if links else (value, 0)
            links -= count
        else:
            mapped = map_value(route, lower, value, scheme, authority, asked_from)
        out += (b"\r\n", name, b": ", mapped, after)
    return b"".join(out)


def map_value(
    route: Route, name: bytes, value: bytes, scheme: bytes, authority: bytes, asked_from: bytes = b""
) -> bytes:
    """Return the value of one field that `is_mapped`, as `map_back` does; `name` is in lower case."""
    if name == b"set-cookie":
        return cookies.map_back(route, value, _host(authority))
    if name == b"refresh":
        return _refresh(route, value, scheme, authority)
    if name == b"link":
        return _links(route, value, scheme, authority, _MOST_LINKS)[0]
    if name == _ALLOWED_ORIGIN:
        return _allowed_origin(route, value, scheme, authority, asked_from)
    return _address(route, value, scheme, authority)


def is_mapped(name: bytes) -> bool:
    """Return whether fields of this name, in lower case, have addresses."""
    return name in _MAPPED_NAMES


def is_same_address(route: Route, address: bytes, scheme: bytes, authority: bytes, target: bytes) -> bool:
    """Return whether `address`, mapped, is the one by which the client asked for `target`."""
    return _address(route, address, scheme, authority) in (
        target,
        b"//%b%b" % (authority, target),
        b"%b://%b%b" % (scheme, authority, target),
    )


def _address(route: Route, address: bytes, scheme: bytes, authority: bytes) -> bytes:
    if len(address) > _MOST_ADDRESS_BYTES:
        return address
    absolute = _URL.fullmatch(address)
    if absolute is None:
        if address[:1] != b"/":
            return address
        path = _path(route, address)
        if path is None or path == address:
            return address
        # Behind the application's path two slashes are a path; in front of everything they would name a host.
        return b"%b://%b%b" % (scheme, authority, path) if path[1:2] in (b"/", b"\\") else path
    own_scheme, host, rest = (absolute[1] or b"").lower(), absolute[2], absolute[3]
    mapped = _authority(route, own_scheme, host, scheme, authority)
    path = _path(route, rest if rest[:1] == b"/" else b"/" + rest) if mapped is not None else None
    return address if mapped is None or path is None else mapped + path


def _authority(route: Route, own_scheme: bytes, host: bytes, scheme: bytes, authority: bytes) -> bytes | None:
    """Return the client's scheme and authority in place of an address's; None where it is not the origin's own."""
    lower = host.lower()
    if lower not in _authorities(route, own_scheme or route.origin.scheme.encode()):
        if lower not in _customer_authorities(own_scheme or scheme, authority):
            return None
        if own_scheme == b"https" and scheme == b"http":  # an upgrade; the client's port is not TLS's
            return b"https://" + host
    return (scheme + b"://" if own_scheme else b"//") + authority


def _customer_authorities(scheme: bytes, authority: bytes) -> tuple[bytes, ...]:
    """Return how the origin may name the customer's domain in an address of this scheme."""
    host = _host(authority)
    return host, host + _DEFAULT_PORTS[scheme], authority.lower()


def _host(authority: bytes) -> bytes:
    """Return the host name in a Host field, which is valid and names a domain."""
    return authority.partition(b":")[0].lower().removesuffix(b".")


def _links(route: Route, value: bytes, scheme: bytes, authority: bytes, most: int) -> tuple[bytes, int]:
    """Return the value of a Link field with its first `most` targets mapped, and their number."""
    return _LINK_TARGET.subn(
        lambda target: b"<" + _address(route, target[1].strip(), scheme, authority) + b">", value, count=most
    )


def _allowed_origin(route: Route, value: bytes, scheme: bytes, authority: bytes, asked_from: bytes) -> bytes:
    """Return the origin that may read the response; the one that asks for it stays: browsers compare the two."""
    stated = value.strip()
    named = _URL.fullmatch(stated)
    if stated == asked_from or named is None or not named[1] or named[3]:
        return value
    mapped = _authority(route, named[1].lower(), named[2], scheme, authority.lower())
    return value if mapped is None else mapped.removesuffix(_DEFAULT_PORTS[mapped.partition(b":")[0]])


def _authorities(route: Route, scheme: bytes) -> tuple[bytes, ...]:
    """Return how the origin may name itself.

    Under the other scheme (an upgrade to HTTPS) its port is not ours to know.
    """
    name = route.origin.authority
    if scheme != route.origin.scheme.encode():
        return (f"[{route.origin.host}]" if ":" in route.origin.host else route.origin.host).encode(), name
    host = name.partition(b":")[0] if name[:1] != b"[" else name.partition(b"]")[0] + b"]"
    return (name, host + b":%d" % route.origin.port)


def _path(route: Route, target: bytes) -> bytes | None:
    """Return the path on the domain that is rewritten to `target`; None if there is none."""
    base = route.base_path.removesuffix(b"/")
    path = _URL_PATH_END.split(target, maxsplit=1)[0]
    if not base or is_below(route.root_paths, path):
        return target
    if not is_below((base,), path) or is_below(route.root_paths, path[len(base) :]):
        return None
    return target[len(base) :] if path != base else b"/" + target[len(base) :]


def _refresh(route: Route, value: bytes, scheme: bytes, authority: bytes) -> bytes:
    lead = _REFRESH_LEAD.match(value)
    if lead is None:
        return value
    address = value[lead.end() :].rstrip()
    is_quoted = len(address) > 1 and address[:1] in (b"'", b'"') and address[:1] == address[-1:]
    quote, address = (address[:1], address[1:-1]) if is_quoted else (b"", address)
    return lead[0] + quote + _address(route, address, scheme, authority) + quote
