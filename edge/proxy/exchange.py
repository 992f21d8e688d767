"""One exchange: a request on its way to an origin, and the response on its way back.

Its phases, in order; `FINISHED` is reached once, from every other one:

    BUFFERING the body is taken in first, where the application wants that (`edge.proxy.buffered_exchange`)
    WAITING   asked for a lease                      → SENT, or FINISHED by a refusal
    SENT      the head is with the origin            → BODY, TUNNEL; WAITING again for the one retry allowed, and for
                                                       the other form of the root (`edge.routing.root_redirects`)
    BODY      the final response head has gone down  → FINISHED
    TUNNEL    101: bytes both ways, no HTTP          → FINISHED

The request's body flows through whatever the phase. How bodies are framed on either side is `edge.http.request_body`'s
and `edge.http.response_body`'s. Every exchange ends in `_end`, which calls the client's side once.
Backpressure: what one side cannot take pauses the other side's reading; bodies are never accumulated, except
what arrives before the lease, which is bounded by pausing the client.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from typing import Final, Protocol

from edge.http import response
from edge.http.error_responses import (
    CLIENT_DISCONNECTED,
    CUT_OFF,
    ORIGIN_DOWN,
    ORIGIN_INVALID,
    ORIGIN_SLOW,
    REQUEST_TIMEOUT,
    ErrorResponse,
    Rejected,
)
from edge.http.incomplete import check_incomplete_response
from edge.http.request import RequestHead
from edge.http.request_body import RequestBody
from edge.http.response import ResponseHead
from edge.http.response_body import ResponseBody
from edge.proxy.upload_store import UploadStore
from edge.routing import root_redirects
from edge.routing.request_rewriting import retarget
from edge.routing.response_rewriting import rewrite, rewrite_interim
from edge.routing.route import Route
from edge.transport.deferred_work import BYTES_AT_ONCE, INTERIM_BYTES_AT_ONCE, DeferredWork
from edge.upstream.connection import UpstreamConnection
from edge.upstream.dispatcher import UpstreamDispatcher
from edge.upstream.response_memory import MAX_REMEMBERED_BYTES

# Origins send more than clients may: Set-Cookie and policies.
MAX_RESPONSE_HEAD_BYTES: Final = 65_536
# RFC 8297 and RFC 9110 §15.2 foresee a few; a storm of them is an attack on the client.
MAX_INTERIM_RESPONSES: Final = 32
# What may wait in memory for a lease before the client is paused.
MAX_WAITING_BODY_BYTES: Final = 65_536

# How much of a request's body is kept for a second try.
MAX_KEPT_BODY_BYTES: Final = 65_536

_IDEMPOTENT: Final = frozenset({b"GET", b"HEAD", b"OPTIONS", b"PUT", b"DELETE"})  # RFC 9110 §9.2.2


class Phase(IntEnum):
    WAITING = 0
    SENT = 1
    BODY = 2
    TUNNEL = 3
    FINISHED = 4
    BUFFERING = 5


# By themselves: to look a member up in its class costs as much as a call, and every request does it ten times.
WAITING, SENT, BODY, TUNNEL, FINISHED, BUFFERING = Phase


class Ending(IntEnum):
    """How an exchange ended, and so what becomes of the client's connection."""

    COMPLETE = 0  # the response went down to its last byte, and the connection can serve another request
    LAST = 1  # the same, or the tunnel's end; the connection closes
    REFUSED = 2  # nothing of a response went down: `Exchange.failure` is to be answered
    BROKEN_OFF = 3  # in the middle of a response: the client must see that it is incomplete
    BROKEN_OFF_BY_RESET = 4  # the same, where the end of the connection would look like the end of the response
    CANCELLED = 5  # by the client's side, which decides what follows


COMPLETE, LAST, REFUSED, CUT, CUT_BY_RESET, CANCELLED = Ending


@dataclass(frozen=True, slots=True)
class Timeouts:
    """Seconds without progress, by what is waited for."""

    connect: float
    origin: float  # from the request's head (or its last byte) to the response's head
    body: float
    tunnel: float  # a half-closed one has a body's time


