"""Bodies between the framing of one side and that of the other, however they are cut into pieces."""

from __future__ import annotations

import pytest

from edge.http.error_responses import Rejected
from edge.http.framing import CHUNKED, UNTIL_CLOSE
from edge.http.request_body import RequestBody
from edge.http.response_body import ResponseBody


def test_request_of_a_length_ends_there_and_the_rest_is_the_next_request() -> None:
    body = RequestBody(5, None)
    assert body.missing_bytes == 5
    assert not body.is_begun
    assert body.frame(b"he") == b"he"
    assert (body.missing_bytes, body.is_complete, body.rest) == (3, False, b"")
    assert body.frame(b"lloGET /") == b"llo"
    assert (body.missing_bytes, body.is_complete, body.rest) == (0, True, b"GET /")


def test_chunked_request_is_written_in_chunks_of_our_own() -> None:
    body = RequestBody(CHUNKED, 100)
    assert body.frame(b"5;name=value\r\nhel") == b"3\r\nhel\r\n"
    assert not body.is_complete
    assert body.frame(b"lo\r\n0\r\nTrailer: x\r\n\r\nGET /") == b"2\r\nlo\r\n0\r\n\r\n"
    assert (body.is_complete, body.rest) == (True, b"GET /")


def test_chunked_request_is_decoded_for_an_origin_that_gets_a_length() -> None:
    body = RequestBody(CHUNKED, 100)
    assert body.decode(b"3\r\nabc\r\n") == b"abc"
    assert body.decode(b"0\r\n\r\n") == b""
    assert body.is_complete


def test_request_above_its_limit_and_one_with_a_broken_chunk_are_refused() -> None:
    with pytest.raises(Rejected):
        RequestBody(CHUNKED, 3).frame(b"4\r\nabcd\r\n0\r\n\r\n")
    with pytest.raises(Rejected):
        RequestBody(CHUNKED, None).frame(b"-4\r\n")


def test_response_of_a_length_ends_there_and_more_is_not_passed_on() -> None:
    body = ResponseBody(5, 1, takes_trailers=False)
    assert body.frame(b"he") == b"he"
    assert body.end() is None
    assert body.frame(b"llo!") == b"llo"
    assert (body.is_complete, body.has_excess) == (True, True)
    assert not ResponseBody(5, 0, takes_trailers=False).ends_by_close


@pytest.mark.parametrize(
    ("minor", "takes_trailers", "sent"),
    [
        (1, False, b"5\r\nhello\r\n0\r\n\r\n"),
        (1, True, b"5\r\nhello\r\n0\r\nDigest: x\r\n\r\n"),
        (0, False, b"hello"),
    ],
)
def test_chunked_response(minor: int, takes_trailers: bool, sent: bytes) -> None:
    body = ResponseBody(CHUNKED, minor, takes_trailers=takes_trailers)
    assert body.ends_by_close is (minor == 0)
    assert body.frame(b"") == b""
    assert body.frame(b"5 \r\nhello\r\n0\r\nDigest: x\r\n\r\n") == sent
    assert (body.is_complete, body.has_excess, body.end()) == (True, False, None)


@pytest.mark.parametrize(("minor", "sent", "last"), [(1, b"5\r\nhello\r\n", b"0\r\n\r\n"), (0, b"hello", b"")])
def test_response_that_ends_with_its_connection(minor: int, sent: bytes, last: bytes) -> None:
    body = ResponseBody(UNTIL_CLOSE, minor, takes_trailers=True)
    assert body.ends_by_close is (minor == 0)
    assert body.frame(b"") == b""
    assert body.frame(b"hello") == sent
    assert not body.is_complete
    assert body.end() == last
    assert body.is_complete
