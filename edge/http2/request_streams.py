"""The streams that a connection's header blocks open: from a block to a request that the owner takes, or to trailers.

`RequestStreams` owns the tables of HPACK, and what is known of the last request: one that differs from it in its path
alone, or in some values beside it, as most of a browser's do, is given to the owner by these.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from edge.http.request import ORDINARY_TARGET
from edge.http2 import budgets, frames
from edge.http2.block_form import FEW_FIELDS, BlockForm
from edge.http2.errors import ConnectionFailed, ErrorCode, StreamFailed
from edge.http2.fields import PATH, Field, size_of
from edge.http2.hpack import HeaderDecoder
from edge.http2.literals import KnownLiterals
from edge.http2.open_streams import MAX_REMEMBERED, NOTHING, OpenStreams, Owner
from edge.http2.priorities import read_priority
from edge.http2.requests import HeadComposer, Varying, request_trailers
from edge.http2.streams import (
    HALF_CLOSED_REMOTE,
    HEADERS_RECEIVED,
    HEADERS_RECEIVED_END,
    OPENED,
    Stream,
    StreamState,
    advance,
)

MAX_STREAMS: Final = 100  # §6.5.2: no fewer than that
MAX_FIELDS: Final = 256  # of a block; Cookie comes in many

_NONE: Final[list[Varying]] = []
_BLOCK_STEPS: Final = 16
_FIELD_STEPS: Final = 2
_MAX_BLOCK: Final = 4  # times the largest head, before and after decompression; up to that, the response is 431


@dataclass(slots=True)
class _LastRequest:
    """The request that the owner got last: complete, of few fields, and of a form in which others may follow.

    They differ in their path, at `path_at`; and in other values.
    """

    form: Final[BlockForm]
    path_at: Final[int]
    other_bytes: Final[int]  # of the head, but for the path
    varying: Final[list[Varying]]
    urgency: Final[int]
    incremental: Final[bool]


class RequestStreams(OpenStreams):
    """Opens the streams of one connection. Made by it, as a part.

    `_steps_left` is the work that one call of `Http2Connection.receive` may still do.
    """

    __slots__ = (
        "_composer",
        "_decoder",
        "_early_priorities",
        "_initial_window",
        "_like",
        "_max_block_bytes",
        "_steps_left",
    )

    def __init__(self, owner: Owner, literals: KnownLiterals, max_head_bytes: int) -> None:
        super().__init__(owner)
        self._decoder = HeaderDecoder(MAX_FIELDS, literals)
        self._composer = HeadComposer()
        self._early_priorities: dict[int, bytes] = NOTHING
        self._initial_window = frames.DEFAULT_WINDOW  # of what is sent
        self._like: _LastRequest | None = None
        self._max_block_bytes = _MAX_BLOCK * max_head_bytes
        self._steps_left = 0

    def _on_block(self, stream_id: int, block: bytes, ends: bool) -> None:
        """Take a whole header block: a request, or its trailers. `ends`: with END_STREAM."""
        decoder, like = self._decoder, self._like
        if like is not None and ends and stream_id > self.last_stream_id and like.form is decoder.form:
            if decoder.read_like(like.form, block):
                self._steps_left -= _BLOCK_STEPS
                stream = self._open(stream_id, HALF_CLOSED_REMOTE)
                if stream is None or not self._takes_like(stream, like):
                    self._like = None
                    if stream is not None:
                        self._on_request(stream, like.form.fields, ends=True)
                return
            fields = decoder.decode_unlike(block)
        else:
            fields = decoder.decode(block)  # whatever becomes of it: the tables must be those of the client
        self._steps_left -= _BLOCK_STEPS + _FIELD_STEPS * len(fields)
        if len(fields) > FEW_FIELDS:  # fewer are no more than 4 KB each, or as many octets as came
            self._steps_left -= _FIELD_STEPS * len(fields)  # no browser's: all of them may be new
            if sum(map(size_of, fields)) > self._max_block_bytes:
                raise budgets.exceeded("header_bytes")
        self._like = None
        if stream_id <= self.last_stream_id:
            self._on_trailers(stream_id, fields, ends=ends)
            return
        stream = self._open(stream_id, OPENED[HEADERS_RECEIVED_END if ends else HEADERS_RECEIVED])
        if stream is not None:
            self._on_request(stream, fields, ends=ends)

    def _takes_like(self, stream: Stream, like: _LastRequest) -> bool:
        """Take a request that differs from the last one in its form's gaps; return False where its head is needed."""
        if self._early_priorities:
            return False
        stream.urgency, stream.incremental = like.urgency, like.incremental
        fields = like.form.fields
        path = fields[like.path_at][3]
        if not like.varying:
            return self._owner.on_similar_request(stream, path, like.other_bytes + len(path))
        if ORDINARY_TARGET.fullmatch(path) is None:
            return False
        varied = self._composer.replace(fields, path, like.varying)
        if varied is None:
            return False
        before, kept, head_bytes = varied
        return self._owner.on_varied_request(stream, path, before, kept, head_bytes)

    def _on_request(self, stream: Stream, fields: list[Field], *, ends: bool) -> None:
        """Take a request."""
        self._like = None
        early = self._early_priorities.pop(stream.id, b"") if self._early_priorities else b""
        varied = self._composer.vary(fields) if ends else None
        try:
            if varied is not None:
                path, before, kept, head_bytes, priority = varied
                if early or priority:
                    stream.urgency, stream.incremental = read_priority(early or priority)
            if varied is None or not self._owner.on_varied_request(stream, path, before, kept, head_bytes):
                head, priority = self._composer.compose(fields, is_complete=ends)
                if early or priority:
                    stream.urgency, stream.incremental = read_priority(early or priority)
                self._owner.on_request(stream, head, is_complete=ends)
                head_bytes = len(head)
        except StreamFailed as error:
            self._blame(stream, error.code)
            return
        form = self._decoder.form
        if form is not None and ends and not early:
            self._like = self._expect(form, stream, head_bytes)

    def _expect(self, form: BlockForm, stream: Stream, head_bytes: int) -> _LastRequest | None:
        """Return what the next requests may be like, if the next block has the form of the last one."""
        fields, places = form.fields, [gap.place for gap in form.gaps]
        path_at = next((at for at, field in enumerate(fields) if field[0] == PATH), -1)
        if path_at < 0:
            return None
        varying = self._composer.varying_at(fields, places) if places != [path_at] else _NONE
        if varying is None:
            return None
        other_bytes = head_bytes - len(fields[path_at][3])
        return _LastRequest(form, path_at, other_bytes, varying, stream.urgency, stream.incremental)

    def _on_trailers(self, stream_id: int, fields: list[Field], *, ends: bool) -> None:
        """Take the trailer fields of a request."""
        stream = self._find(stream_id)
        if stream is None:
            return
        try:
            stream.state = advance(stream.state, HEADERS_RECEIVED_END if ends else HEADERS_RECEIVED)
            stream.on_request_end(request_trailers(fields))
        except StreamFailed as error:
            self._blame(stream, error.code)

    def _open(self, stream_id: int, state: StreamState) -> Stream | None:
        """Open a stream; None where the client must not."""
        if stream_id != self.last_stream_id + 2:
            self._pass_over(stream_id)
        self.last_stream_id = stream_id
        if stream_id > self._last_allowed:
            self._budgets.spend(budgets.IGNORED_FRAMES)
            return None
        if len(self.streams) >= MAX_STREAMS:  # §5.1.2
            self._budgets.spend(budgets.EARLY_ENDS)
            self._send_reset(stream_id, ErrorCode.REFUSED_STREAM)
            return None
        stream = self.streams[stream_id] = self._owner.open_stream(stream_id, self._initial_window)
        stream.state = state
        return stream

    def _find(self, stream_id: int) -> Stream | None:
        """Return a stream that was opened; None for one whose frames are ignored, since we ended it (§5.1)."""
        stream = self.streams.get(stream_id)
        if stream is None:
            if stream_id <= self._last_allowed and stream_id not in self._reset_ids:
                if not stream_id & 1 or any(stream_id in passed for passed in self._passed_over):  # §5.1.1
                    reason = "a frame on a stream that is lower than the last one"
                    raise ConnectionFailed(ErrorCode.PROTOCOL_ERROR, reason)
                raise ConnectionFailed(ErrorCode.STREAM_CLOSED, "a frame on a closed stream")
            self._budgets.spend(budgets.IGNORED_FRAMES)
        return stream

    def _pass_over(self, stream_id: int) -> None:
        """Note the streams below this one that the client has not opened (§5.1.1)."""
        first = self.last_stream_id + 2 if self.last_stream_id else 1
        if first < stream_id:
            passed = self._passed_over
            if len(passed) >= MAX_REMEMBERED:
                del passed[: MAX_REMEMBERED // 2]
            passed.append(range(first, stream_id, 2))
