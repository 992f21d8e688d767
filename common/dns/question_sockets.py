"""UDP sockets for questions to name servers. One carries the questions of a moment to one server.

A forged reply must carry the question, its id and the socket's port, and come from the server's address (RFC 5452). So
    a socket is connected: the kernel drops datagrams from other addresses, and chooses the port at random
    each question has a random id; a datagram with another id or question is ignored, and the question still waits
    a socket takes at most `_MOST_QUESTIONS`, for at most `_SOCKET_SECONDS`, so a port that an attacker finds out is of
        no use; and it is closed with its last open question, so a port is open only while a reply is waited for

A socket for each question would cost 60 µs more. Errors that a router reports (ICMP) end no question: anybody can forge
them.
"""

from __future__ import annotations

import asyncio
import secrets
import socket
from collections.abc import Callable
from contextlib import suppress

from common.dns import wire
from common.host_ports import HostPort

_MOST_QUESTIONS = 50
_SOCKET_SECONDS = 0.5
_MOST_DATAGRAM_BYTES = 65_535
_MOST_DATAGRAMS = 64  # read at once

Encode = Callable[[int], bytes]
"""The query with this id, by `wire.encode_query`."""


class QuestionSockets:
    """Sends questions by UDP, many by one socket.

    Mutable state: the socket in use for each server; each closes itself, so there is nothing to close here.
    """

    def __init__(self) -> None:
        self._sockets: dict[HostPort, _QuestionSocket] = {}

    async def ask(self, server: HostPort, encode: Encode) -> tuple[bytes, bytes]:
        """Send a query; return it as sent, and its reply. The caller sets the time-out.

        Raises: `OSError`, and what `encode` raises.
        """
        now = asyncio.get_running_loop().time()
        opened = self._sockets.get(server)
        if opened is None or not opened.can_ask(now):
            opened = self._sockets[server] = _QuestionSocket(server, now + _SOCKET_SECONDS, self._forget)
        return await opened.ask(encode)

    def _forget(self, closed: _QuestionSocket) -> None:
        if self._sockets.get(closed.server) is closed:
            del self._sockets[closed.server]


class _QuestionSocket:
    """A socket connected to one server.

    Mutable state: the open questions by id, and how many were asked.
    """

    def __init__(self, server: HostPort, ends_at: float, on_close: Callable[[_QuestionSocket], None]) -> None:
        """Open the socket.

        Raises: `OSError`.
        """
        self.server = server
        self._ends_at = ends_at
        self._on_close = on_close
        self._asked = 0
        self._open: dict[int, tuple[bytes, asyncio.Future[bytes]]] = {}
        family = socket.AF_INET6 if ":" in server.host else socket.AF_INET
        self._socket = socket.socket(family, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        try:
            self._socket.connect((server.host, server.port))
        except OSError:
            self._socket.close()
            raise
        asyncio.get_running_loop().add_reader(self._socket, self._read)

    def can_ask(self, now: float) -> bool:
        """Return whether the socket takes another question."""
        return now < self._ends_at and self._asked < _MOST_QUESTIONS

    async def ask(self, encode: Encode) -> tuple[bytes, bytes]:
        """Send a query; return it as sent, and its reply.

        Raises: `OSError`, and what `encode` raises.
        """
        query_id = self._choose_id()
        self._asked += 1
        try:
            query, reply = encode(query_id), asyncio.get_running_loop().create_future()
            self._open[query_id] = query, reply
            with suppress(BlockingIOError, ConnectionRefusedError):  # as a lost datagram: an ICMP error came before
                self._socket.send(query)
            return query, await reply
        finally:
            self._open.pop(query_id, None)  # none where `encode` refused the name
            if not self._open:
                self._close()

    def _choose_id(self) -> int:
        while (chosen := secrets.randbits(16)) in self._open:
            pass
        return chosen

    def _read(self) -> None:
        with suppress(OSError):  # nothing more to read, or an ICMP error
            for _ in range(_MOST_DATAGRAMS):
                self._receive(self._socket.recv(_MOST_DATAGRAM_BYTES))

    def _receive(self, message: bytes) -> None:
        query, reply = self._open.get(int.from_bytes(message[:2]), (b"", None))
        if reply is not None and not reply.done() and wire.is_reply(message, query):
            reply.set_result(message)

    def _close(self) -> None:
        asyncio.get_running_loop().remove_reader(self._socket)
        self._socket.close()
        self._on_close(self)
