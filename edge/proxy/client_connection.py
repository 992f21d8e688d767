"""A client's connection: requests in, one exchange at a time, responses out.

`ClientConnection` is an asyncio protocol on the plain port and inside the TLS layer. It owns I/O, backpressure and
deadlines. What a request means is decided elsewhere: `RequestReader` cuts heads out of the bytes, `respond` decides
between forwarding and answering, and the `Exchange` relays. Its states are those of `edge.proxy.connection_states`.

Reading stays on during an exchange (a paused socket shows neither FIN nor RST); up to 16 KB that a client sends ahead
are kept, then reading pauses until the exchange is over. Reading pauses, too, while work on what was read is deferred.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import sys
from typing import Final, cast

from edge.http import request_ids
from edge.http.error_responses import (
    BAD_REQUEST,
    CLIENT_DISCONNECTED,
    CUT_OFF,
    REQUEST_TIMEOUT,
    TOO_MANY_CONNECTIONS,
    ErrorResponse,
    Rejected,
    render,
)
from edge.http.forwarded import Client, address_of
from edge.http.request import RequestHead
from edge.http.request_reader import RequestReader
from edge.proxy.buffered_exchange import CONTINUE, BufferedExchange
from edge.proxy.connection_states import (
    CLOSED,
    ENDED,
    EXCHANGE,
    LINGERING,
    OPEN,
    PAUSED,
    READING,
    TUNNEL,
    ConnectionState,
    Input,
)
from edge.proxy.exchange import CANCELLED, COMPLETE, CUT_BY_RESET, LAST, REFUSED, Ending, Exchange
from edge.proxy.log_lines import LoggedConnection
from edge.proxy.request_memory import RequestMemory
from edge.proxy.worker_context import WorkerContext
from edge.routing.request_rewriting import sign
from edge.routing.respond import Forward, Reply, respond
from edge.transport.deferred_work import BYTES_AT_ONCE, HEADS_AT_ONCE
from edge.transport.disconnect import client_disconnected
from edge.transport.lingering import linger
from edge.transport.tls_stream import TlsStream

MAX_PIPELINED_BYTES: Final = 16_384
# A FIN comes from a client that left and from one that half-closed and still reads. Bytes to the first are answered
# with RST; the second discards an interim response (RFC 9110 §15.2.1). Most responses come sooner.
PROBE_AFTER_SECONDS: Final = 2.0
_NOT_REFUSED: Final = (None, CUT_OFF, CLIENT_DISCONNECTED)  # failures that no response was written for


class ClientConnection(asyncio.Protocol):
    """One connection. Invariants: `exchange` is set in EXCHANGE and TUNNEL only; in READING no complete head waits,
    unless the client must first take what was written (`_is_full`), or the work is deferred (`_is_deferred`)."""

    __slots__ = (
        "_client",
        "_input",
        "_is_deferred",
        "_is_full",
        "_listening",
        "_logged",
        "_memory",
        "_place",
        "_reader",
        "_reads_afterwards",
        "_request_id",
        "_server_name",
        "_transport",
        "_unsent_bytes",
        "_worker",
        "bytes_down",
        "deadline",
        "exchange",
        "scheme",
        "state",
    )

    def __init__(self, worker: WorkerContext, *, secure: bool) -> None:
        # the worker's
        self._worker = worker
        self._listening = worker.listening_https if secure else worker.listening_http
        self.scheme = b"https" if secure else b"http"
        # the connection's
        self._transport: asyncio.Transport = cast("asyncio.Transport", None)
        self._client: Client = cast("Client", None)
        self._server_name = ""
        self._logged: LoggedConnection | None = None  # from its first line in the access log on
        self._place: str | None = None
        self._reader = RequestReader(worker.limits)
        self._memory: RequestMemory = cast("RequestMemory", None)
        self._input: Input = OPEN
        self._is_full = False  # the transport has enough to send
        self._is_deferred = False  # work on what was read, to a later turn of the loop
        self._reads_afterwards = False
        self._unsent_bytes = sys.maxsize  # when last looked at
        self.state: ConnectionState = READING
        # the request's
        self.bytes_down = 0
        self._request_id = ""  # where requests have one
        self.exchange: Exchange | None = None
        self.deadline = 0.0

    def __repr__(self) -> str:
        return f"<ClientConnection {self.state.name} {self._input.name} {self.exchange or self._reader}>"

    # Called by the transport ------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        worker = self._worker
        worker.connections.add(self)
        worker.counters.accepted += 1
        secure = self._listening.secure
        peername = transport.get_extra_info("peername")
        self._client = Client(address_of(peername), secure=secure, trusted_proxies=worker.trusted_proxies)
        self._server_name = (transport.get_extra_info("server_name") or "") if secure else ""
        recent = worker.recent_requests[secure, self._client.is_trusted]
        self._memory = RequestMemory(recent, self._client, self._server_name)
        self.set_deadline(worker.head_seconds)
        self._place = worker.connection_limits.admit(peername)
        if self._place is None:
            self._turn_away()

    def data_received(self, data: bytes) -> None:
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
        elif state <= TUNNEL:
            self._continue(data)

    def eof_received(self) -> bool:
        self._input = ENDED
        worker, exchange = self._worker, self.exchange
        if exchange is None and not (self.state is READING and self._is_full and self._reader.buffer):
            self.state = CLOSED
            self._transport.close()
            return False
        worker.paused.add(self)  # a transport does not read, nor notice RST, after the end of its input
        if exchange is None:  # requests wait until the client has read the responses before them
            return True
        if not exchange.status and exchange.head.minor == 1:
            worker.loop.call_later(PROBE_AFTER_SECONDS, self._probe_client, exchange)
        self._end_request(exchange)
        return True

    def connection_lost(self, exc: Exception | None) -> None:
        worker = self._worker
        worker.connections.discard(self)
        worker.paused.discard(self)
        worker.connection_limits.leave(self._place)
        self.state = CLOSED
        self._cancel_exchange(disconnected=True)

    def pause_writing(self) -> None:
        self._is_full = True
        self._unsent_bytes = self._transport.get_write_buffer_size()
        if self.exchange is not None:
            self.exchange.on_client_full()

    def resume_writing(self) -> None:
        self._is_full = False
        if self.exchange is not None:
            self.exchange.on_client_ready()
        elif self.state is READING:
            self._go_on()

    # Called by the worker's clock --------------------------------------------------------------------------

    def set_deadline(self, seconds: float) -> None:
        self.deadline = self._worker.now + seconds

    def on_deadline(self) -> None:
        exchange = self.exchange
        if (self._is_full or exchange is None) and self._is_taking():
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
            self.state = CLOSED
            self._transport.close()

    def check_disconnect(self) -> None:
        """Abort the connection if its client disconnected while it is not read from.

        Such a socket reports neither FIN nor RST, and the origin would go on working.
        """
        missing_bytes = self.exchange.missing_bytes if self.exchange is not None else 0
        sock = self._transport.get_extra_info("socket")
        if not self._transport.is_closing() and client_disconnected(sock, missing_bytes):
            self._cancel_exchange(disconnected=True)
            self.abort()

    def _probe_client(self, exchange: Exchange) -> None:
        """`PROBE_AFTER_SECONDS` after the end of the client's input: `check_disconnect` sees what comes of it."""
        if self.exchange is exchange and not exchange.status:
            self.write(CONTINUE)

    def _is_taking(self) -> bool:
        """Whether less is unsent than at the last look: a slow client is not a stalled one."""
        before, self._unsent_bytes = self._unsent_bytes, self._transport.get_write_buffer_size()
        return 0 < self._unsent_bytes < before

    def expect_last_request(self) -> None:
        if self.state is READING and not self._reader.buffer:
            self.set_deadline(self._worker.idle_seconds)

    def abort(self) -> None:
        """End the connection at once, with whatever is under way."""
        self._cancel_exchange()
        self.state = CLOSED
        self._transport.abort()

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
                self.state = CLOSED
                self._transport.close()
            elif is_new and reader.buffer and reader.buffer[:1] != b"\r":
                self.set_deadline(worker.head_seconds)
        elif self._input is ENDED and self.exchange is not None:
            self._end_request(self.exchange)

    def _go_on(self) -> None:
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
        if worker.access_log is not None:
            upstream_head = self._identify(head, upstream_head)
        elif self._request_id:
            self._request_id = ""
        self.bytes_down = 0
        self.state = EXCHANGE
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

    def _identify(self, head: RequestHead, upstream_head: bytes) -> bytes:
        """Give the request an id, a trusted proxy's own or a new one, and state it to the origin."""
        given = request_ids.given_id(head) if self._client.is_trusted else None
        if given is not None:
            self._request_id = given
            return upstream_head
        self._request_id = self._worker.new_request_id()
        return request_ids.with_id(upstream_head, self._request_id)

    def _continue(self, data: bytes) -> None:
        """Bytes during an exchange: of its body, of its tunnel, or of the next request."""
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
        """The client's input has ended. A response under way goes on."""
        if self._is_deferred:  # what came before the end is read first
            return
        if exchange.request_is_complete or exchange.status:
            exchange.on_client_eof()
        else:  # RFC 9112 §8: the request is incomplete
            self._break_request(exchange, BAD_REQUEST)

    def _defer(self) -> None:
        """Give up the loop before more is done about what was read."""
        if not self._is_deferred:
            self._reads_afterwards = self._input is OPEN
            self.pause_reading()
            self._is_deferred = True
            self._worker.deferred.add(self._go_on_deferred)

    def _go_on_deferred(self) -> None:
        self._is_deferred = False
        exchange = self.exchange
        if self.state is READING:
            self._go_on()
        elif exchange is not None:
            if self._reads_afterwards:
                self._resume_input()
            if exchange.has_unread_body:
                self._continue(b"")
                if self._input is ENDED and self.exchange is exchange:
                    self._end_request(exchange)

    def _break_request(self, exchange: Exchange, refusal: ErrorResponse) -> None:
        """The request's body is invalid or incomplete."""
        nothing_sent = exchange.status == 0
        if nothing_sent:
            exchange.status, exchange.failure = refusal.status, refusal
        self._cancel_exchange()
        if nothing_sent:
            self._refuse(refusal, exchange.head, exchange.head.kept, exchange)
        else:
            self.abort()

    # Called by the exchange -------------------------------------------------------------------------------

    @property
    def request_id(self) -> str:
        """Of the request in progress; without an access log it is made when it is first needed."""
        if not self._request_id:
            self._request_id = self._worker.new_request_id()
        return self._request_id

    def write(self, data: bytes) -> None:
        self.bytes_down += len(data)
        self._transport.write(data)

    def write_last(self, data: bytes) -> None:
        self.bytes_down += len(data)
        self._write_last(data)

    def pause_reading(self) -> None:
        if self._is_deferred:
            self._reads_afterwards = False
        elif self._input is OPEN:
            self._input = PAUSED
            self._worker.paused.add(self)
            self._transport.pause_reading()

    def resume_reading(self) -> None:
        if len(self._reader.buffer) <= MAX_PIPELINED_BYTES:
            self._resume_input()

    def forget_request(self) -> None:
        self._memory.forget()

    def on_tunnel(self) -> None:
        self.state = TUNNEL
        data = self._reader.take_rest()
        self.resume_reading()
        if data:
            self._continue(data)
        if self._input is ENDED and self.exchange is not None:
            self.exchange.on_client_eof()

    def end_writing(self) -> bool:
        if self._input is ENDED or not self._transport.can_write_eof():
            return False
        self._transport.write_eof()
        return True

    def on_exchange_end(self, ending: Ending) -> None:
        exchange, self.exchange = self.exchange, None
        assert exchange is not None
        worker = self._worker
        worker.counters.exchange(exchange)
        if worker.access_log is not None and exchange.failure in _NOT_REFUSED:  # a refusal is logged when written
            self._log(exchange.status, exchange.head, self._request_id, self.bytes_down, exchange)
        has_more = bool(self._reader.buffer)
        if ending is COMPLETE and (self._input is not ENDED or has_more):
            self.state = READING
            if has_more or self._input is PAUSED:
                self._go_on()
            else:
                self.deadline = worker.now + worker.idle_seconds
        elif ending <= LAST:
            # A keep-alive client may already have sent its next request.
            self._close(lingers=exchange.head.fields.keep_alive or has_more or not exchange.request_is_complete)
        elif ending is REFUSED:
            assert exchange.failure is not None
            self.state = READING
            self._refuse(exchange.failure, exchange.head, exchange.head.kept, exchange)
            if self.state is READING:
                self._go_on()
        elif ending is not CANCELLED:
            if ending is CUT_BY_RESET:
                sock = self._transport.get_extra_info("socket")
                with contextlib.suppress(OSError):
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            self.abort()

    # Own responses ----------------------------------------------------------------------------------------

    def _turn_away(self) -> None:
        """A connection above a limit, on the plain port. On the other, TLS refuses it before it comes here."""
        if self._worker.connection_limits.may_answer:
            self._refuse(TOO_MANY_CONNECTIONS, None, b"")
        else:
            self.abort()

    def _refuse(
        self, refusal: ErrorResponse, head: RequestHead | None, raw: bytes, exchange: Exchange | None = None
    ) -> None:
        """Send an error response instead of forwarding the request.

        `head` is None for a request that could not be read; `raw` is what was received of it.
        """
        worker = self._worker
        worker.counters.refusal(refusal.code)
        is_whole = head is not None and head.fields.body == 0 if exchange is None else exchange.request_is_complete
        request_id = (self._request_id if exchange is not None else "") or worker.new_request_id()
        close = refusal.close or not is_whole or not self._may_stay(head)
        wants_html = b"text/html" in raw
        application_page = (
            worker.routes.error_page(head.fields.host) if wants_html and refusal.status >= 500 and head else None
        )
        response = render(
            refusal,
            request_id=request_id,
            date_field=worker.date_field(),
            wants_html=wants_html,
            head_only=head.method == b"HEAD" if head is not None else raw.startswith(b"HEAD "),
            close=close,
            application_page=application_page,
        )
        self._log(refusal.status, head, request_id, len(response), exchange, refusal)
        self._write_own(response, close=close)

    def _reply(self, reply: Reply, head: RequestHead) -> None:
        close = head.fields.body != 0 or not self._may_stay(head)
        response = reply.render(self._worker.date_field(), close=close, head_only=head.method == b"HEAD")
        self._log(reply.status, head, "", len(response))
        self._write_own(response, close=close)

    def _may_stay(self, head: RequestHead | None) -> bool:
        """Whether the connection may serve another request after a response of our own."""
        return (
            head is not None
            and head.fields.keep_alive
            and head.minor == 1
            and (self._input is not ENDED or bool(self._reader.buffer))
            and not self._worker.exchanges.is_draining
        )

    def _write_own(self, response: bytes, *, close: bool) -> None:
        if close:
            self._write_last(response)
            self._close(lingers=True)
        else:
            self._transport.write(response)
            self.set_deadline(self._worker.idle_seconds)

    # Ends -------------------------------------------------------------------------------------------------

    def _resume_input(self) -> None:
        if self._is_deferred:
            self._reads_afterwards = True
        elif self._input is PAUSED:
            self._input = OPEN
            self._worker.paused.discard(self)
            self._transport.resume_reading()

    def _write_last(self, data: bytes) -> None:
        """`_close` follows at once."""
        if isinstance(self._transport, TlsStream):
            self._transport.write_last(data)
        else:
            self._transport.write(data)

    def _close(self, *, lingers: bool) -> None:
        """End the connection; where input may be on its way, only after the client had time to read."""
        self._reader.buffer = b""
        worker = self._worker
        if not lingers or self._input is ENDED:
            self.state = CLOSED
            self.deadline = worker.now + worker.exchanges.timeouts.body  # for what is unsent
            self._transport.close()
            return
        self.state = LINGERING
        self.deadline = float("inf")  # lingering has bounds of its own
        worker.paused.discard(self)
        if isinstance(self._transport, TlsStream):  # behind its close_notify
            self._transport.linger()
        else:
            linger(worker.loop, self._transport, self.connection_lost)

    def _cancel_exchange(self, *, disconnected: bool = False) -> None:
        if self.exchange is not None:
            if disconnected:
                self.exchange.on_client_disconnected()
            else:
                self.exchange.cancel()

    def _log(
        self,
        status: int,
        head: RequestHead | None,
        request_id: str,
        bytes_down: int,
        exchange: Exchange | None = None,
        refusal: ErrorResponse | None = None,
    ) -> None:
        access_log = self._worker.access_log
        if access_log is not None:
            if self._logged is None:
                self._logged = LoggedConnection(self._client, self.scheme, self._tls_version())
            request_id = request_id or self._worker.new_request_id()
            access_log.write(self._logged, status, request_id, head, bytes_down, exchange, refusal)

    def _tls_version(self) -> str:
        """Return the version of TLS, "" without."""
        engine = self._transport.get_extra_info("ssl_object") if self._listening.secure else None
        return str(engine.version()) if engine is not None else ""
