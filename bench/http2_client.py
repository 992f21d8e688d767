"""What our clients of HTTP/2 share: their TLS, how they open a connection, a browser's requests, the frames they read.

Requests are encoded as browsers encode them: fields that were sent before are referred to, what is new is put into the
table (the session cookie among it, which pushes older fields out), no path is, and each cookie is a field of its own.
"""

from __future__ import annotations

import ssl
from typing import Final, NamedTuple

from hpack import Encoder, NeverIndexedHeaderTuple

from edge.http2 import frames

OPENING: Final = (
    frames.PREFACE
    + frames.settings(((frames.INITIAL_WINDOW_SIZE, frames.MAX_WINDOW),))
    + frames.window_update(0, 1 << 30)
)
"""What a client sends first: no window is in the way of a response."""

_HEAD_END: Final = b"\r\n\r\n"
_WHOLE: Final = frames.END_HEADERS | frames.END_STREAM
_NEVER_INDEXED_PATH: Final = b"\x14"  # RFC 7541 §6.2.3, the name by the static table's index 4
_NOT_INDEXED_PATH: Final = b"\x04"  # §6.2.2


class ReceivedFrame(NamedTuple):
    """One frame that came."""

    kind: int
    flags: int
    stream_id: int
    payload: bytes


class RequestEncoder:
    """Encodes the requests of one connection, in the order in which they are sent, on one stream after another."""

    def __init__(self) -> None:
        self._encoder = Encoder()
        self._stream_id = 1

    def encode(self, head: bytes) -> bytes:
        """Return the HEADERS frame of a request without a body; the head is HTTP/1.1's, its first field Host."""
        path, fields = _read(head)
        block = self._encoder.encode([NeverIndexedHeaderTuple(b":path", path)])
        if block.startswith(_NEVER_INDEXED_PATH):
            block = _NOT_INDEXED_PATH + block[1:]
        frame = frames.frame(frames.HEADERS, _WHOLE, self._stream_id, block + self._encoder.encode(fields))
        self._stream_id += 2
        return frame


def client_context() -> ssl.SSLContext:
    """Create a context that offers HTTP/2 alone, and verifies nothing: that is not what is measured."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    context.set_alpn_protocols(["h2"])
    return context


def read_frames(data: bytes) -> tuple[list[ReceivedFrame], bytes]:
    """Return the whole frames at the beginning of the data, and the rest."""
    found = []
    position, size = 0, len(data)
    while size - position >= frames.HEADER_BYTES:
        word, flags, stream_id = frames.read_header(data, position)
        start = position + frames.HEADER_BYTES
        end = start + (word >> 8)
        if end > size:
            break
        found.append(ReceivedFrame(word & 0xFF, flags, stream_id, data[start:end]))
        position = end
    return found, data[position:]


def _read(head: bytes) -> tuple[bytes, list[tuple[bytes, bytes]]]:
    """Return the path of a head of HTTP/1.1, and the other fields of HTTP/2."""
    line, *lines = head.removesuffix(_HEAD_END).split(b"\r\n")
    method, path, _ = line.split(b" ")
    (_, host), *fields = ((name.lower(), value) for name, _, value in (line.partition(b": ") for line in lines))
    pseudo = [(b":method", method), (b":scheme", b"https"), (b":authority", host)]
    crumbs = [(name, part) for name, value in fields for part in (value.split(b"; ") if name == b"cookie" else [value])]
    return path, pseudo + crumbs
