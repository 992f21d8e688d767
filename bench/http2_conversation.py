"""The only client, in HTTP/2, and the only origin of a proxy whose instructions are counted, in one process.

Each round sends some requests together, in header blocks as browsers send them: they refer to fields that were sent
before, no path is put into the table, and each cookie is a field. The proxy opens as many connections to the origin as
it likes.
"""

from __future__ import annotations

import selectors
import socket
import ssl
from typing import Final

from hpack import Encoder, NeverIndexedHeaderTuple

from bench.instruction_cases import InstructionCase
from common.errors import OperatorError
from edge.http2 import frames

_PATIENCE_SECONDS: Final = 120.0
_READ_BYTES: Final = 1 << 18
_HEAD_END: Final = b"\r\n\r\n"
_WHOLE: Final = frames.END_HEADERS | frames.END_STREAM
_NOT_INDEXED_PATH: Final = b"\x04"  # RFC 7541 §6.2.2
_PREFACE: Final = (
    frames.PREFACE
    + frames.settings(((frames.INITIAL_WINDOW_SIZE, frames.MAX_WINDOW),))
    + frames.window_update(0, 1 << 30)
)


class Http2Conversation:
    """One client connection to the proxy at `port`, `case.streams` requests at once, and the origin's connections."""

    def __init__(self, port: int, listener: socket.socket, case: InstructionCase) -> None:
        self._case = case
        self._listener = listener
        self._encoder = Encoder()
        self._turn = self._answered = self._ended = 0
        self._received = b""
        context = ssl.create_default_context()
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
        context.set_alpn_protocols(["h2"])
        plain = socket.create_connection(("127.0.0.1", port), timeout=_PATIENCE_SECONDS)
        self._client = context.wrap_socket(plain, server_hostname=case.host)
        if self._client.selected_alpn_protocol() != "h2":
            raise OperatorError("the proxy does not speak HTTP/2")
        self._client.sendall(_PREFACE)
        self._selector = selectors.DefaultSelector()
        self._selector.register(self._client, selectors.EVENT_READ)
        self._selector.register(listener, selectors.EVENT_READ)
        self._origins: list[socket.socket] = []

    def __enter__(self) -> Http2Conversation:
        return self

    def __exit__(self, *_: object) -> None:
        self._selector.close()
        for peer in (self._client, *self._origins):
            peer.close()

    def run(self, requests: int) -> None:
        """Send and answer so many requests.

        Raises: `OperatorError` when one is not answered.
        """
        until = self._turn + requests
        while self._turn < until:
            count = min(self._case.streams, until - self._turn)
            self._client.sendall(b"".join(self._request(self._turn + number) for number in range(count)))
            self._turn += count
            while self._ended < self._turn:
                self._follow()

    def _request(self, number: int) -> bytes:
        path, fields = _read(self._case.requests[number % len(self._case.requests)])
        literal = self._encoder.encode([NeverIndexedHeaderTuple(b":path", path)])
        block = _NOT_INDEXED_PATH + literal[1:] + self._encoder.encode(fields)
        return frames.frame(frames.HEADERS, _WHOLE, 2 * number + 1, block)

    def _follow(self) -> None:
        ready = self._selector.select(_PATIENCE_SECONDS)
        if not ready:
            raise OperatorError("the proxy does not answer")
        for key, _ in ready:
            if key.fileobj is self._listener:
                origin, _ = self._listener.accept()
                self._origins.append(origin)
                self._selector.register(origin, selectors.EVENT_READ)
            elif key.fileobj is self._client:
                self._read_responses()
            else:
                assert isinstance(key.fileobj, socket.socket)
                self._answer(key.fileobj)

    def _answer(self, origin: socket.socket) -> None:
        head = origin.recv(_READ_BYTES)
        if not head.endswith(_HEAD_END):
            raise OperatorError(f"no whole request reached the origin: {head[-40:]!r}")
        origin.sendall(self._case.answers[self._answered % len(self._case.answers)])
        self._answered += 1

    def _read_responses(self) -> None:
        data = self._received + self._client.recv(_READ_BYTES)
        while self._client.pending():
            data += self._client.recv(_READ_BYTES)
        position = 0
        while len(data) - position >= frames.HEADER_BYTES:
            word, flags, _ = frames.read_header(data, position)
            stop = position + frames.HEADER_BYTES + (word >> 8)
            if stop > len(data):
                break
            kind = word & 0xFF
            if kind in (frames.RST_STREAM, frames.GOAWAY):
                raise OperatorError("the proxy ended a stream or the connection")
            self._ended += kind in (frames.DATA, frames.HEADERS) and bool(flags & frames.END_STREAM)
            position = stop
        self._received = data[position:]


def _read(head: bytes) -> tuple[bytes, list[tuple[bytes, bytes]]]:
    """Return the path of a head of HTTP/1.1, and the other fields of HTTP/2; Host is the head's first field."""
    line, *lines = head[: -len(_HEAD_END)].split(b"\r\n")
    method, path, _ = line.split(b" ")
    (_, host), *fields = ((name.lower(), value) for name, _, value in (line.partition(b": ") for line in lines))
    pseudo = [(b":method", method), (b":scheme", b"https"), (b":authority", host)]
    crumbs = [(name, part) for name, value in fields for part in (value.split(b"; ") if name == b"cookie" else [value])]
    return path, pseudo + crumbs
