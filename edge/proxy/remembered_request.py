"""The last forwarded request of a connection, for when it, or a similar one, comes again.

The same bytes mean the same: same client, same port, same route. So does a head that differs in its target and in
values of forwarded fields only (`edge.http.head_template`), once its target has been decided upon. What is remembered
holds for one generation of the replica.
"""

from __future__ import annotations

from edge.http.head_template import HeadTemplate, is_comparable, read_line
from edge.http.request import HeadLimits
from edge.routing.decide import WELL_KNOWN
from edge.routing.respond import Forward, compose_similar

# It stays in memory, up to six times over, as long as its connection; browsers' requests are of 1 to 2 KB.
MAX_REMEMBERED_BYTES = 4096
_LEARN_AFTER = 64


class RememberedRequest:
    """Made by its `ClientConnection` from a request without a body, which the one before could not stand for.

    `raw` is the last request, `head`, `route` and `upstream_head` are how it was forwarded. `_fields` are its bytes
    behind the request line: None where nothing may be compared with it, or where the template compares.
    """

    __slots__ = (
        "_fields",
        "_misses",
        "_surroundings",
        "_template",
        "generation",
        "head",
        "raw",
        "route",
        "upstream_head",
    )

    def __init__(self, raw: bytes, generation: int, forward: Forward, before: RememberedRequest | None) -> None:
        self.raw = raw
        self.generation = generation
        self.head = head = forward.head
        self.route = forward.route
        self.upstream_head = forward.upstream_head
        self._surroundings = forward.surroundings
        may_compare = is_comparable(raw, head) and not head.target.startswith(WELL_KNOWN)
        self._fields = raw[raw.index(b"\r\n") :] if may_compare else None
        self._template: HeadTemplate | None = None
        # Learning costs as much as parsing fifty heads: it is tried after 64, 128, 256 … requests that all differed.
        misses: int = 0 if before is None or before.generation != generation else before._misses + 1
        self._misses: int = misses
        if before is not None and misses >= _LEARN_AFTER and misses & (misses - 1) == 0 and may_compare:
            self._template = HeadTemplate.learn(before.raw, raw, head)

    def take_similar(self, raw: bytes, limits: HeadLimits) -> bool:
        """Remember the request in `raw` instead, if it is similar. False where it must be parsed."""
        last, fields, template = self.head, self._fields, self._template
        if len(raw) > MAX_REMEMBERED_BYTES:
            return False
        if fields is not None and raw.endswith(fields):
            head = read_line(raw, len(raw) - len(fields), last, limits)
            self._misses = 0
        elif template is not None:
            head = template.read(raw, last, limits)
        else:
            return False
        if head is None:
            return False
        upstream_head = compose_similar(self.route, self._surroundings, head)
        if upstream_head is None:
            return False
        self.raw, self.head, self.upstream_head = raw, head, upstream_head
        if head.kept is not last.kept:
            self._fields = None
        return True
