"""What an answer's head states for the client (RFC 9110 §8.6); its framing is the oracle's to judge."""

from __future__ import annotations

import pytest

from edge.http.response import parse


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
