"""One request on a connection of HTTP/2, from its head to its response's last byte: a stream as its exchange sees it.

A stream without an exchange waits for one, was answered by the edge itself, or has the rest of a response to send.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from common.traffic import HTTP2
from edge.http import chunks
from edge.http.error_responses import CLIENT_DISCONNECTED, CUT_OFF, REQUEST_TIMEOUT, ErrorResponse, Rejected
from edge.http.framing import CHUNKED
from edge.http.request import RequestHead
from edge.http2.errors import ErrorCode, StreamFailed
from edge.http2.streams import IDLE, Stream
from edge.proxy.exchange import Exchange
from edge.proxy.exchange_states import BODY, CANCELLED, COMPLETE, LAST, REFUSED, Ending

if TYPE_CHECKING:
    from edge.proxy.http2_connection import Http2ClientConnection
    from edge.proxy.worker_context import WorkerContext

NEVER: Final = float("inf")
"""A deadline of nothing that is waited for."""

_TEXT: Final = ord("H")  # begins a head of HTTP/1.1: a block begins with a status, by RFC 7541 §6.1 or §6.2.2
_NOT_REFUSED: Final = (None, CUT_OFF, CLIENT_DISCONNECTED)  # failures that no response was written for


class Http2Stream(Stream):
    """Created by `Http2ClientConnection` for a stream that its client opens; dropped when it is closed."""

    __slots__ = (
        "_block",
        "_connection",
        "_content",
        "_early",
        "_early_end",
        "_last",
        "_missing",
        "_worker",
        "bytes_down",
        "deadline",
        "exchange",
        "fill_head",
        "given_id",
        "has_started",
        "scheme",
        "unsent_bytes",
    )

    _block: bytes  # the head of a whole response, while `_content` is kept
    _early_end: bytes  # what stands behind the content that came before the exchange started, as the origin gets it
    _last: bytes  # content that Content-Length ends with, until END_STREAM comes

    def __init__(
        self, connection: Http2ClientConnection, worker: WorkerContext, stream_id: int, send_window: int
    ) -> None:
        # A stream's, as `Stream` begins: its constructor would cost every request a call more.
        self.id = stream_id
        self.state = IDLE
        self.credit = self.held = 0
        self.is_paused = False
        self.send_window = send_window
        self.interims = ()
        self.block = self.trailers = b""
        self.pending = None
        self.pending_from = self.pending_bytes = 0
        self.has_ended = self.is_queued = self.is_full = self.incremental = False
        self.urgency = 3
        # the exchange's client's
        self._connection = connection
        self._worker = worker
        self.scheme = b"https"
        self.fill_head = worker.fill_head  # which makes a block
        self._early: bytearray | None = None  # content that came before the exchange started
        self._content: bytes | None = None  # of a whole response, until the exchange has ended
        self._missing = CHUNKED  # octets that Content-Length announces and that did not come yet
        self.unsent_bytes = 0  # when the client was last waited for
        self.bytes_down = 0
        self.deadline = NEVER
        self.exchange: Exchange | None = None
        self.given_id = ""  # the request's, once it has one
        self.has_started = False

    # The request ------------------------------------------------------------------------------------------

    def expect_content(self, length: int) -> None:
        """Keep content until `start`: it may come before. `length`: octets, or `CHUNKED`."""
        self._missing = length
        self._early = bytearray()
        self._early_end = self._last = b""

    def start(self) -> None:
        """Start the exchange, with what came of its body."""
        exchange, early = self.exchange, self._early
        assert exchange is not None
        self.has_started = True
        self._early = None
        if early is None:
            exchange.start()
            return
        content = bytes(early)
        if content and self._missing == CHUNKED:
            content = chunks.encode(content)
        content += self._early_end
        if not content:
            exchange.start()
            return
        try:
            exchange.start_with(content)
        except Rejected as error:
            self._break_request(exchange, error.response)

    def on_data(self, data: bytes) -> None:
        """Pass content of the request on.

        The last octets that Content-Length announces wait for END_STREAM: no origin answers before, and none gets the
        whole of a request that goes on against its length.
        """
        is_chunked = self._missing == CHUNKED
        if not is_chunked:
            self._missing -= len(data)
            if self._missing < 0:
                raise StreamFailed(ErrorCode.PROTOCOL_ERROR, "more content than Content-Length announces")
            if not self._missing:
                self._last = data
                return
        if self._early is not None:  # as it is: each frame may be one octet
            self._early += data
        else:
            self._pass_on(chunks.encode(data) if is_chunked else data)

    def on_request_end(self, trailers: bytes) -> None:
        """Pass the end of the request on."""
        if self._missing == CHUNKED:
            end = chunks.last_chunk(trailers)
        elif self._missing:
            raise StreamFailed(ErrorCode.PROTOCOL_ERROR, "less content than Content-Length announces")
        else:
            end, self._last = self._last, b""
        if self._early is not None:
            self._early_end = end
        elif end:
            self._pass_on(end)

    def _pass_on(self, data: bytes) -> None:
        exchange = self.exchange
        if exchange is not None and not exchange.request_is_complete:
            try:
                exchange.on_request_data(data)
            except Rejected as error:
                self._break_request(exchange, error.response)

    def _break_request(self, exchange: Exchange, refusal: ErrorResponse) -> None:
        """Refuse a request for its body."""
        if exchange.cancel_with(refusal):
            self._connection.refuse(self, refusal, exchange.head, exchange.head.kept, exchange)
        else:
            self._connection.reset(self, ErrorCode.CANCEL)

    def on_reset(self, code: int) -> None:
        """Cancel the exchange: the stream has ended early."""
        self.cancel_exchange(disconnected=True)

    def cancel_exchange(self, *, disconnected: bool) -> None:
        """Cancel the exchange, unless it has ended."""
        exchange = self.exchange
        if exchange is None:
            return
        self._connection.withdraw(self)
        if disconnected:
            exchange.on_client_disconnected()
        else:
            exchange.cancel()

    # Called by the exchange -------------------------------------------------------------------------------

    @property
    def request_id(self) -> str:
        """Return the request's id."""
        return self.identify(self.exchange.head if self.exchange is not None else None)

    def identify(self, head: RequestHead | None) -> str:
        """Return the id of the request with this head; where requests are not assigned one it is made when needed."""
        if not self.given_id:
            self.given_id = self._connection.identify(head)
        return self.given_id

    def write_interim(self, head: bytes) -> None:
        """Send an interim response."""
        self._connection.send_interim(self, head)

    def write_head(self, head: bytes, data: bytes) -> None:
        """Send the response's head, and the first content."""
        connection = self._connection
        block = connection.head_encoder.head(head) if head[0] == _TEXT else head
        self.bytes_down += len(block) + len(data)
        exchange = self.exchange
        assert exchange is not None
        if exchange.phase is not BODY:  # `on_exchange_end` follows at once
            self._block, self._content = block, data
            return
        connection.send_block(self, block, data)
        if self.is_full:
            self._pause_origin(exchange)

    write_last = write_head

    def write(self, data: bytes) -> None:
        """Send content."""
        self.bytes_down += len(data)
        was_full = self.is_full
        self._connection.send_data(self, data)
        if self.is_full and not was_full and self.exchange is not None:
            self._pause_origin(self.exchange)

    def wait_for_client(self) -> None:
        """Wait for the client to take more of the response."""
        self.unsent_bytes = self.pending_bytes
        self.set_deadline(self._worker.exchanges.timeouts.body)

    def _pause_origin(self, exchange: Exchange) -> None:
        self.unsent_bytes = self.pending_bytes
        exchange.on_client_full()

    def write_trailers(self, block: bytes) -> None:
        """Send trailer fields, behind the content."""
        self._connection.send_trailers(self, block)

    def pause_reading(self) -> None:
        """Stop the client's upload on this stream."""
        self._connection.pause(self)

    def resume_reading(self) -> None:
        """Let the client's upload go on."""
        self._connection.resume(self)

    def set_deadline(self, seconds: float) -> None:
        """Set the deadline of the request."""
        connection = self._connection
        self.deadline = deadline = self._worker.now + seconds
        first = connection.deadline
        connection.deadline = deadline if deadline < first else first  # `min` would cost a call

    def forget_request(self) -> None:
        """Decide upon the same request anew when it comes again."""
        self._connection.forget_request()

    def on_tunnel(self) -> None:
        """Fail: a request of HTTP/2 offers no protocol to switch to."""
        raise AssertionError("HTTP/2 offers no protocol to switch to")

    def end_writing(self) -> bool:
        """Return False: there are no tunnels."""
        return False

    def on_exchange_end(self, ending: Ending) -> None:
        """End the stream as its exchange ended."""
        exchange, self.exchange = self.exchange, None
        assert exchange is not None
        connection, worker = self._connection, self._worker
        connection.running -= self.has_started
        worker.counters.exchange(exchange)[HTTP2] += 1
        if worker.access_log is not None and exchange.failure in _NOT_REFUSED:
            connection.log_exchange(self, exchange)
        if ending is COMPLETE or ending is LAST:
            if self._content is not None:
                connection.respond(self, self._block, self._content)
            else:
                connection.end(self)
        elif ending is REFUSED:
            assert exchange.failure is not None
            connection.refuse(self, exchange.failure, exchange.head, exchange.head.kept, exchange)
        elif ending is not CANCELLED:
            connection.reset(self, ErrorCode.INTERNAL_ERROR)
        if connection.waiting:
            connection.on_stream_free()

    # Called by the connection -----------------------------------------------------------------------------

    def on_room(self) -> None:
        """Let the origin send again."""
        if self.exchange is not None:
            self.exchange.on_client_ready()

    def on_deadline(self) -> None:
        """End the request, unless the client takes the response, however slowly."""
        connection, exchange = self._connection, self.exchange
        if self.pending_bytes:
            if self.unsent_bytes != self.pending_bytes:
                self.wait_for_client()
            else:
                connection.reset(self, ErrorCode.CANCEL)
                self.on_reset(ErrorCode.CANCEL)
        elif exchange is None:
            connection.reset(self, ErrorCode.CANCEL)
        elif self.has_started:
            exchange.on_deadline()
        else:
            connection.withdraw(self)
            exchange.cancel_with(REQUEST_TIMEOUT)
            connection.refuse(self, REQUEST_TIMEOUT, exchange.head, exchange.head.kept, exchange)


def as_http2(head: RequestHead) -> RequestHead:
    """Return a head that was read as HTTP/1.1 as one of HTTP/2."""
    return RequestHead(head.method, head.target, 2, head.kept, head.fields)