class ClientSide(Protocol):
    """The client connection, as its exchange sees it."""

    scheme: bytes  # how the client speaks to the domain: b"http" or b"https"
    bytes_down: int  # written for this exchange

    @property
    def request_id(self) -> str: ...

    def write(self, data: bytes) -> None: ...
    def write_last(self, data: bytes) -> None:
        """`on_exchange_end` with `LAST` follows at once."""

    def pause_reading(self) -> None: ...
    def resume_reading(self) -> None: ...
    def set_deadline(self, seconds: float) -> None: ...
    def forget_request(self) -> None:
        """The same request is to be decided upon anew when it comes again."""

    def on_tunnel(self) -> None:
        """From now on bytes of both sides are passed on as they are."""

    def end_writing(self) -> bool:
        """The origin's side of the tunnel has ended. False where a half-closed connection is impossible."""

    def on_exchange_end(self, ending: Ending) -> None:
        """Called once, last."""


@dataclass(slots=True)
class ExchangeContext:
    """What all exchanges of a worker share. Owned by its `WorkerContext`."""

    dispatcher: UpstreamDispatcher
    uploads: UploadStore
    deferred: DeferredWork
    timeouts: Timeouts
    max_body_bytes: int | None
    time: Callable[[], float]  # monotonic
    date_field: Callable[[], bytes]  # the time of day, as a response states it
    unix_seconds: Callable[[], int]
    is_draining: bool = False  # each response is to be its connection's last


