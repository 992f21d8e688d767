"""A client's connection that responds in HTTP/1.1: with what exchanges relay, and with responses of the edge's own."""

from __future__ import annotations

import operator

from edge.http.error_responses import TOO_MANY_CONNECTIONS, ErrorResponse
from edge.http.request import RequestHead
from edge.proxy.accepted_connection import AcceptedConnection
from edge.proxy.exchange import Exchange
from edge.proxy.refusals import render_refusal
from edge.proxy.worker_context import WorkerContext
from edge.routing.respond import Reply


class RespondingConnection(AcceptedConnection):
    """Writes the responses of one connection. `edge.proxy.client_connection` reads its requests."""

    __slots__ = ("_request_id", "bytes_down", "fill_head")

    def __init__(self, worker: WorkerContext, *, secure: bool) -> None:
        super().__init__(worker, secure=secure)
        self.fill_head = operator.mod
        # the request's
        self.bytes_down = 0
        self._request_id = ""  # where requests have one

    # Called by the exchange -------------------------------------------------------------------------------

    @property
    def request_id(self) -> str:
        """Return the id of the request in progress.

        Where requests are not assigned one it is made when it is first needed.
        """
        if not self._request_id:
            self._request_id = self.identify(next((exchange.head for exchange in self.exchanges()), None))
        return self._request_id

    def write(self, data: bytes) -> None:
        """Send bytes of the exchange's response."""
        self.bytes_down += len(data)
        self._transport.write(data)

    def write_interim(self, head: bytes) -> None:
        """Send an interim response."""
        self.write(head)

    def write_head(self, head: bytes, data: bytes) -> None:
        """Send the final head and what follows it."""
        data = head + data
        self.bytes_down += len(data)
        self._transport.write(data)

    def write_last(self, head: bytes, data: bytes) -> None:
        """Send the whole response; the connection's end follows at once."""
        data = head + data
        self.bytes_down += len(data)
        self._write_last(data)

    def write_trailers(self, block: bytes) -> None:
        """Do nothing: only the last chunk, where there is one, has trailers in HTTP/1."""

    # Own responses ----------------------------------------------------------------------------------------

    def _refuse_connection(self) -> None:
        """Refuse a connection above a limit, on the plain port. On the other one, TLS has refused it."""
        if self._worker.connection_limits.may_answer:
            self._refuse(TOO_MANY_CONNECTIONS, None, b"")
        else:
            self.abort()

    def _refuse(
        self, refusal: ErrorResponse, head: RequestHead | None, raw: bytes, exchange: Exchange | None = None
    ) -> None:
        """Send an error response instead of forwarding the request.

        `head` is None for a request that could not be read; `raw` is what was received of it.
        """
        worker = self._worker
        worker.counters.refusal(refusal.code)
        is_whole = head is not None and head.fields.body == 0 if exchange is None else exchange.request_is_complete
        request_id = (self._request_id if exchange is not None else "") or self.identify(head)
        close = refusal.close or not is_whole or not self._can_keep_alive(head)
        response = render_refusal(worker, refusal, head, raw, request_id, close=close)
        self._log(refusal.status, head, request_id, len(response), exchange, refusal)
        self._write_own(response, close=close)

    def _reply(self, reply: Reply, head: RequestHead) -> None:
        close = head.fields.body != 0 or not self._can_keep_alive(head)
        response = self._render(reply, head, close=close)
        self._write_own(response, close=close)

    def _write_own(self, response: bytes, *, close: bool) -> None:
        if close:
            self._write_last(response)
            self._close(lingers=True)
        else:
            self._transport.write(response)
            self.set_deadline(self._worker.idle_seconds)

    # By a subclass ----------------------------------------------------------------------------------------

    def _can_keep_alive(self, head: RequestHead | None) -> bool:
        """Return whether the connection may serve another request after a response of our own."""
        raise NotImplementedError
