"""One exchange: a request on its way to an origin, the response on its way back, and how both end.

The way there is `edge.proxy.request_relay`'s and the way back `edge.proxy.response_relay`'s. The phases are those of
`edge.proxy.exchange_states`. Every exchange ends in `_end`, which calls the client's side once.
"""

from __future__ import annotations

from edge.http.error_responses import (
    CLIENT_DISCONNECTED,
    CUT_OFF,
    ORIGIN_DOWN,
    ORIGIN_INVALID,
    ORIGIN_SLOW,
    REQUEST_TIMEOUT,
    ErrorResponse,
)
from edge.http.request import RequestHead
from edge.http.request_body import RequestBody
from edge.http.response import ResponseHead
from edge.http.response_body import ResponseBody
from edge.proxy.client_side import ClientSide
from edge.proxy.exchange_context import ExchangeContext
from edge.proxy.exchange_states import (
    BROKEN_OFF,
    BROKEN_OFF_BY_RESET,
    CANCELLED,
    COMPLETE,
    LAST,
    REFUSED,
    SENT,
    TUNNEL,
    WAITING,
    Ending,
)
from edge.proxy.response_relay import ResponseRelay
from edge.routing.route import Route
from edge.upstream.connection import UpstreamConnection


class Exchange(ResponseRelay):
    """One request and its response. Created by a client connection for a request, dropped by it when finished.

    `started_at` is monotonic.
    """

    __slots__ = (
        "ended_at",
        "failure",
        "reason",
        "started_at",
    )

    ended_at: float  # monotonic; set by the end

    def __init__(
        self,
        client: ClientSide,
        context: ExchangeContext,
        head: RequestHead,
        route: Route,
        upstream_head: bytes,
        started_at: float,
    ) -> None:
        # the request's half
        self.head = head
        self.route = route
        self.phase = WAITING
        self.client = client
        self.bytes_up = 0
        self.reused = False
        size = head.fields.body
        self.request_is_complete = size == 0
        self._request_body = RequestBody(size, context.max_body_bytes) if size else None
        self._context = context
        self._upstream: UpstreamConnection | None = None
        self._upstream_head = upstream_head
        self._upstream_is_paused = False
        self._kept_body: bytes | None = b""
        self._waiting = b""
        self._retried = False
        # the response's
        self.status = 0
        self.failure: ErrorResponse | None = None  # why it did not end well: the refusal, or one that is no response
        self.reason = ""  # of a failure, for the operator
        self.started_at = started_at
        self.answered_at = 0.0
        self._client_keeps_alive = False
        self._has_requested_other_root = False
        self._interim_count = 0
        self._is_half_closed = False
        self._is_deferred = False
        self._response_head = b""
        self._response: ResponseHead | None = None
        self._response_body: ResponseBody | None = None

    def __repr__(self) -> str:
        return f"<Exchange {self.head.method.decode()} {self.head.fields.host} {self.phase.name}>"

    # Ends by the origin -----------------------------------------------------------------------------------

    def on_upstream_eof(self) -> bool:
        """End the client's side of a tunnel. Return whether the origin may still be sent to: each side ends by itself.

        Without a tunnel the connection's end follows, and decides.
        """
        if self.phase is not TUNNEL or not self.client.end_writing():
            return False
        self._is_half_closed = True
        self.client.set_deadline(self._progress_timeout())
        return True

    def on_upstream_lost(self, *, in_order: bool) -> None:
        """End the response where the origin ended it, send the request again, or refuse it."""
        upstream, self._upstream = self._upstream, None
        if self._is_deferred:  # what came before the end is relayed first
            self._lost_in_order = in_order
        elif self.phase is SENT:
            self._retry_or_refuse(upstream)
        elif self.phase is TUNNEL:
            # What came before is the client's in any case: a WebSocket's last frame, then a reset.
            if not (in_order or self._is_half_closed):
                self.failure = CUT_OFF
            self._end(LAST)
        elif in_order and self._response_body is not None and (last := self._response_body.end()) is not None:
            if last:
                self.client.write(last)
            self._complete(False)
        else:
            self._break_off()

    def _retry_or_refuse(self, upstream: UpstreamConnection | None) -> None:
        """Act on the lack of a final response. `upstream` is None where interim ones came, whose relay was deferred."""
        is_unanswered = not self._response_head and not self._interim_count
        if upstream is not None and is_unanswered:
            self._context.dispatcher.note_unanswered(upstream)
            if self._may_retry(upstream):
                self._retry()
                return
        refusal = ORIGIN_INVALID if self._response_head else ORIGIN_DOWN
        self._fail_with(refusal, "the origin closed the connection before the end of its response's head")

    # Ends by the client -----------------------------------------------------------------------------------

    def on_client_eof(self) -> None:
        """Half-close a tunnel's other side, too, at the end of the client's input; a response still goes down."""
        upstream = self._upstream
        if self.phase is not TUNNEL or upstream is None:
            return
        self._is_half_closed = True
        self.client.set_deadline(self._progress_timeout())
        if upstream.has_ended or not upstream.transport.can_write_eof():  # TLS has no half-closed connections
            upstream.transport.close()
        else:
            upstream.transport.write_eof()

    def on_deadline(self) -> None:
        """End the exchange: no progress for too long."""
        if self.phase is WAITING:
            self._fail_with(ORIGIN_SLOW, "no connection to the origin in time")
        elif self.phase is SENT:
            if self._is_waiting_for_origin:
                self._fail_with(ORIGIN_SLOW, f"the origin did not answer for {self._progress_timeout():g} s")
            else:
                self._fail_with(REQUEST_TIMEOUT)
        else:
            self._break_off()

    @property
    def _is_waiting_for_origin(self) -> bool:
        """Return whether it is the origin that makes no progress.

        It may owe the answer, reading of the body, or the 100 that was asked for.
        """
        upstream = self._upstream
        if self.request_is_complete or (upstream is not None and upstream.transport.get_write_buffer_size()):
            return True
        is_begun = self._request_body is not None and self._request_body.is_begun
        return self.head.fields.expects_continue and not is_begun and not self._interim_count

    def on_client_disconnected(self) -> None:
        """Cancel the exchange. A tunnel may well end like that; everything else is incomplete."""
        if self.failure is None and self.phase is not TUNNEL:
            self.failure = CLIENT_DISCONNECTED
            self.status = self.status or CLIENT_DISCONNECTED.status
        self.cancel()

    def cancel_with(self, refusal: ErrorResponse) -> bool:
        """Cancel the exchange: its request is invalid. Return whether `refusal` can be sent: no response has begun."""
        can_respond = not self.status
        if can_respond:
            self.status, self.failure = refusal.status, refusal
        self.cancel()
        return can_respond

    def cancel(self) -> None:
        """End the exchange for the client's side, which decides what follows: the origin need not go on."""
        if self.failure is None:
            self.failure = CUT_OFF
        self._end(CANCELLED)

    # The end ----------------------------------------------------------------------------------------------

    def _complete(self, reusable: bool) -> None:
        """End the exchange: the response went down to its last byte. `reusable`: none came beyond it."""
        answer, upstream = self._response, self._upstream
        assert answer is not None
        if not reusable and upstream is not None:
            upstream.note_unsolicited_bytes()
        is_whole = self.request_is_complete
        ending = COMPLETE if is_whole and self._client_keeps_alive else LAST
        self._end(ending, reusable and is_whole and answer.keep_alive)

    def _fail_with(self, refusal: ErrorResponse, reason: str = "") -> None:
        self.reason = reason
        self.status, self.failure = refusal.status, refusal
        if refusal is ORIGIN_INVALID:
            self._context.dispatcher.note_invalid(self.route.origin)
        self._end(REFUSED)

    def _break_off(self) -> None:
        """End the exchange so that the client sees that the response is incomplete: its connection ends."""
        body = self._response_body
        self.failure = CUT_OFF
        self._end(BROKEN_OFF_BY_RESET if body is not None and body.ends_by_close else BROKEN_OFF)

    def _end(self, ending: Ending, reusable: bool = False) -> None:
        """End the exchange, once. `reusable`: whether the upstream connection can serve another."""
        phase = self.phase
        self.phase = phase.on_end
        self.ended_at = self._context.time()
        upstream, self._upstream = self._upstream, None
        if upstream is None:
            if phase is WAITING:
                self._context.dispatcher.withdraw(self.route.origin, self)
        elif reusable and not (self.head.fields.body and upstream.transport.get_write_buffer_size()):
            if self._upstream_is_paused:
                upstream.transport.resume_reading()
            assert self._response is not None
            self._context.dispatcher.give_back(upstream, self.ended_at, self._response.body != 0)
        else:
            self._context.dispatcher.drop(upstream)
        self.client.on_exchange_end(ending)
