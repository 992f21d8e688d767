"""Header blocks that come in several frames: a HEADERS frame and its CONTINUATION frames (RFC 9113 §4.3, §6.10)."""

from __future__ import annotations

from edge.http2 import budgets, frames
from edge.http2.errors import ConnectionFailed, ErrorCode


class BlockAssembly:
    """Joins the block whose end has not come. `stream_id` is its stream, 0 while there is none.

    `ends_stream`: no more of the request follows the block.
    """

    __slots__ = ("_bytes", "_max_bytes", "_parts", "ends_stream", "stream_id")

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._parts: list[bytes] = []
        self._bytes = 0
        self.stream_id = 0
        self.ends_stream = False

    def begin(self, stream_id: int, payload: bytes, *, ends_stream: bool) -> None:
        """Take the first part."""
        self.stream_id, self.ends_stream = stream_id, ends_stream
        self._parts, self._bytes = [payload], len(payload)

    def add(self, flags: int, payload: bytes) -> bytes | None:
        """Take a part; return the block once it is whole.

        Raises: `ConnectionFailed` where none has begun, or it costs too much.
        """
        if not self.stream_id:
            raise ConnectionFailed(ErrorCode.PROTOCOL_ERROR, "CONTINUATION without HEADERS")
        self._parts.append(payload)
        self._bytes += len(payload)
        if len(self._parts) > budgets.MAX_CONTINUATIONS + 1:
            raise budgets.exceeded("continuations")
        if self._bytes > self._max_bytes:
            raise budgets.exceeded("header_bytes")
        if not flags & frames.END_HEADERS:
            return None
        block = b"".join(self._parts)
        self.clear()
        return block

    def clear(self) -> None:
        """Forget what came."""
        self.stream_id = 0
        self._parts = []
