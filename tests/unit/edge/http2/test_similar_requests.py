"""Which requests are given to the owner without a head: those like an earlier one, until that is forgotten."""

from __future__ import annotations

from dataclasses import dataclass, field

from edge.http2 import frames
from edge.http2.streams import Stream
from tests.unit.edge.http2.machine import Machine

_START = b"\x82\x87\x41\x09a.example"  # :authority goes into the table
_KINDS = [b"", b"\x90", b"\x90\x91"]


@dataclass
class CountingMachine(Machine):
    """Notes the paths of requests that were given without a head."""

    similar: list[bytes] = field(default_factory=list)

    def on_similar_request(
        self, stream: Stream, request: bytes, path: bytes, head_bytes: int, kept: bytes | None = None
    ) -> bool:
        taken = super().on_similar_request(stream, request, path, head_bytes, kept)
        if taken:
            self.similar.append(path)
        return taken


def started() -> CountingMachine:
    machine = CountingMachine(answers=True)
    machine.start()
    machine.frame(frames.HEADERS, frames.END_HEADERS | frames.END_STREAM, 1, _START + b"\x84")
    return machine


def ask(machine: Machine, stream_id: int, kind: bytes) -> bytes:
    """Request another path than before; return the head."""
    path = b"/%d" % stream_id
    block = b"\x82\x87\xbe\x04" + bytes((len(path),)) + path + kind
    machine.frame(frames.HEADERS, frames.END_HEADERS | frames.END_STREAM, stream_id, block)
    return machine.made[stream_id].head


def test_request_is_like_the_last_one_of_its_kind() -> None:
    machine = started()
    heads = [ask(machine, 3 + 2 * number, _KINDS[number % 3]) for number in range(9)]
    assert machine.similar == [b"/%d" % (3 + 2 * number) for number in range(3, 9)]
    for head, like in zip(heads, heads[3:], strict=False):
        assert head.partition(b"\r\n")[2] == like.partition(b"\r\n")[2]


def test_request_with_content_is_not_like_one_without() -> None:
    machine = started()
    ask(machine, 3, b"")
    machine.frame(frames.HEADERS, frames.END_HEADERS, 5, b"\x82\x87\xbe\x04\x02/5")
    assert machine.similar == []
    assert b"Transfer-Encoding: chunked" in machine.made[5].head
    ask(machine, 7, b"")
    assert machine.similar == [b"/7"]


def test_no_request_is_taken_as_another_one_than_it_was_compared_with() -> None:
    machine = started()

    def ask_with(stream_id: int, start: bytes, agent: bytes) -> bytes:
        block = b"%b\x87\xbe\x04\x02/a\x0f\x2b\x02%b" % (start, agent)
        machine.frame(frames.HEADERS, frames.END_HEADERS | frames.END_STREAM, stream_id, block)
        return machine.made[stream_id].head

    get, delete = b"\x82", b"\x02\x06DELETE"
    assert ask_with(3, get, b"a1").startswith(b"GET ")
    machine.refuses = True  # as the edge does, where a request has not the content that it states
    ask_with(5, delete, b"a2")
    machine.refuses = False
    assert ask_with(7, delete, b"a3").startswith(b"DELETE ")
    assert ask_with(9, delete, b"a4").startswith(b"DELETE ")


def test_no_request_is_like_one_that_is_forgotten() -> None:
    machine = started()
    first = [ask(machine, 3 + 2 * number, b"") for number in range(2)]
    machine.connection.forget_requests()
    then = [ask(machine, 7 + 2 * number, b"") for number in range(2)]
    assert machine.similar == [b"/5", b"/9"]
    assert {head.partition(b"\r\n")[2] for head in first + then} == {b"Host: a.example\r\n\r\n"}
