"""One connection to an origin: bytes in and out, and the exchange they belong to at the moment.

It knows no HTTP: the exchange does. Bytes received without a lease are a reason to close: an unsolicited response would
be taken for the answer to the next request. An orderly end is one that the origin states itself: by FIN, over TLS by
close_notify, since anyone on the path can send a FIN (RFC 9112 §9.8).
"""

from __future__ import annotations

import asyncio
import contextlib
import select
import socket
import ssl
from collections.abc import Callable
from typing import Final, Protocol, cast

from edge.http.request import RequestHead
from edge.http.response import ResponseHead
from edge.routing.response_rewriting import RewrittenHead
from edge.routing.response_template import ResponseTemplate
from edge.routing.route import Origin
from edge.upstream.response_memory import MAX_REMEMBERED_BYTES, LastResponse, OriginResponses

FINAL_RESPONSE_BYTES: Final = 65_536


class LeaseHolder(Protocol):
    """What an upstream connection calls on the exchange that leases it."""

    def on_upstream_data(self, data: bytes) -> None:
        """Take bytes from the origin."""

    def on_upstream_eof(self) -> bool:
        """Take the end of the origin's bytes. Return whether it may still be sent to."""

    def on_upstream_lost(self, *, in_order: bool) -> None:
        """Take the end of the connection; `in_order`: the origin stated it."""

    def on_upstream_full(self) -> None:
        """Send no more: the origin does not read."""

    def on_upstream_ready(self) -> None:
        """Send again."""


class UpstreamConnection(asyncio.Protocol):
    """A connection to an origin. Created by the connector, owned by the dispatcher.

    `holder` is set while leased.
    """

    __slots__ = (
        "_input",
        "_on_lost",
        "_socket",
        "address",
        "answered_with_body",
        "ended_idle",
        "has_alternatives",
        "has_ended",
        "holder",
        "idle_since",
        "is_closing",
        "is_retired",
        "last_response",
        "origin",
        "responses",
        "sent_unsolicited_bytes",
        "served",
        "template",
        "transport",
    )

    is_closing: Callable[[], bool]  # the transport's

    def __init__(
        self,
        origin: Origin,
        on_lost: Callable[[UpstreamConnection], None],
        sock: socket.socket | None = None,
        *,
        address: str = "",
        has_alternatives: bool = False,
    ) -> None:
        """Begin. `address`: the one that was dialled. `has_alternatives`: the origin had others when it was."""
        self.origin = origin
        self.address = address
        self.has_alternatives = has_alternatives
        self.is_retired = False  # no further lease: the address is the origin's no more
        self._socket = sock  # the transport's; to look at, not to read from while that one reads
        self._input: select.poll | None = None  # of the socket; made when it is first looked at
        self.has_ended = False  # in order
        self.transport: asyncio.Transport = cast("asyncio.Transport", None)
        self.holder: LeaseHolder | None = None
        self.served = 0
        self.answered_with_body = True  # the last response; the dispatcher sets it
        self.ended_idle = False  # by the origin, while no exchange had it
        self.sent_unsolicited_bytes = False  # bytes that belong to no request
        self.idle_since = 0.0
        self.last_response: LastResponse | None = None
        self.template: ResponseTemplate | None = None  # that read a response last
        self.responses = OriginResponses()  # the dispatcher sets those that the origin's connections share
        self._on_lost = on_lost

    def is_silent(self) -> bool:
        """Return whether the kernel, too, has nothing from the origin that the loop has yet to deliver."""
        if self._socket is None:
            return True
        if self._input is None:
            self._input = select.poll()
            self._input.register(self._socket, select.POLLIN)
        if not self._input.poll(0):  # by far the most frequent: an exception would cost three times as much
            return True
        try:
            found = self._socket.recv(1, socket.MSG_PEEK)
        except BlockingIOError:
            return True
        except OSError:
            return False
        if not found:
            self.ended_idle = True
        elif self.origin.scheme == "http":  # of TLS it may be a ticket or close_notify
            self.sent_unsolicited_bytes = True
        return False  # an unsolicited response, or the end

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Keep the transport."""
        self.transport = cast("asyncio.Transport", transport)
        self.is_closing = transport.is_closing  # asked for twice a request: a call of Python's own less

    def data_received(self, data: bytes) -> None:
        """Give the bytes to the exchange, or abort: none has asked for them."""
        if self.holder is None:
            # A server may say on its way out that it closes an idle connection; Go's client knows it, too.
            self.ended_idle = data.startswith((b"HTTP/1.1 408", b"HTTP/1.0 408"))
            self.sent_unsolicited_bytes = not self.ended_idle
            self.transport.abort()
        else:
            self.holder.on_upstream_data(data)

    def eof_received(self) -> bool | None:
        """Note the origin's end. Return whether a tunnel may still send to it."""
        self.has_ended = self._received_close_notify()
        self.ended_idle = self.holder is None and not self.is_closing()
        if self.holder is None or self.origin.scheme == "https":  # the loop's TLS closes both ways at once
            return False
        return self.holder.on_upstream_eof()

    def _received_close_notify(self) -> bool:
        engine: ssl.SSLObject | None = self.transport.get_extra_info("ssl_object")
        if engine is None:
            return True
        try:
            return not engine.read(1)  # nothing, without wanting more: close_notify has come
        except ssl.SSLError:
            return False

    def connection_lost(self, exc: Exception | None) -> None:
        """Report the loss to the dispatcher, then to the exchange."""
        if exc is not None and self.origin.scheme == "http":
            self._read_final_response()
        holder, self.holder = self.holder, None
        self._on_lost(self)
        if holder is not None:
            holder.on_upstream_lost(in_order=exc is None and self.has_ended)

    def _read_final_response(self) -> None:
        """Read what an origin that refuses an upload answered before it reset the connection.

        A write has failed, and the kernel still has the answer.
        """
        data = b""
        if self._socket is not None:
            with contextlib.suppress(OSError):
                data = self._socket.recv(FINAL_RESPONSE_BYTES)
        if data and self.holder is not None:
            self.holder.on_upstream_data(data)

    def note_unsolicited_bytes(self) -> None:
        """Remember that the origin sent bytes that belong to no request."""
        self.sent_unsolicited_bytes = True

    def remember_last(self, response: LastResponse) -> None:
        """Have the next response head with the same bytes neither read nor rewritten."""
        self.last_response = response

    def remember_response(
        self, raw: bytes, request: RequestHead, answer: ResponseHead, rewritten: RewrittenHead, *, keep_alive: bool
    ) -> None:
        """Learn from a head that had to be parsed and rewritten."""
        if rewritten.is_repeatable:
            self.last_response = raw, keep_alive, request.method == b"HEAD", answer, rewritten.head
        if len(raw) <= MAX_REMEMBERED_BYTES:
            self.responses.add(raw[:-4], answer, request)  # without the empty line

    def pause_writing(self) -> None:
        """Pause the request: the origin does not read."""
        if self.holder is not None:
            self.holder.on_upstream_full()

    def resume_writing(self) -> None:
        """Resume the request."""
        if self.holder is not None:
            self.holder.on_upstream_ready()