class Exchange:
    """Created by a client connection for one request, and dropped by it when finished.

    `started_at` is monotonic; `status` is 0 until a response's head went down, or a refusal is to go in its place.
    """

    __slots__ = (
        "_client_keeps_alive",
        "_context",
        "_has_asked_again",
        "_interim_count",
        "_is_deferred",
        "_is_half_closed",
        "_kept_body",
        "_lost_in_order",
        "_request_body",
        "_response",
        "_response_body",
        "_response_head",
        "_retried",
        "_upstream",
        "_upstream_head",
        "_upstream_is_paused",
        "_waiting",
        "answered_at",
        "bytes_up",
        "client",
        "ended_at",
        "failure",
        "head",
        "phase",
        "reason",
        "request_is_complete",
        "reused",
        "route",
        "started_at",
        "status",
    )

    ended_at: float  # monotonic; set by the end
    _lost_in_order: bool | None  # how the upstream connection ended while the relay was deferred

    def __init__(
        self,
        client: ClientSide,
        context: ExchangeContext,
        head: RequestHead,
        route: Route,
        upstream_head: bytes,
        started_at: float,
    ) -> None:
        self.head = head
        self.route = route
        self.phase = WAITING
        self.status = 0
        self.failure: ErrorResponse | None = None  # why it did not end well: the refusal, or one that is no response
        self.reason = ""  # of a failure, for the operator
        self.started_at = started_at
        self.answered_at = 0.0  # the final head came; 0.0 too when all of the answer came with it
        self.bytes_up = 0  # of the body or the tunnel, as passed on
        self.client = client
        self._client_keeps_alive = False
        self._context = context
        self._upstream: UpstreamConnection | None = None
        self._upstream_head = upstream_head
        self._upstream_is_paused = False
        self._kept_body: bytes | None = b""  # body, framed, as consumed so far; None: not to be sent again
        self._waiting = b""  # body, framed, that came before the lease
        size = head.fields.body
        self._request_body = RequestBody(size, context.max_body_bytes) if size else None
        self.request_is_complete = size == 0  # as `_request_body` states it: asked for three times a request
        self.reused = False
        self._retried = False
        self._has_asked_again = False  # for the other form of the root
        self._interim_count = 0
        self._is_half_closed = False  # the tunnel
        self._is_deferred = False  # the relay of the response, to a later turn of the loop
        self._response_head = b""  # what came of a head not yet complete
        self._response: ResponseHead | None = None
        self._response_body: ResponseBody | None = None  # unless all of it came with the head

    def __repr__(self) -> str:
        return f"<Exchange {self.head.method.decode()} {self.head.fields.host} {self.phase.name}>"

    @property
    def missing_bytes(self) -> int:
        """What is certainly still to come of the request's body."""
        return self._request_body.missing_bytes if self._request_body is not None else 0

    @property
    def has_unread_body(self) -> bool:
        """Whether `on_request_data` without data reads on in what it was given."""
        return self._request_body is not None and self._request_body.has_more

    # The way to the origin ------------------------------------------------------------------------------

    def start(self) -> None:
        dispatcher = self._context.dispatcher
        if self.head.method == b"GET" or self._may_be_repeated():
            upstream = dispatcher.take(self.route.origin, self)
        else:
            upstream = dispatcher.take_young(self.route.origin, self)
        if upstream is not None:
            self.reused = True
            self._send(upstream)
        else:
            self.client.set_deadline(self._context.timeouts.connect)
            dispatcher.request(self.route.origin, self)

    def _may_be_repeated(self) -> bool:
        """Return whether it is sure already that the request may be sent a second time."""
        return self.request_is_complete and self._kept_body is not None and self.head.method in _IDEMPOTENT

    def start_with(self, data: bytes) -> bytes:
        """Start with what came of the body: it leaves together with the head. Returns what lies beyond its end.

        Raises: `Rejected` when the coding is broken, before anything was sent.
        """
        body = self._request_body
        if body is not None and body.missing_bytes == len(data):  # by far the most frequent
            body.end()
            self.request_is_complete = True
            self.bytes_up = len(data)
            is_kept = self.head.method in _IDEMPOTENT and len(data) <= MAX_KEPT_BODY_BYTES
            self._kept_body = data if is_kept else None
            self._waiting = data
            rest = b""
        else:
            rest = self.on_request_data(data)
        self.start()
        return rest

    def on_lease(self, connection: UpstreamConnection) -> None:
        self.reused = connection.served > 0
        self._send(connection)

    def on_lease_failed(self, kind: ErrorResponse, reason: str = "") -> None:
        if self.phase is WAITING:  # the client may have left while this was under way
            self._fail_with(kind, reason)

    def log_fields(self) -> dict[str, str]:
        return {"request_id": self.client.request_id, "domain": self.head.fields.host}

    def _send(self, upstream: UpstreamConnection) -> None:
        self._upstream = upstream
        self.phase = SENT
        timeouts = self._context.timeouts
        self.client.set_deadline(timeouts.origin if self.request_is_complete else timeouts.body)
        if self._upstream_is_paused:  # the client was full before there was an upstream connection
            upstream.transport.pause_reading()
        if self._waiting:
            waiting, self._waiting = self._waiting, b""
            if len(waiting) > MAX_WAITING_BODY_BYTES:
                self.client.resume_reading()  # first: the write below may pause it again
            upstream.transport.write(self._upstream_head + waiting)
        else:
            upstream.transport.write(self._upstream_head)

    def on_request_data(self, data: bytes) -> bytes:
        """Bytes of the request's body, or of the tunnel. Returns what lies beyond the body's end.

        Raises: `Rejected` when the coding is broken; the exchange is not finished by that.
        """
        if self.phase is TUNNEL:
            self._pass_up(data)
            return b""
        body = self._request_body
        assert body is not None
        framed = self._frame(body, data)
        self.request_is_complete = body.is_complete
        if framed or body.is_complete:
            self._pass_up(framed)
        return body.rest

    def _frame(self, body: RequestBody, data: bytes) -> bytes:
        return body.frame(data)

    def _pass_up(self, data: bytes) -> None:
        self.bytes_up += len(data)
        if self._kept_body is not None and self.phase is not TUNNEL:
            is_kept = self.head.method in _IDEMPOTENT and len(self._kept_body) + len(data) <= MAX_KEPT_BODY_BYTES
            self._kept_body = self._kept_body + data if is_kept else None
        if self.phase is WAITING:
            self._waiting += data
            if len(self._waiting) > MAX_WAITING_BODY_BYTES:
                self.client.pause_reading()
        elif self._upstream is not None:
            self.client.set_deadline(self._patience())
            self._upstream.transport.write(data)

    # The way back ----------------------------------------------------------------------------------------

    def on_upstream_data(self, data: bytes) -> None:
        if self.phase is BODY:
            self._relay_body(data)
        elif self.phase is TUNNEL:
            timeouts = self._context.timeouts
            self.client.set_deadline(timeouts.body if self._is_half_closed else timeouts.tunnel)
            self.client.write(data)
            if len(data) >= BYTES_AT_ONCE:
                self._defer()
        else:
            try:
                self._read_head(data)
            except Rejected as error:
                if self._upstream is not None and self.reused:  # it may be what followed the response before
                    self._upstream.sent_unasked = True
                self._fail_with(error.response, error.reason)

    def _read_head(self, data: bytes) -> None:
        upstream = self._upstream
        # A response before the request's end: the rest of the request cannot be trusted to arrive, nor be skipped.
        keep_alive = self.head.fields.keep_alive and self.request_is_complete and not self._context.is_draining
        if upstream is not None and self.head.minor == 1 and not self._response_head:
            last = upstream.last_response
            if (
                last is not None
                and data.startswith(last[0])
                and last[1] is keep_alive
                and last[2] is (self.head.method == b"HEAD")
            ):
                self._client_keeps_alive = keep_alive
                self._respond(last[3], last[4], data[len(last[0]) :])
                return
            if self._recall(data, upstream, keep_alive=keep_alive):
                return
        searched = max(0, len(self._response_head) - 3) if data else 0
        interim_bytes = 0
        data = self._response_head + data
        self._response_head = b""
        while True:
            end = data.find(b"\r\n\r\n", searched) + 4
            if end < 4 or end > MAX_RESPONSE_HEAD_BYTES:
                check_incomplete_response(data, searched, MAX_RESPONSE_HEAD_BYTES)
                self._response_head = data
                return
            raw, data, searched = data[:end], data[end:], 0
            answer = response.parse(raw, self.head.method)
            if answer.idle_seconds:
                self._context.dispatcher.note_stated_idle_time(self.route.origin, answer.idle_seconds)
            if answer.status >= 200 or answer.status == 101:
                is_redirect = 300 < answer.status < 309
                if is_redirect and upstream is not None and self._ask_for_other_root(answer, upstream, data):
                    return
                self._respond(answer, self._rewrite(answer, raw, upstream, keep_alive=keep_alive), data)
                return
            self._relay_interim(answer)
            if not data:
                return
            interim_bytes += end
            if interim_bytes >= INTERIM_BYTES_AT_ONCE:
                self._response_head = data
                self._defer()
                return

    def _ask_for_other_root(self, answer: ResponseHead, upstream: UpstreamConnection, data: bytes) -> bool:
        """Ask for the root's other form where the origin redirects to it. Return False where the redirect is passed on.

        An origin that redirects from either form to the other is asked twice, not for ever. `data` follows the head.
        """
        head, route = self.head, self.route
        asked = self._upstream_head.split(b" ", 2)[1]
        other = root_redirects.other_root(route, head, asked, answer, self.client.scheme)
        if other is None or not root_redirects.tells_the_root(head, answer):
            return False
        self.client.forget_request()
        route.learnt_root.path = b"" if self._has_asked_again or other == route.base_path else other
        if self._has_asked_again or not root_redirects.can_be_asked_again(head):
            return False
        self._has_asked_again = True
        at = self._context.unix_seconds()
        self._upstream_head = retarget(route, head, self._upstream_head, other + head.target[1:], at)
        self._upstream = None
        upstream.answered_with_body = answer.body != 0
        if answer.keep_alive and answer.body == len(data):
            if self._upstream_is_paused:
                upstream.transport.resume_reading()
            self._context.dispatcher.give_back(upstream, self._context.time())
        else:
            self._context.dispatcher.drop(upstream)
        self.phase = WAITING
        self.start()
        return True

    def _recall(self, data: bytes, upstream: UpstreamConnection, *, keep_alive: bool) -> bool:
        """Respond with the head that `data` begins with, if it is like those that the origin sent before."""
        head = self.head
        is_for_head = head.method == b"HEAD"
        end = data.find(b"\r\n\r\n") + 4
        if not 4 < end <= MAX_REMEMBERED_BYTES:
            return False
        raw = data[:end]
        template = upstream.responses.find((raw[9:12], raw.count(b"\n"), is_for_head))
        if template is None or (raw[9:10] == b"3" and head.target[1:2] in (b"", b"?")):  # or `_ask_for_other_root`
            return False
        scheme, date_field = self.client.scheme, self._context.date_field
        found = template.rewrite(raw, head, self.route, scheme, date_field, keep_alive=keep_alive)
        if found is None:
            return False
        answer, rewritten = found
        if template.is_repeatable:
            upstream.last_response = raw, keep_alive, is_for_head, answer, rewritten
        self._client_keeps_alive = keep_alive
        self._respond(answer, rewritten, data[end:])
        return True

    def _rewrite(
        self, answer: ResponseHead, raw: bytes, upstream: UpstreamConnection | None, *, keep_alive: bool
    ) -> bytes:
        context, request = self._context, self.head
        rewritten = rewrite(answer, request, self.route, self.client.scheme, context.date_field, keep_alive=keep_alive)
        self._client_keeps_alive = rewritten.keep_alive
        if upstream is not None and request.minor == 1:
            is_for_head = request.method == b"HEAD"
            if rewritten.is_repeatable:
                upstream.last_response = raw, keep_alive, is_for_head, answer, rewritten.head
            if len(raw) <= MAX_REMEMBERED_BYTES:
                upstream.responses.add((raw[9:12], raw.count(b"\n"), is_for_head), raw, answer, request)
        return rewritten.head

    def _relay_interim(self, answer: ResponseHead) -> None:
        self._interim_count += 1
        if self._interim_count > MAX_INTERIM_RESPONSES:
            raise Rejected(ORIGIN_INVALID)
        self.client.set_deadline(self._patience())
        if self.head.minor == 1:  # RFC 9110 §15.2: never to an HTTP/1.0 client
            self.client.write(rewrite_interim(answer, self.head, self.route, self.client.scheme))

    def _respond(self, answer: ResponseHead, sent: bytes, data: bytes) -> None:
        """The final head is known and `data` follows it."""
        self._response = answer
        self.status = answer.status
        if answer.status == 101:
            self._open_tunnel(answer, sent, data)
            return
        self.phase = BODY
        if answer.body == len(data):  # by far the most frequent
            if self._client_keeps_alive:
                self.client.write(sent + data)
            else:
                self.client.write_last(sent + data)
            self._complete(reusable=True)
            return
        self.answered_at = self._context.time()
        fields = self.head.fields
        self._response_body = ResponseBody(answer.body, self.head.minor, takes_trailers=fields.takes_trailers)
        self._relay_body(data, sent)

    def _relay_body(self, data: bytes, sent: bytes = b"") -> None:
        """`sent`: the head, which goes down first."""
        body = self._response_body
        assert body is not None
        try:
            sent += body.frame(data)
        except Rejected:
            if sent:
                self.client.write(sent)
            self._break_off()
            return
        if not body.is_complete:
            self.client.set_deadline(self._patience())
        if sent:
            self.client.write(sent)
        if body.is_complete:
            self._complete(reusable=not body.has_excess)
        elif body.has_more or len(data) >= BYTES_AT_ONCE:
            self._defer()

    def _defer(self) -> None:
        """Give up the loop before more of the response is relayed."""
        if self._upstream is not None:
            self._upstream.transport.pause_reading()
        if not self._is_deferred:
            self._is_deferred = True
            self._lost_in_order = None
            self._context.deferred.add(self._go_on)

    def _go_on(self) -> None:
        self._is_deferred = False
        if self.phase is FINISHED:
            return
        if self._upstream is not None and not self._upstream_is_paused:
            self._upstream.transport.resume_reading()
        if self.phase is SENT or (self._response_body is not None and self._response_body.has_more):
            self.on_upstream_data(b"")
        if self._lost_in_order is not None and not self._is_deferred and not self._is_finished():
            self.on_upstream_lost(in_order=self._lost_in_order)

    def _is_finished(self) -> bool:
        return self.phase is FINISHED

    def _open_tunnel(self, answer: ResponseHead, sent: bytes, data: bytes) -> None:
        """RFC 9110 §7.8: the origin may switch only to what the client offered."""
        offered = {name.strip().lower() for name in self.head.fields.upgrade.split(b",")} - {b""}
        chosen = {name.strip().lower() for name in answer.upgrade.split(b",")} - {b""}
        if not chosen or not chosen <= offered:
            self.status = 0
            raise Rejected(ORIGIN_INVALID)
        self.phase = TUNNEL
        self.answered_at = self._context.time()
        self.client.set_deadline(self._context.timeouts.tunnel)
        self.client.write(sent + data)
        self.client.on_tunnel()

    def _patience(self) -> float:
        """Seconds to wait for the next sign of progress."""
        timeouts = self._context.timeouts
        if self.phase is SENT:
            return timeouts.origin if self.request_is_complete else timeouts.body
        return timeouts.tunnel if self.phase is TUNNEL and not self._is_half_closed else timeouts.body

    # Backpressure ------------------------------------------------------------------------------------------

    def on_upstream_full(self) -> None:
        self.client.pause_reading()

    def on_upstream_ready(self) -> None:
        self.client.resume_reading()

    def on_client_full(self) -> None:
        self._upstream_is_paused = True
        self.client.set_deadline(self._context.timeouts.body)
        if self._upstream is not None:
            self._upstream.transport.pause_reading()

    def on_client_ready(self) -> None:
        self._upstream_is_paused = False
        if self._upstream is not None:
            self.client.set_deadline(self._patience())
            if not self._is_deferred:
                self._upstream.transport.resume_reading()

    # Ends --------------------------------------------------------------------------------------------------

    def on_upstream_eof(self) -> bool:
        """The origin sends no more. Whether it may still be sent to: in a tunnel, each side ends by itself."""
        if self.phase is not TUNNEL or not self.client.end_writing():
            return False  # the connection's end follows, and decides
        self._is_half_closed = True
        self.client.set_deadline(self._patience())
        return True

    def on_upstream_lost(self, *, in_order: bool) -> None:
        upstream, self._upstream = self._upstream, None
        if self._is_deferred:  # what came before the end is relayed first
            self._lost_in_order = in_order
        elif self.phase is SENT:
            self._repeat_or_refuse(upstream)
        elif self.phase is TUNNEL:
            # What came before is the client's in any case: a WebSocket's last frame, then a reset.
            if not (in_order or self._is_half_closed):
                self.failure = CUT_OFF
            self._end(LAST)
        elif in_order and self._response_body is not None and (last := self._response_body.end()) is not None:
            if last:
                self.client.write(last)
            self._complete(reusable=False)
        else:
            self._break_off()

    def _repeat_or_refuse(self, upstream: UpstreamConnection | None) -> None:
        """No final response came. `upstream` is None where interim responses did, whose relay was deferred."""
        is_unanswered = not self._response_head and not self._interim_count
        if upstream is not None and is_unanswered:
            self._context.dispatcher.note_unanswered(upstream)
            if self._may_retry(upstream):
                self._retried = True
                self.phase = WAITING
                self._waiting = self._kept_body or b""
                self.client.set_deadline(self._context.timeouts.connect)
                self._context.dispatcher.request(self.route.origin, self)
                return
        refusal = ORIGIN_INVALID if self._response_head else ORIGIN_DOWN
        self._fail_with(refusal, "the origin closed the connection before the end of its response's head")

    def _may_retry(self, upstream: UpstreamConnection) -> bool:
        """Return whether to send the request once more, on another connection (RFC 9110 §9.2.2). No byte of a response
        came on this one.

        The origin may have closed a reused connection just as we wrote; at a new one, another of the origin's addresses
        may serve. So a request is repeated once, if its method is idempotent and its whole body is kept.
        """
        return (
            (self.reused or upstream.has_alternatives)
            and not self._retried
            and self._kept_body is not None
            and self.head.method in _IDEMPOTENT
        )

    def on_client_eof(self) -> None:
        """The client's input has ended. A tunnel's other side is half-closed too; a response still goes down."""
        upstream = self._upstream
        if self.phase is not TUNNEL or upstream is None:
            return
        self._is_half_closed = True
        self.client.set_deadline(self._patience())
        if upstream.has_ended or not upstream.transport.can_write_eof():  # TLS has no half-closed connections
            upstream.transport.close()
        else:
            upstream.transport.write_eof()

    def on_deadline(self) -> None:
        """No progress for too long."""
        if self.phase is WAITING:
            self._fail_with(ORIGIN_SLOW, "no connection to the origin in time")
        elif self.phase is SENT:
            if self._is_origins_turn:
                self._fail_with(ORIGIN_SLOW, f"the origin did not answer for {self._patience():g} s")
            else:
                self._fail_with(REQUEST_TIMEOUT)
        else:
            self._break_off()

    @property
    def _is_origins_turn(self) -> bool:
        """Whether it is the origin that makes no progress: with the answer, reading the body, or the 100 asked for."""
        upstream = self._upstream
        if self.request_is_complete or (upstream is not None and upstream.transport.get_write_buffer_size()):
            return True
        is_begun = self._request_body is not None and self._request_body.is_begun
        return self.head.fields.expects_continue and not is_begun and not self._interim_count

    def on_client_disconnected(self) -> None:
        """As `cancel`. A tunnel may well end like that; everything else is incomplete."""
        if self.failure is None and self.phase is not TUNNEL:
            self.failure = CLIENT_DISCONNECTED
            self.status = self.status or CLIENT_DISCONNECTED.status
        self.cancel()

    def cancel(self) -> None:
        """The client's side ends the exchange: the origin need not go on."""
        if self.failure is None:
            self.failure = CUT_OFF
        self._end(CANCELLED)

    def _complete(self, *, reusable: bool) -> None:
        """The response went down to its last byte. `reusable`: none came beyond it."""
        answer, upstream = self._response, self._upstream
        assert answer is not None
        if upstream is not None:
            upstream.answered_with_body = answer.body != 0
            if not reusable:
                upstream.sent_unasked = True
        is_whole = self.request_is_complete
        ending = COMPLETE if is_whole and self._client_keeps_alive else LAST
        self._end(ending, reusable=reusable and is_whole and answer.keep_alive)

    def _fail_with(self, refusal: ErrorResponse, reason: str = "") -> None:
        self.reason = reason
        self.status, self.failure = refusal.status, refusal
        if refusal is ORIGIN_INVALID:
            self._context.dispatcher.note_invalid(self.route.origin)
        self._end(REFUSED)

    def _break_off(self) -> None:
        """Part of a response is with the client: the connection must end so that the client sees it is incomplete."""
        body = self._response_body
        self.failure = CUT_OFF
        self._end(CUT_BY_RESET if body is not None and body.ends_by_close else CUT)

    def _end(self, ending: Ending, *, reusable: bool = False) -> None:
        """The end of every exchange. `reusable`: whether the upstream connection can serve another."""
        assert self.phase is not FINISHED, "an exchange ends once"
        self.ended_at = self._context.time()
        upstream, self._upstream = self._upstream, None
        if upstream is None:
            if self.phase is WAITING:
                self._context.dispatcher.withdraw(self.route.origin, self)
        elif reusable and not (self.head.fields.body and upstream.transport.get_write_buffer_size()):
            if self._upstream_is_paused:
                upstream.transport.resume_reading()
            self._context.dispatcher.give_back(upstream, self.ended_at)
        else:
            self._context.dispatcher.drop(upstream)
        self.phase = FINISHED
        self.client.on_exchange_end(ending)
