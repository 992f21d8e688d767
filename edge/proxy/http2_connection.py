"""A client's connection in HTTP/2: requests in, an exchange for each, responses out, all in one write a loop turn.

`Http2Connection` reads and writes the protocol; a request becomes the head of HTTP/1.1 that means the same, and goes
the way of every request from there (`RequestMemory`, `respond`, `Exchange`). `Http2Stream` is each exchange's client.

A connection has no more exchanges with an origin than six connections of HTTP/1.1 would, unless the origin has room in
plenty; other requests wait here. What streams have to send is written at the end of a turn of the loop,
bounded by what the transport takes (`edge.proxy.http2_writing`). Draining sends GOAWAY twice (RFC 9113 §6.8).
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Final, cast

from common.logs import get_logger
from edge.http import request, request_ids
from edge.http.error_responses import HEAD_TOO_LARGE, ErrorResponse, Rejected
from edge.http.request import RequestHead
from edge.http2.connection import Http2Connection
from edge.http2.errors import ConnectionFailed, ErrorCode, StreamFailed
from edge.http2.streams import CLOSED, Stream
from edge.proxy.buffered_exchange import BufferedExchange
from edge.proxy.connection_states import ENDED, READING
from edge.proxy.exchange import Exchange
from edge.proxy.http2_stream import NEVER, Http2Stream, as_http2
from edge.proxy.http2_writing import Http2Writing
from edge.proxy.refusals import render_refusal
from edge.proxy.request_memory import KnownRequest, RequestMemory
from edge.proxy.worker_context import WorkerContext
from edge.routing.request_rewriting import sign
from edge.routing.respond import Forward, Reply, respond

FAIR_EXCHANGES: Final = 6
"""At once, as many as a browser opens connections of HTTP/1.1."""

OVERDUE_AT_ONCE: Final = 8
"""Streams that are ended for lack of progress in one turn of the loop: each may cost a tenth of a millisecond."""

_HEAD_ENDS: Final = b"\r\n\r\n"

_log = get_logger("edge.proxy")


class Http2ClientConnection(Http2Writing):
    """Serves one connection, inside TLS.

    `deadline` is the first of its streams', of a head's and of an idle connection's, which comes sooner once: see
    `FORGET_SECONDS`.
    """

    __slots__ = (
        "_is_starting",
        "_memory",
        "_ready",
        "running",
        "waiting",
    )

    protocol = "HTTP/2"

    def __init__(self, worker: WorkerContext) -> None:
        super().__init__(worker, secure=True)
        self.head_encoder = worker.head_encoder
        self._http2 = Http2Connection(self, worker.literals, max_head_bytes=worker.limits.head_bytes)
        self._memory: RequestMemory = cast("RequestMemory", None)
        self._is_flush_due = False
        self._is_receiving = False
        self._is_starting = False
        self.running = 0  # exchanges that have started
        self._ready: list[Http2Stream] = []  # to be started once all that came is read
        self.waiting: list[Http2Stream] = []  # for the connection's own exchanges to end; a deque takes 760 octets
        self._idle_deadline = NEVER
        self._head_deadline = self._read_by = NEVER

    def __repr__(self) -> str:
        return f"<Http2ClientConnection {self.state.name} {self._http2}>"

    # Called by the transport ------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Announce our settings, and wait for the client's."""
        super().connection_made(transport)
        worker = self._worker
        worker.counters.http2.accepted += 1
        self._memory = self._new_memory()
        self._head_deadline = self.deadline
        if self._place is None:
            self.abort()
            return
        if worker.exchanges.is_draining:
            self.expect_last_request()
        self.flush_soon()

    def data_received(self, data: bytes) -> None:
        """Read frames, and act on what they ask for."""
        if self.state is not READING:
            return
        http2 = self._http2
        self._is_receiving = True
        if http2.receive(data) and http2.streams:  # by far the most frequent
            self._is_receiving = False
            return
        if self._ready:
            ready, self._ready = self._ready, []
            for stream in ready:
                self._start(stream)
        self._is_receiving = False
        self._after_input()

    def eof_received(self) -> bool:
        """End the connection: a client of HTTP/2 does not half-close it."""
        self._input = ENDED
        self._cancel_exchanges(disconnected=True)
        if self.state is READING:
            self._close_at_once()
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection and what waits on it."""
        super().connection_lost(exc)
        self._ready.clear()
        self._http2.abandon()

    def _after_input(self) -> None:
        """See what is to be done about what was read."""
        http2 = self._http2
        if http2.failure is not None:
            self._end(http2.failure)
            return
        if http2.is_between_frames:
            self._head_deadline = NEVER
        else:
            self._after_part()
        if http2.has_output:
            self.flush_soon()
        if not http2.streams:
            self._become_idle()

    def _after_part(self) -> None:
        """See what is to be done about a frame or header block whose end is not here, or not read."""
        http2 = self._http2
        if http2.has_more:
            self._defer()
        uploading = http2.uploading_stream
        if isinstance(uploading, Http2Stream):  # a slow upload is not a stalled one
            uploading.wait_for_client()
        if not http2.is_in_head:
            self._head_deadline = NEVER
        elif self._head_deadline == NEVER:
            self._head_deadline = self._worker.now + self._worker.head_seconds
            self.deadline = min(self.deadline, self._head_deadline)

    def _resume_deferred(self) -> None:
        self._is_deferred = False
        if self.state is not READING:
            return
        if self._reads_afterwards:
            self._resume_input()
        self.data_received(b"")

    def _end(self, failure: ConnectionFailed) -> None:
        """End the connection for what its client did; the last frame is GOAWAY."""
        self._worker.counters.http2.ended(failure.budget or failure.code.name.lower())
        _log.info(
            "HTTP/2 connection ended",
            client=self._client.address,
            code=failure.code.name,
            reason=failure.reason,
            budget=failure.budget or None,
        )
        self._write_last(b"".join(self._http2.take_output(0)))
        self._close(lingers=True)

    # Deadlines --------------------------------------------------------------------------------------------

    def on_deadline(self) -> None:
        """End what makes no progress: the connection, a head, or streams."""
        now = self._worker.now
        if self._read_by < now:
            if not self._is_client_reading():
                self.abort()
                return
            self._expect_reading()
        if self.state is READING and now <= self._head_deadline and now <= self._idle_deadline < NEVER:
            self._http2.forget_requests()  # idle for a while, and nothing is late
            self._memory = self._new_memory()
            self._update_deadline()
            return
        if self.state is not READING or (self._transport.is_closing() and not self._is_client_reading()):
            self.abort()
            return
        if self._head_deadline < now:
            self._http2.fail(ConnectionFailed(ErrorCode.ENHANCE_YOUR_CALM, "a frame did not end in time", "slow_heads"))
            self._after_input()
            return
        if self._idle_deadline < now:
            self._http2.go_away(is_final=True)
            self._flush()
            return
        self._end_overdue([stream for stream in self._streams() if stream.deadline < now])

    def _end_overdue(self, streams: list[Http2Stream]) -> None:
        """End streams that make no progress: some now, the others in later turns of the loop."""
        if self.state is not READING:
            return
        now = self._worker.now
        for stream in streams[:OVERDUE_AT_ONCE]:
            if stream.deadline >= now or stream.state is CLOSED:  # so since the turn in which it was late
                continue
            if self._is_full:  # the client reads, if slowly
                stream.wait_for_client()
            else:
                stream.on_deadline()
        if len(streams) > OVERDUE_AT_ONCE:
            self._worker.deferred.add(partial(self._end_overdue, streams[OVERDUE_AT_ONCE:]))
        if self.state is READING:
            self._update_deadline()

    def _update_deadline(self) -> None:
        streams = [stream.deadline for stream in self._streams()]
        self.deadline = min(self._idle_deadline, self._head_deadline, self._read_by, *streams)

    def expect_last_request(self) -> None:
        """Announce that the connection ends (RFC 9113 §6.8)."""
        if self.state is READING and self._transport is not None and not self._http2.is_going_away:
            self._http2.go_away(is_final=False)
            self.flush_soon()
            announcements = self._worker.announcements
            self._worker.loop.call_later(self._worker.final_goaway_seconds, announcements.add, self._go_away)

    def _go_away(self) -> None:
        if self.state is READING:
            self._http2.go_away(is_final=True)
            self.flush_soon()

    # Requests ---------------------------------------------------------------------------------------------

    def open_stream(self, stream_id: int, send_window: int) -> Stream:
        """Make a stream that the client opens."""
        self._idle_deadline = NEVER
        return Http2Stream(self, self._worker, stream_id, send_window)

    def on_blame(self, fault: StreamFailed) -> None:
        """Count a stream that was reset for what the client did, as with a malformed request."""
        self._worker.counters.http2.reset(fault.code.name.lower())
        _log.debug("HTTP/2 stream reset", client=self._client.address, code=fault.code.name, reason=fault.reason)

    def on_failure(self, streams: list[Stream]) -> None:
        """Cancel the exchanges of streams that the connection's failure closed."""
        self.waiting.clear()
        self._cancel_soon(cast("list[Http2Stream]", streams), disconnected=True)

    def on_request(self, stream: Http2Stream, head: bytes, *, is_complete: bool) -> None:
        """Forward or answer a request, `head` in HTTP/1.1."""
        memory = self._memory
        is_known = memory.recall_upload(head) is not None if head[:1] == b"P" else memory.recall(head)
        if is_known:
            self._begin(stream, memory, is_complete)
        else:
            self._decide(stream, head, is_complete=is_complete)
        memory.drop_octets()

    def last_request(self) -> KnownRequest | None:
        """Return the last request, if others like it are forwarded without their heads."""
        return self._memory.last_request()

    def has_kept(self, request: KnownRequest, kept: bytes) -> bool:
        """Return whether these are all fields that went on: a client's own request id does not."""
        return request.head.kept == kept

    def on_similar_request(
        self, stream: Http2Stream, request: KnownRequest, path: bytes, head_bytes: int, kept: bytes | None = None
    ) -> bool:
        """Forward a request that is like that one; return False where its head is needed."""
        memory = self._memory
        if not memory.recall_similar(request, path, head_bytes, kept):
            return False
        self._begin(stream, memory, True)
        memory.upstream_head = b""  # as `drop_octets` does
        return True

    def _new_memory(self) -> RequestMemory:
        recent = self._worker.recent_http2_requests[self._client.is_trusted]
        return RequestMemory(recent, self._client, self._server_name)

    def _decide(self, stream: Http2Stream, raw: bytes, *, is_complete: bool) -> None:
        """Decide upon a request that is like none before."""
        worker = self._worker
        self._memory.forget()  # the last request is not the one that it holds, unless that is remembered below
        if len(raw) > worker.limits.head_bytes:  # before a pattern goes over what a small block unfolded to
            self.refuse(stream, HEAD_TOO_LARGE, None, raw[: worker.limits.head_bytes])
            return
        try:
            head = as_http2(request.parse(raw, worker.limits))
        except Rejected as error:
            self.refuse(stream, error.response, None, raw)
            return
        outcome = respond(head, worker.lookup, self._listening, self._client, self._server_name)
        if type(outcome) is Forward:
            self._memory.remember(raw, outcome)
            self._begin(stream, outcome, is_complete)
        elif type(outcome) is Reply:
            self._reply(stream, outcome, head)
        else:
            assert isinstance(outcome, ErrorResponse)
            self.refuse(stream, outcome, head, raw)

    def _begin(self, stream: Http2Stream, forward: Forward | RequestMemory, is_complete: bool) -> None:
        """Begin the exchange of a request that is forwarded. Raises: `StreamFailed`."""
        worker = self._worker
        head, route, upstream_head = forward.head, forward.route, forward.upstream_head
        if route.signing is not None:
            upstream_head = sign(route.signing, head, upstream_head, worker.unix_seconds())
        if worker.assigns_request_ids:
            stream.given_id, upstream_head = request_ids.identify(
                head, upstream_head, worker.new_request_id, is_trusted=self._client.is_trusted
            )
        length = head.fields.body
        make = BufferedExchange if length and route.buffer_uploads_bytes else Exchange
        stream.exchange = exchange = make(stream, worker.exchanges, head, route, upstream_head, worker.loop.time())
        if not is_complete:
            stream.expect_content(length)
            self._ready.append(stream)
        elif length:
            raise StreamFailed(ErrorCode.PROTOCOL_ERROR, "no content, against Content-Length")
        elif self.running < FAIR_EXCHANGES or worker.exchanges.dispatcher.is_ample(route.origin):
            self.running += 1
            stream.has_started = True
            exchange.start()
        else:
            self._wait(stream)

    def _start(self, stream: Http2Stream) -> None:
        """Start the exchange of a stream with content now, or when one of the connection's others is over."""
        exchange = stream.exchange
        if exchange is None:  # reset in the meantime
            return
        if self.running < FAIR_EXCHANGES or self._worker.exchanges.dispatcher.is_ample(exchange.route.origin):
            self.running += 1
            stream.start()
        else:
            self._wait(stream)

    def _wait(self, stream: Http2Stream) -> None:
        self._http2.pause(stream)
        self.waiting.append(stream)
        stream.set_deadline(self._worker.exchanges.timeouts.origin)

    def on_stream_free(self) -> None:
        """Start exchanges that wait: another is over, and one that is refused as it starts is over at once."""
        if self._is_starting or self.state is not READING or self._http2.failure is not None:
            return
        self._is_starting = True
        try:
            for _ in range(FAIR_EXCHANGES):
                if not self.waiting or self.running >= FAIR_EXCHANGES:
                    return
                stream = self.waiting.pop(0)
                if stream.exchange is not None:
                    self.running += 1
                    self.resume(stream)
                    stream.start()
        finally:
            self._is_starting = False
        if self.waiting:
            self._worker.deferred.add(self.on_stream_free)

    def withdraw(self, stream: Http2Stream) -> None:
        """Start no exchange for the stream."""
        if not stream.has_started and stream in self.waiting:
            self.waiting.remove(stream)

    # Called by streams ------------------------------------------------------------------------------------

    def forget_request(self) -> None:
        """Decide upon the last request anew when it comes again."""
        self._memory.forget()

    def log_exchange(self, stream: Http2Stream, exchange: Exchange) -> None:
        """Write the line of the access log for a finished exchange."""
        self._log(exchange.status, exchange.head, stream.request_id, stream.bytes_down, exchange)

    # Own responses ----------------------------------------------------------------------------------------

    def refuse(
        self,
        stream: Http2Stream,
        refusal: ErrorResponse,
        head: RequestHead | None,
        raw: bytes,
        exchange: Exchange | None = None,
    ) -> None:
        """Send an error response instead of forwarding the request.

        `head` is None for a request that could not be read; `raw` is what was received of it.
        """
        worker = self._worker
        worker.counters.refusal(refusal.code)
        request_id = stream.identify(head)
        response = render_refusal(worker, refusal, head, raw, request_id, close=False)
        self._log(refusal.status, head, request_id, len(response), exchange, refusal)
        self._send_own(stream, response)

    def _reply(self, stream: Http2Stream, reply: Reply, head: RequestHead) -> None:
        response = self._render(reply, head, close=False)
        self._send_own(stream, response)

    def _send_own(self, stream: Http2Stream, response: bytes) -> None:
        end = response.index(_HEAD_ENDS) + len(_HEAD_ENDS)
        self.respond(stream, self.head_encoder.head(response[:end]), response[end:])

    # Ends -------------------------------------------------------------------------------------------------

    def is_busy(self) -> bool:
        """Return whether a stream is open, with or without an exchange, or the final GOAWAY is still to be sent.

        Until then the client may send requests, and expects them to be served.
        """
        http2 = self._http2
        return bool(http2.streams) or (http2.is_going_away and not http2.has_gone_away and self.state is READING)

    def exchanges(self) -> Sequence[Exchange]:
        """Return the exchanges of all streams."""
        return [stream.exchange for stream in self._streams() if stream.exchange is not None]

    def cut(self, exchange: Exchange) -> None:
        """End one exchange and its stream."""
        stream = exchange.client
        assert isinstance(stream, Http2Stream)
        if stream.exchange is not exchange:  # it ended when one before it was cut
            return
        self.withdraw(stream)
        exchange.cancel()
        self.reset(stream, ErrorCode.CANCEL)

    def _cancel_exchanges(self, *, disconnected: bool = False) -> None:
        self.waiting.clear()
        self._cancel_soon(self._streams(), disconnected=disconnected)

    def _cancel_soon(self, streams: list[Http2Stream], *, disconnected: bool) -> None:
        """Cancel the streams' exchanges, of which a hundred may be under way."""
        pieces = (partial(stream.cancel_exchange, disconnected=disconnected) for stream in streams)
        self._worker.cancellations.add_all(pieces)

    def _streams(self) -> list[Http2Stream]:
        return [stream for stream in self._http2.streams.values() if isinstance(stream, Http2Stream)]
