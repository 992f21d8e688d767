"""The chunked coding, read strictly wherever the stream is cut (RFC 9112 §7.1)."""

from __future__ import annotations

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.http.chunks import LAST_CHUNK, ChunkReader, encode
from edge.http.error_responses import Rejected


def decode(*parts: bytes) -> tuple[bytes, bytes, bool]:
    reader = ChunkReader()
    content = b""
    for part in parts:
        content += b"".join(reader.feed(part))
    return content, reader.rest, reader.is_done


def test_extensions_and_trailers_are_dropped() -> None:
    stream = b'3;a=b ;c="d\\"e"\r\nabc\r\n0;x\r\nTrailer: t\r\n\r\nGET /'
    assert decode(stream) == (b"abc", b"GET /", True)


@pytest.mark.parametrize(
    "stream",
    [
        b"3\nabc\r\n0\r\n\r\n",
        b"3\r\nabcd\r\n0\r\n\r\n",
        b"3\r\nabc\n0\r\n\r\n",
        b"0x3\r\nabc\r\n0\r\n\r\n",
        b"+3\r\nabc\r\n0\r\n\r\n",
        b"-3\r\nabc\r\n0\r\n\r\n",
        b" 3\r\nabc\r\n0\r\n\r\n",
        b"3 \r\nabc\r\n0\r\n\r\n",
        b"3\t\r\nabc\r\n0\r\n\r\n",
        b"3;a \r\nabc\r\n0\r\n\r\n",
        b"3\r\nabc\r\n0 \r\n\r\n",
        b"\r\n3\r\nabc\r\n0\r\n\r\n",
        b"g\r\n",
        b"ffffffffffffffff\r\n",
        b"3;\x00\r\nabc\r\n0\r\n\r\n",
        b"3;a\nb\r\nabc\r\n0\r\n\r\n",
        b"0\r\nbad trailer\r\n\r\n",
        b"0\r\nX: y\n\r\n",
        b"1;" + b"a" * 5000,
        b"0\r\n" + b"X: y\r\n" * 5000,
    ],
)
def test_what_two_readers_could_read_differently_is_refused(stream: bytes) -> None:
    with pytest.raises(Rejected):
        decode(stream)


def test_size_padded_with_blanks_is_read_where_allowed() -> None:
    reader = ChunkReader(may_pad=True)
    assert reader.feed(b"3  \r\nabc\r\n0\t\r\n\r\n") == [b"abc"]
    assert reader.is_done
    with pytest.raises(Rejected):
        ChunkReader(may_pad=True).feed(b" 3\r\n")


@given(st.lists(st.binary(min_size=1, max_size=40), max_size=6), st.binary(max_size=8), st.data())
def test_any_split_gives_the_same_content(pieces: list[bytes], rest: bytes, data: st.DataObject) -> None:
    stream = b"".join(map(encode, pieces)) + LAST_CHUNK + rest
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=8)))
    parts = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    reader = ChunkReader()
    content, after = b"", b""
    for part in parts:
        if reader.is_done:
            after += part
            continue
        content += b"".join(reader.feed(part))
        after = reader.rest
    assert (content, after) == (b"".join(pieces), rest)


@given(st.binary(max_size=60))
def test_what_is_accepted_means_the_same_to_h11(noise: bytes) -> None:
    stream = b"2\r\nok\r\n" + noise
    try:
        content, _, done = decode(stream)
    except Rejected:
        return
    if not done:
        return
    server = h11.Connection(h11.SERVER)
    server.receive_data(b"POST / HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n" + stream)
    server.next_event()
    seen = b""
    while type(event := server.next_event()) is h11.Data:
        seen += bytes(event.data)
    assert type(event) is h11.EndOfMessage
    assert seen == content
