"""RFC 9113 §6.9, the server's side: windows and WINDOW_UPDATE."""

from __future__ import annotations

import pytest

from edge.http2 import frames
from edge.http2.frames import DATA, END_STREAM, HEADERS, PADDED, WINDOW_UPDATE
from edge.http2.open_streams import CONNECTION_WINDOW, MAX_GROWTH, MAX_STREAM_WINDOW, STREAM_WINDOW
from tests.unit.edge.http2.conformance import FLOW, PROTOCOL, SIZE, respond
from tests.unit.edge.http2.machine import Machine


def sent_bytes(client: Machine, stream_id: int) -> int:
    return sum(len(frame.payload) for frame in client.sent if (frame.kind, frame.stream_id) == (DATA, stream_id))


@pytest.mark.parametrize(("stream_id", "code"), [(0, PROTOCOL), (1, None)])
def test_rfc9113_6_9_window_update_by_0_is_an_error(client: Machine, stream_id: int, code: int | None) -> None:
    client.request()
    client.feed(frames.window_update(stream_id, 0))
    assert client.failure is code
    assert client.made[1].code == PROTOCOL


def test_rfc9113_6_9_window_update_of_another_length_is_a_connection_error(client: Machine) -> None:
    client.frame(WINDOW_UPDATE, 0, 0, bytes(3))
    assert client.failure is SIZE


def test_rfc9113_6_9_1_windows_above_the_maximum_are_errors(client: Machine) -> None:
    client.request()
    client.feed(frames.window_update(1, 2**31 - 1))
    assert client.reset_code(1) == FLOW
    assert client.failure is None
    client.feed(frames.window_update(0, 2**31 - 1))
    assert client.failure is FLOW


def test_rfc9113_6_9_1_no_more_is_sent_than_either_window_allows(client: Machine) -> None:
    client.request(stream_id=1)
    client.request(stream_id=3)
    respond(client, 1, 100_000)
    client.take()
    assert sent_bytes(client, 1) == 65_535
    respond(client, 3, 10)
    client.take()
    assert sent_bytes(client, 3) == 0
    client.feed(frames.window_update(0, 5))
    assert sent_bytes(client, 3) == 5
    client.feed(frames.window_update(0, 100))
    assert (sent_bytes(client, 1), sent_bytes(client, 3)) == (65_535, 10)
    client.feed(frames.window_update(1, 50))
    assert sent_bytes(client, 1) == 65_585


