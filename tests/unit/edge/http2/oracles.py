"""Our connection against those of `h2`, by generated input; each case is made from its seed."""

from __future__ import annotations

import contextlib
from dataclasses import dataclass
from random import Random

from h2.config import H2Configuration
from h2.connection import ConnectionState, H2Connection
from h2.errors import ErrorCodes
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    Event,
    RequestReceived,
    ResponseReceived,
    StreamEnded,
    StreamReset,
    TrailersReceived,
)
from h2.exceptions import ProtocolError
from hpack import NeverIndexedHeaderTuple

from edge.http2 import frames
from edge.http2.errors import StreamFailed
from edge.http2.fields import make_field
from edge.http2.priorities import read_priority
from edge.http2.requests import request_head
from tests.unit.edge.http2.generated_fields import NAMES, Fields, damage, some_fields, text
from tests.unit.edge.http2.head_oracles import judge_alike_blocks, judge_blocks, judge_request_head, judge_response_head
from tests.unit.edge.http2.machine import GET, MAX_HEAD_BYTES, Machine


@dataclass
class Reading:
    """What a server makes of one stream."""

    fields: Fields
    content: bytes = b""
    has_ended: bool = False
    was_reset: bool = False


class Conversation:
    """A client of `h2`'s, our server, and a server of `h2`'s that reads the same."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        config = H2Configuration(client_side=True, header_encoding=None, validate_outbound_headers=False)
        self.client = H2Connection(config)
        as_received = H2Configuration(client_side=False, header_encoding=None, normalize_inbound_headers=False)
        self.oracle = H2Connection(as_received)
        self.ours = Machine()
        self.is_over = False
        self.readings: dict[int, Reading] = {}
        self.responses: dict[int, bytes] = {}  # content that the client received
        self.expected: dict[int, bytes] = {}  # that was sent
        self.answered: set[int] = set()
        self.last_fields: Fields = []
        self.ended_at_client: set[int] = set()
        self.oracle.initiate_connection()
        self.client.initiate_connection()
        self.exchange()

    def exchange(self) -> None:
        """Carry what the client says to both servers, and our answers to the client."""
        while data := self.client.data_to_send():
            self._read_by_oracle(data)
            while data:
                size = self.rng.choice((1, 7, 100, 1 << 20))
                self.ours.connection.receive(data[:size])
                data = data[size:]
            self.carry_back()

    def carry_back(self) -> None:
        while self.ours.connection.has_more:
            self.ours.connection.receive(b"")
        while self.ours.connection.has_output:
            self._read_by_client(b"".join(self.ours.connection.take_output(self.rng.choice((1, 500, 1 << 20)))))

    def _read_by_oracle(self, data: bytes) -> None:
        for event in self.oracle.receive_data(data):
            if isinstance(event, RequestReceived):
                self.readings[event.stream_id] = Reading([(bytes(n), bytes(v)) for n, v in event.headers])
            elif isinstance(event, DataReceived):
                self.readings[event.stream_id].content += event.data
                if event.flow_controlled_length:
                    self.oracle.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
            elif isinstance(event, StreamEnded):
                self.readings[event.stream_id].has_ended = True
            elif isinstance(event, StreamReset):
                self.readings[event.stream_id].was_reset = True
        self.oracle.data_to_send()

    def _read_by_client(self, data: bytes) -> None:
        for event in self.client.receive_data(data):
            self._note(event)

    def _note(self, event: Event) -> None:
        if isinstance(event, ResponseReceived):
            assert event.headers[0] == (b":status", b"200")
            self.responses[event.stream_id] = b""
        elif isinstance(event, DataReceived):
            self.responses[event.stream_id] += event.data
            with contextlib.suppress(ProtocolError):
                self.client.acknowledge_received_data(event.flow_controlled_length, event.stream_id)
        elif isinstance(event, StreamEnded):
            self.ended_at_client.add(event.stream_id)
        elif isinstance(event, StreamReset):
            assert event.error_code == ErrorCodes.NO_ERROR, event
        else:
            assert not isinstance(event, ConnectionTerminated), event
            assert not isinstance(event, TrailersReceived) or event.headers == [(b"x-sum", b"1")]

    # What either side does ----------------------------------------------------------------------------------

    def step(self) -> None:
        action = self.rng.choice(
            (
                self.open,
                self.open,
                self.send,
                self.send,
                self.end,
                self.cancel,
                self.ping,
                self.set,
                self.answer,
                self.answer,
            )
        )
        with contextlib.suppress(ProtocolError):  # the client may not do it at the moment
            action()
        if self.client.state_machine.state is ConnectionState.CLOSED:  # by its own mistake
            self.is_over = True
        else:
            self.exchange()

    def open(self) -> None:
        if len(self.ours.connection.streams) > 20:
            return
        rng, stream_id = self.rng, self.client.get_next_available_stream_id()
        method = rng.choice((b"GET", b"POST", b"PUT"))
        fields = [(b":method", method), (b":scheme", b"https"), (b":path", b"/" + text(rng).replace(b"#", b""))]
        fields += [(b":authority", b"a.example"), *some_fields(rng)]
        if rng.random() < 0.05:
            fields += [(b"x-large", text(rng, 1000) + b"x" * rng.randrange(20_000))]
        if self.last_fields and rng.random() < 0.8:  # as browsers do: the path, which no table takes, is new
            fields = [*self.last_fields]
            fields[2] = NeverIndexedHeaderTuple(*fields[2] if rng.random() < 0.2 else (b":path", b"/" + text(rng)))
        self.last_fields = fields
        self.client.send_headers(stream_id, fields, end_stream=rng.random() < 0.7)

    def _pick(self) -> int:
        """Return a stream on which the client may send; what it must not do breaks `h2`'s own state."""
        sendable = [
            stream_id
            for stream_id, reading in self.readings.items()
            if not (reading.has_ended or reading.was_reset or stream_id in self.ended_at_client)
        ]
        if not sendable:
            raise ProtocolError
        return self.rng.choice(sendable)

    def send(self) -> None:
        stream_id = self._pick()
        size = min(self.rng.choice((0, 1, 300, 16_384)), self.client.local_flow_control_window(stream_id))
        padding = self.rng.choice((None, None, 5))
        self.client.send_data(stream_id, self.rng.randbytes(max(0, size - 6)), pad_length=padding)

    def end(self) -> None:
        if self.rng.random() < 0.3:
            self.client.send_headers(self._pick(), [(b"x-sum", b"1")], end_stream=True)
        else:
            self.client.end_stream(self._pick())

    def cancel(self) -> None:
        if self.rng.random() < 0.3:
            self.client.reset_stream(self._pick(), ErrorCodes.CANCEL)

    def ping(self) -> None:
        self.client.ping(self.rng.randbytes(8))

    def set(self) -> None:
        self.client.update_settings({frames.INITIAL_WINDOW_SIZE: self.rng.choice((0, 1_000, 65_535, 1 << 20))})

    def answer(self) -> None:
        open_streams = [s for s in self.ours.connection.streams.values() if s.id not in self.answered]
        if not open_streams:
            return
        stream = self.rng.choice(open_streams)
        self.answered.add(stream.id)
        body = self.rng.randbytes(self.rng.choice((0, 10, 3000, 70_000)))
        connection = self.ours.connection
        is_whole, at_once = self.rng.random() < 0.5, self.rng.random() < 0.5
        pieces = connection.respond(stream, b"\x88", body, at_once) if is_whole else ()
        if pieces and at_once:
            self._read_by_client(b"".join(pieces))
        if not pieces:
            connection.send_head(stream, b"\x88")
            for at in range(0, len(body), 20_000):
                connection.send_data(stream, body[at : at + 20_000])
            connection.end(stream, self.rng.choice((b"", b"\x00\x05x-sum\x011")))
        self.expected[stream.id] = body
        self.carry_back()

    def judge(self) -> None:
        assert self.ours.failure is None, self.ours.connection.failure
        for stream_id, reading in self.readings.items():
            ours = self.ours.made[stream_id]
            assert ours.head == as_head(reading.fields, ours.head), (ours.head, as_head(reading.fields, ours.head))
            if stream_id not in self.answered:
                assert ours.content == reading.content
                assert ours.whole == reading.has_ended
                assert (ours.code is not None) == reading.was_reset
            else:
                assert reading.content.startswith(ours.content)
        for stream_id in self.ended_at_client:
            assert self.responses[stream_id] == self.expected[stream_id]


