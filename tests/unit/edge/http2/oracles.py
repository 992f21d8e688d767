"""Our reading of HTTP/2 against that of `hpack` and `h2`, by generated input. Each case is made from its seed."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
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
from hpack import Decoder, Encoder, HeaderTuple, HPACKError, NeverIndexedHeaderTuple

from edge.http import request
from edge.http.error_responses import Rejected
from edge.http.request import RequestHead
from edge.http2 import frames
from edge.http2.errors import ConnectionFailed, StreamFailed
from edge.http2.fields import Field, make_field
from edge.http2.hpack import HeaderDecoder
from edge.http2.literals import KnownLiterals
from edge.http2.requests import HeadComposer, request_head
from edge.http2.responses import HeadEncoder
from tests.unit.edge.http2.machine import MAX_HEAD_BYTES, Machine

Fields = list[tuple[bytes, bytes]]

_NAMES = [b"accept", b"user-agent", b"cookie", b"x-a", b"x-b", b"x-longer-name", b"etag", b"range", b"referer", b"dnt"]
_VALUE_OCTETS = bytes((*range(0x21, 0x7F), *range(0x80, 0x100)))


def text(rng: Random, most: int = 40) -> bytes:
    octets = _VALUE_OCTETS if rng.random() < 0.2 else _VALUE_OCTETS[:94]
    return bytes(rng.choices(octets, k=rng.randrange(most)))


def some_fields(rng: Random) -> Fields:
    few = [text(rng, 12) for _ in range(3)]
    return [(rng.choice(_NAMES), rng.choice([*few, text(rng)])) for _ in range(rng.randrange(8))]


# Header blocks ----------------------------------------------------------------------------------------------


def judge_blocks(seed: int) -> None:
    """Conversations of blocks, of which some are damaged: fields, tables and errors must be those of `hpack`.

    Our decoders share their literals, and fields come again in the second conversation.
    """
    rng, literals = Random(seed), KnownLiterals()
    sent: list[HeaderTuple] = []
    for _ in range(2):
        _judge_conversation_of_blocks(rng, literals, sent)


def _judge_conversation_of_blocks(rng: Random, literals: KnownLiterals, sent: list[HeaderTuple]) -> None:
    encoder, oracle, ours = Encoder(), Decoder(max_header_list_size=1 << 24), HeaderDecoder(256, literals)
    fields: list[HeaderTuple] = []
    for _ in range(rng.randrange(1, 8)):
        if rng.random() < 0.1:
            encoder.header_table_size = rng.choice((0, 50, 300, 4096))
        if fields and rng.random() < 0.5:  # the same again, but for a value
            at = rng.randrange(len(fields))
            fields[at] = type(fields[at])(fields[at][0], text(rng))
        else:
            fields = [_tuple(rng, name, value) for name, value in some_fields(rng)]
            fields += rng.choices(sent, k=rng.randrange(4)) if sent else []
            sent += fields
        block = bytes(encoder.encode(fields, huffman=rng.random() < 0.7))
        if rng.random() < 0.3:
            block = damage(rng, block)
        if rng.random() < 0.05:
            block = rng.randbytes(rng.randrange(12))
        if not _judge_block(block, oracle, ours):
            return


def _tuple(rng: Random, name: bytes, value: bytes) -> HeaderTuple:
    return (NeverIndexedHeaderTuple if rng.random() < 0.2 else HeaderTuple)(name, value)


def damage(rng: Random, data: bytes) -> bytes:
    """Return the octets with one change."""
    if not data:
        return data
    at, kind = rng.randrange(len(data)), rng.randrange(4)
    if kind == 0:
        return data[:at] + bytes((data[at] ^ 1 << rng.randrange(8),)) + data[at + 1 :]
    if kind == 1:
        return data[:at]
    if kind == 2:
        return data[:at] + data[at + 1 :]
    return data[:at] + rng.randbytes(1) + data[at:]


def _judge_block(block: bytes, oracle: Decoder, ours: HeaderDecoder) -> bool:
    """Return whether the conversation can go on."""
    try:
        expected = [(bytes(name), bytes(value)) for name, value in oracle.decode(block, raw=True)]
    except (HPACKError, IndexError):  # its table of integers is left unguarded
        expected = None
    try:
        got = [(name, value) for _, _, name, value in ours.decode(block)]
    except ConnectionFailed:
        assert expected is None or _is_stricter(block), f"refused {block!r}, which is {expected}"
        return False
    assert expected is not None, f"accepted {block!r}"
    assert got == expected, block
    assert ours.dynamic_table == [(bytes(name), bytes(value)) for name, value in oracle.header_table.dynamic_entries]
    return True


def _is_stricter(block: bytes) -> bool:
    """What `hpack` lets pass: integers of any length, and any number of updates of the size."""
    return b"\xff" in block or b"\x7f" in block or b"\x3f" in block or b"\x80" in block or block[:1] >= b"\x20"


_ODD_FIELDS = [
    *((b":path", value) for value in (b"*", b"x", b"/b")),
    *((b":method", value) for value in (b"OPTIONS", b"CONNECT")),
    *((b"priority", value) for value in (b"u=1", b"i")),
    *((b"te", value) for value in (b"trailers", b"x")),
    (b":authority", b"b.example"),
    (b"host", b"a.example"),
    (b"cookie", b"a=1"),
    (b"x-a", b" "),
    (b"content-length", b"0"),
]


class VaryingHeads:
    """What `vary` says of a connection's requests, beside what is read in their heads."""

    def __init__(self) -> None:
        self._composer = HeadComposer()
        self._last: RequestHead | None = None  # as the edge remembers it
        self.varied = 0

    def judge(self, fields: list[Field], expected: tuple[bytes, bytes] | str, is_complete: bool) -> None:
        read = None
        if isinstance(expected, tuple):
            with contextlib.suppress(Rejected):
                read = request.parse(expected[0], request.HeadLimits())
        varied = self._composer.vary(fields) if is_complete else None
        if varied is None or self._last is None or varied[1] != self._last.kept:
            with contextlib.suppress(StreamFailed):
                self._composer.compose(fields, is_complete=is_complete)
        else:
            path, _, kept, head_bytes, priority = varied
            assert read is not None
            assert (path, kept) == (read.target, read.kept)
            assert (read.method, read.fields) == (self._last.method, self._last.fields)
            assert (head_bytes, priority) == (len(expected[0]), expected[1])
            self.varied += 1
        self._last = read


