"""One connection of HTTP/2, the server's side (RFC 9113): octets in, calls to its owner and octets out. Sans I/O.

`Http2Connection` reads frames, and acts on them; header blocks are `edge.http2.request_streams`', and its streams, and
what is sent on them, `edge.http2.open_streams`'.
What a request means, and where a response comes from, is its owner's. Every error of the client ends in one of two
ways: its stream is reset, or GOAWAY states why the connection ends (`failure`), and nothing more is read.

One call of `receive` does a bounded amount of work: with more at hand, `has_more` is set, and a call without data reads
on.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Final

from edge.http2 import budgets, frames
from edge.http2.blocks import BlockAssembly
from edge.http2.errors import ConnectionFailed, ErrorCode, StreamFailed
from edge.http2.literals import KnownLiterals
from edge.http2.open_streams import CONNECTION_WINDOW, LAST_STREAM, STREAM_WINDOW, Owner
from edge.http2.priorities import read_priority
from edge.http2.request_streams import MAX_STREAMS, RequestStreams
from edge.http2.streams import (
    CLOSED,
    DATA_RECEIVED,
    DATA_RECEIVED_END,
    OPEN,
    RESET_RECEIVED,
    Stream,
    advance,
)

STEPS_AT_ONCE: Final = 512
"""Frames that one call of `receive` reads: a third of a millisecond. A header block counts as 16, and each
of its fields as two, as four of a block with many; frames that are large or make work elsewhere count as several."""

_DATA_STEPS: Final = 12  # each is written to an origin
_RESET_STEPS: Final = 16  # each may cancel an exchange
_OCTETS_A_STEP: Final = 32
_CONTENT_OCTETS_A_STEP: Final = 512
_MAX_EARLY_PRIORITIES: Final = 256
_KIND_AT: Final = 3  # of a frame's header
# By themselves, since every request needs them: an attribute of a module costs a step more.
_HEADER_BYTES: Final = frames.HEADER_BYTES
_MAX_FRAME_BYTES: Final = frames.MAX_FRAME_BYTES
_HEADERS: Final = frames.HEADERS
_read_header: Final = frames.read_header
_WHOLE_REQUEST: Final = frames.END_HEADERS | frames.END_STREAM  # flags of the most frequent HEADERS frame
_MOST_AT_ONCE: Final = _HEADER_BYTES + _MAX_FRAME_BYTES
_PROTOCOL: Final = ErrorCode.PROTOCOL_ERROR


class Http2Connection(RequestStreams):
    """Speaks HTTP/2 on one connection. Made by its owner.

    Invariant: once `failure` is set, nothing is read and no stream is left.
    """

    __slots__ = (
        "_block",
        "_has_preface",
        "_has_settings",
        "_needed",
        "_partial",
        "_unread",
        "client_is_leaving",
        "is_between_frames",
    )

    def __init__(self, owner: Owner, literals: KnownLiterals, *, max_head_bytes: int) -> None:
        super().__init__(owner, literals, max_head_bytes)
        self.client_is_leaving = False
        # what is received
        self._partial = bytearray()  # the start of what is not yet whole
        self._needed = frames.HEADER_BYTES  # octets of that, until the next frame is whole
        self._has_preface = False
        self._unread = b""  # whole frames, left for the next call
        self._has_settings = False
        self.is_between_frames = False  # all that came is read, and ended with a whole frame or header block
        self._block = BlockAssembly(self._max_block_bytes)
        self._output.add_control(
            frames.settings(
                (
                    (frames.MAX_CONCURRENT_STREAMS, MAX_STREAMS),
                    (frames.INITIAL_WINDOW_SIZE, STREAM_WINDOW),
                    (frames.MAX_HEADER_LIST_SIZE, max_head_bytes),
                    (frames.NO_RFC7540_PRIORITIES, 1),
                )
            )
            + frames.window_update(0, CONNECTION_WINDOW - frames.DEFAULT_WINDOW)
        )

    def __repr__(self) -> str:
        return f"<Http2Connection {len(self.streams)} streams, last {self.last_stream_id}, {self.failure or 'open'}>"

    @property
    def has_more(self) -> bool:
        """Return whether `receive` without data reads on."""
        return bool(self._unread)

    @property
    def is_in_head(self) -> bool:
        """Return whether a frame but DATA, or a header block, has begun whose end is still to come."""
        partial = self._partial
        is_data = len(partial) > _KIND_AT and partial[_KIND_AT] == frames.DATA
        return bool(self._block.stream_id) or (bool(partial) and not is_data)

    @property
    def uploading_stream(self) -> Stream | None:
        """Return the stream of a DATA frame that has begun, and of which more is still to come.

        None is returned where the client has other things to do: take the response, or wait for it.
        """
        partial = self._partial
        if len(partial) < frames.HEADER_BYTES or partial[_KIND_AT] != frames.DATA:
            return None
        stream = self.streams.get(frames.read_header(partial)[2] & LAST_STREAM)
        return stream if stream is not None and stream.state is OPEN and not stream.pending_bytes else None

    # What is received -------------------------------------------------------------------------------------

    def receive(self, data: bytes) -> bool:
        """Read what came. Return True where it was one request, and no frame of the connection's own is to be sent."""
        if self.failure is not None:
            return False
        try:
            size = len(data)
            if self.is_between_frames and _HEADER_BYTES <= size <= _MOST_AT_ONCE:
                word, flags, stream_id = _read_header(data)
                if flags == _WHOLE_REQUEST and stream_id & 1 and word == (size - _HEADER_BYTES) << 8 | _HEADERS:
                    self._on_block(stream_id & LAST_STREAM, data[_HEADER_BYTES:], True)
                    if not self._output.control_bytes:
                        return True
                    data = b""
            self._receive(data)
            if self._output.control_bytes > budgets.MAX_UNREAD_ANSWER_BYTES:
                raise budgets.exceeded("unread_answers")
        except ConnectionFailed as failure:
            self.fail(failure)
        else:
            self.is_between_frames = self._has_settings and not (self._partial or self._unread or self._block.stream_id)
        return False

    def fail(self, failure: ConnectionFailed) -> None:
        """End the connection, and forget what is not read."""
        self._partial.clear()
        self._unread = b""
        self.is_between_frames = False
        self._block.clear()
        super().fail(failure)

    def _receive(self, data: bytes) -> None:
        if not self._has_preface:
            data = self._read_preface(data)
            if not self._has_preface:
                return
        if self._partial:
            self._partial += data
            if len(self._partial) < self._needed:
                return
            data, self._partial = bytes(self._partial), bytearray()
        elif self._unread:
            data, self._unread = self._unread + data, b""
        position = self._read_frames(data)
        if position < len(data):
            self._partial = bytearray(memoryview(data)[position:])

    def _read_preface(self, data: bytes) -> bytes:
        """Return what follows the preface (§3.4); nothing while it is not whole."""
        data, self._partial = bytes(self._partial) + data, bytearray()
        preface = frames.PREFACE
        if not data.startswith(preface[: len(data)]):
            raise ConnectionFailed(_PROTOCOL, "no preface of HTTP/2")
        if len(data) < len(preface):
            self._partial = bytearray(data)
            return b""
        self._has_preface = True
        return data[len(preface) :]

    def _read_frames(self, data: bytes) -> int:
        """Read whole frames; return where the rest begins."""
        position, end = 0, len(data)
        may_begin = self._has_settings and not self._block.stream_id  # requests
        self._steps_left = STEPS_AT_ONCE
        while end - position >= _HEADER_BYTES:
            word, flags, stream_id = _read_header(data, position)
            length = word >> 8
            stop = position + _HEADER_BYTES + length
            if stop > end or length > _MAX_FRAME_BYTES:
                if length > _MAX_FRAME_BYTES:
                    raise ConnectionFailed(ErrorCode.FRAME_SIZE_ERROR, "a frame is too large")
                self._needed = stop - position
                return position
            payload = data[position + _HEADER_BYTES : stop]
            position = stop
            if flags == _WHOLE_REQUEST and may_begin and stream_id & 1 and word & 0xFF == _HEADERS:
                self._steps_left -= 1 + length // _OCTETS_A_STEP
                self._on_block(stream_id & LAST_STREAM, payload, True)
            else:
                self._steps_left -= self._read_frame(word & 0xFF, flags, stream_id & LAST_STREAM, payload)
                may_begin = self._has_settings and not self._block.stream_id
            if self._steps_left <= 0 and position < end:
                self._unread = data[position:]
                return end
        self._needed = _HEADER_BYTES
        return position

    def _read_frame(self, kind: int, flags: int, stream_id: int, payload: bytes) -> int:
        """Act on a frame; return how many steps that was, without those of a header block."""
        open_block = self._block.stream_id
        if open_block and (kind != frames.CONTINUATION or stream_id != open_block):
            raise ConnectionFailed(_PROTOCOL, "a header block is interrupted")
        if not self._has_settings and (kind != frames.SETTINGS or flags & frames.ACK):
            raise ConnectionFailed(_PROTOCOL, "the first frame is not SETTINGS")
        if kind == _HEADERS:
            self._on_headers(stream_id, flags, payload)
        elif kind == frames.DATA:
            self._on_data(stream_id, flags, payload)
            return 1 + _DATA_STEPS + len(payload) // _CONTENT_OCTETS_A_STEP
        elif kind in _HANDLERS:
            _HANDLERS[kind](self, stream_id, flags, payload)
            if kind == frames.RST_STREAM:
                return 1 + _RESET_STEPS
        else:  # §4.1
            self._budgets.spend(budgets.IGNORED_FRAMES)
            return 1
        return 1 + len(payload) // _OCTETS_A_STEP

    def _on_headers(self, stream_id: int, flags: int, payload: bytes) -> None:
        """Take a HEADERS frame (§6.2)."""
        if not stream_id & 1:  # §5.1.1
            raise ConnectionFailed(_PROTOCOL, "HEADERS on a stream that no client opens")
        if flags & (frames.PADDED | frames.HAS_PRIORITY):
            payload = _without_padding(flags, payload)
            if flags & frames.HAS_PRIORITY:
                if len(payload) < 5:
                    raise ConnectionFailed(ErrorCode.FRAME_SIZE_ERROR, "HEADERS without all of its priority")
                payload = payload[5:]
        if flags & frames.END_HEADERS:
            self._on_block(stream_id, payload, bool(flags & frames.END_STREAM))
            return
        self._block.begin(stream_id, payload, ends_stream=bool(flags & frames.END_STREAM))

    def _on_continuation(self, stream_id: int, flags: int, payload: bytes) -> None:
        """Take a CONTINUATION frame (§6.10)."""
        block = self._block.add(flags, payload)
        if block is not None:
            self._on_block(stream_id, block, self._block.ends_stream)

    def _on_data(self, stream_id: int, flags: int, payload: bytes) -> None:
        """Take a DATA frame (§6.1)."""
        if not stream_id or stream_id > self.last_stream_id:
            raise ConnectionFailed(_PROTOCOL, "DATA on a stream that is not open")
        size = len(payload)
        self._receive_window -= size
        if self._receive_window < 0:
            raise ConnectionFailed(ErrorCode.FLOW_CONTROL_ERROR, "DATA beyond the connection's window")
        if flags & frames.PADDED:
            payload = _without_padding(flags, payload)
        stream = self._find(stream_id)
        if stream is None:
            self._return_to_connection(size)
            return
        stream.credit += size
        stream.held += size
        ends = flags & frames.END_STREAM
        try:
            if stream.credit > STREAM_WINDOW + self._grown.get(stream_id, 0):
                raise StreamFailed(ErrorCode.FLOW_CONTROL_ERROR, "DATA beyond the stream's window")
            stream.state = advance(stream.state, DATA_RECEIVED_END if ends else DATA_RECEIVED)
            if payload:
                stream.on_data(payload)
            elif not ends:
                self._budgets.spend(budgets.EMPTY_DATA)
            if ends and stream.state is not CLOSED:
                stream.on_request_end(b"")
        except StreamFailed as error:
            self._blame(stream, error)
            return
        self._return_credit(stream, keeps_up=True)

    def _on_rst_stream(self, stream_id: int, flags: int, payload: bytes) -> None:
        """Take an RST_STREAM frame (§6.4)."""
        if len(payload) != 4:
            raise ConnectionFailed(ErrorCode.FRAME_SIZE_ERROR, "RST_STREAM of another length than 4")
        if not stream_id or stream_id > self.last_stream_id:
            raise ConnectionFailed(_PROTOCOL, "RST_STREAM on a stream that is not open")
        stream = self.streams.get(stream_id)
        if stream is None:
            self._budgets.spend(budgets.IGNORED_FRAMES)
            return
        stream.state = advance(stream.state, RESET_RECEIVED)
        self._close(stream)
        stream.on_reset(frames.read_word(payload)[0])
        self._budgets.spend(budgets.EARLY_ENDS)

    def _on_settings(self, stream_id: int, flags: int, payload: bytes) -> None:
        """Take a SETTINGS frame (§6.5)."""
        if stream_id:
            raise ConnectionFailed(_PROTOCOL, "SETTINGS on a stream")
        if flags & frames.ACK:
            if payload:
                raise ConnectionFailed(ErrorCode.FRAME_SIZE_ERROR, "an acknowledgement with settings")
            self._budgets.spend(budgets.SETTINGS_FRAMES)
            return
        if len(payload) % 6:
            raise ConnectionFailed(ErrorCode.FRAME_SIZE_ERROR, "SETTINGS of a broken length")
        window = self._initial_window
        for name, value in frames.read_settings(payload):
            if name == frames.INITIAL_WINDOW_SIZE:
                if value > frames.MAX_WINDOW:
                    raise ConnectionFailed(ErrorCode.FLOW_CONTROL_ERROR, "an initial window that is too large")
                window = value
            elif (name == frames.ENABLE_PUSH and value > 1) or (
                name == frames.MAX_FRAME_SIZE and not frames.MAX_FRAME_BYTES <= value < 1 << 24
            ):
                raise ConnectionFailed(_PROTOCOL, "a setting has a value that it must not have")
        if window != self._initial_window:
            self._move_windows(window - self._initial_window)
            self._initial_window = window
        if self._has_settings:
            self._budgets.spend(budgets.SETTINGS_FRAMES)
        self._has_settings = True
        self._output.add_control(frames.SETTINGS_ACK)

    def _move_windows(self, difference: int) -> None:
        """Move the windows of all streams by the difference of two settings (§6.9.2)."""
        for stream in self.streams.values():
            stream.send_window += difference
            if stream.send_window > frames.MAX_WINDOW:
                raise ConnectionFailed(ErrorCode.FLOW_CONTROL_ERROR, "a window is too large")
            if stream.pending and stream.send_window > 0:
                self._output.queue(stream)

    def _on_ping(self, stream_id: int, flags: int, payload: bytes) -> None:
        """Take a PING frame (§6.7)."""
        if stream_id:
            raise ConnectionFailed(_PROTOCOL, "PING on a stream")
        if len(payload) != 8:
            raise ConnectionFailed(ErrorCode.FRAME_SIZE_ERROR, "PING of another length than 8")
        self._budgets.spend(budgets.PINGS)
        if not flags & frames.ACK:
            self._output.add_control(frames.frame(frames.PING, frames.ACK, 0, payload))

    def _on_goaway(self, stream_id: int, flags: int, payload: bytes) -> None:
        """Take a GOAWAY frame (§6.8)."""
        if stream_id:
            raise ConnectionFailed(_PROTOCOL, "GOAWAY on a stream")
        if len(payload) < 8:
            raise ConnectionFailed(ErrorCode.FRAME_SIZE_ERROR, "GOAWAY is too short")
        self._budgets.spend(budgets.IGNORED_FRAMES)
        self.client_is_leaving = True

    def _on_window_update(self, stream_id: int, flags: int, payload: bytes) -> None:
        """Take a WINDOW_UPDATE frame (§6.9)."""
        if len(payload) != 4:
            raise ConnectionFailed(ErrorCode.FRAME_SIZE_ERROR, "WINDOW_UPDATE of another length than 4")
        output = self._output
        self._budgets.spend(budgets.WINDOW_UPDATES, budgets.earned_updates(output.sent_pieces, output.sent_bytes))
        increment = frames.read_word(payload)[0] & LAST_STREAM
        if not stream_id:
            if not increment:
                raise ConnectionFailed(_PROTOCOL, "WINDOW_UPDATE by 0")
            if output.window + increment > frames.MAX_WINDOW:
                raise ConnectionFailed(ErrorCode.FLOW_CONTROL_ERROR, "the connection's window is too large")
            output.open_window(increment)
            return
        if stream_id > self.last_stream_id:
            raise ConnectionFailed(_PROTOCOL, "WINDOW_UPDATE on a stream that is not open")
        stream = self.streams.get(stream_id)
        if stream is None:
            return
        if not increment:
            self._blame(stream, StreamFailed(_PROTOCOL, "WINDOW_UPDATE of 0"))
            return
        stream.send_window += increment
        if stream.send_window > frames.MAX_WINDOW:
            self._blame(stream, StreamFailed(ErrorCode.FLOW_CONTROL_ERROR, "a window that is too large"))
        elif stream.pending and stream.send_window > 0:
            self._output.queue(stream)

    def _on_priority(self, stream_id: int, flags: int, payload: bytes) -> None:
        """Take a PRIORITY frame (§6.3), whose content is ignored (§5.3.2)."""
        if not stream_id:
            raise ConnectionFailed(_PROTOCOL, "PRIORITY without a stream")
        if len(payload) != 5:
            raise ConnectionFailed(ErrorCode.FRAME_SIZE_ERROR, "PRIORITY of another length than 5")
        self._budgets.spend(budgets.PRIORITIES)

    def _on_priority_update(self, stream_id: int, flags: int, payload: bytes) -> None:
        """Take a PRIORITY_UPDATE frame (RFC 9218 §7.1)."""
        if stream_id:
            raise ConnectionFailed(_PROTOCOL, "PRIORITY_UPDATE on a stream")
        if len(payload) < 4:
            raise ConnectionFailed(ErrorCode.FRAME_SIZE_ERROR, "PRIORITY_UPDATE is too short")
        self._budgets.spend(budgets.PRIORITIES)
        prioritized = frames.read_word(payload)[0] & LAST_STREAM
        if not prioritized & 1:
            raise ConnectionFailed(_PROTOCOL, "PRIORITY_UPDATE for a stream that no client opens")
        stream = self.streams.get(prioritized)
        if stream is not None:
            self._set_priority(stream, payload[4:])
        elif prioritized > self.last_stream_id and len(self._early_priorities) < _MAX_EARLY_PRIORITIES:
            self._early_priorities = self._early_priorities or {}
            self._early_priorities[prioritized] = payload[4:68]

    def _set_priority(self, stream: Stream, value: bytes) -> None:
        was_queued = self._output.unqueue(stream)
        stream.urgency, stream.incremental = read_priority(value)
        if was_queued:
            self._output.queue(stream)

    def _on_push_promise(self, stream_id: int, flags: int, payload: bytes) -> None:
        """Refuse a PUSH_PROMISE frame: clients do not push (§8.4)."""
        raise ConnectionFailed(_PROTOCOL, "PUSH_PROMISE from a client")


def _without_padding(flags: int, payload: bytes) -> bytes:
    """Return a frame's content without its padding (§6.1)."""
    if not flags & frames.PADDED:
        return payload
    if not payload:
        raise ConnectionFailed(ErrorCode.FRAME_SIZE_ERROR, "a padded frame without the length of its padding")
    end = len(payload) - payload[0]
    if end < 1:
        raise ConnectionFailed(_PROTOCOL, "more padding than payload")
    return payload[1:end]


_Handler = Callable[[Http2Connection, int, int, bytes], None]
_HANDLERS: Final[Mapping[int, _Handler]] = {
    frames.PRIORITY: Http2Connection._on_priority,
    frames.RST_STREAM: Http2Connection._on_rst_stream,
    frames.SETTINGS: Http2Connection._on_settings,
    frames.PUSH_PROMISE: Http2Connection._on_push_promise,
    frames.PING: Http2Connection._on_ping,
    frames.GOAWAY: Http2Connection._on_goaway,
    frames.WINDOW_UPDATE: Http2Connection._on_window_update,
    frames.CONTINUATION: Http2Connection._on_continuation,
    frames.PRIORITY_UPDATE: Http2Connection._on_priority_update,
}
