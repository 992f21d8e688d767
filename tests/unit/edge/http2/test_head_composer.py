"""What a request is compared with: the fields of the last one that go on to the origin."""

from __future__ import annotations

from edge.http import request
from edge.http2.fields import Field, make_field
from edge.http2.requests import HeadComposer


def fields_with(agent: bytes, *others: tuple[bytes, bytes]) -> list[Field]:
    start = [(b":method", b"GET"), (b":scheme", b"https"), (b":authority", b"a.example"), (b":path", b"/")]
    return [make_field(name, value) for name, value in [*start, *others, (b"user-agent", agent)]]


def test_fields_that_are_cut_out_of_a_head_are_no_part_of_what_varies() -> None:
    composer = HeadComposer()
    cut = (b"te", b"trailers"), (b"via", b"2 proxy")
    head, _ = composer.compose(fields_with(b"one", *cut), is_complete=True)
    varied = composer.vary(fields_with(b"three", *cut))
    assert varied is not None
    _, kept, head_bytes, _ = varied
    assert request.parse(head, request.HeadLimits()).kept == b"\r\nuser-agent: one"
    assert kept == b"\r\nuser-agent: three"
    assert head_bytes == len(head) + len("three") - len("one")
