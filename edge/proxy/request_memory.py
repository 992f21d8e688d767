"""What is remembered of forwarded requests, so that one like them is neither parsed nor decided upon again.

A request is taken in the first of these ways that fits:

    the same bytes           as the last request of the connection
    the same fields          as the last request, or as a recent one of any connection of the worker (`RecentFields`):
                             only the request line is read
    other forwarded values   than an earlier request of the connection had, from which a `HeadTemplate` was learnt
    else                     `RequestReader` and `respond`; what they made of it is remembered

Equal bytes are read alike, and the same route decides alike: below ``/.well-known/`` alone, where the edge may answer
itself, and for a name that is not the one TLS was made for, more is asked, so those are remembered by all their bytes
and for one generation of the replica only.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import islice
from typing import Final

from edge.http.error_responses import Rejected
from edge.http.forwarded import Client
from edge.http.head_template import HeadTemplate, is_comparable
from edge.http.request import ORDINARY_LINE, HeadLimits, RequestHead
from edge.replica.routes import RouteTable
from edge.routing import paths
from edge.routing.decide import WELL_KNOWN
from edge.routing.request_rewriting import Surroundings
from edge.routing.respond import Forward
from edge.routing.route import Route

# A head stays in memory, up to nine times over, as long as its connection; browsers' heads are of 1 to 2 KB.
MAX_REMEMBERED_BYTES: Final = 4096
_MAX_RECENT: Final = 1024
_LEARN_AFTER: Final = 4
_NEVER: Final = -1
_DOT: Final = ord(".")


@dataclass(slots=True, eq=False)
class KnownFields:
    """A block of fields, and how a GET or HEAD with it was forwarded. It holds while `route` is its domain's route,
    which is known to be so in `generation`."""

    block: Final[bytes]  # from behind the request line
    head: Final[RequestHead]
    route: Final[Route]
    surroundings: Final[Surroundings]
    generation: int

    def holds_in(self, routes: RouteTable) -> bool:
        """Whether `route` is still its domain's route; if so, it is known to be so in the table's generation."""
        if routes.find(self.head.fields.host) is not self.route:
            return False
        self.generation = routes.generation
        return True


class RecentFields:
    """The blocks of fields last seen by a worker, by their bytes: one page load takes a browser six connections and
    hundreds of requests, with a handful of blocks.

    One for each of the two ports, and for clients trusted and not, since these forward differently. At most 1,024
    blocks of 4 KB; those seen first are dropped first.
    """

    __slots__ = ("_known", "find", "max_bytes", "routes")

    def __init__(self, routes: RouteTable, limits: HeadLimits) -> None:
        self.routes = routes
        # A request that is longer than either limit is for the parser to refuse.
        self.max_bytes = min(MAX_REMEMBERED_BYTES, limits.head_bytes, limits.target_bytes)
        self._known: dict[bytes, KnownFields] = {}
        self.find = self._known.get

    def __len__(self) -> int:
        return len(self._known)

    def add(self, known: KnownFields) -> None:
        if len(self._known) >= _MAX_RECENT:  # many at once: the first of a dictionary is hard to find behind others
            for block in list(islice(self._known, _MAX_RECENT // 16)):
                del self._known[block]
        self._known[known.block] = known


class RequestMemory:
    """One a client connection. `head`, `route` and `upstream_head` are those of the request in `raw`, the last one that
    was remembered or recalled; `raw` holds in `generation` of the replica."""

    __slots__ = (
        "_client",
        "_client_fields",
        "_known",
        "_misses",
        "_recent",
        "_server_name",
        "_template",
        "_template_known",
        "generation",
        "head",
        "raw",
        "route",
        "upstream_head",
    )

    head: RequestHead
    route: Route
    upstream_head: bytes
    _client_fields: bytes
    _template_known: KnownFields

    def __init__(self, recent: RecentFields, client: Client, server_name: str) -> None:
        """`server_name` is the name that TLS was made for, "" without TLS."""
        self.raw = b""
        self.generation = _NEVER
        self._recent = recent
        self._client = client
        self._server_name = server_name
        self._known: KnownFields | None = None  # of `raw`
        self._template: HeadTemplate | None = None
        self._misses = 0

    def recall(self, raw: bytes) -> bool:
        """Whether `raw` is one whole request like those remembered; then it is the last one."""
        recent = self._recent
        if len(raw) > recent.max_bytes:
            return False
        template = self._template
        if template is not None and (found := template.read(raw)) is not None:
            known = self._template_known
            method, target = found[:2]
            kept = template.forwarded % found[2:]
        else:
            line, _, block = raw.partition(b"\r\n")
            recalled = self._known
            if recalled is None or recalled.block != block:
                recalled = recent.find(block)
                if recalled is None or self._server_name not in ("", recalled.head.fields.host):
                    return False
            known = recalled
            match = ORDINARY_LINE.fullmatch(line)
            if match is None:
                return False
            method, target = match.groups()
            kept = known.head.kept
        route = known.route
        generation = recent.routes.generation
        if known.generation != generation and not known.holds_in(recent.routes):
            return False
        if _DOT in target and target.startswith(WELL_KNOWN):
            return False
        try:
            upstream_target = paths.rewrite(route, target)
        except Rejected:
            return False
        if known is not self._known:
            self._use(known)
        self.raw = raw
        self.head = head = RequestHead(method, target, 1, kept, known.head.fields)
        self.route = route
        self.upstream_head = known.surroundings.compose(head, upstream_target, self._client_fields)
        self.generation = generation
        return True

    def forget(self) -> None:
        """Decide upon `raw` anew when it comes again."""
        self.generation = _NEVER

    def remember(self, raw: bytes, forward: Forward) -> None:
        """`forward` is what became of `raw`, a request without a body, which `recall` did not know."""
        if len(raw) > self._recent.max_bytes:
            return
        before, self.raw = self.raw, raw
        self.head, self.route, self.upstream_head = forward.head, forward.route, forward.upstream_head
        self.generation = self._recent.routes.generation
        self._known = None
        if not self._may_know(raw, forward.head):
            return
        block = raw.partition(b"\r\n")[2]
        known = KnownFields(block, forward.head, forward.route, forward.surroundings, self.generation)
        self._recent.add(known)
        self._use(known)
        misses = self._misses
        self._misses = misses + 1
        # Learning may cost as much as parsing twenty heads: it is tried after 4, 8, 16 … requests that were like none.
        if misses >= _LEARN_AFTER and misses & (misses - 1) == 0:
            template = HeadTemplate.learn(before, raw, forward.head)
            if template is not None:
                self._template, self._template_known = template, known

    def _may_know(self, raw: bytes, head: RequestHead) -> bool:
        return (
            is_comparable(raw, head)
            and self._server_name in ("", head.fields.host)
            and not head.target.startswith(WELL_KNOWN)
        )

    def _use(self, known: KnownFields) -> None:
        self._known = known
        facts = known.head.fields
        self._client_fields = self._client.fields(facts.forwarded_for, facts.forwarded_proto, facts.host_port)
