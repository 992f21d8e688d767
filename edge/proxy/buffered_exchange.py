"""An exchange whose request's body is taken in whole before a lease is asked for.

A slow client then holds memory or disk of the edge, and no connection to the origin; the origin receives the body as
fast as it reads. In the phase BUFFERING the body arrives in an `UploadBuffer`.

The edge itself answers ``Expect: 100-continue``. A chunked body reaches the origin with the Content-Length that is
known by now, or in chunks if it has trailers. A body without room in the buffer is passed on as it comes: first what is
kept, then the rest. A body above the application's limit is refused, as nginx refuses what is above
``client_max_body_size``.
"""

from __future__ import annotations

import asyncio

from edge.http import chunks
from edge.http.error_responses import REQUEST_TIMEOUT, UPLOAD_LOST
from edge.http.framing import CHUNKED
from edge.http.request import RequestHead
from edge.http.request_body import RequestBody
from edge.http.response import ResponseHead
from edge.proxy.client_side import ClientSide
from edge.proxy.exchange import Exchange
from edge.proxy.exchange_context import ExchangeContext
from edge.proxy.exchange_states import BUFFERING, SENT, Ending
from edge.proxy.upload_store import MAX_MEMORY_BYTES, UploadBuffer
from edge.routing.request_rewriting import chunked_fields
from edge.routing.route import Route
from edge.upstream.connection import UpstreamConnection

CONTINUE = b"HTTP/1.1 100 Continue\r\n\r\n"


