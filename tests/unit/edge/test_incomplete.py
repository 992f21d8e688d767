"""What is refused before a head is complete."""

from __future__ import annotations

import pytest

from edge.http.error_responses import BAD_REQUEST, HEAD_TOO_LARGE, TARGET_TOO_LONG, ErrorResponse, Rejected
from edge.http.incomplete import check_incomplete, without_empty_lines
from edge.http.request import HeadLimits

LIMITS = HeadLimits(fields=10, head_bytes=300, target_bytes=100)


@pytest.mark.parametrize(
    ("buffer", "kind"),
    [
        (b"GET / HTTP/1.1\n", BAD_REQUEST),
        (b"GET / HTTP/1.1\r\nA: b\n", BAD_REQUEST),
        (b"GET /" + b"a" * 160, TARGET_TOO_LONG),
        (b"GET /" + b"a" * 160 + b" HTTP/1.1\r\n", TARGET_TOO_LONG),
        (b"GET / HTTP/1.1\r\nA: " + b"b" * 300, HEAD_TOO_LARGE),
    ],
)
def test_what_can_no_longer_become_a_head_is_refused_early(buffer: bytes, kind: ErrorResponse) -> None:
    with pytest.raises(Rejected) as refused:
        check_incomplete(buffer, 0, LIMITS)
    assert refused.value.response is kind


@pytest.mark.parametrize("buffer", [b"", b"G", b"GET / HTTP/1.1\r\nA: b\r", b"GET /" + b"a" * 159])
def test_what_may_still_become_one_is_waited_for(buffer: bytes) -> None:
    check_incomplete(buffer, 0, LIMITS)


def test_what_was_looked_at_is_not_looked_at_again() -> None:
    check_incomplete(b"a\nb", 2, LIMITS)


def test_whole_empty_lines_alone_are_left_out() -> None:
    assert without_empty_lines(b"\r\n\r\nGET") == b"GET"
    assert without_empty_lines(b"\r\n\r") == b"\r"
    assert without_empty_lines(b"\n") == b"\n"
