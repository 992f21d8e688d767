"""Paths between a customer's domain and an application's URL. Bytes in, the same bytes out, plus a prefix.

Percent-encoding, ``//``, ``..`` and queries pass untouched; what climbs out of the application's path is refused.
"""

from __future__ import annotations

import re
from typing import Final

from edge.http.error_responses import CLIMBING_PATH, Rejected
from edge.routing.route import Route

_PERCENT: Final = ord("%")
_BACKSLASH: Final = ord("\\")
_DOT: Final = ord(".")
_ENCODED_DOT: Final = re.compile(rb"%2e", re.IGNORECASE)
_HIDDEN_SLASH: Final = re.compile(rb"%2f|%5c|\\", re.IGNORECASE)  # a slash to some servers


def rewrite(route: Route, target: bytes) -> bytes:
    """Return the target to ask the origin for. `target` is in origin-form or ``*``.

    Raises: `Rejected` when ``..``, however it is written, climbs above the root.
    """
    # Two dots in a row, or what may hide one. By number: `b"%" in target` costs ten times as much.
    may_climb = _PERCENT in target or _BACKSLASH in target or (_DOT in target and target.find(b"..") >= 0)
    if may_climb and _climbs(target.partition(b"?")[0]):
        raise Rejected(CLIMBING_PATH)
    if not route.base_path or target == b"*":
        return target
    if route.root_paths and is_below(route.root_paths, target.partition(b"?")[0]):
        return target
    return join(route.learnt_root.path or route.base_path, target)


def join(base_path: bytes, target: bytes) -> bytes:
    """Return `target` below `base_path`, which is not empty, with one slash between.

    ``/`` is the path exactly as written.
    """
    if target == b"/" or target[:2] == b"/?":
        return base_path + target[1:]
    return base_path.removesuffix(b"/") + target


def is_below(roots: tuple[bytes, ...], path: bytes) -> bool:
    """Return whether one of `roots` covers `path`, by whole segments, and ``..`` does not climb out of it."""
    return any(
        path.startswith(root) and path[len(root) : len(root) + 1] in (b"", b"/") and not _climbs(path[len(root) :])
        for root in roots
    )


def _climbs(path: bytes) -> bool:
    """Return whether `path` leads above its first segment for any server, however lenient.

    Servers differ on hidden slashes, on whether empty segments count, and on parameters (``..;a=b``, RFC 3986 §3.3).
    """
    path = _ENCODED_DOT.sub(b".", path)
    if b".." not in path:
        return False
    if _HIDDEN_SLASH.search(path) is not None:
        return any(_is_parent(segment) for segment in _HIDDEN_SLASH.sub(b"/", path).split(b"/"))
    depth = 0
    for segment in path.split(b"/"):
        if _is_parent(segment):
            depth -= 1
            if depth < 0:
                return True
        elif segment.partition(b";")[0] not in (b"", b"."):
            depth += 1
    return False


def _is_parent(segment: bytes) -> bool:
    return segment.partition(b";")[0] == b".."