def as_head(fields: Fields, like: bytes) -> bytes:
    """Return the head of HTTP/1.1 for these fields, without a length unless `like` has one."""
    pseudo = dict(fields[:4])
    lines, cookies = [], [value for name, value in fields if name == b"cookie"]
    for name, value in fields[4:]:
        if name != b"cookie":
            lines.append(b"%b: %b" % (name, value))
        elif cookies:
            lines.append(b"cookie: " + b"; ".join(cookies))
            cookies = []
    chunked = [b"Transfer-Encoding: chunked"] if b"\r\nTransfer-Encoding: chunked\r\n\r\n" in like else []
    start = b"%b %b HTTP/1.1" % (pseudo[b":method"], pseudo[b":path"])
    return b"\r\n".join([start, b"Host: " + pseudo[b":authority"], *lines, *chunked, b"", b""])


def judge_conversation(seed: int) -> None:
    """A conversation without errors is read as `h2` reads it, and `h2` reads our answers."""
    rng = Random(seed)
    conversation = Conversation(rng)
    for _ in range(rng.randrange(5, 40)):
        if not conversation.is_over:
            conversation.step()
    conversation.judge()


def judge_damaged(seed: int) -> None:
    """Of damaged frames, no request is read that `h2` reads in another way or not at all; and nothing is raised."""
    rng = Random(seed)
    client = H2Connection(H2Configuration(client_side=True, header_encoding=None, validate_outbound_headers=False))
    oracle = H2Connection(H2Configuration(client_side=False, header_encoding=None))
    ours = Machine(answers=rng.random() < 0.3)
    oracle.initiate_connection()
    client.initiate_connection()
    for piece in _pieces(rng, client):
        had = set(ours.made)
        requests: dict[int, Fields] = {}
        try:
            for event in oracle.receive_data(piece):
                if isinstance(event, RequestReceived):
                    requests[event.stream_id] = [(bytes(n), bytes(v)) for n, v in event.headers]
        except Exception:
            ours.feed(piece)
            return
        ours.feed(piece)
        _check_invariants(ours)
        for stream_id in set(ours.made) - had:
            stream = ours.made[stream_id]
            if stream.head:
                assert stream_id in requests, f"{piece!r} was read as {stream.head!r}"
        if ours.connection.failure is not None:
            return


