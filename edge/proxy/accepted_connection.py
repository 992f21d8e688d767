"""A client's accepted connection, whatever is spoken on it: its transport, its input, its deadline and its end.

Reading stays on while a request is served (a paused socket shows neither FIN nor RST), but pauses while the origin does
not take the request, and while work on what was read is deferred. The states are `edge.proxy.connection_states`'.
What the client's bytes mean is a subclass's to say: `edge.proxy.client_connection` speaks HTTP/1.1.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import sys
from collections.abc import Sequence
from typing import cast

from edge.http import request_ids
from edge.http.error_responses import ErrorResponse
from edge.http.forwarded import Client, address_of
from edge.http.request import RequestHead
from edge.proxy.connection_states import ENDED, OPEN, PAUSED, READING, ConnectionState, Input
from edge.proxy.exchange import Exchange
from edge.proxy.log_lines import LoggedConnection
from edge.proxy.worker_context import WorkerContext
from edge.routing.respond import Reply
from edge.transport.disconnect import client_disconnected
from edge.transport.lingering import linger
from edge.transport.tls_stream import TlsStream


class AcceptedConnection(asyncio.Protocol):
    """One connection. Created for the loop by the worker's composition root, kept by its `WorkerContext` until lost."""

    __slots__ = (
        "_client",
        "_input",
        "_is_deferred",
        "_is_full",
        "_listening",
        "_logged",
        "_place",
        "_reads_afterwards",
        "_server_name",
        "_transport",
        "_unsent_bytes",
        "_worker",
        "deadline",
        "scheme",
        "state",
    )

    protocol = ""  # as the access log states it, for other than HTTP/1

    def __init__(self, worker: WorkerContext, *, secure: bool) -> None:
        # the worker's
        self._worker = worker
        self._listening = worker.listening_https if secure else worker.listening_http
        self.scheme = b"https" if secure else b"http"
        # the connection's
        self._transport: asyncio.Transport = cast("asyncio.Transport", None)
        self._client: Client = cast("Client", None)
        self._server_name = ""
        self._logged: LoggedConnection | None = None  # from its first line in the access log on
        self._place: str | None = None
        self._input: Input = OPEN
        self._is_full = False  # the transport has enough to send
        self._is_deferred = False  # work on what was read, to a later turn of the loop
        self._reads_afterwards = False
        self._unsent_bytes = sys.maxsize  # when last looked at
        self.state: ConnectionState = READING
        self.deadline = 0.0

    # Called by the transport ------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Count the connection. `_place` stays None if it is above a limit."""
        self._transport = cast("asyncio.Transport", transport)
        worker, secure = self._worker, self._listening.secure
        worker.connections.add(self)
        worker.counters.accepted += 1
        peername = transport.get_extra_info("peername")
        self._client = Client(address_of(peername), secure=secure, trusted_proxies=worker.trusted_proxies)
        self._server_name = (transport.get_extra_info("server_name") or "") if secure else ""
        self.set_deadline(worker.head_seconds)
        self._place = worker.connection_limits.admit(peername)

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection, and cancel what is under way on it."""
        worker = self._worker
        worker.connections.discard(self)
        worker.paused.discard(self)
        worker.connection_limits.leave(self._place)
        self.state = self.state.on_loss
        self._cancel_exchanges(disconnected=True)

    # Called by the worker's clock --------------------------------------------------------------------------

    def set_deadline(self, seconds: float) -> None:
        """Have the worker call `on_deadline` in so many seconds."""
        self.deadline = self._worker.now + seconds

    def on_deadline(self) -> None:
        """Act on the lack of progress."""
        raise NotImplementedError

    def check_disconnect(self) -> None:
        """Abort the connection if its client disconnected while it is not read from.

        Such a socket reports neither FIN nor RST, and the origin would go on working.
        """
        sock = self._transport.get_extra_info("socket")
        missing_bytes = sum(exchange.missing_bytes for exchange in self.exchanges())
        if not self._transport.is_closing() and client_disconnected(sock, missing_bytes):
            self._cancel_exchanges(disconnected=True)
            self.abort()

    def expect_last_request(self) -> None:
        """Keep the connection for one more request only: the worker leaves."""
        raise NotImplementedError

    def _is_client_reading(self) -> bool:
        """Return whether less is unsent than at the last call: a slow client is not a stalled one."""
        before, self._unsent_bytes = self._unsent_bytes, self._transport.get_write_buffer_size()
        return 0 < self._unsent_bytes < before

    # Input ------------------------------------------------------------------------------------------------

    def pause_reading(self) -> None:
        """Stop reading; the worker looks for a disconnect meanwhile."""
        if self._is_deferred:
            self._reads_afterwards = False
        elif self._input is OPEN:
            self._input = PAUSED
            self._worker.paused.add(self)
            self._transport.pause_reading()

    def _resume_input(self) -> None:
        if self._is_deferred:
            self._reads_afterwards = True
        elif self._input is PAUSED:
            self._input = OPEN
            self._worker.paused.discard(self)
            self._transport.resume_reading()

    def _defer(self) -> None:
        """Give up the loop before more is done about what was read."""
        if not self._is_deferred:
            self._reads_afterwards = self._input is OPEN
            self.pause_reading()
            self._is_deferred = True
            self._worker.deferred.add(self._resume_deferred)

    # Ends -------------------------------------------------------------------------------------------------

    def end_writing(self) -> bool:
        """Send our end of a tunnel. Return False where the connection cannot be half-closed."""
        if self._input is ENDED or not self._transport.can_write_eof():
            return False
        self._transport.write_eof()
        return True

    def _write_last(self, data: bytes) -> None:
        """Send what `_close` follows at once."""
        if isinstance(self._transport, TlsStream):
            self._transport.write_last(data)
        else:
            self._transport.write(data)

    def _close(self, *, lingers: bool) -> None:
        """End the connection; where input may be on its way, only after the client had time to read."""
        worker = self._worker
        if not lingers or self._input is ENDED:
            self.deadline = worker.now + worker.exchanges.timeouts.body  # for what is unsent
            self._close_at_once()
            return
        self.state = self.state.on_linger
        self.deadline = float("inf")  # lingering has bounds of its own
        worker.paused.discard(self)
        if isinstance(self._transport, TlsStream):  # behind its close_notify
            self._transport.linger()
        else:
            linger(worker.loop, self._transport, self.connection_lost)

    def _close_at_once(self) -> None:
        self.state = self.state.on_close
        self._transport.close()

    def abort(self) -> None:
        """End the connection at once, with whatever is under way."""
        self._cancel_exchanges()
        self.state = self.state.on_abort
        self._transport.abort()

    def _abort_by_reset(self) -> None:
        """Abort so that the client sees an error, where an end would look like the end of the response."""
        sock = self._transport.get_extra_info("socket")
        with contextlib.suppress(OSError):
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self.abort()

    def _cancel_exchanges(self, *, disconnected: bool = False) -> None:
        for exchange in self.exchanges():
            if disconnected:
                exchange.on_client_disconnected()
            else:
                exchange.cancel()

    # Responses of the edge's own --------------------------------------------------------------------------

    def identify(self, head: RequestHead | None) -> str:
        """Return the id of a request without an exchange: a trusted proxy's own, or a new one."""
        given = request_ids.given_id(head) if head is not None and self._client.is_trusted else None
        return given or self._worker.new_request_id()

    def _render(self, reply: Reply, head: RequestHead, *, close: bool) -> bytes:
        """Return a reply as HTTP/1.1 has it, and log it."""
        worker, request_id = self._worker, self.identify(head)
        fields = worker.date_field()
        if worker.exchanges.states_request_ids:
            fields += request_ids.field(request_id)
        response = reply.render(fields, close=close, head_only=head.method == b"HEAD")
        self._log(reply.status, head, request_id, len(response))
        return response

    # The access log ---------------------------------------------------------------------------------------

    def _log(
        self,
        status: int,
        head: RequestHead | None,
        request_id: str,
        bytes_down: int,
        exchange: Exchange | None = None,
        refusal: ErrorResponse | None = None,
    ) -> None:
        access_log = self._worker.access_log
        if access_log is not None:
            if self._logged is None:
                self._logged = LoggedConnection(self._client, self.scheme, self._tls_version(), self.protocol)
            access_log.write(self._logged, status, request_id, head, bytes_down, exchange, refusal)

    def _tls_version(self) -> str:
        """Return the version of TLS, "" without."""
        engine = self._transport.get_extra_info("ssl_object") if self._listening.secure else None
        return str(engine.version()) if engine is not None else ""

    # By a subclass ----------------------------------------------------------------------------------------

    def _resume_deferred(self) -> None:
        """Go on with what `_defer` deferred, and end the deferral."""
        raise NotImplementedError

    def is_busy(self) -> bool:
        """Return whether a client waits for what is under way."""
        return bool(self.exchanges())

    def cut(self, exchange: Exchange) -> None:
        """End an exchange at once; here the connection with it."""
        self.abort()

    def exchanges(self) -> Sequence[Exchange]:
        """Return the exchanges under way."""
        raise NotImplementedError
