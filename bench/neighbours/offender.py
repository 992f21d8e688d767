"""One offender, a process of its own: ``python -m bench.neighbours.offender KEY PORT --seconds 3 --seed 1``.

It sends what the offence is, reads and drops what comes back, and begins again on a new connection, until it is over.
Its last line is how often it did.
"""

from __future__ import annotations

import argparse
import contextlib
import os
import socket
import ssl
import threading
import time
from collections.abc import Callable
from random import Random
from typing import Final

from bench.neighbours.offences import BY_KEY, END_BYTES, OFFENDER_HOST, Offence, asking

_NICENESS: Final = 10  # the client that is measured goes first
_QUIET_SECONDS: Final = 0.5
_READ_BYTES: Final = 1 << 18


class Offender:
    """All connections of one offence."""

    def __init__(self, offence: Offence, port: int, seed: int, ends_at: float) -> None:
        self._offence = offence
        self._port = port
        self._ends_at = ends_at
        self._data = asking(offence.key) if offence.by_origin else offence.make(Random(seed))
        self._context = ssl.create_default_context()
        self._context.check_hostname = False
        self._context.verify_mode = ssl.CERT_NONE
        if offence.is_http2:
            self._context.set_alpn_protocols(["h2"])
        self._together = threading.Barrier(offence.connections)
        self.count = 0

    def run(self) -> None:
        """Commit the offence again and again on all connections, until the time is over."""
        threads = [threading.Thread(target=self._repeat) for _ in range(self._offence.connections)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    @property
    def _is_over(self) -> bool:
        return time.perf_counter() >= self._ends_at

    def _repeat(self) -> None:
        while not self._is_over:
            try:
                with socket.create_connection(("127.0.0.1", self._port), timeout=_QUIET_SECONDS) as sock:
                    self._chosen()(sock)
                self.count += 1
            except OSError:  # refused, reset or quiet: all the same to an offender
                time.sleep(0.001)

    def _chosen(self) -> Callable[[socket.socket], None]:
        if self._offence.is_handshake:
            return self._shake_hands
        if self._offence.record_bytes:
            return self._send_records
        if self._offence.is_http2:
            return self._send_http2
        if self._offence.ends_together:
            return self._end_together
        return self._dribble if self._offence.connections > 1 else self._send

    def _shake_hands(self, sock: socket.socket) -> None:
        self._context.wrap_socket(sock, server_hostname=OFFENDER_HOST).close()

    def _send(self, sock: socket.socket) -> None:
        self._send_and_drop(sock, self._data)

    def _send_and_drop(self, sock: socket.socket, data: bytes) -> None:
        """Send, and read and drop what comes back, until the proxy ends the connection or is quiet."""
        sender = threading.Thread(target=_send_all, args=(sock, data))
        sender.start()
        try:
            while not self._is_over and sock.recv(_READ_BYTES):
                pass
        finally:
            if self._is_over:
                sock.shutdown(socket.SHUT_RDWR)
            sender.join()

    def _dribble(self, sock: socket.socket) -> None:
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for position in range(len(self._data)):
            if self._is_over:
                break
            sock.sendall(self._data[position : position + 1])
        sock.recv(_READ_BYTES)

    def _end_together(self, sock: socket.socket) -> None:
        sock.sendall(self._data[:-END_BYTES])
        with contextlib.suppress(threading.BrokenBarrierError):
            self._together.wait(_QUIET_SECONDS)
        sock.sendall(self._data[-END_BYTES:])
        sock.recv(_READ_BYTES)

    def _send_records(self, sock: socket.socket) -> None:
        engine, outgoing = self._secure(sock)
        size = self._offence.record_bytes
        for start in range(0, len(self._data), size):
            engine.write(self._data[start : start + size])
        sock.sendall(outgoing.read())
        sock.recv(_READ_BYTES)

    def _send_http2(self, sock: socket.socket) -> None:
        engine, outgoing = self._secure(sock)
        engine.write(self._data)
        self._send_and_drop(sock, outgoing.read())

    def _secure(self, sock: socket.socket) -> tuple[ssl.SSLObject, ssl.MemoryBIO]:
        """Shake hands. Return the engine, and what it writes."""
        incoming, outgoing = ssl.MemoryBIO(), ssl.MemoryBIO()
        engine = self._context.wrap_bio(incoming, outgoing, server_hostname=OFFENDER_HOST)
        while True:
            try:
                engine.do_handshake()
                return engine, outgoing
            except ssl.SSLWantReadError:
                sock.sendall(outgoing.read())
                incoming.write(sock.recv(_READ_BYTES))


def _send_all(sock: socket.socket, data: bytes) -> None:
    try:
        sock.sendall(data)
    except OSError:
        return


def main() -> None:
    """Run the offender and print how often it began."""
    parser = argparse.ArgumentParser(prog="python -m bench.neighbours.offender", description=__doc__)
    parser.add_argument("key", choices=BY_KEY)
    parser.add_argument("port", type=int)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    os.nice(_NICENESS)
    offender = Offender(BY_KEY[arguments.key], arguments.port, arguments.seed, time.perf_counter() + arguments.seconds)
    offender.run()
    print(offender.count)


if __name__ == "__main__":
    main()