def judge_request_head(seed: int) -> None:
    """What a composer makes of each of a connection's requests does not depend on those before."""
    rng = Random(seed)
    composer, varying = HeadComposer(), VaryingHeads()
    pseudo = [(b":method", b"GET"), (b":scheme", b"https"), (b":authority", b"a.example"), (b":path", b"/")]
    rng.shuffle(pseudo)
    crumbs = [(b"cookie", text(rng)) for _ in range(rng.randrange(4))]
    fields = [*pseudo, *some_fields(rng), *crumbs, *some_fields(rng)]
    for _ in range(8):
        changed, at = list(fields), rng.randrange(len(fields))
        kind = rng.random()
        if kind < 0.4:
            changed[changed.index(next(field for field in changed if field[0] == b":path"))] = (
                b":path",
                b"/" + text(rng),
            )
        elif kind < 0.6:
            changed[at] = (changed[at][0], text(rng) + rng.choice((b"", b"", b"", b"\x01", b"\x7f")))
        elif kind < 0.7:
            changed.insert(at, rng.choice(_ODD_FIELDS))
        elif kind < 0.8:
            changed[at] = rng.choice(_ODD_FIELDS)
        elif kind < 0.85:
            del changed[at]
        is_complete = rng.random() < 0.9
        judged = [make_field(name, value) for name, value in changed]
        expected, got = (_head_or_error(make, judged, is_complete) for make in (request_head, composer.compose))
        assert got == expected, changed
        varying.judge(judged, expected, is_complete)
        if any(field[0] == b":path" for field in changed) and rng.random() < 0.5:
            fields = changed


def _head_or_error(
    make: Callable[..., tuple[bytes, bytes]], fields: list[Field], is_complete: bool
) -> tuple[bytes, bytes] | str:
    try:
        return make(fields, is_complete=is_complete)
    except StreamFailed as error:
        return error.reason


def judge_response_head(seed: int) -> None:
    """A response's head is the same to `hpack`, whatever was encoded before it; whole, or by its varying values."""
    rng = Random(seed)
    encoder, decoder = HeadEncoder(), Decoder()
    status, names = rng.choice((b"200", b"404", b"299")), [name for name, _ in some_fields(rng)]
    varies, date_at = [rng.random() < 0.5 for _ in names], rng.randrange(len(names) + 1)
    constants = [text(rng) for _ in names]
    for number in range(4):
        fields = [(n, text(rng, 200) if v else c) for n, v, c in zip(names, varies, constants, strict=True)]
        lines = [
            b"\r\n%b: %b" % (name.title(), b"\0" if v else value)
            for (name, value), v in zip(fields, varies, strict=True)
        ]
        lines.insert(date_at, b"\0")  # a whole line
        form = b"HTTP/1.1 %b Some%b\r\n\r\n" % (status, b"".join(lines))
        values = [
            b" " * rng.randrange(2) + value + b"\t" * rng.randrange(2)
            for (_, value), v in zip(fields, varies, strict=True)
            if v
        ]
        values.insert(sum(varies[:date_at]), b"\r\nDate: %d" % number)
        fields.insert(date_at, (b"date", b"%d" % number))
        gapped = form.replace(b"%", b"%%").replace(b"\0", b"%b")
        for block in (encoder.fill(gapped, tuple(values)), encoder.head(gapped % tuple(values))):
            decoded = decoder.decode(block, raw=True)
            assert [(bytes(n), bytes(v)) for n, v in decoded] == [(b":status", status), *fields]


# Connections ------------------------------------------------------------------------------------------------


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
        self.client.update_settings({frames.INITIAL_WINDOW_SIZE: self.rng.choice((0, 10, 65_535, 1 << 20))})

    def answer(self) -> None:
        open_streams = [s for s in self.ours.connection.streams.values() if s.id not in self.answered]
        if not open_streams:
            return
        stream = self.rng.choice(open_streams)
        self.answered.add(stream.id)
        body = self.rng.randbytes(self.rng.choice((0, 10, 3000, 70_000)))
        connection = self.ours.connection
        if self.rng.random() < 0.5 or not connection.respond(stream, b"\x88", body):
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
            fields.append((damage(rng, rng.choice(_NAMES)), damage(rng, text(rng))))
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


JUDGES = (judge_blocks, judge_request_head, judge_response_head, judge_conversation, judge_damaged)
