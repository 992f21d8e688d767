"""What an answer's head states for the client (RFC 9110 §8.6); its framing is the oracle's to judge."""

from __future__ import annotations

import pytest

from edge.http.error_responses import ORIGIN_INVALID, Rejected
from edge.http.response import MAX_FIELDS, parse


@pytest.mark.parametrize(
    ("method", "status", "stated"),
    [
        (b"HEAD", 200, b"5"),
        (b"GET", 304, b"5"),
        (b"GET", 200, b""),
        (b"GET", 204, b""),
        (b"HEAD", 204, b""),
    ],
)
def test_the_length_of_a_body_that_does_not_come_is_told_but_of_none(method: bytes, status: int, stated: bytes) -> None:
    answer = parse(b"HTTP/1.1 %d X\r\nContent-Length: 5\r\nX: y\r\n\r\n" % status, method)
    assert (answer.stated_length, answer.kept) == (stated, b"\r\nX: y")


@pytest.mark.parametrize(("count", "is_read"), [(MAX_FIELDS, True), (MAX_FIELDS + 1, False)])
def test_a_head_of_too_many_fields_is_refused_however_short_they_are(count: int, is_read: bool) -> None:
    head = b"HTTP/1.1 200 OK\r\n" + b"a:\r\n" * (count - 1) + b"Content-Length: 0\r\n\r\n"
    if is_read:
        assert parse(head, b"GET").kept == b"\r\na:" * (count - 1)
    else:
        with pytest.raises(Rejected) as refused:
            parse(head, b"GET")
        assert refused.value.response is ORIGIN_INVALID
        assert "more than 1000 fields" in refused.value.reason
