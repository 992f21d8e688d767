"""Streams, and what their owner's class begins with."""

from __future__ import annotations

from typing import Any, cast

from edge.http2.streams import Stream
from edge.proxy.http2_stream import Http2Stream


def test_stream_of_a_client_begins_as_every_stream_does() -> None:
    worker = type("Worker", (), {"fill_head": None})
    plain, ours = Stream(3, 100), Http2Stream(cast("Any", None), cast("Any", worker), 3, 100)
    for name in Stream.__slots__:
        assert getattr(ours, name) == getattr(plain, name)
        assert type(getattr(ours, name)) is type(getattr(plain, name))
