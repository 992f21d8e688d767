"""What a worker remembers of the requests it forwarded lately, on any connection.

One page load takes a browser six connections and hundreds of requests, with a handful of blocks of fields; and all of a
site's visitors send fields of the same names, in the same order, with other values.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import islice
from typing import Any, Final

from edge.http.head_template import HeadTemplate
from edge.http.request import FieldFacts, HeadLimits, RequestHead
from edge.replica.routes import RouteTable
from edge.routing.request_rewriting import Surroundings
from edge.routing.route import Route

# A head stays in memory up to nine times over; browsers' heads are of 1 to 2 KB.
MAX_REMEMBERED_BYTES: Final = 4096
_MAX_BLOCKS: Final = 1024
_MAX_HOSTS: Final = 2048
_MAX_SHAPES: Final = 64
_MAX_TEMPLATES: Final = 4  # of heads of one number of lines
_LEARN_AFTER: Final = 4


@dataclass(slots=True, eq=False)
class KnownFields:
    """How a request with these fields was forwarded.

    It holds while `route` is its domain's route, which is known to be so in `generation`.
    """

    block: Final[bytes | None]  # the fields, from behind the request line; None where a template reads them
    head: Final[RequestHead]
    route: Final[Route]
    surroundings: Final[Surroundings]
    generation: int
    uploads: dict[bytes, tuple[bytes, FieldFacts]] = field(default_factory=dict)
    """The length of a body, and the facts of a request that has one, by the value that states it."""

    def holds_in(self, routes: RouteTable) -> bool:
        """Return whether `route` is still its domain's route; if so, it is known to be so in the table's generation."""
        if routes.find(self.head.fields.host) is not self.route:
            return False
        self.generation = routes.generation
        return True


class _Learning:
    """Heads with fields of the same names: the last one that had to be parsed, and what is known of them."""

    __slots__ = ("learnt_from", "misses", "raw", "template", "varying")

    def __init__(self) -> None:
        self.raw = b""
        self.misses = 0
        self.varying: frozenset[bytes] = frozenset()
        self.template: HeadTemplate | None = None
        self.learnt_from = b""  # a head that `template` reads


class RecentRequests:
    """The requests of a worker's connections. One for each of the two ports, and for trusted clients and others.

    At most 1,024 blocks of fields of 4 KB, 64 templates, and 2,048 hosts of theirs; those seen first are dropped first.
    """

    __slots__ = ("_blocks", "_hosts", "_learning", "_templates", "find", "max_body_bytes", "max_bytes", "routes")

    def __init__(self, routes: RouteTable, limits: HeadLimits, max_body_bytes: int | None) -> None:
        self.routes = routes
        self.max_body_bytes = max_body_bytes
        # A request that is longer than either limit is for the parser to refuse.
        self.max_bytes = min(MAX_REMEMBERED_BYTES, limits.head_bytes, limits.target_bytes)
        self._blocks: dict[bytes | None, KnownFields] = {}
        self.find = self._blocks.get
        self._templates: dict[int, list[HeadTemplate]] = {}  # by number of lines, those used last first
        self._hosts: dict[tuple[HeadTemplate, bytes], KnownFields] = {}
        self._learning: dict[tuple[bytes, ...], _Learning] = {}  # by the names of the fields

    def __len__(self) -> int:
        return len(self._blocks)

    def add(self, known: KnownFields) -> None:
        """Remember how a request with these fields was forwarded."""
        _make_room(self._blocks, _MAX_BLOCKS)
        self._blocks[known.block] = known

    def match(self, raw: bytes) -> tuple[HeadTemplate, tuple[bytes, ...]] | None:
        """Return a template that reads the head, and what it read."""
        templates = self._templates.get(raw.count(b"\n"))
        if templates is None:
            return None
        for template in templates:
            groups = template.read(raw) if raw[template.tail] == template.end else None
            if groups is not None:
                if template is not templates[0]:
                    templates.remove(template)
                    templates.insert(0, template)
                return template, groups
        return None

    def known(self, template: HeadTemplate, host: bytes) -> KnownFields | None:
        """Return how requests with the template's constant fields and that Host are forwarded."""
        return self._hosts.get((template, host))

    def learn(self, raw: bytes, known: KnownFields) -> None:
        """Learn from a head that had to be parsed, and is comparable to others.

        Learning may cost as much as parsing twenty heads: it is tried after 4, 8, 16 … heads that no template fits.
        """
        matched = self.match(raw)
        if matched is None:
            matched = self._learn(raw, known.head)
        if matched is not None:
            template, groups = matched
            _make_room(self._hosts, _MAX_HOSTS)
            self._hosts[template, host_of(template, groups)] = known

    def _learn(self, raw: bytes, head: RequestHead) -> tuple[HeadTemplate, tuple[bytes, ...]] | None:
        names = tuple(line.partition(b":")[0] for line in raw.split(b"\r\n")[1:-2])
        learning = self._learning.get(names)
        if learning is None:
            _make_room(self._learning, _MAX_SHAPES)
            learning = self._learning[names] = _Learning()
        before, learning.raw = learning.raw, raw
        learning.misses += 1
        if learning.misses <= _LEARN_AFTER or (learning.misses - 1) & (learning.misses - 2):
            return None
        template = HeadTemplate.learn(before, raw, head, learning.varying)
        if template is None:
            return None
        templates = self._templates.setdefault(raw.count(b"\n"), [])
        if (old := learning.template) is not None:
            wider = HeadTemplate.learn(learning.learnt_from, raw, head, template.varying)
            if wider is not None:  # it reads what the old one does, too: two kinds that differ in another field
                template = wider
                if old in templates:
                    templates.remove(old)
        templates.insert(0, template)
        del templates[_MAX_TEMPLATES:]
        learning.template, learning.varying, learning.learnt_from = template, template.varying, raw
        learning.raw = b""
        groups = template.read(raw)
        return None if groups is None else (template, groups)


def host_of(template: HeadTemplate, groups: tuple[bytes, ...]) -> bytes:
    """Return the value of Host, b"" where it does not vary."""
    return groups[template.host_at] if template.host_at else b""


def _make_room(things: dict[Any, Any], most: int) -> None:
    """Drop the oldest of a full dictionary; many at once, since its first is hard to find behind dropped ones."""
    if len(things) >= most:
        for key in list(islice(things, most // 16)):
            del things[key]
