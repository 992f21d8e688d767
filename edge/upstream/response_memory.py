"""What is remembered of the heads that an origin sent, so that one like them is neither parsed nor rewritten again.

A head is taken in the first of these ways that fits:

    the same bytes     as the last one of the connection whose rewriting depends on nothing else (`RewrittenHead`)
    the same shape     as the last one of the connection, or as earlier ones of the origin, on any connection, whose
                       status and number of lines choose a `ResponseTemplate`: that reads it
    else               `response.parse` and `rewrite`; what they made of it is remembered
"""

from __future__ import annotations

from typing import Final, TypeAlias

from edge.http.request import RequestHead
from edge.http.response import ResponseHead
from edge.routing.response_template import ResponseTemplate
from edge.routing.route import Origin

# A template takes some three times as much as its head; applications' heads are of 0.3 to 1 KB.
MAX_REMEMBERED_BYTES: Final = 4096
_MAX_SHAPES: Final = 16  # of an origin
_MAX_ORIGINS: Final = 1024
_SHAPE_BYTES: Final = 256
_MAX_BYTES: Final = 3_000_000  # of heads, which all in all take up some five times as much: 16 MB
_LEARN_AFTER: Final = 4

Shape: TypeAlias = "tuple[bytes, int, bool]"
"""Status, number of lines, and whether the request was HEAD."""

LastResponse: TypeAlias = "tuple[bytes, bool, bool, ResponseHead, bytes]"
"""A head that would be rewritten in the same way again: as received, whether the client's connection goes on,
whether the request was HEAD, as read, as the client got it. A plain tuple: every response makes one."""


def shape_of(raw: bytes, *, is_for_head: bool) -> Shape:
    """Return the shape of a head, which is without the empty line."""
    return raw[9:12], raw.count(b"\n"), is_for_head


class _Learning:
    """The heads of one shape: what they have in common, as far as it is known."""

    __slots__ = ("longest", "misses", "raw", "varying")

    def __init__(self) -> None:
        self.longest = -_SHAPE_BYTES  # so far: a shape takes up that much besides
        self.raw = b""  # the last one that was parsed
        self.misses = 0
        self.varying: frozenset[bytes] = frozenset()

    def add(self, raw: bytes, answer: ResponseHead, request: RequestHead) -> ResponseTemplate | None:
        """Learn from a head that had to be parsed. Return the template for others like it, once there is a new one.

        Learning costs as much as parsing twenty heads: it is tried after 4, 8, 16 … heads that no template fits.
        """
        before, self.raw = self.raw, raw
        self.misses += 1
        if self.misses < _LEARN_AFTER or self.misses & (self.misses - 1):
            return None
        template = ResponseTemplate.learn(before, raw, answer, request, self.varying)
        if template is not None:
            self.varying, self.raw = template.varying, b""
        return template


class RememberedBytes:
    """What origins' heads take up in a worker: where it is too much, those that learnt longest ago forget theirs."""

    __slots__ = ("_by_origin", "_total")

    def __init__(self) -> None:
        self._by_origin: dict[OriginResponses, int] = {}
        self._total = 0

    def add(self, responses: OriginResponses, count: int) -> None:
        """Count bytes of heads that the origin's shapes take up from now on."""
        self._by_origin[responses] = self._by_origin.pop(responses, 0) + count
        self._total += count
        while self._total > _MAX_BYTES:
            oldest = next(iter(self._by_origin))
            if oldest is responses:
                return
            self._total -= self._by_origin.pop(oldest)
            oldest.forget()


class OriginResponses:
    """The shapes of one origin's heads: at most 16, each of heads up to 4 KB. Shared by its connections."""

    __slots__ = ("_bytes", "_learning", "_templates", "find")

    def __init__(self, remembered: RememberedBytes | None = None) -> None:
        """Count what is remembered in `remembered`, or by itself."""
        self._bytes = remembered or RememberedBytes()
        self._learning: dict[Shape, _Learning] = {}
        self._templates: dict[Shape, ResponseTemplate] = {}
        self.find = self._templates.get  # asked for nearly each response: a call of Python's own less

    def add(self, shape: Shape, raw: bytes, answer: ResponseHead, request: RequestHead) -> None:
        """Learn from a head that had to be parsed."""
        learning = self._learning.get(shape)
        if learning is None:
            if len(self._learning) >= _MAX_SHAPES:
                return
            learning = self._learning[shape] = _Learning()
        if len(raw) > learning.longest:
            self._bytes.add(self, len(raw) - learning.longest)
            learning.longest = len(raw)
        template = learning.add(raw, answer, request)
        if template is not None:
            self._templates[shape] = template

    def forget(self) -> None:
        """Forget all shapes."""
        self._learning.clear()
        self._templates.clear()


class ResponseMemories:
    """The responses of the origins last met by a worker. Owned by its dispatcher."""

    __slots__ = ("_origins", "_remembered")

    def __init__(self) -> None:
        self._origins: dict[Origin, OriginResponses] = {}
        self._remembered = RememberedBytes()

    def of(self, origin: Origin) -> OriginResponses:
        """Return what the connections of the origin share; the origins met first are forgotten first."""
        found = self._origins.get(origin)
        if found is None:
            if len(self._origins) >= _MAX_ORIGINS:
                del self._origins[next(iter(self._origins))]
            found = self._origins[origin] = OriginResponses(self._remembered)
        return found
