"""Redirects of an application's root between its two forms, with and without a last slash.

``/`` on the domain is the applicationUrl's path as written. Most servers redirect a directory such as ``/shop`` to
``/shop/``, some applications redirect ``/shop/`` to ``/shop``. Both are ``/`` on the domain, so that a visitor would be
redirected from ``/`` to ``/`` for ever. The edge asks for the other form itself, once, and remembers it
(`Route.learnt_root`).
"""

from __future__ import annotations

import re
from typing import Final

from edge.http.request import RequestHead
from edge.http.response import ResponseHead
from edge.routing.mapping import is_same_address
from edge.routing.route import Route

_LOCATION: Final = re.compile(rb"\r\nlocation:[ \t]*+([!-~\x80-\xff]*+)[ \t]*+(?=\r\n|\Z)", re.IGNORECASE)
_REDIRECTS: Final = frozenset({301, 302, 303, 307, 308})
_OF_THE_ADDRESS: Final = frozenset({301, 307, 308})  # RFC 9110 §15.4: 302 and 303 may be the result of a POST


def other_root(route: Route, head: RequestHead, asked: bytes, answer: ResponseHead, scheme: bytes) -> bytes | None:
    """Return the other form of the root if `answer` redirects the client to the address that it asked for, else None.

    `asked` is the target that the origin was asked for, `scheme` is how the client reached the domain.
    """
    base = route.base_path.removesuffix(b"/")
    path, question, query = asked.partition(b"?")
    if answer.status not in _REDIRECTS or not base or head.path != b"/" or path not in (base, base + b"/"):
        return None
    locations = _LOCATION.findall(answer.kept)
    if len(locations) != 1:
        return None
    other = base if path == base + b"/" else base + b"/"
    location: bytes = locations[0]
    if location.removeprefix(b"./") == _relative(base, path) + question + query:
        return other
    stated = location.partition(b"?")[0]
    is_other = stated.endswith(b"/") == other.endswith(b"/")
    is_same = is_same_address(route, location, scheme, head.fields.host_as_received, head.target)
    return other if is_other and is_same else None


def _relative(base: bytes, path: bytes) -> bytes:
    """Return the reference from `path`, one form of the root, to the other one; Go's file server sends such."""
    name = base.rpartition(b"/")[2]
    return name + b"/" if path == base else b"../" + name


def is_about_the_address(head: RequestHead, answer: ResponseHead) -> bool:
    """Return whether a redirect to the other form is about the address, and not the result of the request."""
    return answer.status in _OF_THE_ADDRESS or can_be_repeated(head)


def can_be_repeated(head: RequestHead) -> bool:
    """Return whether the edge itself may ask for the other form: the client repeats anything else, where it may."""
    return head.method in (b"GET", b"HEAD") and not head.fields.body
