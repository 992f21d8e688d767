"""A response's addresses, mapped back to the customer's domain: the inverse of a request's rewriting.

Only what points at the origin is touched: ``Location``, ``Content-Location``, ``Refresh`` and ``Set-Cookie``'s
``Domain`` and ``Path``. An address the domain cannot reach (outside the application's path) stays as it is.
"""

from __future__ import annotations

import re
from typing import Final

from edge.http import fields
from edge.routing.paths import is_root_path
from edge.routing.route import Route

_NAMES: Final = b"location content-location refresh set-cookie"
_MAPPED: Final = fields.splitter(_NAMES)
_MAY_BE_MAPPED: Final = re.compile(rb"\r\n(?:" + fields.any_of(_NAMES) + rb"):")
_URL: Final = re.compile(rb"(?:(https?):)?//([^/?#\\]*)(.*)", re.IGNORECASE)
_REFRESH: Final = re.compile(rb"([^;,]*[;,]\s*(?:url\s*=\s*)?)(['\"]?)(.*?)\2\s*", re.IGNORECASE)
_ATTRIBUTE: Final = re.compile(rb"(;\s*)(domain|path)(\s*=\s*)([^;]*)", re.IGNORECASE)


def has_addresses(block: bytes) -> bool:
    """Whether `map_back` has anything to look at."""
    return _MAY_BE_MAPPED.search(block) is not None


def map_back(route: Route, block: bytes, scheme: bytes, authority: bytes) -> bytes:
    """`block` as the client may use it. `scheme` and `authority` are how the client reached the domain."""
    parts = _MAPPED.split(block)
    out = [parts[0]]
    for name, value, after in zip(parts[1::3], parts[2::3], parts[3::3], strict=True):
        lower = name.lower()
        if lower == b"set-cookie":
            mapped = _ATTRIBUTE.sub(lambda match: _cookie_attribute(route, match), value)
        elif lower == b"refresh":
            mapped = _refresh(route, value, scheme, authority)
        else:
            mapped = _address(route, value, scheme, authority)
        out += (b"\r\n", name, b": ", mapped, after)
    return b"".join(out)


def _address(route: Route, address: bytes, scheme: bytes, authority: bytes) -> bytes:
    absolute = _URL.fullmatch(address)
    if absolute is None:
        if address[:1] != b"/":
            return address
        path = _path(route, address)
        return address if path is None else path
    own_scheme, host, rest = absolute[1], absolute[2].lower(), absolute[3]
    own_names = _authorities(route, (own_scheme or route.origin.scheme.encode()).lower())
    if not route.origin_host:  # an origin that is asked by the customer's name calls itself so
        own_names += (route.domain.encode(), authority.lower())
    if host not in own_names:
        return address
    path = _path(route, rest if rest[:1] == b"/" else b"/" + rest)
    if path is None:
        return address
    return (scheme + b"://" if own_scheme else b"//") + authority + path


def _authorities(route: Route, scheme: bytes) -> tuple[bytes, ...]:
    """How the origin may name itself; under the other scheme (an upgrade to HTTPS) its port is not ours to know."""
    name = route.origin.authority
    if scheme != route.origin.scheme.encode():
        return (f"[{route.origin.host}]" if ":" in route.origin.host else route.origin.host).encode(), name
    host = name.partition(b":")[0] if name[:1] != b"[" else name.partition(b"]")[0] + b"]"
    return (name, host + b":%d" % route.origin.port)


def _path(route: Route, target: bytes) -> bytes | None:
    """The path on the domain that is rewritten to `target`; None if there is none."""
    base = route.base_path.removesuffix(b"/")
    path = re.split(rb"[?#]", target, maxsplit=1)[0]
    if not base or is_root_path(route.root_paths, path):
        return target
    if path == base:
        return b"/" + target[len(base) :]
    return target[len(base) :] if target.startswith(base + b"/") else None


def _refresh(route: Route, value: bytes, scheme: bytes, authority: bytes) -> bytes:
    match = _REFRESH.fullmatch(value)
    if match is None:
        return value
    return match[1] + match[2] + _address(route, match[3], scheme, authority) + match[2]


def _cookie_attribute(route: Route, match: re.Match[bytes]) -> bytes:
    value = match[4].strip()
    if match[2].lower() == b"path":
        path = _path(route, value) if value[:1] == b"/" else None
        return match[0] if path is None else match[1] + match[2] + match[3] + path
    if value.lower().removeprefix(b".") == route.origin.host.encode():
        return match[1] + match[2] + match[3] + route.domain.encode()
    return match[0]
