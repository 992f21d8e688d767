"""A client's connection in HTTP/1.1: requests in, one exchange at a time, responses out.

`ClientConnection` is an asyncio protocol on the plain port and inside the TLS layer. What a request means is decided
elsewhere: `RequestReader` cuts heads out of the bytes, `respond` decides between forwarding and answering, and the
`Exchange` relays.

Up to 16 KB that a client sends ahead of a response are kept, then reading pauses until the exchange is over.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Final, cast

from edge.http import request_ids
from edge.http.error_responses import (
    BAD_REQUEST,
    CLIENT_DISCONNECTED,
    CUT_OFF,
    REQUEST_TIMEOUT,
    ErrorResponse,
    Rejected,
)
from edge.http.request import RequestHead
from edge.http.request_reader import RequestReader
from edge.proxy.buffered_exchange import CONTINUE, BufferedExchange
from edge.proxy.connection_states import ENDED, EXCHANGE, PAUSED, READING, TUNNEL
from edge.proxy.exchange import Exchange
from edge.proxy.exchange_states import BROKEN_OFF_BY_RESET, CANCELLED, COMPLETE, LAST, REFUSED, Ending
from edge.proxy.request_memory import RequestMemory
from edge.proxy.responding_connection import RespondingConnection
from edge.proxy.worker_context import WorkerContext
from edge.routing.request_rewriting import sign
from edge.routing.respond import Forward, Reply, respond
from edge.transport.deferred_work import BYTES_AT_ONCE, HEADS_AT_ONCE

MAX_PIPELINED_BYTES: Final = 16_384
_NOT_REFUSED: Final = (None, CUT_OFF, CLIENT_DISCONNECTED)  # failures that no response was written for


class ClientConnection(RespondingConnection):
    """Serves one connection in HTTP/1.1.

    Invariants: `exchange` is set in EXCHANGE and TUNNEL only; in READING no complete head waits, unless the client must
    first take what was written (`_is_full`), or the work is deferred (`_is_deferred`).
    """

    __slots__ = ("_memory", "_reader", "exchange")

    def __init__(self, worker: WorkerContext, *, secure: bool) -> None:
        super().__init__(worker, secure=secure)
        self._reader = RequestReader(worker.limits)
        self._memory: RequestMemory = cast("RequestMemory", None)
        self.exchange: Exchange | None = None

    def __repr__(self) -> str:
        return f"<ClientConnection {self.state.name} {self._input.name} {self.exchange or self._reader}>"

    # Called by the transport ------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin to read, or refuse a connection above a limit."""
        super().connection_made(transport)
        recent = self._worker.recent_requests[self._listening.secure, self._client.is_trusted]
        self._memory = RequestMemory(recent, self._client, self._server_name)
        if self._place is None:
            self._refuse_connection()

    def data_received(self, data: bytes) -> None:
        """Act on the client's bytes: a request, or more of the one under way."""
        state = self.state
        if state is READING:
            worker, reader, memory = self._worker, self._reader, self._memory
            if not (reader.buffer or self._is_full):
                if memory.raw == data and memory.generation == worker.routes.generation:
                    self._begin(memory)
                    return
                if data[:1] == b"P":
                    body = memory.recall_upload(data)
                    if body is not None:
                        self._begin_with_body(memory, body)
                        return
                elif memory.recall(data):
                    self._begin(memory)
                    return
            if not reader.buffer and data[:1] != b"\r":  # empty lines do not begin a request
                self.set_deadline(worker.head_seconds)
            reader.buffer += data
            if self._is_full:  # a client that does not read our responses is not read from
                self.pause_reading()
            else:
                self._serve()
        elif state is EXCHANGE or state is TUNNEL:
            self._continue(data)

    def eof_received(self) -> bool:
        """Act on the end of the client's input. A response under way goes on."""
        self._input = ENDED
        worker, exchange = self._worker, self.exchange
        if exchange is None and not (self.state is READING and self._is_full and self._reader.buffer):
            self._close_at_once()
            return False
        worker.paused.add(self)  # a transport does not read, nor notice RST, after the end of its input
        if exchange is None:  # requests wait until the client has read the responses before them
            return True
        if not exchange.status and exchange.head.minor == 1:
            worker.loop.call_later(worker.probe_after_seconds, self._probe_client, exchange)
        self._end_request(exchange)
        return True

    def pause_writing(self) -> None:
        """Pause the response: the client does not read."""
        self._is_full = True
        self._unsent_bytes = self._transport.get_write_buffer_size()
        if self.exchange is not None:
            self.exchange.on_client_full()

    def resume_writing(self) -> None:
        """Resume the response, or the requests that waited behind it."""
        self._is_full = False
        if self.exchange is not None:
            self.exchange.on_client_ready()
        elif self.state is READING:
            self._resume_requests()

    def exchanges(self) -> Sequence[Exchange]:
        """Return the exchange under way, if there is one."""
        return (self.exchange,) if self.exchange is not None else ()

    # Called by the worker's clock --------------------------------------------------------------------------

    def on_deadline(self) -> None:
        """End what makes no progress: the exchange, or the connection."""
        exchange = self.exchange
        if (self._is_full or exchange is None) and self._is_client_reading():
            self.deadline = self._worker.now + self._worker.exchanges.timeouts.body
        elif self._is_full:
            self.abort()
        elif exchange is not None:
            exchange.on_deadline()
        elif self._transport.is_closing() or self._transport.get_write_buffer_size():
            self.abort()
        elif self._reader.buffer:
            self._refuse(REQUEST_TIMEOUT, None, self._reader.buffer)
        else:
            self._close_at_once()

    def _probe_client(self, exchange: Exchange) -> None:
        """Send an interim response, by which `check_disconnect` sees whether the client is there.

        Called `probe_after_seconds` after the end of the client's input.
        """
        if self.exchange is exchange and not exchange.status:
            self.write(CONTINUE)

    def expect_last_request(self) -> None:
        """Shorten the wait for a request: the worker leaves."""
        if self.state is READING and not self._reader.buffer:
            self.set_deadline(self._worker.idle_seconds)

    # Requests ---------------------------------------------------------------------------------------------

    def _serve(self) -> None:
        """Act on the heads that the reader holds, until an exchange begins or no complete head is left."""
        reader, worker, memory = self._reader, self._worker, self._memory
        is_new = reader.buffer[:1] == b"\r"  # empty lines had no deadline of a head
        heads_left = HEADS_AT_ONCE
        while self.state is READING and reader.buffer and not self._is_full:
            if memory.generation == worker.routes.generation and reader.take_same(memory.raw):
                is_new = True
                self._begin(memory)
                continue
            try:
                if (complete := reader.next_head()) is None:
                    break
            except Rejected as error:
                self._refuse(error.response, None, reader.buffer)
                return
            is_new = True
            raw, head = complete
            outcome = respond(head, worker.lookup, self._listening, self._client, self._server_name)
            if type(outcome) is Forward:
                if not head.fields.upgrade:
                    memory.remember(raw, outcome)
                if head.fields.body:
                    self._begin_with_body(outcome, reader.take_rest())
                else:
                    self._begin(outcome)
                continue
            if type(outcome) is Reply:
                self._reply(outcome, head)
            else:
                assert isinstance(outcome, ErrorResponse)
                self._refuse(outcome, head, raw)
            heads_left -= 1
            if not heads_left and self.state is READING and reader.buffer:
                self._defer()
                return
        if self.state is READING:
            if self._is_full:
                return
            if self._input is ENDED:
                self._close_at_once()
            elif is_new and reader.buffer and reader.buffer[:1] != b"\r":
                self.set_deadline(worker.head_seconds)
        elif self._input is ENDED and self.exchange is not None:
            self._end_request(self.exchange)

    def _resume_requests(self) -> None:
        """Serve what came while requests could not be served."""
        self.set_deadline(self._worker.idle_seconds)
        self._serve()
        if self.state is READING or len(self._reader.buffer) <= MAX_PIPELINED_BYTES:
            self._resume_input()
        if self.state is READING and self._reader.buffer and not self._is_full:
            self.set_deadline(self._worker.head_seconds)

    def _begin(self, forward: Forward | RequestMemory, make: type[Exchange] = Exchange, data: bytes = b"") -> None:
        worker = self._worker
        head, route, upstream_head = forward.head, forward.route, forward.upstream_head
        if route.signing is not None:
            upstream_head = sign(route.signing, head, upstream_head, worker.unix_seconds())
        if worker.assigns_request_ids:
            self._request_id, upstream_head = request_ids.identify(
                head, upstream_head, worker.new_request_id, is_trusted=self._client.is_trusted
            )
        elif self._request_id:
            self._request_id = ""
        self.bytes_down = 0
        self.state = self.state.on_forward
        self.exchange = exchange = make(self, worker.exchanges, head, route, upstream_head, worker.loop.time())
        if data:
            self._start_with(exchange, data)
        else:
            exchange.start()

    def _start_with(self, exchange: Exchange, data: bytes) -> None:
        """Start an exchange with what came behind its head: its body, and the next request."""
        try:
            rest = exchange.start_with(data)
        except Rejected as error:
            self._break_request(exchange, error.response)
            return
        if rest:
            self._reader.buffer = rest
            if len(rest) > MAX_PIPELINED_BYTES:
                self.pause_reading()
        elif len(data) >= BYTES_AT_ONCE or exchange.has_unread_body:
            self._defer()

    def _begin_with_body(self, forward: Forward | RequestMemory, data: bytes) -> None:
        """Begin an exchange whose request has a body; `data` is what was read behind its head."""
        make = BufferedExchange if forward.route.buffer_uploads_bytes else Exchange
        self._begin(forward, make, data)

    def _continue(self, data: bytes) -> None:
        """Act on bytes during an exchange: of its body, of its tunnel, or of the next request."""
        exchange = self.exchange
        assert exchange is not None
        if self.state is TUNNEL or not exchange.request_is_complete:
            received_bytes = len(data)
            try:
                data = exchange.on_request_data(data)
            except Rejected as error:
                self._break_request(exchange, error.response)
                return
            if not data:
                if received_bytes >= BYTES_AT_ONCE or exchange.has_unread_body:
                    self._defer()
                return
        reader = self._reader
        reader.buffer += data
        if len(reader.buffer) > MAX_PIPELINED_BYTES:
            self.pause_reading()

    def _end_request(self, exchange: Exchange) -> None:
        """Act on the end of the client's input during an exchange. A response under way goes on."""
        if self._is_deferred:  # what came before the end is read first
            return
        if exchange.request_is_complete or exchange.status:
            exchange.on_client_eof()
        else:  # RFC 9112 §8: the request is incomplete
            self._break_request(exchange, BAD_REQUEST)

    def _resume_deferred(self) -> None:
        self._is_deferred = False
        exchange = self.exchange
        if self.state is READING:
            self._resume_requests()
        elif exchange is not None:
            if self._reads_afterwards:
                self._resume_input()
            if exchange.has_unread_body:
                self._continue(b"")
                if self._input is ENDED and self.exchange is exchange:
                    self._end_request(exchange)

    def _break_request(self, exchange: Exchange, refusal: ErrorResponse) -> None:
        """Refuse a request whose body is invalid or incomplete."""
        if exchange.cancel_with(refusal):
            self._refuse(refusal, exchange.head, exchange.head.kept, exchange)
        else:
            self.abort()

    # Called by the exchange -------------------------------------------------------------------------------

    def resume_reading(self) -> None:
        """Read again, unless too much of the next requests is here."""
        if len(self._reader.buffer) <= MAX_PIPELINED_BYTES:
            self._resume_input()

    def forget_request(self) -> None:
        """Parse and decide the same request anew when it comes again."""
        self._memory.forget()

    def on_tunnel(self) -> None:
        """Pass bytes of both sides on as they are."""
        self.state = self.state.on_tunnel
        data = self._reader.take_rest()
        self.resume_reading()
        if data:
            self._continue(data)
        if self._input is ENDED and self.exchange is not None:
            self.exchange.on_client_eof()

    def on_exchange_end(self, ending: Ending) -> None:
        """Count and log the exchange, and go on as its ending says."""
        exchange, self.exchange = self.exchange, None
        assert exchange is not None
        worker = self._worker
        worker.counters.exchange(exchange)
        if worker.access_log is not None and exchange.failure in _NOT_REFUSED:  # a refusal is logged when written
            self._log(exchange.status, exchange.head, self._request_id, self.bytes_down, exchange)
        has_more = bool(self._reader.buffer)
        if ending is COMPLETE and (self._input is not ENDED or has_more):
            self.state = self.state.on_finish
            if has_more or self._input is PAUSED:
                self._resume_requests()
            else:
                self.deadline = worker.now + worker.idle_seconds
        elif ending is COMPLETE or ending is LAST:
            # A keep-alive client may already have sent its next request.
            self._close(lingers=exchange.head.fields.keep_alive or has_more or not exchange.request_is_complete)
        elif ending is REFUSED:
            assert exchange.failure is not None
            self.state = self.state.on_finish
            self._refuse(exchange.failure, exchange.head, exchange.head.kept, exchange)
            if self.state is READING:
                self._resume_requests()
        elif ending is not CANCELLED:
            if ending is BROKEN_OFF_BY_RESET:
                self._abort_by_reset()
            else:
                self.abort()

    def _can_keep_alive(self, head: RequestHead | None) -> bool:
        """Return whether the connection may serve another request after a response of our own."""
        return (
            head is not None
            and head.fields.keep_alive
            and head.minor == 1
            and (self._input is not ENDED or bool(self._reader.buffer))
            and not self._worker.exchanges.is_draining
        )

    def _close(self, *, lingers: bool) -> None:
        self._reader.buffer = b""
        super()._close(lingers=lingers)
