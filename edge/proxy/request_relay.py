"""A request on its way to an origin: the lease, the head and the body, and a second try.

Nothing waits in memory but what comes before the lease, which is bounded by pausing the client. How the body is framed
is `edge.http.request_body`'s. The way back, and every end, is `edge.proxy.exchange`'s.
"""

from __future__ import annotations

from typing import Final

from edge.http.error_responses import ErrorResponse
from edge.http.request import RequestHead
from edge.http.request_body import RequestBody
from edge.proxy.client_side import ClientSide
from edge.proxy.exchange_context import ExchangeContext
from edge.proxy.exchange_states import TUNNEL, WAITING, Phase
from edge.routing.request_rewriting import retarget
from edge.routing.route import Route
from edge.upstream.connection import UpstreamConnection

# What may wait in memory for a lease before the client is paused.
MAX_WAITING_BODY_BYTES: Final = 65_536

# How much of a request's body is kept for a second try.
MAX_KEPT_BODY_BYTES: Final = 65_536

_IDEMPOTENT: Final = frozenset({b"GET", b"HEAD", b"OPTIONS", b"PUT", b"DELETE"})  # RFC 9110 §9.2.2


class RequestRelay:
    """The request's half of an exchange.

    `Exchange` sets all fields: a constructor of each class would cost every request 1 %.
    """

    __slots__ = (
        "_context",
        "_kept_body",
        "_request_body",
        "_retried",
        "_upstream",
        "_upstream_head",
        "_upstream_is_paused",
        "_waiting",
        "bytes_up",
        "client",
        "head",
        "phase",
        "request_is_complete",
        "reused",
        "route",
    )

    client: ClientSide
    head: RequestHead
    route: Route
    phase: Phase
    bytes_up: int  # of the body or the tunnel, as passed on
    request_is_complete: bool  # as `_request_body` states it: asked for three times a request
    reused: bool  # the upstream connection had served before
    _context: ExchangeContext
    _upstream: UpstreamConnection | None
    _upstream_head: bytes
    _upstream_is_paused: bool  # the client takes no more
    _request_body: RequestBody | None
    _kept_body: bytes | None  # framed, as consumed so far; None: not to be sent again
    _waiting: bytes  # body, framed, that came before the lease
    _retried: bool

    @property
    def missing_bytes(self) -> int:
        """Return how much of the request's body is certainly still to come."""
        return self._request_body.missing_bytes if self._request_body is not None else 0

    @property
    def has_unread_body(self) -> bool:
        """Return whether `on_request_data` without data reads on in what it was given."""
        return self._request_body is not None and self._request_body.has_more

    # The lease --------------------------------------------------------------------------------------------

    def start(self) -> None:
        """Send the request on an idle connection, or ask for a lease."""
        dispatcher = self._context.dispatcher
        if self.head.method == b"GET" or self._is_repeatable():
            upstream = dispatcher.take(self.route.origin, self)
        else:
            upstream = dispatcher.take_young(self.route.origin, self)
        if upstream is not None:
            self.reused = True
            self._send(upstream)
        else:
            self._request_lease()

    def _request_lease(self) -> None:
        self.client.set_deadline(self._context.timeouts.connect)
        self._context.dispatcher.request(self.route.origin, self)

    def start_with(self, data: bytes) -> bytes:
        """Start with what came of the body: it leaves together with the head. Return what lies beyond its end.

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
        """Send the request on the connection that was asked for."""
        self.reused = connection.served > 0
        self._send(connection)

    def on_lease_failed(self, kind: ErrorResponse, reason: str = "") -> None:
        """Refuse the request: there is no connection."""
        if self.phase is WAITING:  # the client may have left while this was under way
            self._fail_with(kind, reason)

    def log_fields(self) -> dict[str, str]:
        """Return what names the request in log lines."""
        return {"request_id": self.client.request_id, "domain": self.head.fields.host}

    def _send(self, upstream: UpstreamConnection) -> None:
        self._upstream = upstream
        self.phase = self.phase.on_send
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

    # The body ---------------------------------------------------------------------------------------------

    def on_request_data(self, data: bytes) -> bytes:
        """Pass on bytes of the request's body, or of the tunnel. Return what lies beyond the body's end.

        Raises: `Rejected` when the coding is broken; the exchange is not finished by that.
        """
        if self.phase is TUNNEL:
            self._forward_upstream(data)
            return b""
        body = self._request_body
        assert body is not None
        framed = self._frame(body, data)
        self.request_is_complete = body.is_complete
        if framed or body.is_complete:
            self._forward_upstream(framed)
        return body.rest

    def _frame(self, body: RequestBody, data: bytes) -> bytes:
        return body.frame(data)

    def _forward_upstream(self, data: bytes) -> None:
        self.bytes_up += len(data)
        if self._kept_body is not None and self.phase is not TUNNEL:
            is_kept = self.head.method in _IDEMPOTENT and len(self._kept_body) + len(data) <= MAX_KEPT_BODY_BYTES
            self._kept_body = self._kept_body + data if is_kept else None
        if self.phase is WAITING:
            self._waiting += data
            if len(self._waiting) > MAX_WAITING_BODY_BYTES:
                self.client.pause_reading()
        elif self._upstream is not None:
            self.client.set_deadline(self._progress_timeout())
            self._upstream.transport.write(data)

    def on_upstream_full(self) -> None:
        """Take no more of the request: the origin does not read."""
        self.client.pause_reading()

    def on_upstream_ready(self) -> None:
        """Take the request again."""
        self.client.resume_reading()

    # Once more --------------------------------------------------------------------------------------------

    def _is_repeatable(self) -> bool:
        """Return whether it is sure already that the request may be sent a second time."""
        return self.request_is_complete and self._kept_body is not None and self.head.method in _IDEMPOTENT

    def _may_retry(self, upstream: UpstreamConnection) -> bool:
        """Return whether to send the request once more, on another connection (RFC 9110 §9.2.2).

        No byte of a response came on this one. The origin may have closed a reused connection just as we wrote; at a
        new one, another of the origin's addresses may serve. So a request is repeated once, if its method is idempotent
        and its whole body is kept.
        """
        return (
            (self.reused or upstream.has_alternatives)
            and not self._retried
            and self._kept_body is not None
            and self.head.method in _IDEMPOTENT
        )

    def _retry(self) -> None:
        self._retried = True
        self.phase = self.phase.on_repeat
        self._waiting = self._kept_body or b""
        self._request_lease()

    def _start_at(self, path: bytes) -> None:
        """Send the request, which has no body, again: for the other form of the root."""
        target, at = path + self.head.target[1:], self._context.unix_seconds()
        self._upstream_head = retarget(self.route, self.head, self._upstream_head, target, at)
        self.phase = self.phase.on_repeat
        self.start()

    # By `Exchange` ----------------------------------------------------------------------------------------

    def on_upstream_data(self, data: bytes) -> None:
        """Take bytes of the response."""
        raise NotImplementedError

    def on_upstream_eof(self) -> bool:
        """Take the end of the origin's bytes. Return whether it may still be sent to."""
        raise NotImplementedError

    def on_upstream_lost(self, *, in_order: bool) -> None:
        """Take the end of the upstream connection."""
        raise NotImplementedError

    def _progress_timeout(self) -> float:
        """Return how many seconds to wait for the next sign of progress."""
        raise NotImplementedError

    def _fail_with(self, refusal: ErrorResponse, reason: str = "") -> None:
        """End the exchange: nothing of a response has gone down."""
        raise NotImplementedError
