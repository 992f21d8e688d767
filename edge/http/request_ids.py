"""The id by which a request is known to the client, the access log and the origin: a trusted proxy's own, or ours."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import chain
from random import getrandbits
from struct import Struct
from typing import Final

from edge.http import fields
from edge.http.request import RequestHead

_GIVEN: Final = re.compile(rb"\r\nx-request-id:[ \t]*([!-~]{1,128})[ \t]*(?=\r\n|\Z)", re.IGNORECASE)
_IDS: Final = Struct("8s" * 256)
_NAMED: Final = b"\r\nx-request-id:"
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
    if not _states_id(head.kept):
        return head
    return replace(head, kept=fields.without(head.kept, _NAMES))


def identify(
    head: RequestHead, upstream_head: bytes, new_id: Callable[[], str], *, is_trusted: bool
) -> tuple[str, bytes]:
    """Return the request's id, and the head composed for the origin with it.

    `is_trusted`: a proxy may state the id; other clients' ids are not in the head.
    """
    if is_trusted:
        given = given_id(head)
        if given is not None:
            return given, upstream_head
        if _states_id(upstream_head):
            upstream_head = fields.without(upstream_head, _NAMES)
    request_id = new_id()
    return request_id, _with_id(upstream_head, request_id)


def stated(response_head: bytes, request_id: str) -> bytes:
    """Return a response's head, to the empty line, with the id in it; one that the origin states stands."""
    return response_head if _NAMED in response_head.lower() else _with_id(response_head, request_id)


def field(request_id: str) -> bytes:
    """Return the field that states the id."""
    return b"\r\nX-Request-Id: " + request_id.encode()


def _states_id(block: bytes) -> bool:
    lowered = block.lower()
    return any(b"\r\n" + name + b":" in lowered for name in _NAMES)


def _with_id(head: bytes, request_id: str) -> bytes:
    return b"".join((head[:-2], b"X-Request-Id: ", request_id.encode(), b"\r\n\r\n"))
