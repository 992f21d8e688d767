"""Paths between a customer's domain and an application's URL. Bytes in, the same bytes out, plus a prefix.

Percent-encoding, ``//`` and queries pass untouched; what could climb out of the application's path is refused.
"""

from __future__ import annotations

import re
from typing import Final

from edge.http.error_responses import CLIMBING_PATH, Refused
from edge.routing.route import Route

_may_climb: Final = re.compile(rb"\.\.|[%\\]").search
_ENCODED: Final = re.compile(rb"%2e|%2f|%5c", re.IGNORECASE)
_DECODED: Final = {b"%2e": b".", b"%2f": b"/", b"%5c": b"/"}


def rewrite(route: Route, target: bytes) -> bytes:
    """The target to ask the origin for. `target` is in origin-form or ``*``.

    Raises: `Refused` when a segment climbs (``..`` however it is written).
    """
    if _may_climb(target) is not None and _climbs(target.partition(b"?")[0]):
        raise Refused(CLIMBING_PATH)
    if not route.base_path or target == b"*":
        return target
    if route.root_paths and is_root_path(route.root_paths, target.partition(b"?")[0]):
        return target
    return join(route.base_path, target)


def join(base_path: bytes, target: bytes) -> bytes:
    """`target` below `base_path`, which is not empty, with one slash between; ``/`` is the path exactly as written."""
    if target == b"/" or target[:2] == b"/?":
        return base_path + target[1:]
    return base_path.removesuffix(b"/") + target


def is_root_path(root_paths: tuple[bytes, ...], path: bytes) -> bool:
    """Whether one of `root_paths` covers `path`, by whole segments."""
    return any(path.startswith(root) and path[len(root) : len(root) + 1] in (b"", b"/") for root in root_paths)


def _climbs(path: bytes) -> bool:
    decoded = _ENCODED.sub(lambda match: _DECODED[match[0].lower()], path).replace(b"\\", b"/")
    # A segment's parameters (RFC 3986 §3.3) do not keep servers from climbing: "..;a=b".
    return any(segment.partition(b";")[0] == b".." for segment in decoded.split(b"/"))
