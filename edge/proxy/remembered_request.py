"""The last forwarded request of a connection, for when it, or a similar one, comes again.

The same bytes mean the same: same client, same port, same route. So does a head that differs in its target and in
values of forwarded fields only (`edge.http.head_template`), once its target has been decided upon. What is remembered
holds for one generation of the replica.
"""

from __future__ import annotations

from edge.http.head_template import HeadTemplate, is_comparable, read_similar
from edge.http.request import HeadLimits
from edge.routing.respond import Forward, forward_similar

# It stays in memory, up to six times over, as long as its connection; browsers' requests are of 1 to 2 KB.
MAX_REMEMBERED_BYTES = 4096
_LEARN_AFTER = 64


class RememberedRequest:
    """Made by its `ClientConnection` from a request without a body, which the one before could not stand for.

    `raw` and `forward` are the last request; `_fields` are its bytes behind the request line, b"" where nothing may be
    compared with it.
    """

    __slots__ = ("_fields", "_misses", "_template", "forward", "generation", "raw")

    def __init__(self, raw: bytes, generation: int, forward: Forward, before: RememberedRequest | None) -> None:
        self.raw = raw
        self.generation = generation
        self.forward = forward
        fields_at = raw.index(b"\r\n")
        self._fields = raw[fields_at:] if is_comparable(raw, forward.head) else b""
        self._template: HeadTemplate | None = None
        # Learning costs as much as parsing fifty heads: it is tried after 64, 128, 256 … requests that all differed.
        misses: int = 0 if before is None or before.generation != generation else before._misses + 1
        self._misses: int = misses
        if before is not None and misses >= _LEARN_AFTER and misses & (misses - 1) == 0 and self._fields:
            self._template = HeadTemplate.learn(before.raw, raw, forward.head)

    def forward_similar(self, raw: bytes, limits: HeadLimits) -> Forward | None:
        """How to forward what is in `raw`, which then is the remembered request; None where it must be parsed."""
        last = self.forward
        if self._fields and raw.endswith(self._fields):
            fields_at = len(raw) - len(self._fields)
            kept = last.head.kept
            self._misses = 0
        else:
            template = self._template
            if template is None or len(raw) > MAX_REMEMBERED_BYTES:
                return None
            fields_at = max(raw.find(b"\r\n"), 0)
            found = template.forwarded_fields(raw, fields_at)
            if found is None:
                return None
            kept = found
        head = read_similar(raw, fields_at, last.head, kept, limits)
        forward = None if head is None else forward_similar(last, head)
        if forward is not None and len(raw) <= MAX_REMEMBERED_BYTES:
            self.raw, self.forward = raw, forward
            if kept is not last.head.kept:
                self._fields = raw[fields_at:]
        return forward
