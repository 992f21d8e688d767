"""The body of a request, between the client's framing and the origin's. Bytes in, bytes out; it knows no connection."""

from __future__ import annotations

from edge.http import chunks
from edge.http import trailers as trailer_fields
from edge.http.framing import CHUNKED


class RequestBody:
    """Reads one body of `size` bytes, or a `CHUNKED` one of at most `max_bytes`. Fed until `is_complete`.

    Then `rest` is what follows the body in the stream, and `trailers` the block of trailer fields that go on. A request
    without a body needs none of these.
    """

    __slots__ = ("_chunks", "is_begun", "is_complete", "missing_bytes", "rest", "trailers")

    def __init__(self, size: int, max_bytes: int | None) -> None:
        self._chunks = chunks.ChunkReader(max_bytes) if size == CHUNKED else None
        self.missing_bytes = 0 if size == CHUNKED else size  # certainly still to come
        self.is_begun = False
        self.is_complete = False
        self.rest = b""
        self.trailers = b""

    def end(self) -> None:
        """Take the bytes that are missing as read."""
        self.missing_bytes = 0
        self.is_begun = self.is_complete = True

    def frame(self, data: bytes) -> bytes:
        """Return the part of the body in `data`, framed for the origin by length or in chunks of our own.

        Raises: `Rejected` when the coding is broken; the body is of no use afterwards.
        """
        if self._chunks is None:
            return self.decode(data)
        content = self._read_chunks(self._chunks, data)
        framed = chunks.encode(content) if content else b""
        return framed + chunks.last_chunk(self.trailers) if self.is_complete else framed

    def decode(self, data: bytes) -> bytes:
        """Return the content in `data` alone, for an origin that is sent a Content-Length.

        Raises: `Rejected` as `frame`.
        """
        if self._chunks is not None:
            return self._read_chunks(self._chunks, data)
        self.is_begun = True
        content, self.rest = data[: self.missing_bytes], data[self.missing_bytes :]
        self.missing_bytes -= len(content)
        self.is_complete = not self.missing_bytes
        return content

    def _read_chunks(self, reader: chunks.ChunkReader, data: bytes) -> bytes:
        self.is_begun = True
        content = reader.feed(data)
        self.is_complete = reader.is_done
        self.rest = reader.rest
        if self.is_complete:
            self.trailers = trailer_fields.for_origin(reader.trailers)
        return content

    @property
    def has_more(self) -> bool:
        """Return whether a call without data reads on in what was given.

        One call reads `chunks.STEPS_AT_ONCE` at most.
        """
        return self._chunks is not None and self._chunks.has_more
