"""A server's connection of HTTP/2 with an owner that writes down what it is called with, and the frames of a client."""

from __future__ import annotations

from dataclasses import dataclass, field

from hpack import Encoder

from edge.http.head_pattern import VALUE
from edge.http.request import ORDINARY_TARGET
from edge.http2 import frames
from edge.http2.connection import Http2Connection
from edge.http2.errors import ErrorCode, StreamFailed
from edge.http2.literals import KnownLiterals
from edge.http2.streams import Stream

GET = [(b":method", b"GET"), (b":scheme", b"https"), (b":path", b"/"), (b":authority", b"a.example")]
POST = [(b":method", b"POST"), *GET[1:]]
MAX_HEAD_BYTES = 32_768


@dataclass
class Frame:
    kind: int
    flags: int
    stream_id: int
    payload: bytes


def split(data: bytes) -> list[Frame]:
    """Return the frames of a server's output."""
    found, position = [], 0
    while position < len(data):
        word, flags, stream_id = frames.read_header(data, position)
        start = position + frames.HEADER_BYTES
        position = start + (word >> 8)
        assert position <= len(data), "half a frame was sent"
        found.append(Frame(word & 0xFF, flags, stream_id, data[start:position]))
    return found


class RecordedStream(Stream):
    """What a request brought."""

    __slots__ = ("code", "content", "has_room", "head", "trailers_received", "whole")

    def __init__(self, stream_id: int, send_window: int) -> None:
        super().__init__(stream_id, send_window)
        self.head = b""
        self.content = b""
        self.whole = False
        self.trailers_received = b""
        self.code: int | None = None
        self.has_room = False

    def on_data(self, data: bytes) -> None:
        self.content += data

    def on_request_end(self, trailers: bytes) -> None:
        self.whole = True
        self.trailers_received = trailers

    def on_reset(self, code: int) -> None:
        assert self.code is None, "a stream is reset once"
        self.code = code

    def on_room(self) -> None:
        self.has_room = True


def has_valid_values(lines: bytes) -> bool:
    octets = lines.replace(b"\r\n", b"")
    return octets.translate(VALUE) == octets


@dataclass
class Machine:
    """`answers`: each request is answered at once, with an empty 204."""

    answers: bool = False
    refuses: bool = False
    made: dict[int, RecordedStream] = field(default_factory=dict)
    faults: list[StreamFailed] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.connection = Http2Connection(self, KnownLiterals(), max_head_bytes=MAX_HEAD_BYTES)
        self.encoder = Encoder()
        self.sent: list[Frame] = []
        self.last_head = b""

    # The owner's side ---------------------------------------------------------------------------------------

    def open_stream(self, stream_id: int, send_window: int) -> Stream:
        stream = self.made[stream_id] = RecordedStream(stream_id, send_window)
        return stream

    def on_request(self, stream: Stream, head: bytes, *, is_complete: bool) -> None:
        recorded = self.made[stream.id]
        recorded.head, recorded.whole = head, is_complete
        self.last_head = head if has_valid_values(head) else b""  # the edge refuses that, and remembers nothing
        if self.refuses:
            raise StreamFailed(ErrorCode.PROTOCOL_ERROR, "refused by the test")
        if self.answers:
            self.connection.send_head(stream, b"\x89")
            self.connection.end(stream)

    def last_request(self) -> bytes | None:
        return self.last_head or None

    def has_kept(self, request: bytes, kept: bytes) -> bool:
        return request.split(b"\r\n", 2)[2:] == [kept.removeprefix(b"\r\n") + b"\r\n" * (2 if kept else 1)]

    def on_similar_request(
        self, stream: Stream, request: bytes, path: bytes, head_bytes: int, kept: bytes | None = None
    ) -> bool:
        if ORDINARY_TARGET.fullmatch(path) is None:
            return False
        method, _, rest = request.split(b" ", 2)
        if kept is not None:
            version, host, _ = rest.split(b"\r\n", 2)
            assert has_valid_values(kept)
            rest = b"%b\r\n%b%b\r\n\r\n" % (version, host, kept)
        head = b"%b %b %b" % (method, path, rest)
        assert len(head) == head_bytes
        self.on_request(stream, head, is_complete=True)
        return True

    def on_blame(self, fault: StreamFailed) -> None:
        self.faults.append(fault)

    def on_failure(self, streams: list[Stream]) -> None:
        for stream in streams:
            assert self.connection.failure is not None
            stream.on_reset(self.connection.failure.code)

    # The client's side --------------------------------------------------------------------------------------

    def start(self, *settings: tuple[int, int]) -> Machine:
        self.feed(frames.PREFACE + frames.settings(settings))
        self.sent.clear()
        return self

    def feed(self, data: bytes) -> list[Frame]:
        """Receive, and return what is sent in return."""
        self.connection.receive(data)
        while self.connection.has_more:
            self.connection.receive(b"")
        return self.take()

    def take(self) -> list[Frame]:
        """Return what the server sends, as if it was written at once."""
        taken = split(b"".join(self.connection.take_output(1 << 30)))
        self.sent += taken
        return taken

    def frame(self, kind: int, flags: int, stream_id: int, payload: bytes = b"") -> list[Frame]:
        return self.feed(frames.frame(kind, flags, stream_id, payload))

    def block(self, fields: list[tuple[bytes, bytes]]) -> bytes:
        return bytes(self.encoder.encode(fields))

    def request(
        self,
        fields: list[tuple[bytes, bytes]] | None = None,
        stream_id: int = 1,
        flags: int = frames.END_HEADERS | frames.END_STREAM,
    ) -> list[Frame]:
        return self.frame(frames.HEADERS, flags, stream_id, self.block(GET if fields is None else fields))

    def post(self, stream_id: int = 1, *more: tuple[bytes, bytes]) -> list[Frame]:
        return self.request([*POST, *more], stream_id, frames.END_HEADERS)

    # What became of it --------------------------------------------------------------------------------------

    @property
    def failure(self) -> ErrorCode | None:
        return None if self.connection.failure is None else self.connection.failure.code

    @property
    def budget(self) -> str:
        return "" if self.connection.failure is None else self.connection.failure.budget

    def reset_code(self, stream_id: int) -> int | None:
        """Return the code of the RST_STREAM that was sent for the stream."""
        codes = [
            frames.read_word(frame.payload)[0]
            for frame in self.sent
            if frame.kind == frames.RST_STREAM and frame.stream_id == stream_id
        ]
        assert len(codes) <= 1, "a stream is reset once"
        return codes[0] if codes else None
