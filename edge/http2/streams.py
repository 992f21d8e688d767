"""The states of a stream, and what leads from one to the next: RFC 9113 §5.1 in one table.

A server that does not push has no reserved streams. An event that a state has no entry for is an error of whoever
causes it: of the client for what is received, of this program for what is sent.

    IDLE               not used yet
    OPEN               the request arrives
    HALF_CLOSED_REMOTE the request is complete, the response is not
    HALF_CLOSED_LOCAL  the response is complete, the request is not
    CLOSED             both are, or either side reset the stream
"""

from __future__ import annotations

from collections.abc import Mapping
from enum import IntEnum
from typing import Final

from edge.http2.errors import ErrorCode, StreamFailed


class StreamState(IntEnum):
    """The states of a stream (§5.1)."""

    IDLE = 0
    OPEN = 1
    HALF_CLOSED_REMOTE = 2
    HALF_CLOSED_LOCAL = 3
    CLOSED = 4


class StreamEvent(IntEnum):
    """A frame, received or sent; `_END` with END_STREAM."""

    HEADERS_RECEIVED = 0
    HEADERS_RECEIVED_END = 1
    DATA_RECEIVED = 2
    DATA_RECEIVED_END = 3
    RESET_RECEIVED = 4
    HEADERS_SENT = 5
    HEADERS_SENT_END = 6
    DATA_SENT = 7
    DATA_SENT_END = 8
    RESET_SENT = 9


# By themselves: to look a member up in its class costs as much as two calls.
IDLE, OPEN, HALF_CLOSED_REMOTE, HALF_CLOSED_LOCAL, CLOSED = StreamState
(
    HEADERS_RECEIVED,
    HEADERS_RECEIVED_END,
    DATA_RECEIVED,
    DATA_RECEIVED_END,
    RESET_RECEIVED,
    HEADERS_SENT,
    HEADERS_SENT_END,
    DATA_SENT,
    DATA_SENT_END,
    RESET_SENT,
) = StreamEvent

TRANSITIONS: Final[Mapping[StreamState, Mapping[StreamEvent, StreamState]]] = {
    IDLE: {
        HEADERS_RECEIVED: OPEN,
        HEADERS_RECEIVED_END: HALF_CLOSED_REMOTE,
    },
    OPEN: {
        HEADERS_RECEIVED_END: HALF_CLOSED_REMOTE,  # trailers
        DATA_RECEIVED: OPEN,
        DATA_RECEIVED_END: HALF_CLOSED_REMOTE,
        RESET_RECEIVED: CLOSED,
        HEADERS_SENT: OPEN,
        HEADERS_SENT_END: HALF_CLOSED_LOCAL,
        DATA_SENT: OPEN,
        DATA_SENT_END: HALF_CLOSED_LOCAL,
        RESET_SENT: CLOSED,
    },
    HALF_CLOSED_REMOTE: {
        RESET_RECEIVED: CLOSED,
        HEADERS_SENT: HALF_CLOSED_REMOTE,
        HEADERS_SENT_END: CLOSED,
        DATA_SENT: HALF_CLOSED_REMOTE,
        DATA_SENT_END: CLOSED,
        RESET_SENT: CLOSED,
    },
    HALF_CLOSED_LOCAL: {
        HEADERS_RECEIVED_END: CLOSED,
        DATA_RECEIVED: HALF_CLOSED_LOCAL,
        DATA_RECEIVED_END: CLOSED,
        RESET_RECEIVED: CLOSED,
        RESET_SENT: CLOSED,
    },
    CLOSED: {},
}

OPENED: Final = TRANSITIONS[IDLE]
_NEXT: Final = [[TRANSITIONS[state].get(event) for event in StreamEvent] for state in StreamState]
_FIRST_SENT: Final = HEADERS_SENT


def advance(state: StreamState, event: StreamEvent) -> StreamState:
    """Return the state that follows.

    Raises: `StreamFailed` for a frame that the client must not send in this state.
    """
    following = _NEXT[state][event]
    if following is None:
        assert event < _FIRST_SENT, f"{event.name} in {state.name}"
        if state is OPEN:  # §8.1: a second HEADERS frame without END_STREAM
            raise StreamFailed(ErrorCode.PROTOCOL_ERROR, "trailers without END_STREAM")
        raise StreamFailed(ErrorCode.STREAM_CLOSED, "a frame on a stream that the client has ended")
    return following


class Stream:
    """One stream: its state, what it may receive, and what waits to be sent. The owner of a connection subclasses it.

    Its fields are written by `edge.http2.connection`, `edge.http2.open_streams` and `edge.http2.output` alone.
    """

    __slots__ = (
        "block",
        "credit",
        "has_ended",
        "held",
        "id",
        "incremental",
        "interims",
        "is_full",
        "is_paused",
        "is_queued",
        "pending",
        "pending_bytes",
        "pending_from",
        "send_window",
        "state",
        "trailers",
        "urgency",
    )

    def __init__(self, stream_id: int, send_window: int) -> None:
        self.id = stream_id
        self.state: StreamState = IDLE
        # what is received
        self.credit = 0  # octets received that no WINDOW_UPDATE has returned
        self.held = 0  # of these, those that the connection's window lacks too: received while paused
        self.is_paused = False  # no octets are returned
        # what is sent
        self.send_window = send_window
        self.interims: tuple[bytes, ...] = ()  # blocks
        self.block = b""  # of the response's HEADERS frame
        self.pending: list[bytes] | None = None  # content; a list from the first on
        self.pending_from = 0  # octets of the first piece that are sent
        self.pending_bytes = 0
        self.trailers = b""  # a block
        self.has_ended = False  # the response is complete with what is pending
        self.is_queued = False
        self.is_full = False  # its owner should wait with more, until `on_room`
        self.urgency = 3
        self.incremental = False

    def __repr__(self) -> str:
        return f"<Stream {self.id} {self.state.name}, {self.pending_bytes} bytes to send>"

    @property
    def is_sent(self) -> bool:
        """Return whether END_STREAM was sent, or a reset."""
        return self.state >= HALF_CLOSED_LOCAL

    def on_data(self, data: bytes) -> None:
        """Take content of the request."""

    def on_request_end(self, trailers: bytes) -> None:
        """Take the request's end. `trailers` are a block of HTTP/1.1."""

    def on_reset(self, code: int) -> None:
        """Take the stream's early end, by the client's RST_STREAM or ours; it is closed."""

    def on_room(self) -> None:
        """Send more: the stream `is_full` no more."""
