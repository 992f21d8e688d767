"""The last ordinary request of a connection, for when its bytes, or its fields, come again.

They mean the same: same client, same port, same route. Programs ask for one thing again and again, browsers send the
same fields with one image after another. What is remembered is of one generation of the replica and used in no other.
"""

from __future__ import annotations

from typing import Final

from edge.http.request import Limits, RequestHead, parse_again
from edge.routing.decide import WELL_KNOWN
from edge.routing.route import Route

# It stays in memory, three times over, as long as its connection; browsers' requests are of 1 to 2 KB.
MAX_REPEATED_BYTES: Final = 4096


class RememberedHead:
    """Made and asked by its `edge.proxy.client_connection.ClientConnection`."""

    __slots__ = ("_ending", "_fields", "generation", "head", "raw", "route", "upstream_head")

    def __init__(
        self, raw: bytes, generation: int, head: RequestHead, route: Route, target: bytes, upstream_head: bytes
    ) -> None:
        """`target` is what `upstream_head` asks the origin for."""
        self.raw = raw
        self.generation = generation
        self.head = head
        self.route = route
        self.upstream_head = upstream_head
        self._fields = raw[head.fields_at :]
        self._ending = upstream_head[len(head.method) + 1 + len(target) :]

    def may_be(self, raw: bytes) -> bool:
        return self.raw == raw or raw.endswith(self._fields)

    def parse(self, raw: bytes, limits: Limits) -> RequestHead | None:
        """The head of one that `may_be` this; None where it takes more than another line to tell what it is."""
        head = parse_again(self.head, raw, len(raw) - len(self._fields), limits)
        # What is below it may be answered here, and may pass where all else is redirected.
        is_simple = head is not None and len(raw) <= MAX_REPEATED_BYTES and not head.target.startswith(WELL_KNOWN)
        return head if is_simple else None

    def become(self, raw: bytes, head: RequestHead, target: bytes) -> None:
        """From now on it is this one; `head` is what `parse` gave."""
        self.raw, self.head = raw, head
        self.upstream_head = b"%b %b%b" % (head.method, target, self._ending)