def test_rfc9113_6_9_1_data_beyond_our_windows_is_an_error(client: Machine) -> None:
    client.post()
    client.connection.pause(client.made[1])
    for _ in range(STREAM_WINDOW // 16_384):
        client.frame(DATA, 0, 1, bytes(16_384))
    assert client.reset_code(1) is None
    client.frame(DATA, 0, 1, b"x")
    assert client.reset_code(1) == FLOW


def test_rfc9113_6_9_1_data_beyond_the_connections_window_is_a_connection_error(client: Machine) -> None:
    for number in range(CONNECTION_WINDOW // STREAM_WINDOW + 1):
        client.post(2 * number + 1)
        client.connection.pause(client.made[2 * number + 1])
        for _ in range(STREAM_WINDOW // 16_384):
            client.frame(DATA, 0, 2 * number + 1, bytes(16_384))
    assert client.failure is FLOW


def test_rfc9113_6_9_paused_stream_gets_no_credit_until_it_is_resumed(client: Machine) -> None:
    client.post()
    stream = client.made[1]
    client.connection.pause(stream)
    for _ in range(STREAM_WINDOW // 16_384):
        client.frame(DATA, 0, 1, bytes(16_384))
    assert not [frame for frame in client.sent if frame.kind == WINDOW_UPDATE]
    client.connection.resume(stream)
    (update,) = client.take()
    assert (update.stream_id, frames.read_word(update.payload)[0]) == (1, STREAM_WINDOW)


def test_rfc9113_6_9_padding_counts_and_is_returned(client: Machine) -> None:
    client.post()
    for _ in range(4 * CONNECTION_WINDOW // 256):
        client.frame(DATA, PADDED, 1, b"\xfe" + bytes(255))
    assert client.failure is None
    assert client.reset_code(1) is None


def test_rfc9113_6_9_2_initial_window_moves_the_windows_of_open_streams() -> None:
    client = Machine().start((frames.INITIAL_WINDOW_SIZE, 0))
    client.request()
    respond(client, 1, 100)
    client.take()
    assert [frame.kind for frame in client.sent] == [HEADERS]
    client.feed(frames.settings(((frames.INITIAL_WINDOW_SIZE, 30),)))
    assert sent_bytes(client, 1) == 30
    client.feed(frames.settings(((frames.INITIAL_WINDOW_SIZE, 10),)))  # 20 below zero
    client.feed(frames.window_update(1, 20))
    assert sent_bytes(client, 1) == 30
    client.feed(frames.window_update(1, 1000))
    assert sent_bytes(client, 1) == 100


def test_rfc9113_6_9_2_change_that_overflows_a_window_is_a_connection_error(client: Machine) -> None:
    client.request()
    client.feed(frames.window_update(1, 2**31 - 1 - 65_535))
    client.feed(frames.settings(((frames.INITIAL_WINDOW_SIZE, 65_536),)))
    assert client.failure is FLOW


class Upload:
    """What a client sends on a stream, as the windows allow, and what is left of these."""

    def __init__(self, client: Machine, stream_id: int) -> None:
        self.client, self.stream_id = client, stream_id
        self.window = STREAM_WINDOW
        client.post(stream_id)

    def send(self, size: int) -> None:
        while size:
            part = min(size, 16_384)
            self.client.frame(DATA, 0, self.stream_id, bytes(part))
            self.window -= part
            size -= part
        self.window += sum(
            frames.read_word(frame.payload)[0]
            for frame in self.client.sent
            if frame.kind == WINDOW_UPDATE and frame.stream_id == self.stream_id
        )
        self.client.sent.clear()

    def grow(self) -> None:
        for _ in range(8):
            self.send(STREAM_WINDOW // 2)


def test_window_of_an_upload_grows_while_its_origin_keeps_up(client: Machine) -> None:
    upload = Upload(client, 1)
    upload.grow()
    assert upload.window == MAX_STREAM_WINDOW
    client.connection.pause(client.made[1])
    upload.send(MAX_STREAM_WINDOW)
    assert client.reset_code(1) is None
    client.frame(DATA, 0, 1, b"x")
    assert client.reset_code(1) == FLOW


def test_upload_that_stops_with_a_grown_window_leaves_room_for_others(client: Machine) -> None:
    uploads = [Upload(client, stream_id) for stream_id in (1, 3, 5)]
    for upload in uploads:
        upload.grow()
    assert sum(upload.window for upload in uploads) == 3 * STREAM_WINDOW + MAX_GROWTH
    for upload in uploads[:2]:
        client.connection.pause(client.made[upload.stream_id])
        upload.send(upload.window)
    others = [Upload(client, stream_id) for stream_id in (7, 9, 11, 13)]
    for _ in range(40):
        for other in others:
            other.send(STREAM_WINDOW // 2)
    assert client.failure is None


@pytest.mark.parametrize("ends", ["response", "whole response", "reset"])
def test_window_that_grew_is_of_use_to_others_once_its_stream_is_closed(client: Machine, ends: str) -> None:
    client.request()
    respond(client, 1, 10)
    client.take()
    for stream_id in (3, 5, 7):
        upload = Upload(client, stream_id)
        upload.grow()
        assert upload.window == MAX_STREAM_WINDOW
        if ends == "reset":
            client.feed(frames.rst_stream(stream_id, 8))
            continue
        client.frame(DATA, END_STREAM, stream_id)
        if ends == "response":
            respond(client, stream_id, 10)
            client.take()
        else:
            assert client.connection.respond(client.made[stream_id], b"\x88", b"", True)
    assert not client.connection._grown
