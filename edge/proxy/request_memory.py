"""What is remembered of forwarded requests, so that one like them is neither parsed nor decided upon again.

A request is taken in the first of these ways that fits:

    the same bytes           as the last request of the connection
    another target           than an earlier one of the connection has, where the client's protocol tells so, and
                             perhaps other values of fields that go on (`recall_similar`)
    other values             than earlier requests of the worker had, from which a `HeadTemplate` was learnt: first the
                             template that fitted the connection's last request, then (behind the next way) any other
    the same fields          as the last request, or as a recent one of any connection of the worker (`RecentRequests`):
                             only the request line is read
    else                     `RequestReader` and `respond`; what they made of it is remembered

Equal bytes are read alike, and the same route decides alike, but for one with rules for visitors, whose requests are
not remembered: below ``/.well-known/`` alone, where the edge may answer
itself, and for a name that is not the one TLS was made for, more is asked, so those are remembered by all their bytes
and for one generation of the replica only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from edge.http.error_responses import Rejected
from edge.http.forwarded import Client
from edge.http.head_template import HeadTemplate, is_comparable
from edge.http.request import ORDINARY_LINE, ORDINARY_TARGET, FieldFacts, RequestHead
from edge.proxy.recent_requests import KnownFields, RecentRequests, host_of
from edge.routing import paths
from edge.routing.decide import WELL_KNOWN
from edge.routing.respond import Forward, is_too_large
from edge.routing.route import Route

_NEVER: Final = -1
_is_ordinary: Final = ORDINARY_TARGET.fullmatch
_DOT: Final = ord(".")
_MAX_LENGTH_DIGITS: Final = 18
_MAX_LENGTHS: Final = 64  # of uploads with the same fields


@dataclass(slots=True)
class KnownRequest:
    """A request without a body that was forwarded, and the fields that state its client."""

    known: Final[KnownFields]
    head: Final[RequestHead]
    client_fields: Final[bytes]


class RequestMemory:
    """What one client connection remembers.

    `head`, `route` and `upstream_head` are those of the last request that was remembered or recalled; where it was one
    without a body, `raw` is all of it, and holds in `generation` of the replica.
    """

    __slots__ = (
        "_client",
        "_client_fields",
        "_known",
        "_recent",
        "_server_name",
        "_template",
        "_template_host",
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

    def __init__(self, recent: RecentRequests, client: Client, server_name: str) -> None:
        """Begin with nothing remembered. `server_name` is the name that TLS was made for, "" without TLS."""
        self.raw = b""
        self.generation = _NEVER
        self._recent = recent
        self._client = client
        self._server_name = server_name
        self._known: KnownFields | None = None  # what `_client_fields` were made for
        self._template: HeadTemplate | None = None  # that fitted last, for `_template_host`
        self._template_host = b""

    def recall(self, raw: bytes) -> bool:
        """Return whether `raw` is one whole request like those remembered; then it is the last one."""
        recent, template = self._recent, self._template
        if len(raw) > recent.max_bytes:
            return False
        groups = template.read(raw) if template is not None and raw[template.tail] == template.end else None
        if (
            groups is not None
            and template is not None
            and (not template.host_at or groups[template.host_at] == self._template_host)
        ):
            known, method, target = self._template_known, groups[0], groups[1]
            kept = template.forwarded % template.select(groups)
        else:
            found = self._find_values(template, groups) if template is not None and groups else self._find(raw)
            if found is None:
                return False
            known, method, target, kept = found
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
        self.head = head = RequestHead(method, target, known.head.minor, kept, known.head.fields)
        self.route = route
        self.upstream_head = known.surroundings.compose(head, upstream_target, self._client_fields)
        self.generation = generation
        return True

    def last_request(self) -> KnownRequest | None:
        """Return the last request, unless others like it are to be decided upon anew."""
        known = self._known
        return (
            None if known is None or self.generation == _NEVER else KnownRequest(known, self.head, self._client_fields)
        )

    def recall_similar(self, request: KnownRequest, target: bytes, size: int, kept: bytes | None = None) -> bool:
        """Return whether a request is forwarded as that one was; then it is the last one.

        It differs in its target; and in `kept`, the fields that go on, where these are given: they have the same names
        in the same order, and valid values. Its head is of that size.
        """
        known, recent, like = request.known, self._recent, request.head
        generation = recent.routes.generation
        if (
            size > recent.max_bytes
            or _is_ordinary(target) is None
            or (_DOT in target and target.startswith(WELL_KNOWN))
            or (known.generation != generation and not known.holds_in(recent.routes))
        ):
            return False
        route, client_fields = known.route, request.client_fields
        try:
            upstream_target = paths.rewrite(route, target)
        except Rejected:
            return False
        if kept is None:
            kept = like.kept
        if known is not self._known:
            self._known, self.route, self._client_fields = known, route, client_fields
        self.raw = b""  # its bytes were not seen
        self.head = head = RequestHead(like.method, target, like.minor, kept, like.fields)
        self.upstream_head = known.surroundings.compose(head, upstream_target, client_fields)
        return True

    def _find(self, raw: bytes) -> tuple[KnownFields, bytes, bytes, bytes] | None:
        """Return the known fields that `raw` has, its method and target, and the fields that go on.

        None is returned for a head that is not known.
        """
        recent, is_varied = self._recent, self._template is not None
        if is_varied and (matched := recent.match(raw)) is not None:
            return None if matched[0].length_at else self._find_values(*matched)
        line, _, block = raw.partition(b"\r\n")
        known = self._known
        if known is None or known.block != block:
            known = recent.find(block)
            if known is None:
                matched = None if is_varied else recent.match(raw)
                return None if matched is None or matched[0].length_at else self._find_values(*matched)
            if self._server_name not in ("", known.head.fields.host):
                return None
        match = ORDINARY_LINE.fullmatch(line)
        return None if match is None else (known, match[1], match[2], known.head.kept)

    def _find_values(
        self, template: HeadTemplate, groups: tuple[bytes, ...]
    ) -> tuple[KnownFields, bytes, bytes, bytes] | None:
        """As `_find`, for a head that the template has read."""
        known = self._use_template(template, groups)
        if known is None:
            return None
        return known, groups[0], groups[1], template.forwarded % template.select(groups)

    def forget(self) -> None:
        """Decide upon `raw` anew when it comes again."""
        self.generation = _NEVER

    def drop_octets(self) -> None:
        """Forget the octets of the last request, a kilobyte: a client of HTTP/2 is known to repeat it by less."""
        self.raw = self.upstream_head = b""

    def recall_upload(self, data: bytes) -> bytes | None:
        """Recall a request with a body that `data` begins with. Return what follows its head, or None."""
        recent = self._recent
        raw, end_of_head, body = data.partition(b"\r\n\r\n")
        raw += end_of_head
        if not end_of_head or len(raw) > recent.max_bytes:
            return None
        template = self._template
        groups = template.read(raw) if template is not None and raw[template.tail] == template.end else None
        if template is None or groups is None:
            matched = recent.match(raw)
            if matched is None:
                return None
            template, groups = matched
        if template is self._template and (not template.host_at or groups[template.host_at] == self._template_host):
            known = self._template_known
        elif (found := self._use_template(template, groups)) is not None:
            known = found
        else:
            return None
        if not known.head.fields.body:
            return None
        if known.generation != recent.routes.generation and not known.holds_in(recent.routes):
            return None
        return body if self._is_upload_taken(known, template, groups) else None

    def _is_upload_taken(self, known: KnownFields, template: HeadTemplate, groups: tuple[bytes, ...]) -> bool:
        method, target = groups[0], groups[1]
        if _DOT in target and target.startswith(WELL_KNOWN):
            return False
        route, facts, length = known.route, known.head.fields, b""
        if template.length_at:
            value = groups[template.length_at]
            read = known.uploads.get(value) or self._read_length(known, value)
            if read is None:
                return False
            length, facts = read
        try:
            upstream_target = paths.rewrite(route, target)
        except Rejected:
            return False
        if known is not self._known:
            self._use(known)
        head = RequestHead(method, target, known.head.minor, template.forwarded % template.select(groups), facts)
        surroundings, client_fields = known.surroundings, self._client_fields
        if length:
            self.upstream_head = surroundings.compose_upload(head, upstream_target, client_fields, length)
        else:
            self.upstream_head = surroundings.compose(head, upstream_target, client_fields)
        self.head, self.route = head, route
        self.raw, self.generation = b"", _NEVER  # its bytes are not all of the request
        return True

    def _read_length(self, known: KnownFields, value: bytes) -> tuple[bytes, FieldFacts] | None:
        """Return the length that the value states, and the facts of a request with such a body.

        None where it is for the parser to judge.
        """
        length = value.strip(b" \t")
        if not length.isdigit() or len(length) > _MAX_LENGTH_DIGITS or length[:1] == b"0":
            return None
        facts = _with_body(known.head.fields, int(length))
        if is_too_large(facts.body, self._recent.max_body_bytes, known.route.buffer_uploads_bytes):
            return None
        if len(known.uploads) >= _MAX_LENGTHS:
            known.uploads.clear()
        known.uploads[value] = length, facts
        return length, facts

    def remember(self, raw: bytes, forward: Forward) -> None:
        """Remember what became of `raw`, a request that `recall` did not know, or the head of one with a body."""
        if len(raw) > self._recent.max_bytes or forward.route.visitors is not None:  # each is decided upon anew
            return
        has_body = bool(forward.head.fields.body)
        self.head, self.route, self.upstream_head = forward.head, forward.route, forward.upstream_head
        generation = self._recent.routes.generation
        self.raw, self.generation = (b"", _NEVER) if has_body else (raw, generation)
        self._known = self._template = None
        if not self._may_know(raw, forward.head):
            return
        if not has_body:
            block = raw.partition(b"\r\n")[2]
            known = KnownFields(block, forward.head, forward.route, forward.surroundings, generation)
            self._recent.add(known)
            self._use(known)
        self._recent.learn(raw, KnownFields(None, forward.head, forward.route, forward.surroundings, generation))

    def _may_know(self, raw: bytes, head: RequestHead) -> bool:
        return (
            is_comparable(raw, head)
            and self._server_name in ("", head.fields.host)
            and not head.target.startswith(WELL_KNOWN)
        )

    def _use_template(self, template: HeadTemplate, groups: tuple[bytes, ...]) -> KnownFields | None:
        """Read the connection's next requests by this template; None where it says nothing of this Host."""
        host = host_of(template, groups)
        known = self._recent.known(template, host)
        if known is None or self._server_name not in ("", known.head.fields.host):
            return None
        self._template, self._template_host, self._template_known = template, host, known
        return known

    def _use(self, known: KnownFields) -> None:
        self._known = known
        facts = known.head.fields
        self._client_fields = self._client.fields(facts.forwarded_for, facts.forwarded_proto, facts.host_port)


def _with_body(facts: FieldFacts, body: int) -> FieldFacts:
    """Return the facts of a request that has a body of another length."""
    return FieldFacts(
        facts.host,
        facts.host_port,
        facts.host_as_received,
        facts.keep_alive,
        body,
        b"",
        False,
        False,
        facts.forwarded_for,
        facts.forwarded_proto,
        facts.via,
    )
