"""The id by which a request is known to the client, the access log and the origin: a trusted proxy's own, or ours."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from itertools import chain
from random import getrandbits
from struct import Struct
from typing import Final

from edge.http import fields
from edge.http.request import RequestHead

_GIVEN: Final = re.compile(rb"\r\nx-request-id:[ \t]*([!-~]{1,128})[ \t]*(?=\r\n|\Z)", re.IGNORECASE)
_IDS: Final = Struct("8s" * 256)
_NAMES: Final = frozenset({b"x-request-id", b"x_request_id"})


def new_ids() -> Iterator[str]:
    """Return ids without end: unique, but no secrets, since the kernel's random numbers cost ten times as much."""
    return chain.from_iterable(_batches())


def _batches() -> Iterator[Iterator[str]]:
    """Yield ids made many at a time: an id costs a third of one made alone."""
    while True:
        yield map(bytes.hex, _IDS.unpack(getrandbits(8 * _IDS.size).to_bytes(_IDS.size)))


def given_id(head: RequestHead) -> str | None:
    """Return the id that the request came with, if it is a usable one."""
    given = _GIVEN.search(head.kept)
    return None if given is None else given[1].decode("ascii")


def without_id(head: RequestHead) -> RequestHead:
    """Return the head without ids of its own: ours is stated instead."""
    kept = head.kept.lower()
    if not any(b"\r\n" + name + b":" in kept for name in _NAMES):
        return head
    return replace(head, kept=fields.without(head.kept, _NAMES))


def with_id(upstream_head: bytes, request_id: str) -> bytes:
    """Return the head composed for the origin, with the id in it."""
    return b"".join((upstream_head[:-2], b"X-Request-Id: ", request_id.encode(), b"\r\n\r\n"))
