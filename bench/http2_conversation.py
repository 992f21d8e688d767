"""The only client, in HTTP/2, and the only origin of a proxy whose instructions are counted, in one process.

Each round sends some requests together, as browsers do (`bench.http2_client`). The proxy opens as many connections to
the origin as it likes.
"""

from __future__ import annotations

import selectors
import socket
from typing import Final

from bench.http2_client import OPENING, RequestEncoder, client_context, read_frames
from bench.instruction_cases import InstructionCase
from common.errors import OperatorError
from edge.http2 import frames

_PATIENCE_SECONDS: Final = 120.0
_READ_BYTES: Final = 1 << 18
_HEAD_END: Final = b"\r\n\r\n"


class Http2Conversation:
    """One client connection to the proxy at `port`, `case.streams` requests at once, and the origin's connections."""

    def __init__(self, port: int, listener: socket.socket, case: InstructionCase) -> None:
        self._case = case
        self._listener = listener
        self._encoder = RequestEncoder()
        self._turn = self._answered = self._ended = 0
        self._received = b""
        plain = socket.create_connection(("127.0.0.1", port), timeout=_PATIENCE_SECONDS)
        self._client = client_context().wrap_socket(plain, server_hostname=case.host)
        if self._client.selected_alpn_protocol() != "h2":
            raise OperatorError("the proxy does not speak HTTP/2")
        self._client.sendall(OPENING)
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
        return self._encoder.encode(self._case.requests[number % len(self._case.requests)])

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
        received, self._received = read_frames(data)
        for kind, flags, _, _ in received:
            if kind in (frames.RST_STREAM, frames.GOAWAY):
                raise OperatorError("the proxy ended a stream or the connection")
            self._ended += kind in (frames.DATA, frames.HEADERS) and bool(flags & frames.END_STREAM)
