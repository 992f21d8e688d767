"""The chunked coding, read strictly wherever the stream is cut (RFC 9112 §7.1)."""

from __future__ import annotations

import h11
import pytest
from hypothesis import given
from hypothesis import strategies as st

from edge.http.chunks import LAST_CHUNK, STEPS_AT_ONCE, ChunkReader, encode
from edge.http.error_responses import ErrorResponse, Rejected
from tests.unit.edge import corpus
from tests.unit.edge.plain_chunks import PlainChunkReader


def feed(reader: ChunkReader, part: bytes) -> bytes:
    content = reader.feed(part)
    while reader.has_more:
        content += reader.feed()
    return content


def decode(*parts: bytes) -> tuple[bytes, bytes, bool]:
    reader = ChunkReader()
    content = b""
    for part in parts:
        content += feed(reader, part)
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
    assert reader.feed(b"3  \r\nabc\r\n0\t\r\n\r\n") == b"abc"
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
        content += feed(reader, part)
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


@pytest.mark.parametrize("chunk", [b"1\r\nx\r\n", b"1;a=b\r\nx\r\n", b"2\r\n\r\n\r\n", b"1 \r\nx\r\n"])
def test_one_call_reads_a_bounded_number_of_chunks(chunk: bytes) -> None:
    reader = ChunkReader(may_pad=True)
    calls = [reader.feed(chunk * 10 * STEPS_AT_ONCE + LAST_CHUNK)]
    while reader.has_more:
        calls.append(reader.feed())
    assert reader.is_done
    content = PlainChunkReader(may_pad=True).feed(chunk)[0]
    assert b"".join(calls) == content * 10 * STEPS_AT_ONCE
    assert max(map(len, calls)) <= STEPS_AT_ONCE * len(content)


def test_one_call_reads_a_bounded_number_of_trailers() -> None:
    reader = ChunkReader()
    reader.feed(b"0\r\n" + b"a:\r\n" * 2 * STEPS_AT_ONCE + b"\r\nGET /")
    assert reader.has_more
    assert len(reader.trailers) < STEPS_AT_ONCE * 4
    assert feed(reader, b"") == b""
    assert (reader.is_done, reader.rest) == (True, b"GET /")


def test_bytes_that_come_while_more_is_unread_are_read_behind_it() -> None:
    reader = ChunkReader()
    content = reader.feed(b"1\r\nx\r\n" * 2 * STEPS_AT_ONCE)
    assert reader.has_more
    content += feed(reader, b"1\r\ny\r\n" + LAST_CHUNK + b"rest")
    assert content == b"x" * 2 * STEPS_AT_ONCE + b"y"
    assert reader.rest == b"rest"


# The plain way -------------------------------------------------------------------------------------------------

Outcome = tuple[bytes, bytes, bytes, bool] | ErrorResponse


def outcomes(reader: ChunkReader | PlainChunkReader, parts: list[bytes]) -> list[Outcome]:
    """Content, trailers, rest and whether it is done, after each of the parts; or how it is refused."""
    content = b""
    after: list[Outcome] = []
    for part in parts:
        try:
            content += feed(reader, part) if isinstance(reader, ChunkReader) else b"".join(reader.feed(part))
        except Rejected as error:
            return [*after, error.response]
        after.append((content, reader.trailers, reader.rest, reader.is_done))
        if reader.is_done:
            break
    return after


def check_same(stream: bytes, cuts: list[int], max_bytes: int | None, *, may_pad: bool) -> None:
    parts = [stream[a:b] for a, b in zip([0, *cuts], [*cuts, len(stream)], strict=True)]
    plain = outcomes(PlainChunkReader(max_bytes, may_pad=may_pad), parts)
    assert outcomes(ChunkReader(max_bytes, may_pad=may_pad), parts) == plain


_CASES = [case.partition(b"\r\n\r\n")[2] for case, _ in (*corpus.REQUESTS.values(), *corpus.RESPONSES.values())]


@pytest.mark.parametrize("may_pad", [False, True])
@pytest.mark.parametrize("max_bytes", [None, 3])
def test_corpus_is_read_as_the_plain_way_reads_it(max_bytes: int | None, *, may_pad: bool) -> None:
    for body in filter(None, _CASES):
        check_same(body, [], max_bytes, may_pad=may_pad)
        if len(body) < 1000:
            check_same(body, list(range(1, len(body))), max_bytes, may_pad=may_pad)


_PIECES = st.sampled_from(
    b'0 1 2 3 a A 00 10 0x1 +1 -1 1_0 \r \n \r\n \r\n\r\n ; ;a=b ;a="\\"" , : X:y x xyz \t'.split(b" ")
) | st.sampled_from([b" ", b"1\r\nx\r\n", b"3\r\nabc\r\n", b"A\r\n0123456789\r\n", b"0\r\n\r\n", b"\x00", b"g"])


@given(st.lists(_PIECES, max_size=30), st.none() | st.integers(0, 12), st.booleans(), st.data())
def test_anything_is_read_as_the_plain_way_reads_it(
    pieces: list[bytes], max_bytes: int | None, may_pad: bool, data: st.DataObject
) -> None:
    stream = b"".join(pieces)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))
    check_same(stream, cuts, max_bytes, may_pad=may_pad)