class BufferedExchange(Exchange):
    """Created by a client connection for a request with a body, on a route that buffers uploads.

    `_buffer` is there until the body cannot be needed again: it is also what a second try sends. The upstream
    connection can be reused only after all of the body was sent (`_is_sent`).
    """

    __slots__ = ("_behind", "_buffer", "_has_room", "_is_sent", "_is_whole", "_moving", "_sending")

    def __init__(
        self,
        client: ClientSide,
        context: ExchangeContext,
        head: RequestHead,
        route: Route,
        upstream_head: bytes,
        started_at: float,
    ) -> None:
        super().__init__(client, context, head, route, upstream_head, started_at)
        if head.fields.body == CHUNKED:
            limits = [route.buffer_uploads_bytes, context.max_body_bytes or route.buffer_uploads_bytes]
            self._request_body = RequestBody(CHUNKED, min(limits))
        self._buffer: UploadBuffer | None = UploadBuffer(context.uploads, route.application_id)
        self._behind = b""  # body, framed, that came after the lease was asked for without it
        self._is_whole = False  # the lease was asked for with all of the body at hand
        self._is_sent = False
        self._has_room = asyncio.Event()  # the upstream connection takes more
        self._moving: asyncio.Task[None] | None = None  # from memory to the file
        self._sending: asyncio.Task[None] | None = None  # from the buffer to the origin

    # The body comes --------------------------------------------------------------------------------------

    def start(self) -> None:
        """Take in the body."""
        self.phase = self.phase.on_buffer
        self.client.set_deadline(self._context.timeouts.body)
        if self.head.fields.expects_continue:
            self.client.write_interim(CONTINUE)

    def start_with(self, data: bytes) -> bytes:
        """Take in the body, beginning with these bytes. Return what lies beyond its end."""
        self.start()
        return self.on_request_data(data)

    def _frame(self, body: RequestBody, data: bytes) -> bytes:
        if self.phase is BUFFERING:  # the chunks end here: the origin is sent a Content-Length
            return body.decode(data)
        return super()._frame(body, data)

    def _forward_upstream(self, data: bytes) -> None:
        buffer = self._buffer
        if self.phase is BUFFERING:
            assert buffer is not None
            self._buffer_up(buffer, data)
        elif buffer is None:
            super()._forward_upstream(data)
        else:  # read before the client was paused
            self.bytes_up += len(data)
            self._behind += data

    def _buffer_up(self, buffer: UploadBuffer, data: bytes) -> None:
        self.bytes_up += len(data)
        self.client.set_deadline(self._context.timeouts.body)
        has_room = buffer.add(data)
        if self.request_is_complete or not has_room:
            if not self.request_is_complete:
                self._context.uploads.count_streamed()
                self.client.pause_reading()
            self.phase = self.phase.on_buffered
            if self._moving is None:
                self._ask()
        elif buffer.memory_bytes > MAX_MEMORY_BYTES:
            if self._moving is None:
                self._moving = self._context.uploads.loop.create_task(self._move(buffer), name="upload to file")
            else:
                self.client.pause_reading()

    async def _move(self, buffer: UploadBuffer) -> None:
        try:
            while buffer.memory_bytes > MAX_MEMORY_BYTES:
                await buffer.move_to_file()
        except OSError as error:
            self._context.uploads.log_failure(error)
            self._context.uploads.count_streamed()
            if self.phase is BUFFERING:
                self.phase = self.phase.on_buffered
        self._moving = None
        if self.phase is BUFFERING:
            self.client.resume_reading()
        else:
            self._ask()

    # The body goes ---------------------------------------------------------------------------------------

    def _ask(self) -> None:
        """Ask for a lease: the body is whole, or there is no room for the rest."""
        assert self._buffer is not None
        self._is_whole = self.request_is_complete
        if not self._is_whole:
            self._kept_body = None  # not to be sent again
            self.client.pause_reading()
        elif self.head.fields.body == CHUNKED and not self._trailers:
            length = b"\r\nContent-Length: %d" % self._buffer.size
            self._upstream_head = self._upstream_head.replace(chunked_fields(self.head.fields), length, 1)
        super().start()

    @property
    def _trailers(self) -> bytes:
        return self._request_body.trailers if self._request_body is not None else b""

    def _send(self, upstream: UpstreamConnection) -> None:
        buffer = self._buffer
        assert buffer is not None
        self._has_room.set()
        if self._is_whole and buffer.is_in_memory:
            content = buffer.content  # in one write with the head
            self._waiting = _in_chunks(content, self._trailers) if self._trailers else content
            super()._send(upstream)
            self._is_sent = True
            return
        super()._send(upstream)
        sending = self._send_buffer(buffer, upstream)
        self._sending = self._context.uploads.loop.create_task(sending, name="buffered upload")

    async def _send_buffer(self, buffer: UploadBuffer, upstream: UpstreamConnection) -> None:
        is_chunked = self.head.fields.body == CHUNKED and (not self._is_whole or bool(self._trailers))
        position = 0
        try:
            while position < buffer.size:
                piece = await buffer.read(position)
                position += len(piece)
                upstream.transport.write(chunks.encode(piece) if is_chunked else piece)
                self.client.set_deadline(self._progress_timeout())
                await self._has_room.wait()
        except OSError as error:
            self._context.uploads.log_failure(error)
            if self.phase is SENT:
                self._fail_with(UPLOAD_LOST, f"the buffered body could not be read: {error}")
            else:
                self._break_off()
            return
        if self._is_whole and self._trailers:
            upstream.transport.write(chunks.last_chunk(self._trailers))
        self._sending = None
        self._is_sent = True
        if self._behind:
            upstream.transport.write(self._behind)
            self._behind = b""
        if not self._is_whole:
            self._release()
            if self._has_room.is_set():
                self.client.resume_reading()
        elif self.phase is not SENT:  # the origin has answered already
            self._release()

    def _respond(self, answer: ResponseHead, sent: bytes, data: bytes) -> None:
        if self._is_sent:
            self._release()
        super()._respond(answer, sent, data)

    # Backpressure and ends -------------------------------------------------------------------------------

    def on_upstream_full(self) -> None:
        """Send no more of the buffer, nor take more of the request."""
        self._has_room.clear()
        if not self.request_is_complete:
            super().on_upstream_full()

    def on_upstream_ready(self) -> None:
        """Send the buffer again; take the request again once the buffer is sent."""
        self._has_room.set()
        if self._buffer is None:
            super().on_upstream_ready()

    def on_upstream_lost(self, *, in_order: bool) -> None:
        """Stop sending, then act as any exchange."""
        self._stop_sending()
        self._is_sent = False
        super().on_upstream_lost(in_order=in_order)

    def on_deadline(self) -> None:
        """End the exchange: no progress for too long."""
        if self.phase is BUFFERING:
            self._fail_with(REQUEST_TIMEOUT)
        else:
            super().on_deadline()

    def _end(self, ending: Ending, reusable: bool = False) -> None:
        is_sent = self._is_sent
        self._stop_sending()
        if self._moving is not None:
            self._moving.cancel()
            self._moving = None
        self._release()
        super()._end(ending, reusable and is_sent)

    def _stop_sending(self) -> None:
        if self._sending is not None:
            self._sending.cancel()
            self._sending = None

    def _release(self) -> None:
        buffer, self._buffer = self._buffer, None
        if buffer is not None:
            buffer.close()


def _in_chunks(content: bytes, trailers: bytes) -> bytes:
    return (chunks.encode(content) if content else b"") + chunks.last_chunk(trailers)
