from __future__ import annotations

from hpack import Decoder

from bench import heads
from bench.http2_client import RequestEncoder, read_frames
from edge.http2 import frames

HOST = "shop.customer.localhost"


def block(frame: bytes) -> bytes:
    (only,), rest = read_frames(frame)
    assert (only.kind, rest) == (frames.HEADERS, b"")
    return only.payload


def test_browsers_cookies_are_fields_of_their_own() -> None:
    (head,) = heads.same(HOST, "/1k")
    fields = Decoder().decode(block(RequestEncoder().encode(head)), raw=True)
    assert [value for name, value in fields if name == b"cookie"] == [
        b"session=6f1d0e7a9b3c4d5e8f70112233445566",
        b"theme=light",
    ]
    assert dict(fields).items() >= {b":method": b"GET", b":path": b"/1k", b":authority": HOST.encode()}.items()


def test_path_is_put_into_no_table_and_the_cookie_is() -> None:
    encoder, decoder = RequestEncoder(), Decoder()
    for head in heads.other_cookies(HOST, "/1k", range(3)):
        decoder.decode(block(encoder.encode(head)))
    known = [name for name, _ in decoder.header_table.dynamic_entries]
    assert b":path" not in known
    assert known.count(b"cookie") == 4  # three sessions, one theme


def test_path_is_a_literal_without_indexing() -> None:
    (head,) = heads.same(HOST, "/1k")
    assert block(RequestEncoder().encode(head))[0] == 0x04


def test_path_of_the_static_table_is_referred_to() -> None:
    (head,) = heads.same(HOST, "/")
    assert block(RequestEncoder().encode(head))[0] == 0x84


def test_each_request_has_the_next_stream() -> None:
    encoder = RequestEncoder()
    received, _ = read_frames(b"".join(encoder.encode(head) for head in heads.other_paths(HOST, "/1k")[:3]))
    assert [frame.stream_id for frame in received] == [1, 3, 5]


def test_frame_that_did_not_come_whole_is_left() -> None:
    data = frames.SETTINGS_ACK + frames.frame(frames.DATA, frames.END_STREAM, 1, b"hello")
    received, rest = read_frames(data[:-1])
    assert [frame.kind for frame in received] == [frames.SETTINGS]
    assert rest == data[len(frames.SETTINGS_ACK) : -1]
