"""What is remembered of the heads that an origin sent, so that one like them is neither parsed nor rewritten again.

A head is taken in the first of these ways that fits:

    the same bytes     as the last one of the connection whose rewriting depends on nothing else (`RewrittenHead`)
    the same fields    as the last one of the connection, or as earlier ones of the origin, on any connection, whose
                       status and number of lines choose a few `ResponseTemplate`s: one of them reads it
    else               `response.parse` and `rewrite`; what they made of it is remembered
"""

from __future__ import annotations

from typing import Final, TypeAlias

from edge.http.request import RequestHead
from edge.http.response import ResponseHead
from edge.routing.response_template import MAX_ATTRIBUTE_BYTES, ResponseTemplate
from edge.routing.route import Origin

# Applications' heads are of 0.3 to 1 KB.
MAX_REMEMBERED_BYTES: Final = 4096
_MAX_KINDS: Final = 32  # of an origin
_MAX_TEMPLATES: Final = 4  # of heads of one shape
_MAX_ORIGINS: Final = 1024
_LEARN_AFTER: Final = 4
# What a worker's templates take up, as `_Learning` estimates it; they take up between half as much and all of that.
_MAX_BYTES: Final = 18_000_000
_KIND_BYTES: Final = 600  # and the last head that was parsed twice: its names are those of the kind
_TEMPLATE_BYTES: Final = 1_700  # and its head four times

Shape: TypeAlias = "tuple[bytes, int, bool]"
"""Status, number of lines, and whether the request was HEAD."""

LastResponse: TypeAlias = "tuple[bytes, bool, bool, ResponseHead, bytes]"
"""A head that would be rewritten in the same way again: as received, whether the client's connection goes on,
whether the request was HEAD, as read, as the client got it. A plain tuple: every response makes one."""


def shape_of(raw: bytes, *, is_for_head: bool) -> Shape:
    """Return the shape of a head, which is without the empty line."""
    return raw[9:12], raw.count(b"\n"), is_for_head


class _Learning:
    """The heads of one shape with fields of the same names: what they have in common, as far as it is known.

    `taken_bytes` estimates, from above, what all of it takes up, with templates that another one displaced.
    """

    __slots__ = ("_learnt_from", "_longest", "_misses", "_raw", "_template", "_varying", "taken_bytes")

    def __init__(self) -> None:
        self._raw = b""  # the last one that was parsed
        self._longest = 0  # of those
        self._misses = 0
        self._varying: frozenset[bytes] = frozenset()
        self._template: ResponseTemplate | None = None
        self._learnt_from = b""  # a head that `_template` reads
        self.taken_bytes = _KIND_BYTES

    def add(self, raw: bytes, answer: ResponseHead, request: RequestHead, templates: list[ResponseTemplate]) -> None:
        """Learn from a head that had to be parsed, and add the template for others like it, once there is a new one.

        Learning costs as much as parsing twenty heads: it is tried after 4, 8, 16 … heads that no template fits. A
        template that reads what the last one does, too, takes its place.
        """
        before, self._raw = self._raw, raw
        if len(raw) > self._longest:
            self.taken_bytes += 2 * (len(raw) - self._longest)
            self._longest = len(raw)
        self._misses += 1
        if self._misses < _LEARN_AFTER or self._misses & (self._misses - 1):
            return
        template = ResponseTemplate.learn(before, raw, answer, request, self._varying)
        if template is None:
            return
        if (old := self._template) is not None:
            wider = ResponseTemplate.learn(self._learnt_from, raw, answer, request, template.varying)
            if wider is not None:
                template = wider
                if old in templates:
                    templates.remove(old)
        templates.insert(0, template)
        del templates[_MAX_TEMPLATES:]
        self._template, self._varying, self._learnt_from, self._raw = template, template.varying, raw, b""
        self.taken_bytes += _TEMPLATE_BYTES + 4 * len(raw) + template.places_bytes
        if b"set-cookie" in template.varying:
            self.taken_bytes += 2 * MAX_ATTRIBUTE_BYTES


class RememberedBytes:
    """What origins' templates take up in a worker.

    Where it is too much, the origins that learnt longest ago forget theirs.
    """

    __slots__ = ("_by_origin", "total")

    def __init__(self) -> None:
        self._by_origin: dict[OriginResponses, int] = {}
        self.total = 0

    def add(self, responses: OriginResponses, count: int) -> None:
        """Count bytes that what the origin's heads have in common takes up from now on."""
        self._by_origin[responses] = self._by_origin.pop(responses, 0) + count
        self.total += count
        while self.total > _MAX_BYTES:
            oldest = next(iter(self._by_origin))
            if oldest is responses:
                return
            self.total -= self._by_origin.pop(oldest)
            oldest.forget()


class OriginResponses:
    """What an origin's heads have in common, of at most 32 kinds, each of heads up to 4 KB. Shared by its connections.

    A kind has one status, and fields of the same names in the same order.
    """

    __slots__ = ("_bytes", "_learning", "_templates", "find")

    def __init__(self, remembered: RememberedBytes | None = None) -> None:
        """Count what is remembered in `remembered`, or by itself."""
        self._bytes = remembered or RememberedBytes()
        self._learning: dict[tuple[bool, bytes, bytes], _Learning] = {}
        self._templates: dict[Shape, list[ResponseTemplate]] = {}
        self.find = self._templates.get  # asked for nearly each response: a call of Python's own less

    def add(self, raw: bytes, answer: ResponseHead, request: RequestHead) -> None:
        """Learn from a head that had to be parsed."""
        is_for_head = request.method == b"HEAD"
        lines = raw.split(b"\r\n")
        kind = is_for_head, raw[9:12], b"\n".join(line.partition(b":")[0] for line in lines[1:])
        learning = self._learning.get(kind)
        if learning is None:
            if len(self._learning) >= _MAX_KINDS:
                return
            learning = self._learning[kind] = _Learning()
            self._bytes.add(self, learning.taken_bytes)
        before = learning.taken_bytes
        learning.add(raw, answer, request, self._templates.setdefault(shape_of(raw, is_for_head=is_for_head), []))
        if learning.taken_bytes != before:
            self._bytes.add(self, learning.taken_bytes - before)

    def forget(self) -> None:
        """Forget all kinds."""
        self._learning.clear()
        self._templates.clear()


class ResponseMemories:
    """The responses of the origins last met by a worker. Owned by its dispatcher."""

    __slots__ = ("_origins", "remembered")

    def __init__(self) -> None:
        self._origins: dict[Origin, OriginResponses] = {}
        self.remembered = RememberedBytes()

    def of(self, origin: Origin) -> OriginResponses:
        """Return what the connections of the origin share; the origins met first are forgotten first."""
        found = self._origins.get(origin)
        if found is None:
            if len(self._origins) >= _MAX_ORIGINS:
                del self._origins[next(iter(self._origins))]
            found = self._origins[origin] = OriginResponses(self.remembered)
        return found
