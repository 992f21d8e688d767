"""The body of a response, between the origin's framing and the client's. Bytes in, bytes out; it knows no connection.

the origin frames it by     a client of HTTP/1.1 receives     a client of HTTP/1.0 or HTTP/2 receives
Content-Length              the same bytes                    the same bytes
chunks                      chunks of our own                 the content; its end is the connection's or the stream's
the connection's end        chunks of our own                 the same bytes; the same
"""

from __future__ import annotations

from edge.http import chunks, trailers
from edge.http.framing import CHUNKED, UNTIL_CLOSE


class ResponseBody:
    """Reads one body of `size` bytes, `CHUNKED` or `UNTIL_CLOSE`, for a client of HTTP/1.`minor`, or of HTTP/2 (2).

    Fed until `is_complete`. `has_excess`: bytes came beyond the body's end; they are not passed on.
    """

    __slots__ = (
        "_chunks",
        "_is_chunked_below",
        "_missing_bytes",
        "_takes_trailers",
        "has_excess",
        "is_complete",
        "trailers",
    )

    def __init__(self, size: int, minor: int, *, takes_trailers: bool) -> None:
        self._missing_bytes = size  # CHUNKED and UNTIL_CLOSE stay as they are
        self._chunks = chunks.ChunkReader(may_pad=True) if size == CHUNKED else None
        self._is_chunked_below = size < 0 and minor == 1
        self._takes_trailers = takes_trailers
        self.has_excess = False
        self.is_complete = False
        self.trailers = b""  # that go on, where no last chunk has them

    @property
    def ends_by_close(self) -> bool:
        """Return whether the client takes the connection's end for the body's.

        Such a client cannot see that some of the body is missing.
        """
        return self._missing_bytes < 0 and not self._is_chunked_below

    def frame(self, data: bytes) -> bytes:
        """Return what the client is sent of `data`.

        Raises: `Rejected` when the coding is broken; the body is of no use afterwards.
        """
        missing = self._missing_bytes
        if missing >= 0:
            size = len(data)
            if size < missing:
                self._missing_bytes = missing - size
                return data
            self.is_complete = True
            self.has_excess = size > missing
            return data[:missing]
        if self._chunks is not None:
            return self._frame_chunks(self._chunks, data)
        return chunks.encode(data) if data and self._is_chunked_below else data

    def _frame_chunks(self, reader: chunks.ChunkReader, data: bytes) -> bytes:
        content = reader.feed(data)
        framed = chunks.encode(content) if content and self._is_chunked_below else content
        if not reader.is_done:
            return framed
        self.is_complete = True
        self.has_excess = bool(reader.rest)
        block = trailers.for_client(reader.trailers) if self._takes_trailers else b""
        if self._is_chunked_below:
            return framed + chunks.last_chunk(block)
        self.trailers = block
        return framed

    @property
    def has_more(self) -> bool:
        """Return whether a call without data reads on in what was given.

        One call reads `chunks.STEPS_AT_ONCE` at most.
        """
        return self._chunks is not None and self._chunks.has_more

    def end(self) -> bytes | None:
        """Take the orderly end of the origin's connection.

        Return what the client is sent last, or None where some of the body is missing.
        """
        if self._missing_bytes != UNTIL_CLOSE:
            return None
        self.is_complete = True
        return chunks.LAST_CHUNK if self._is_chunked_below else b""
