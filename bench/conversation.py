"""The only client and the only origin of a proxy whose instructions are counted, in one process.

One request at a time goes on one client connection, and is answered on one connection to the origin.
"""

from __future__ import annotations

import contextlib
import itertools
import re
import socket
import ssl
import tempfile
from collections.abc import Iterator
from typing import Final

from bench.callgrind import CountedProcess
from bench.http2_conversation import Http2Conversation
from bench.instruction_cases import SECURE_ORIGIN_HOST, InstructionCase
from bench.instruction_parts import PARTS
from bench.peers.certificates import make_certificate
from common.errors import OperatorError

_PATIENCE_SECONDS: Final = 120.0
_READ_BYTES: Final = 1 << 18
_LENGTH: Final = re.compile(rb"\r\ncontent-length: ([0-9]+)", re.IGNORECASE)


@contextlib.contextmanager
def listening() -> Iterator[socket.socket]:
    """Open the origin's listening socket for the block."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        listener.listen()
        listener.settimeout(_PATIENCE_SECONDS)
        yield listener


def measure_case(
    process: CountedProcess, port: int, listener: socket.socket, case: InstructionCase, requests: int
) -> dict[str, float]:
    """Return the instructions of a request by part. `process` is the proxy at `port`, and `listener` its origin."""
    make = Http2Conversation if case.streams else Conversation
    with make(port, listener, case) as conversation:
        conversation.run(len(case.requests) if case.key == "page" else requests // 4)
        process.start_counting()
        conversation.run(requests)
        spent = process.stop_counting()
    return {part: spent[part] / requests for part in PARTS}


class Conversation:
    """One client connection at a time to the proxy at `port`, and the one connection to the origin that serves it.

    Both ends are this process'.
    """

    def __init__(self, port: int, listener: socket.socket, case: InstructionCase) -> None:
        self._port = port
        self._case = case
        self._turn = 0
        self._listener = listener
        self._origin: socket.socket | None = None
        self._context = ssl.create_default_context()
        self._context.check_hostname = False
        self._context.verify_mode = ssl.CERT_NONE
        self._lengths = itertools.cycle(case.connections or (-1,))  # -1: one connection without end
        self._requests_left = next(self._lengths)
        self._client = self._connect(None)

    def _connect(self, session: ssl.SSLSession | None) -> socket.socket:
        plain = socket.create_connection(("127.0.0.1", self._port), timeout=_PATIENCE_SECONDS)
        if not self._case.secure:
            return plain
        client = self._context.wrap_socket(plain, server_hostname=self._case.host, session=session)
        if session is not None and not client.session_reused:
            raise OperatorError("the worker did not resume a session")
        return client

    def _reconnect(self) -> None:
        before = self._client
        session = before.session if self._case.resumes and isinstance(before, ssl.SSLSocket) else None
        before.close()
        self._requests_left = next(self._lengths)
        self._client = self._connect(session)

    def _accept(self) -> socket.socket:
        origin, _ = self._listener.accept()
        origin.settimeout(_PATIENCE_SECONDS)
        if not self._case.is_origin_secure:
            return origin
        key, chain = make_certificate(SECURE_ORIGIN_HOST)
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        with tempfile.NamedTemporaryFile("w", suffix=".pem") as file:
            file.write(key + chain)
            file.flush()
            context.load_cert_chain(file.name)
        return context.wrap_socket(origin, server_side=True)

    def __enter__(self) -> Conversation:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()
        if self._origin is not None:
            self._origin.close()  # the next case begins with a new one

    def run(self, requests: int) -> None:
        """Send so many requests, one after the other, and answer each."""
        for _ in range(requests):
            if self._requests_left == 0:
                self._reconnect()
            self._requests_left -= 1
            number, self._turn = self._turn, self._turn + 1
            self._client.sendall(self._case.requests[number % len(self._case.requests)])
            if self._origin is None:
                self._origin = self._accept()
            _read_message(self._origin)
            answer = self._case.answers[number % len(self._case.answers)]
            self._origin.sendall(answer)
            is_for_head = self._case.requests[0].startswith(b"HEAD ")
            head = _read_message(self._client, is_for_head=is_for_head)
            if is_for_head:  # behind which proxies may use the connection no more
                self._origin.close()
                self._origin = None
            if head[:13] != answer[:13]:  # the version and the status
                raise OperatorError(f"not an answer to count: {head[:40]!r}")


def _read_message(peer: socket.socket, *, is_for_head: bool = False) -> bytes:
    """Read a message to the end of its body, and return its head."""
    data = b""
    while b"\r\n\r\n" not in data:
        data += _read(peer)
    head, _, body = data.partition(b"\r\n\r\n")
    length = None if is_for_head else _LENGTH.search(head)
    missing = int(length[1]) - len(body) if length else 0
    while missing > 0:
        missing -= len(_read(peer))
    return head


def _read(peer: socket.socket) -> bytes:
    data = peer.recv(_READ_BYTES)
    if not data:
        raise OperatorError("the worker closed a connection that it was to keep")
    return data