def _pieces(rng: Random, client: H2Connection) -> list[bytes]:
    """Return the frames of a client, some damaged, some of no sense."""
    pieces = [client.data_to_send()]
    for _ in range(rng.randrange(1, 12)):
        stream_id = client.get_next_available_stream_id()
        fields = [
            (b":method", b"GET"),
            (b":scheme", b"https"),
            (b":path", b"/"),
            (b":authority", b"a"),
            *some_fields(rng),
        ]
        if rng.random() < 0.3:
            rng.shuffle(fields)
        if rng.random() < 0.2:
            fields.append((damage(rng, rng.choice(NAMES)), damage(rng, text(rng))))
        client.send_headers(stream_id, fields, end_stream=rng.random() < 0.5)
        piece = client.data_to_send()
        choice = rng.random()
        if choice < 0.2:
            at = rng.randrange(3, len(piece))
            piece = piece[:at] + bytes((piece[at] ^ 1 << rng.randrange(8),)) + piece[at + 1 :]
        elif choice < 0.5:
            payload = rng.randbytes(rng.choice((0, 4, 5, 6, 8, 12)))
            piece += frames.frame(
                rng.randrange(12), rng.choice((0, 1, 4, 5, 8, 32, 255)), rng.choice((0, 1, 3, stream_id)), payload
            )
        pieces.append(piece)
    return pieces


def _check_invariants(ours: Machine) -> None:
    connection = ours.connection
    assert connection.held_bytes == sum(stream.pending_bytes for stream in connection.streams.values())
    assert len(connection.streams) <= 100
    assert len(connection._partial) <= MAX_HEAD_BYTES
    if connection.failure is not None:
        assert not connection.streams
        assert all(stream.code is not None or stream.state == 4 for stream in ours.made.values())


