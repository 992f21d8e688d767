"""The handshake: an asyncio protocol on the raw socket, from its first byte to an established `TlsStream`.

    peek -> decide (perhaps wait) -> shake hands -> hand over to the stream

The hello is read before OpenSSL sees it, so that the SSL object is made from the domain's own context, once:
no SNI callback, no switch between contexts (both cost the same, measured; this is one mechanism less), and
nothing is built for names we do not know. A handshake raises one exception, OpenSSL's "want read" between
the two flights.

It owns its deadline and tells `TlsShared` when it is over, exactly once. It must not decide about names.
"""

from __future__ import annotations

import asyncio
import socket
import ssl
from collections.abc import Callable
from contextlib import suppress
from typing import cast

from edge.tls.client_hello import MAX_HELLO_BYTES, ClientHello, ClientHelloPeek
from edge.tls.contexts import ServerContext
from edge.tls.failures import Failure, answer_to
from edge.tls.shared import TlsShared
from edge.transport.connection_limits import client_key
from edge.transport.lingering import linger
from edge.transport.tls_stream import SLICE_BYTES, TlsStream

_MAX_EARLY_BYTES = 2 * MAX_HELLO_BYTES  # a hello, and what no client we could serve sends right behind it


class TlsLayer(asyncio.Protocol):
    """Makes one connection's handshake.

    Bytes read before (a PROXY header's rest) may be fed through `data_received` first.
    """

    __slots__ = (
        "_alpn",
        "_context",
        "_has_ended",
        "_hold",
        "_incoming",
        "_inner_factory",
        "_is_deferred",
        "_is_over",
        "_outgoing",
        "_peek",
        "_place",
        "_raw",
        "_received",
        "_sslobj",
        "_tls",
        "server_name",
    )

    def __init__(self, tls: TlsShared, inner_factory: Callable[[str | None], asyncio.Protocol]) -> None:
        """`inner_factory` takes the protocol that ALPN chose, None for none."""
        self._tls = tls
        self._inner_factory = inner_factory
        self._peek: ClientHelloPeek | None = ClientHelloPeek(tls.groups)  # none: the hello is known
        self._received = b""  # what OpenSSL is yet to see
        self._context: ServerContext | None = None  # the handshake may start
        self._sslobj: ssl.SSLObject | None = None
        self._hold: asyncio.TimerHandle | None = None  # while held: its end
        self._is_deferred = False  # the answer to what came, to a later turn of the loop
        self._has_ended = False  # FIN
        self._is_over = False
        self._place: str | None = None  # among the worker's connections
        self._alpn: tuple[bytes, ...] = ()  # what the client offers
        self.server_name = ""

    @property
    def client(self) -> str:
        """Return the client, as the limits name it."""
        return client_key(self._raw.get_extra_info("peername"))

    # The raw transport's protocol --------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Wait for the hello, or refuse a connection above a limit."""
        self._raw = cast("asyncio.Transport", transport)
        self._place = self._tls.connection_limits.admit(transport.get_extra_info("peername"))
        if self._place is None:  # what TLS could tell, no browser shows
            self._is_over = True
            self._raw.abort()
            return
        self._tls.counters.handshaking += 1
        self._tls.deadlines.add(self)

    def data_received(self, data: bytes) -> None:
        """Read the hello, or go on with the handshake in a later turn of the loop."""
        self._received += data
        if self._sslobj is not None:
            if len(self._received) > _MAX_EARLY_BYTES:
                self._raw.pause_reading()
            self._defer_flight()
            return
        if self._peek is None:
            if len(self._received) > _MAX_EARLY_BYTES:
                self.refuse(Failure.TOO_LARGE)
            return
        answer = self._peek.feed(data)
        if isinstance(answer, ClientHello):
            self._peek = None
            self._judge(answer)
        elif answer is not None:
            self.refuse(answer)

    def eof_received(self) -> bool:
        """Note the end of the client's input."""
        self._has_ended = True
        return self._is_deferred  # else the raw transport closes; without a stream no response is possible

    def connection_lost(self, exc: Exception | None) -> None:
        """End the handshake, and give up the connection's place."""
        if not self._is_over:
            self._finish(Failure.CLIENT_LEFT)
        self._tls.connection_limits.leave(self._place)

    # The way through ---------------------------------------------------------------------------------------

    def _judge(self, hello: ClientHello) -> None:
        if len(self._received) > _MAX_EARLY_BYTES:
            self.refuse(Failure.TOO_LARGE)
        elif hello.server_name is None:
            self.refuse(Failure.NO_NAME)
        else:
            self.server_name = hello.server_name
            self._alpn = hello.alpn
            self._tls.arrive(self)

    def wait(self, seconds: float) -> None:
        """Hold the handshake for no longer than this."""
        self._tls.deadlines.discard(self)
        self._end_hold()
        self._hold = self._tls.loop.call_later(seconds, self.refuse, Failure.HOLD_TIMEOUT)

    def start(self, context: ServerContext) -> None:
        """Make the handshake with this context, or refuse a client that offers none of its protocols."""
        if self._alpn and context.protocols.isdisjoint(self._alpn):  # RFC 7301 §3.2: SHALL be refused
            self.refuse(Failure.NO_PROTOCOL)
            return
        self._tls.leave(self)
        if self._hold is not None:
            self._end_hold()
            self._tls.deadlines.add(self)
        self._context = context
        self._defer_flight()

    def _defer_flight(self) -> None:
        """Answer what came in a turn of the loop of its own: it takes up to half a millisecond."""
        if not self._is_deferred:
            self._is_deferred = True
            self._tls.deferred.add(self._answer_flight)

    def _answer_flight(self) -> None:
        self._is_deferred = False
        if self._is_over:  # the client has left, or the deadline has passed
            return
        if self._sslobj is None:
            self._make_engine()
        received, self._received = self._received, b""
        if len(received) > _MAX_EARLY_BYTES:
            self._raw.resume_reading()
        stream = self._shake(received)
        if self._has_ended and stream is not None:
            stream.eof_received()
        elif self._has_ended and not self._is_over:
            self._raw.close()

    def _make_engine(self) -> None:
        assert self._context is not None
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._sslobj = self._context.wrap_bio(self._incoming, self._outgoing, server_side=True)

    def _shake(self, data: bytes) -> TlsStream | None:
        """Feed the engine; what comes behind the client's last flight is the stream's, which is returned."""
        assert self._sslobj is not None
        for end in range(SLICE_BYTES, len(data) + SLICE_BYTES, SLICE_BYTES):
            self._incoming.write(data[end - SLICE_BYTES : end])
            try:
                self._sslobj.do_handshake()
            except ssl.SSLWantReadError:
                self._flush()
                self._tls.loop.call_soon(_acknowledge_at_once, self._raw)  # later: uvloop writes after this turn
            except ssl.SSLError:
                self._flush()
                self._finish(Failure.ENGINE)
                self._part()
                return None
            else:
                return self._hand_over(self._sslobj, memoryview(data)[end:])
        return None

    def _hand_over(self, sslobj: ssl.SSLObject, rest: memoryview) -> TlsStream:
        self._flush()
        self._finish(None)
        self._tls.completed(self.server_name, sslobj)
        self._tls.connection_limits.leave(self._place)  # the inner takes it, in this turn
        stream = TlsStream(
            self._tls.loop, self._raw, sslobj, self._incoming, self._outgoing, self.server_name, self._tls.deferred
        )
        self._raw.set_protocol(stream)
        stream.begin(self._inner_factory(sslobj.selected_alpn_protocol()), rest)
        return stream

    def _flush(self) -> None:
        if self._outgoing.pending:
            self._raw.write(self._outgoing.read())

    # The end -----------------------------------------------------------------------------------------------

    def refuse(self, failure: Failure) -> None:
        """End the handshake, with the alert that the failure has."""
        self._finish(failure)
        answer = answer_to(failure)
        if answer:
            self._raw.write(answer)
            self._part()
        else:
            self._raw.abort()

    def _part(self) -> None:
        linger(self._tls.loop, self._raw, self.connection_lost)

    def _finish(self, failure: Failure | None) -> None:
        """End the handshake, with a stream or a failure; every path comes through here once."""
        self._is_over = True
        self._tls.deadlines.discard(self)
        self._end_hold()
        if self._sslobj is None:  # not started: `TlsShared` still knows it
            self._tls.leave(self)
        counters = self._tls.counters
        counters.handshaking -= 1
        if failure is not None:
            counters.failed[failure] += 1

    def _end_hold(self) -> None:
        if self._hold is not None:
            self._hold.cancel()
            self._hold = None

    def on_deadline(self) -> None:
        """Refuse: the client took too long."""
        self.refuse(Failure.TIMEOUT)


def _acknowledge_at_once(raw: asyncio.Transport) -> None:
    """Have the kernel acknowledge what the client sends next, its Finished, without delay.

    A client with Nagle's algorithm on sends its request after that. Otherwise it waits until this worker has read the
    Finished and sent a ticket, or 40 ms, the delay of an acknowledgement, where no ticket goes.
    """
    if raw.is_closing():  # the client has left in the meantime: there is no descriptor
        return
    with suppress(OSError):  # the client has reset
        raw.get_extra_info("socket").setsockopt(socket.IPPROTO_TCP, socket.TCP_QUICKACK, 1)
