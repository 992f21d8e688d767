"""The streams that a connection's header blocks open: from a block to a request that the owner takes, or to trailers.

`RequestStreams` owns the tables of HPACK, and what is known of earlier requests. Most requests of a browser differ from
one of them in the path alone, or from the last one in some values beside it: they are given to the owner by these.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final

from edge.http2 import budgets, frames
from edge.http2.block_form import FEW_FIELDS, BlockForm
from edge.http2.errors import ConnectionFailed, ErrorCode, StreamFailed
from edge.http2.fields import PATH, Field, size_of
from edge.http2.hpack import HeaderDecoder
from edge.http2.literals import KnownLiterals
from edge.http2.open_streams import MAX_REMEMBERED, NOTHING, OpenStreams, Owner
from edge.http2.priorities import read_priority
from edge.http2.requests import HeadComposer, Varying, request_head, request_trailers
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
_LONG_HEAD_BYTES: Final = 1_024  # longer ones count by their octets, too: a head of 30 KB may be a block of 30 octets
_OCTETS_A_STEP: Final = 32
_MAX_BLOCK: Final = 4  # times the largest head, before and after decompression; up to that, the response is 431


@dataclass(slots=True)
class _TakenRequest:
    """A complete request of few fields that the owner took; `request` is what it knows it by."""

    request: Final[Any]
    other_bytes: Final[int]  # of the head, but for the path
    urgency: Final[int]
    incremental: Final[bool]


@dataclass(slots=True)
class _LastRequest:
    """The request that the owner took last, of a form in which others may follow.

    They differ in their path, at `path_at`; and in other values.
    """

    taken: Final[_TakenRequest]
    form: Final[BlockForm]
    path_at: Final[int]
    varying: Final[list[Varying]]


class RequestStreams(OpenStreams):
    """Opens the streams of one connection. Made by it, as a part.

    `_steps_left` is the work that one call of `Http2Connection.receive` may still do.
    """

    __slots__ = (
        "_composed",
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
        self._composed: object | None = None  # what the owner knows its request by, if others may vary it
        self._early_priorities: dict[int, bytes] = NOTHING
        self._initial_window = frames.DEFAULT_WINDOW  # of what is sent
        self._like: _LastRequest | None = None
        self._max_block_bytes = _MAX_BLOCK * max_head_bytes
        self._steps_left = 0

    def forget_requests(self) -> None:
        """Forget what is known of earlier requests, which takes some kilobytes."""
        self._decoder.forget()
        self._composer = HeadComposer()
        self._composed = self._like = None
        if not self.streams:
            self.streams = {}  # one that had entries keeps the room for them

    def _on_block(self, stream_id: int, block: bytes, ends: bool) -> None:
        """Take a whole header block: a request, or its trailers. `ends`: with END_STREAM."""
        decoder, like = self._decoder, self._like
        is_whole = ends and stream_id > self.last_stream_id
        if is_whole and decoder.similar:
            recalled = decoder.recall(block)
            if recalled is not None:
                taken, path = recalled
                self._steps_left -= _BLOCK_STEPS
                stream = self._open(stream_id, HALF_CLOSED_REMOTE)
                if stream is not None and not self._takes_similar(stream, taken, path):
                    fields = decoder.decode_unlike(block)
                    self._on_request(stream, fields, ends=True, surroundings=decoder.surroundings)
                return
        if is_whole and like is not None and like.form is decoder.form:
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
            self._on_request(stream, fields, ends=ends, surroundings=decoder.surroundings)

    def _takes_similar(self, stream: Stream, taken: _TakenRequest, path: bytes) -> bool:
        """Take a request that differs from an earlier one in its path alone; return False where its head is needed."""
        if self._early_priorities:
            return False
        stream.urgency, stream.incremental = taken.urgency, taken.incremental
        head_bytes = taken.other_bytes + len(path)
        if head_bytes > _LONG_HEAD_BYTES:
            self._steps_left -= head_bytes // _OCTETS_A_STEP
        return self._owner.on_similar_request(stream, taken.request, path, head_bytes)

    def _takes_like(self, stream: Stream, like: _LastRequest) -> bool:
        """Take a request that differs from the last one in its form's gaps; return False where its head is needed."""
        fields, taken = like.form.fields, like.taken
        path = fields[like.path_at][3]
        if not like.varying:
            return self._takes_similar(stream, taken, path)
        if self._early_priorities:
            return False
        stream.urgency, stream.incremental = taken.urgency, taken.incremental
        varied = self._composer.replace(fields, path, like.varying)
        if varied is None:
            return False
        kept, head_bytes = varied
        if head_bytes > _LONG_HEAD_BYTES:
            self._steps_left -= head_bytes // _OCTETS_A_STEP
        return self._owner.on_similar_request(stream, taken.request, path, head_bytes, kept)

    def _on_request(self, stream: Stream, fields: list[Field], *, ends: bool, surroundings: bytes = b"") -> None:
        """Take a request. `surroundings`: its block's, if that is the last one decoded."""
        self._like = None
        early = self._early_priorities.pop(stream.id, b"") if self._early_priorities else b""
        composer, composed = self._composer, self._composed
        varied = composer.vary(fields) if composed is not None and ends and not surroundings else None
        if not surroundings:
            self._composed = None  # until the owner has taken the one that the composer compares with from now on
        try:
            if varied is not None:
                path, kept, head_bytes, priority = varied
                if head_bytes > _LONG_HEAD_BYTES:
                    self._steps_left -= head_bytes // _OCTETS_A_STEP
                if early or priority:
                    stream.urgency, stream.incremental = read_priority(early or priority)
            if varied is None or not self._owner.on_similar_request(stream, composed, path, head_bytes, kept):
                compose = request_head if surroundings else composer.compose
                head, priority = compose(fields, is_complete=ends)
                if early or priority:
                    stream.urgency, stream.incremental = read_priority(early or priority)
                head_bytes = len(head)
                if head_bytes > _LONG_HEAD_BYTES:
                    self._steps_left -= head_bytes // _OCTETS_A_STEP
                self._owner.on_request(stream, head, is_complete=ends)
        except StreamFailed as error:
            self._blame(stream, error)
            return
        if not ends:
            return
        request = self._owner.last_request()
        if not surroundings:
            has_kept = request is not None and self._owner.has_kept(request, composer.kept)
            self._composed = request if has_kept else None
        path_at = next((at for at, field in enumerate(fields) if field[0] == PATH), -1)
        if request is None or path_at < 0 or early:
            return
        other_bytes = head_bytes - len(fields[path_at][3])
        taken = _TakenRequest(request, other_bytes, stream.urgency, stream.incremental)
        form = self._decoder.form
        if surroundings:
            self._decoder.keep(taken)
        elif form is not None:
            self._like = self._expect(form, taken, path_at)

    def _expect(self, form: BlockForm, taken: _TakenRequest, path_at: int) -> _LastRequest | None:
        """Return what the next requests may be like, if the next block has the form of the last one."""
        places = [gap.place for gap in form.gaps]
        if places == [path_at]:
            varying: list[Varying] | None = _NONE
        else:
            varying = self._composer.varying_at(form.fields, places) if self._composed is not None else None
        return None if varying is None else _LastRequest(taken, form, path_at, varying)

    def _on_trailers(self, stream_id: int, fields: list[Field], *, ends: bool) -> None:
        """Take the trailer fields of a request."""
        stream = self._find(stream_id)
        if stream is None:
            return
        try:
            stream.state = advance(stream.state, HEADERS_RECEIVED_END if ends else HEADERS_RECEIVED)
            stream.on_request_end(request_trailers(fields))
        except StreamFailed as error:
            self._blame(stream, error)

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
