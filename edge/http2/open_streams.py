"""The streams of a connection that are not closed: what is sent on them, how they end, and what the client may send.

`OpenStreams` owns them, both tables of flow control, the budgets and the queue of what is to be sent. What is received
is `edge.http2.connection`'s, which builds on it.
"""

from __future__ import annotations

from itertools import islice
from types import MappingProxyType
from typing import Any, Final, Protocol, cast

from edge.http2 import budgets, frames
from edge.http2.budgets import Budgets
from edge.http2.errors import ConnectionFailed, ErrorCode, StreamFailed
from edge.http2.output import Output, Piece
from edge.http2.streams import CLOSED, HALF_CLOSED_LOCAL, HALF_CLOSED_REMOTE, OPEN, RESET_SENT, Stream, advance

STREAM_WINDOW: Final = 131_072
"""What a client may send on a stream at first. At 50 ms round trip that is 2.5 MB a second, so windows grow."""

MAX_STREAM_WINDOW: Final = 1_048_576
"""For an upload whose origin takes it as it comes."""

CONNECTION_WINDOW: Final = 1_048_576
"""For all streams, at first; it grows with theirs, so that a grown stream that stops does not stop the others."""

MAX_GROWTH: Final = 1_048_576
"""Of all streams of a connection: it bounds what a connection may hold of uploads, beside `CONNECTION_WINDOW`."""

LAST_STREAM: Final = 2**31 - 1

NOTHING: Final = cast("dict[int, Any]", MappingProxyType({}))
"""A dictionary before its first entry, which most connections never have: each takes 64 octets."""

MAX_REMEMBERED: Final = 512  # streams that we reset, and ranges of those that were passed over


class Owner(Protocol):
    """The client connection, as its HTTP/2 calls it."""

    def open_stream(self, stream_id: int, send_window: int) -> Stream:
        """Make the object of a new stream."""

    def on_request(self, stream: Any, head: bytes, *, is_complete: bool) -> None:
        """Take a request, as a head of HTTP/1.1; content follows unless it `is_complete`.

        `stream` is what `open_stream` made; to ask for its class costs each request a step.
        """

    def last_request(self) -> object | None:
        """Return what `on_similar_request` takes for others like the last request; None where its head is needed."""

    def has_kept(self, request: Any, kept: bytes) -> bool:
        """Return whether these are all fields of a `last_request` that went on: the owner may have cut out others."""

    def on_similar_request(
        self, stream: Any, request: Any, path: bytes, head_bytes: int, kept: bytes | None = None
    ) -> bool:
        """Take a complete request that differs from one that was `last_request` in its path alone, not judged yet.

        Where it also differs in values of fields that go on, `kept` are all that do, as HTTP/1.1 has them, and valid.
        Return False where the head is needed, of that length: `on_request` follows.
        """

    def on_blame(self, fault: StreamFailed) -> None:
        """Note that a stream was reset for what the client did."""

    def on_failure(self, streams: list[Stream]) -> None:
        """Take the streams that the connection's failure closed; their `on_reset` is not called."""


