"""What a connection sends: frames of its own first, then those of streams, by urgency (RFC 9218 §10).

Streams of one urgency are sent one after the other, in the order in which they had something to send; a stream whose
pieces are of use by themselves (`incremental`) lets the next one through after each frame. A stream that its own window
or the connection's stops leaves the queue until the window opens. Content is not copied: frames are lists of octets.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, TypeAlias

from edge.http2 import frames
from edge.http2.hpack import EMPTY_TABLE
from edge.http2.priorities import URGENCIES
from edge.http2.streams import (
    CLOSED,
    DATA_SENT,
    DATA_SENT_END,
    HEADERS_SENT,
    HEADERS_SENT_END,
    Stream,
    advance,
)

Piece: TypeAlias = "bytes | memoryview"

# By themselves, since every response needs them: an attribute of a module costs a step more.
_MAX_FRAME_BYTES: Final = frames.MAX_FRAME_BYTES
_pack_header: Final = frames.pack_header
_HEADERS: Final = frames.HEADERS
_END_HEADERS: Final = frames.END_HEADERS
_END_STREAM: Final = frames.END_STREAM
_WHOLE_HEADERS: Final = frames.END_HEADERS | frames.END_STREAM

MAX_DATA_BYTES: Final = frames.MAX_FRAME_BYTES - frames.HEADER_BYTES
"""Of a DATA frame: with its header, as much as a TLS record carries."""

HIGH_BYTES: Final = 131_072
"""What one stream holds of its response before its origin is paused."""

LOW_BYTES: Final = 16_384
"""What is left of that when the origin goes on."""

MAX_HELD_BYTES: Final = 262_144
"""What a connection holds of all responses before their origins are paused."""

_MOST_AHEAD_BYTES: Final = 65_536
"""Content of whole responses that are written before all else, from one `take` to the next."""

_NONE_AHEAD: Final = -1
"""Until the first block is sent, which begins with `EMPTY_TABLE`, every response is queued."""


class _NoQueue(list[Stream]):
    """A queue that keeps nothing."""

    __slots__ = ()

    def append(self, stream: Stream) -> None:
        """Drop the stream."""


_NO_QUEUES: Final[list[list[Stream] | None]] = [_NoQueue()] * URGENCIES


class Output:
    """Keeps what one connection has to send. Made and fed by it.

    `window` is the connection's; `held_bytes` are those of all streams, of which `queued` have something to send.
    `control` are whole frames that go before the streams' (`add_whole`). `sent_pieces` are those sent to their end.
    """

    __slots__ = (
        "_granted",
        "_is_first_block",
        "_on_end",
        "_queues",
        "_room",
        "_starved",
        "control",
        "control_bytes",
        "held_bytes",
        "queued",
        "sent_pieces",
        "window",
    )

    def __init__(self, on_end: Callable[[Stream], None]) -> None:
        """Begin empty. `on_end` is called once the last frame of a stream's response is taken."""
        self._on_end = on_end
        self._is_first_block = True
        self._room = _NONE_AHEAD
        self.control: list[Piece] = []
        self.control_bytes = 0
        self.window = frames.DEFAULT_WINDOW
        self.held_bytes = 0
        self.sent_pieces = 0
        self._granted = frames.DEFAULT_WINDOW  # by the client, for the connection
        self._queues: list[list[Stream] | None] = [None] * URGENCIES  # made when needed: a whole response needs none
        self.queued = 0
        self._starved: list[Stream] = []  # stopped by the connection's window

    @property
    def sent_bytes(self) -> int:
        """Return how much content was sent."""
        return self._granted - self.window

    def add_control(self, frame: bytes) -> None:
        """Queue a frame that goes before all content."""
        self.control.append(frame)
        self.control_bytes += len(frame)

    def queue(self, stream: Stream) -> None:
        """Queue a stream that has something to send."""
        if not stream.is_queued:
            stream.is_queued = True
            self.queued += 1
            queue = self._queues[stream.urgency]
            if queue is None:
                queue = self._queues[stream.urgency] = []
            queue.append(stream)

    def unqueue(self, stream: Stream) -> bool:
        """Take the stream out of its queue; return whether it was in it."""
        queue = self._queues[stream.urgency]
        if not stream.is_queued or queue is None or stream not in queue:
            return False
        queue.remove(stream)
        self.queued -= 1
        stream.is_queued = False
        return True

    def add(self, stream: Stream, data: bytes) -> None:
        """Send content."""
        size = len(data)
        if stream.pending is None:
            stream.pending = [data]
        else:
            stream.pending.append(data)
        stream.pending_bytes += size
        self.held_bytes += size
        if not stream.is_queued:
            self.queue(stream)
        if stream.pending_bytes > HIGH_BYTES or self.held_bytes > MAX_HELD_BYTES:
            stream.is_full = True

    def add_whole(self, stream: Stream, block: bytes, data: bytes, at_once: bool) -> tuple[Piece, ...]:
        """Send a whole response before all else. Return its frames; none where it has to be queued.

        `at_once`: the caller writes them. Where none are returned, nothing is changed.
        """
        size, block_size, stream_id = len(data), len(block), stream.id
        if self.queued or size > self._room or size > self.window or size > stream.send_window:
            return ()
        if size > MAX_DATA_BYTES or block_size > _MAX_FRAME_BYTES:
            return ()
        pieces: tuple[Piece, ...]
        if not size:
            pieces = _pack_header(block_size << 8 | _HEADERS, _WHOLE_HEADERS, stream_id), block
        else:
            pieces = (
                _pack_header(block_size << 8 | _HEADERS, _END_HEADERS, stream_id),
                block,
                _pack_header(size << 8, _END_STREAM, stream_id),  # DATA
                data,
            )
            self.window -= size
            self.sent_pieces += 1
        if not at_once:
            self.control += pieces
            self._room -= size
        return pieces

    def drop(self, stream: Stream) -> None:
        """Send nothing more of the stream."""
        if stream.is_queued and stream in self._starved:  # no more than are open
            self._starved.remove(stream)
        self.held_bytes -= stream.pending_bytes
        stream.pending = None
        stream.pending_bytes = 0
        stream.interims = ()
        stream.block = stream.trailers = b""

    def abandon(self) -> None:
        """Forget what is to be sent, and queue no stream any more: nothing can be sent."""
        del self._on_end
        self.control, self.control_bytes = [], 0
        self._queues, self._starved, self.queued = _NO_QUEUES, [], 0

    def open_window(self, increment: int) -> None:
        """Enlarge the connection's window."""
        self.window += increment
        self._granted += increment
        if self.window > 0 and self._starved:
            starved, self._starved = self._starved, []
            for stream in starved:
                stream.is_queued = False
                if stream.state is not CLOSED:
                    self.queue(stream)

    def take(self, most_bytes: int) -> list[Piece]:
        """Return what is to be written next: some `most_bytes` of content.

        What the end of a response adds to `control` is left for the next write: where a reset without error comes in
        one TLS record with the response to a request that has not ended, curl 7.88 shows an error instead.
        """
        out: list[Piece] = self._take_control() if self.control else []
        if not self.queued:
            return out
        for queue in filter(None, self._queues):
            while queue:
                if most_bytes <= 0:
                    return out
                stream = queue.pop(0)
                self.queued -= 1
                stream.is_queued = False
                if stream.state is not CLOSED:
                    most_bytes -= self._write(stream, out, most_bytes)
        return out

    def _take_control(self) -> list[Piece]:
        control, self.control = self.control, []
        self.control_bytes = 0
        if not self._is_first_block:
            self._room = _MOST_AHEAD_BYTES
        return control

    def _write(self, stream: Stream, out: list[Piece], most_bytes: int) -> int:
        """Write frames of a stream; return the size of their content."""
        if stream.interims:
            for block in stream.interims:
                self._write_block(stream, block, out, end_stream=False)
            stream.interims = ()
        if stream.block:
            is_all = stream.has_ended and not stream.pending and not stream.trailers
            self._write_block(stream, stream.block, out, end_stream=is_all)
            stream.block = b""
            if is_all:
                self._on_end(stream)
                return 0
        written = self._write_content(stream, stream.pending, out, most_bytes) if stream.pending else 0
        if stream.pending:
            if self.window <= 0 < stream.send_window:
                stream.is_queued = True
                self._starved.append(stream)
            elif stream.send_window > 0:
                self.queue(stream)
        elif stream.has_ended:
            self._write_end(stream, out)
        return written

    def _write_block(self, stream: Stream, block: bytes, out: list[Piece], *, end_stream: bool) -> None:
        stream.state = advance(stream.state, HEADERS_SENT_END if end_stream else HEADERS_SENT)
        if self._is_first_block:
            self._is_first_block = False
            self._room = _MOST_AHEAD_BYTES
            block = EMPTY_TABLE + block
        out += frames.headers(stream.id, block, end_stream=end_stream, max_bytes=frames.MAX_FRAME_BYTES)

    def _write_content(self, stream: Stream, pending: list[bytes], out: list[Piece], most_bytes: int) -> int:
        written = index = 0
        while index < len(pending):
            size = min(self.window, stream.send_window, MAX_DATA_BYTES)
            if size <= 0 or written >= most_bytes:
                break
            piece, start = pending[index], stream.pending_from
            left = len(piece) - start
            data: Piece = piece
            if size < left:
                data = memoryview(piece)[start : start + size]
                stream.pending_from = start + size
            else:
                size = left
                self.sent_pieces += 1
                if start:
                    data = memoryview(piece)[start:]
                    stream.pending_from = 0
                index += 1
            is_last = index == len(pending) and stream.has_ended and not stream.trailers
            stream.state = advance(stream.state, DATA_SENT_END if is_last else DATA_SENT)
            out.append(frames.header(frames.DATA, frames.END_STREAM if is_last else 0, stream.id, size))
            out.append(data)
            self.window -= size
            stream.send_window -= size
            written += size
            if stream.incremental:
                break
        del pending[:index]
        stream.pending_bytes -= written
        self.held_bytes -= written
        if written and stream.is_full and stream.pending_bytes <= LOW_BYTES:
            stream.is_full = False
            stream.on_room()
        return written

    def _write_end(self, stream: Stream, out: list[Piece]) -> None:
        if stream.trailers:
            self._write_block(stream, stream.trailers, out, end_stream=True)
            stream.trailers = b""
        elif not stream.is_sent:
            stream.state = advance(stream.state, DATA_SENT_END)
            out.append(frames.header(frames.DATA, frames.END_STREAM, stream.id, 0))
        self._on_end(stream)