def judge_alike_requests(seed: int) -> None:
    """Requests of a few kinds that differ in few values are what they are alone, whatever came before them."""
    rng, ours = Random(seed), Machine(answers=True).start()
    ours.encoder.header_table_size = rng.choice((300, 1000, 4096))
    crumbs: Fields = [(b"cookie", text(rng)) for _ in range(rng.randrange(4))]
    shared: Fields = [*some_fields(rng), *crumbs, *some_fields(rng)]
    kinds = [_kind_of_request(rng, shared) for _ in range(rng.choice((1, 1, 2, 4)))]
    path_at = GET.index(next(field for field in GET if field[0] == b":path"))
    changes = rng.choice((0.1, 0.5, 1.0))
    fields, varying, never = rng.choice(kinds)
    last_id = 0
    for number in range(rng.randrange(10, 60)):
        if rng.random() < 0.5:
            fields, varying, never = rng.choice(kinds)
        for at in varying if rng.random() < changes else [path_at]:
            name, value = fields[at][0], rng.choice((text(rng), text(rng, 200), b"%d" % number))
            if name in (b":path", b":authority") and rng.random() < 0.95:
                value = b"/%d?a" % number if name == b":path" else b"a%d.example" % (number % 3)
            elif rng.random() < 0.15:
                value = rng.choice((b"trailers", b" a", b"a\x00", b"a\x7f", b"", b"u=6, i", b"7", fields[at][1]))
            fields[at] = name, value
        stream_id = last_id + rng.choice((2, 2, 2, 4)) if last_id else 1
        last_id = stream_id
        block = b"".join(_field_block(ours, rng, field, at in never) for at, field in enumerate(fields))
        if rng.random() < 0.05:  # an upload, of which the content follows, or nothing does
            ours.frame(frames.HEADERS, frames.END_HEADERS, stream_id, block)
            ours.frame(frames.DATA, frames.END_STREAM, stream_id, b"content")
            continue
        if rng.random() < 0.1:
            ours.frame(frames.PRIORITY_UPDATE, 0, 0, stream_id.to_bytes(4, "big") + b"u=5")
            early = b"u=5"
        else:
            early = b""
        ours.frame(frames.HEADERS, frames.END_HEADERS | frames.END_STREAM, stream_id, block)
        made = ours.made[stream_id]
        try:
            head, priority = request_head([make_field(*field) for field in fields], is_complete=True)
        except StreamFailed:
            assert made.head == b"", fields
            assert made.code is not None
        else:
            assert made.head == head
            assert (made.urgency, made.incremental) == read_priority(early or priority)


def _kind_of_request(rng: Random, shared: Fields) -> tuple[Fields, list[int], set[int]]:
    """Return fields, the places in which such requests differ, and those of them that never go into the table."""
    fields = [*GET, *shared] if rng.random() < 0.5 else [*GET, *some_fields(rng), *shared]
    if rng.random() < 0.3:
        fields[0] = b":method", rng.choice((b"HEAD", b"POST", b"OPTIONS"))
    fields += rng.choice(([], [], [(b"priority", b"u=1")], [(b"te", b"trailers")], [(b"content-length", b"0")]))
    varying = rng.sample(range(2, len(fields)), min(len(fields) - 2, rng.randrange(1, 4)))
    path_at = next(at for at, field in enumerate(fields) if field[0] == b":path")
    return fields, varying, {at for at in varying if rng.random() < 0.4} | ({path_at} if rng.random() < 0.7 else set())


def _field_block(client: Machine, rng: Random, field: tuple[bytes, bytes], never: bool) -> bytes:
    """Return a field as a block; one that `never` goes into the table is a literal that may be remembered, or not."""
    huffman = rng.random() < 0.9
    block = bytes(client.encoder.encode([NeverIndexedHeaderTuple(*field) if never else field], huffman=huffman))
    if block[0] & 0xF0 == 0x10 and rng.random() < 0.7:
        block = bytes((block[0] & 0x0F,)) + block[1:]
    return block


JUDGES = (
    judge_blocks,
    judge_alike_blocks,
    judge_request_head,
    judge_response_head,
    judge_alike_requests,
    judge_conversation,
    judge_damaged,
)