class OpenStreams:
    """Keeps the streams of one connection; `failure` is why that ended, None while it goes on.

    Invariant: `streams` holds those that are not closed.
    """

    __slots__ = (
        "_budgets",
        "_connection_growth",
        "_credit",
        "_grown",
        "_growth_left",
        "_is_going_away",
        "_last_allowed",
        "_output",
        "_owner",
        "_passed_over",
        "_receive_window",
        "_reset_ids",
        "failure",
        "has_gone_away",
        "last_stream_id",
        "streams",
        "take_output",
    )

    def __init__(self, owner: Owner) -> None:
        self._owner = owner
        self._budgets = Budgets()
        self._output = Output(self._on_sent)
        self.take_output = self._output.take
        self.streams: dict[int, Stream] = {}
        self.last_stream_id = 0
        self._last_allowed = LAST_STREAM  # streams above are ignored, as our last GOAWAY states
        self._is_going_away = False
        self.has_gone_away = False  # the client knows that no further stream is served
        self._passed_over: list[range] = []  # streams that the client did not open before higher ones, lately
        self._reset_ids: dict[int, None] = NOTHING  # streams that we ended lately: frames may still be on their way
        self._receive_window = CONNECTION_WINDOW
        self._credit = 0  # octets received that no WINDOW_UPDATE has returned
        self._grown: dict[int, int] = NOTHING  # by how much the windows of streams are larger than `STREAM_WINDOW`
        self._growth_left = MAX_GROWTH  # for others
        self._connection_growth = 0  # of the connection's window, which stays
        self.failure: ConnectionFailed | None = None

    @property
    def has_output(self) -> bool:
        """Return whether something waits to be sent."""
        output = self._output
        return bool(output.queued or output.control)

    @property
    def is_going_away(self) -> bool:
        """Return whether the client knows that the connection will end."""
        return self._is_going_away

    @property
    def held_bytes(self) -> int:
        """Return how much content of responses waits to be sent."""
        return self._output.held_bytes

    def send_interim(self, stream: Stream, block: bytes) -> None:
        """Send the head of an interim response (§8.1)."""
        stream.interims = (*stream.interims, block)
        self._output.queue(stream)

    def send_head(self, stream: Stream, block: bytes, data: bytes = b"") -> None:
        """Send the head of the response, and first content. More may follow, then `end`."""
        stream.block = block
        if data:
            self._output.add(stream, data)
        else:
            self._output.queue(stream)

    def send_data(self, stream: Stream, data: bytes) -> None:
        """Send content, which is not empty."""
        self._output.add(stream, data)

    def end(self, stream: Stream, trailers: bytes = b"") -> None:
        """End the response. `trailers` are a block."""
        stream.has_ended = True
        stream.trailers = trailers
        if not stream.is_queued:
            self._output.queue(stream)

    def respond(self, stream: Stream, block: bytes, data: bytes, at_once: bool) -> tuple[Piece, ...]:
        """Send a whole response before all else, of which nothing was sent. Return its frames.

        `at_once`: the caller writes them. Where none are returned, nothing is changed: the response has to be queued.
        """
        if stream.state is not HALF_CLOSED_REMOTE:
            return ()
        pieces = self._output.add_whole(stream, block, data, at_once)
        if pieces:
            stream.state = CLOSED
            self._budgets.served += 1
            del self.streams[stream.id]
            if stream.held or self._grown:
                self._return_held(stream)
        return pieces

    def reset(self, stream: Stream, code: ErrorCode) -> None:
        """End a stream early, at our own wish. Its `on_reset` is not called."""
        if stream.state is not CLOSED:
            stream.state = advance(stream.state, RESET_SENT)
            self._close(stream)
            self._send_reset(stream.id, code)

    def pause(self, stream: Stream) -> None:
        """Return no credit for what the stream receives, so that the client stops sending."""
        stream.is_paused = True

    def resume(self, stream: Stream) -> None:
        """Return credit again."""
        if stream.is_paused:
            stream.is_paused = False
            self._return_credit(stream)

    def go_away(self, *, is_final: bool) -> None:
        """Announce the end: first that it comes, then, `is_final`, up to which stream requests are served (§6.8)."""
        if self.failure is None and self._last_allowed == LAST_STREAM:
            self._is_going_away = True
            if is_final:
                self._last_allowed = self.last_stream_id
                self.has_gone_away = True
            self._output.add_control(frames.goaway(self._last_allowed, ErrorCode.NO_ERROR))

    def fail(self, failure: ConnectionFailed) -> None:
        """End the connection: streams are reset, and GOAWAY is the last frame."""
        failure.__traceback__ = failure.__context__ = None  # their frames refer to this connection
        self.failure = failure
        last = min(self.last_stream_id, self._last_allowed)
        self._output.add_control(frames.goaway(last, failure.code, failure.reason.encode()))
        streams = list(self.streams.values())
        for stream in streams:
            stream.state = CLOSED
            self._close(stream)
        self._owner.on_failure(streams)

    def abandon(self) -> None:
        """Forget the owner and the streams, which may be called as before: the transport is gone.

        Nothing then refers to what refers to this: an engine of TLS is 40 KB and more, of which the garbage collector
        knows nothing, so that it would let thousands pile up.
        """
        del self._owner
        streams, self.streams = self.streams, {}
        for stream in streams.values():
            stream.state = CLOSED
            self._output.drop(stream)
        self._output.abandon()

    def _on_sent(self, stream: Stream) -> None:
        """Act on the last frame of a response, which is on its way."""
        self._budgets.served += 1
        if stream.state is HALF_CLOSED_LOCAL:  # §8.1: the rest of the request is of no use
            self.reset(stream, ErrorCode.NO_ERROR)
        else:
            self._close(stream)

    def _blame(self, stream: Stream, fault: StreamFailed) -> None:
        """Reset a stream for what the client did."""
        self.reset(stream, fault.code)
        stream.on_reset(fault.code)
        self._owner.on_blame(fault)
        self._budgets.spend(budgets.EARLY_ENDS)

    def _send_reset(self, stream_id: int, code: ErrorCode) -> None:
        ours = self._reset_ids = self._reset_ids or {}
        if len(ours) >= MAX_REMEMBERED:
            for old_id in list(islice(ours, MAX_REMEMBERED // 2)):
                del ours[old_id]
        ours[stream_id] = None
        self._output.add_control(frames.rst_stream(stream_id, code))

    def _close(self, stream: Stream) -> None:
        """Forget a stream that is closed, and what it was to send."""
        del self.streams[stream.id]
        if stream.pending_bytes or stream.block or stream.interims:
            self._output.drop(stream)
        if stream.held or self._grown:
            self._return_held(stream)

    def _return_held(self, stream: Stream) -> None:
        self._return_to_connection(stream.held)
        stream.held = 0
        if self._grown and stream.state is CLOSED:
            self._growth_left += self._grown.pop(stream.id, 0)

    def _return_credit(self, stream: Stream, *, keeps_up: bool = False) -> None:
        """Let the client send as much again as was passed on, and more where the origin `keeps_up`."""
        if stream.is_paused or stream.state is CLOSED:
            return
        self._return_held(stream)
        if stream.credit >= STREAM_WINDOW // 2 and stream.state is OPEN:
            growth = self._grow(stream.id) if keeps_up else 0
            self._output.add_control(frames.window_update(stream.id, stream.credit + growth))
            stream.credit = 0

    def _grow(self, stream_id: int) -> int:
        """Double a stream's window, within the bounds; return by how much it grew."""
        grown = self._grown.get(stream_id, 0)
        window = STREAM_WINDOW + grown
        growth = min(window, MAX_STREAM_WINDOW - window, self._growth_left)
        if growth:
            self._grown = self._grown or {}
            self._grown[stream_id] = grown + growth
            self._growth_left -= growth
            missing = MAX_GROWTH - self._growth_left - self._connection_growth
            if missing > 0:
                self._connection_growth += missing
                self._receive_window += missing
                self._output.add_control(frames.window_update(0, missing))
        return growth

    def _return_to_connection(self, size: int) -> None:
        self._credit += size
        if self._credit >= CONNECTION_WINDOW // 2:
            self._output.add_control(frames.window_update(0, self._credit))
            self._receive_window += self._credit
            self._credit = 0
