"""A cookie from the origin, as the client may keep it: ``Domain`` and ``Path`` mapped to the customer's domain.

The mapped path covers every path on the domain at which the origin is asked for what the origin's path covers:

    Path at the origin               on the domain
    below the application's path     the path without the application's
    above it                         /
    below or above a root path       the same path; / where it is below the application's path too
    elsewhere                        the same path: the domain does not reach it
"""

from __future__ import annotations

from typing import Final

from edge.routing.paths import is_below
from edge.routing.route import Route

_MOST_ATTRIBUTES: Final = 32  # RFC 6265 has seven


def map_back(route: Route, cookie: bytes, domain: bytes) -> bytes:
    """Return the value of a Set-Cookie field as a client of `domain`, a host name in lower case, may use it."""
    pair, *attributes = cookie.split(b";", _MOST_ATTRIBUTES)
    mapped = [_attribute(route, attribute, domain) for attribute in attributes]
    return b";".join([pair, *(attribute for attribute in mapped if attribute is not None)])


def names_domain(attributes: bytes) -> bool:
    """Return whether what becomes of the attributes may depend on more of a route than its paths."""
    return b"domain" in attributes.lower()


def _attribute(route: Route, attribute: bytes, domain: bytes) -> bytes | None:
    """Return the attribute as it goes on; None for one that is dropped."""
    name, equals, value = attribute.partition(b"=")
    key, stated = name.strip().lower(), value.strip()
    if key == b"path":
        return name + equals + _path(route, stated)
    if key != b"domain":
        return attribute
    mapped = _domain(route, stated, domain)
    return None if mapped is None else name + equals + mapped


def _domain(route: Route, stated: bytes, domain: bytes) -> bytes | None:
    """Return the cookie's domain, or None for none: a browser would refuse a cookie of the origin's parent domain."""
    lower, origin = stated.lower().removeprefix(b"."), route.origin.host.encode()
    if lower == origin:
        return domain
    is_origins_parent = lower and origin.endswith(b"." + lower)
    is_own_parent = domain == lower or domain.endswith(b"." + lower)
    return None if is_origins_parent and not is_own_parent else stated


def _path(route: Route, path: bytes) -> bytes:
    base = route.base_path.removesuffix(b"/")
    if not base or path[:1] != b"/":
        return path
    root = path.removesuffix(b"/")
    if is_below((root,), base):
        return b"/"
    if not is_below((base,), path):
        return path
    is_shared = is_below(route.root_paths, path) or any(is_below((root,), each) for each in route.root_paths)
    return b"/" if is_shared else path[len(base) :]
