"""What a client's connection in HTTP/2 writes: the responses of its streams, all in one write a loop turn.

`Http2Writing` is the half of `Http2ClientConnection` that streams call to send; it decides nothing about requests.
"""

from __future__ import annotations

from typing import Final

from edge.http2.connection import Http2Connection
from edge.http2.errors import ErrorCode
from edge.http2.responses import HeadEncoder
from edge.proxy.accepted_connection import AcceptedConnection
from edge.proxy.connection_states import READING
from edge.proxy.http2_stream import NEVER, Http2Stream

WRITE_BYTES: Final = 262_144
"""Content of one write, at most."""

FORGET_SECONDS: Final = 5
"""Without a stream, until a connection forgets what its requests are like, and holds some kilobytes less."""


class Http2Writing(AcceptedConnection):
    """The writing half of a connection. `Http2ClientConnection` sets all fields."""

    __slots__ = (
        "_head_deadline",
        "_http2",
        "_idle_deadline",
        "_is_flush_due",
        "_is_receiving",
        "_read_by",
        "head_encoder",
    )

    head_encoder: HeadEncoder
    _head_deadline: float
    _http2: Http2Connection
    _idle_deadline: float
    _is_flush_due: bool
    _read_by: float  # while the transport is full: by then the client is to have read
    _is_receiving: bool  # the streams of one read may not be known all

    def pause_writing(self) -> None:
        """Write no more until the client has read."""
        self._is_full = True
        self._unsent_bytes = self._transport.get_write_buffer_size()
        if self.state is READING:
            self._expect_reading()

    def _expect_reading(self) -> None:
        """Have the client read some of what is unsent in time, whether or not a stream waits for it."""
        worker = self._worker
        self._read_by = worker.now + worker.exchanges.timeouts.body
        self.deadline = min(self.deadline, self._read_by)

    def resume_writing(self) -> None:
        """Write again."""
        self._is_full = False
        self._read_by = NEVER
        if self._http2.has_output:
            self.flush_soon()

    def flush_soon(self) -> None:
        """Write what there is at the end of this turn of the loop."""
        if not (self._is_flush_due or self._is_full):
            self._is_flush_due = True
            self._worker.loop.call_soon(self._flush)

    def _flush(self) -> None:
        """Write what there is, in one write."""
        self._is_flush_due = False
        if self.state is not READING or self._is_full:
            return
        http2 = self._http2
        pieces = http2.take_output(WRITE_BYTES)
        if pieces:
            self._transport.write(b"".join(pieces))
        if http2.has_output:
            self.flush_soon()
        elif not http2.streams:
            self._become_idle()

    def _become_idle(self) -> None:
        """Wait for the next stream, or close: none is open."""
        http2 = self._http2
        if http2.client_is_leaving or http2.has_gone_away:
            if not http2.has_output:
                self._close(lingers=True)
        elif self._idle_deadline == NEVER:
            worker = self._worker
            now, seconds = worker.now, worker.idle_seconds
            self._idle_deadline = now + seconds
            deadline = now + (seconds if seconds < FORGET_SECONDS else FORGET_SECONDS)
            self.deadline = deadline if deadline < self._head_deadline else self._head_deadline
            if self._is_full:
                self.deadline = min(self.deadline, self._read_by)

    def send_interim(self, stream: Http2Stream, head: bytes) -> None:
        """Send the head of an interim response."""
        self._http2.send_interim(stream, self.head_encoder.head(head))
        self.flush_soon()

    def send_block(self, stream: Http2Stream, block: bytes, data: bytes) -> None:
        """Send the block of the response's head, and content, of which more follows."""
        self._http2.send_head(stream, block, data)
        self.flush_soon()

    def send_data(self, stream: Http2Stream, data: bytes) -> None:
        """Send content."""
        self._http2.send_data(stream, data)
        self.flush_soon()

    def send_trailers(self, stream: Http2Stream, block: bytes) -> None:
        """Keep the trailer fields that end the response."""
        stream.trailers = self.head_encoder.trailers(block)

    def respond(self, stream: Http2Stream, block: bytes, data: bytes) -> None:
        """Send a whole response. The only one under way is written at once."""
        http2 = self._http2
        # What the request's content leaves to be said goes behind the response: not of a stream that has none.
        at_once = len(http2.streams) == 1 and not (self._is_receiving or self._is_flush_due or stream.held)
        pieces = None if self._is_full else http2.respond(stream, block, data, at_once)
        if not pieces:  # then urgency orders what waits
            http2.send_head(stream, block, data)
            self.end(stream)
        elif not at_once:
            self.flush_soon()
        elif self.state is READING:
            self._transport.write(b"".join(pieces))
            self._become_idle()

    def end(self, stream: Http2Stream) -> None:
        """End the response, which is complete. The only one under way is written at once."""
        self._http2.end(stream, stream.trailers)
        if len(self._http2.streams) == 1 and not (self._is_flush_due or self._is_full or self._is_receiving):
            self._flush()
        else:
            self.flush_soon()
        if stream.pending_bytes:
            stream.wait_for_client()

    def reset(self, stream: Http2Stream, code: ErrorCode) -> None:
        """End a stream early."""
        self._http2.reset(stream, code)
        self.flush_soon()

    def pause(self, stream: Http2Stream) -> None:
        """Let the client send no more on the stream than its window."""
        self._http2.pause(stream)

    def resume(self, stream: Http2Stream) -> None:
        """Let the client send again."""
        self._http2.resume(stream)
        if self._http2.has_output:
            self.flush_soon()
