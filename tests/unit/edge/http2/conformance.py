"""What tests of RFC 9113's rules share: codes of errors, a response, and the end of a connection."""

from __future__ import annotations

from edge.http2 import frames
from edge.http2.errors import ErrorCode
from edge.http2.frames import GOAWAY
from tests.unit.edge.http2.machine import Machine

PROTOCOL = ErrorCode.PROTOCOL_ERROR
SIZE = ErrorCode.FRAME_SIZE_ERROR
FLOW = ErrorCode.FLOW_CONTROL_ERROR
CLOSED = ErrorCode.STREAM_CLOSED


def last_goaway(client: Machine) -> tuple[int, int]:
    (frame,) = [frame for frame in client.sent if frame.kind == GOAWAY]
    return frames.read_word(frame.payload)[0], frames.read_word(frame.payload, 4)[0]


def respond(client: Machine, stream_id: int, size: int) -> None:
    stream = client.made[stream_id]
    client.connection.send_head(stream, b"\x88")
    client.connection.send_data(stream, bytes(size))
    client.connection.end(stream)
