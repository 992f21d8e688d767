"""Cuts a client's bytes into request heads: bytes in, a complete head, nothing yet, or an error out. Sans I/O.

A head ends with the first empty line (RFC 9112 §2.1). What follows it stays in `buffer`: the request's body, or the
next request.
"""

from __future__ import annotations

from edge.http import request
from edge.http.incomplete import check_incomplete, without_empty_lines
from edge.http.request import HeadLimits, RequestHead


class RequestReader:
    """Cuts the bytes of one client connection.

    Invariant: after `next_head` returned None, `buffer` holds no complete head.
    """

    __slots__ = ("_limits", "_searched", "buffer")

    def __init__(self, limits: HeadLimits) -> None:
        self._limits = limits
        self._searched = 0  # so far `buffer` holds no end of a head
        self.buffer = b""

    def __repr__(self) -> str:
        return f"<RequestReader {len(self.buffer)} bytes>"

    def next_head(self) -> tuple[bytes, RequestHead] | None:
        """Take the next head, as received and as read; return None while it is incomplete.

        Raises: `Rejected` for what is not, or can no longer become, a valid head. No request can follow it.
        """
        buffer = self.buffer
        if buffer[:2] == b"\r\n":  # RFC 9112 §2.2: empty lines are ignored before a request line
            self.buffer = buffer = without_empty_lines(buffer)
            if not buffer:
                return None
        end = buffer.find(b"\r\n\r\n", self._searched) + 4
        if end < 4:
            check_incomplete(buffer, self._searched, self._limits)
            self._searched = max(0, len(buffer) - 3)
            return None
        raw = buffer[:end]
        head = request.parse(raw, self._limits)
        self.buffer = buffer[end:]
        self._searched = 0
        return raw, head

    def take_same(self, raw: bytes) -> bool:
        """Take the next head if it is `raw`, a complete one, again. Return whether it was."""
        if not self.buffer.startswith(raw):
            return False
        self.buffer = self.buffer[len(raw) :]
        self._searched = 0
        return True

    def take_rest(self) -> bytes:
        """Take what was received behind the last head: a body's bytes, or a tunnel's."""
        rest, self.buffer = self.buffer, b""
        return rest
