"""A head that has not come to its end yet: what can be refused already, and what need not be kept (RFC 9112 §2.2)."""

from __future__ import annotations

import re
from typing import Final

from edge.http.error_responses import BAD_REQUEST, HEAD_TOO_LARGE, ORIGIN_INVALID, TARGET_TOO_LONG, Rejected
from edge.http.request import HeadLimits

_EMPTY_LINES: Final = re.compile(rb"(?:\r\n)*")
_BARE_LF: Final = re.compile(rb"(?<!\r)\n")
_AROUND_TARGET_BYTES: Final = 64  # method and version
_RESPONSE_START: Final = b"HTTP/1."


def without_empty_lines(buffer: bytes) -> bytes:
    """Return the buffer without the empty lines that are ignored before a request line.

    A bare LF or CR among them is not ignored.
    """
    lines = _EMPTY_LINES.match(buffer)
    assert lines is not None
    return buffer[lines.end() :]


def check_incomplete(buffer: bytes, searched: int, limits: HeadLimits) -> None:
    """Refuse early what can no longer become a valid head; up to `searched` it is known to have been fine.

    Raises: `Rejected`.
    """
    if _BARE_LF.search(buffer, searched) is not None:
        raise Rejected(BAD_REQUEST)
    line_end = buffer.find(b"\r\n")
    line_bytes = len(buffer) if line_end < 0 else line_end
    if line_bytes > limits.target_bytes + _AROUND_TARGET_BYTES:
        raise Rejected(TARGET_TOO_LONG)
    if len(buffer) > limits.head_bytes:
        raise Rejected(HEAD_TOO_LARGE)


def check_incomplete_response(buffer: bytes, searched: int, max_bytes: int) -> None:
    """Refuse an origin's response whose head, while incomplete, can no longer become a valid one.

    Without this, the client would wait for the origin's deadline.

    Raises: `Rejected`.
    """
    if not buffer.startswith(_RESPONSE_START[: len(buffer)]):
        raise Rejected(ORIGIN_INVALID, "the origin's response does not begin with HTTP/1.")
    if _BARE_LF.search(buffer, searched) is not None:
        raise Rejected(
            ORIGIN_INVALID, "the head of the origin's response has a line that ends with LF instead of CR LF"
        )
    if len(buffer) > max_bytes:
        raise Rejected(ORIGIN_INVALID, f"the head of the origin's response is longer than {max_bytes} bytes")
