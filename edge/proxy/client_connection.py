"""A client's connection: requests in, one exchange at a time, responses out.

`ClientConnection` is an asyncio protocol on the plain port and inside the TLS layer; what it shares with all others of
its worker is `edge.proxy.worker_context.WorkerContext`.
Reading stays on while an answer is awaited (a paused socket shows neither FIN nor RST); what a client sends ahead is
kept up to 16 KB, then reading pauses until the exchange is over.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import sys
from typing import Final, cast

from common.probe import probe_answer
from edge.http import max_forwards, request
from edge.http.error_responses import (
    ALLOW,
    AWAITING_CERTIFICATE,
    BAD_REQUEST,
    BODY_TOO_LARGE,
    CUT_OFF,
    MISDIRECTED,
    NOT_ENROLLED,
    REQUEST_TIMEOUT,
    TOO_MANY_CONNECTIONS,
    ErrorResponse,
    Refused,
    render,
)
from edge.http.forwarded import Client, address_of
from edge.http.incomplete import check_incomplete, without_empty_lines
from edge.http.request import RequestHead
from edge.proxy import request_ids
from edge.proxy.exchange import TUNNEL, Exchange
from edge.proxy.remembered_head import MAX_REPEATED_BYTES, RememberedHead
from edge.proxy.worker_context import WorkerContext
from edge.routing.challenge import is_challenge
from edge.routing.decide import PROBE_PREFIX, WELL_KNOWN, Redirect, decide
from edge.routing.onward import compose, sign
from edge.routing.route import Route
from edge.tls.stream import TlsStream
from edge.transport.disconnect import client_disconnected

MAX_PIPELINED_BYTES: Final = 16_384
# Closing at once with unread input would make the kernel reset the connection before the client read our answer.
LINGER_SECONDS: Final = 2.0
# After the client's FIN: it may have half-closed and still read, or be gone; a short while tells.
HALF_CLOSED_SECONDS: Final = 2.0
LAST_REQUEST_SECONDS: Final = 1.0

# A permanent redirect is kept for ever unless told otherwise, and redirectTo may change.
_REDIRECT_KEPT: Final = b"\r\nCache-Control: max-age=300"


class ClientConnection(asyncio.Protocol):
    """One connection. Invariant: between requests `exchange` is None and `_buffer` holds no complete head."""

    __slots__ = (
        "_buffer",
        "_client",
        "_is_advancing",
        "_is_full",
        "_is_lingering",
        "_is_paused",
        "_place",
        "_reading_ended",
        "_repeat",
        "_request_id",
        "_searched",
        "_secure",
        "_server_name",
        "_transport",
        "_unsent_bytes",
        "_worker",
        "bytes_down",
        "deadline",
        "exchange",
        "scheme",
    )

    def __init__(self, worker: WorkerContext, *, secure: bool) -> None:
        # the worker's
        self._worker = worker
        self._secure = secure
        self.scheme = b"https" if secure else b"http"
        # the connection's
        self._transport: asyncio.Transport = cast("asyncio.Transport", None)
        self._client: Client = cast("Client", None)
        self._server_name = ""
        self._place: str | None = None
        self._buffer = b""
        self._searched = 0  # so far the buffer holds no end of a head
        self._repeat: RememberedHead | None = None
        self._is_full = False
        self._unsent_bytes = sys.maxsize  # when last asked
        self._is_advancing = False
        self._is_lingering = False
        self._is_paused = False
        self._reading_ended = False
        # the request's
        self.bytes_down = 0
        self._request_id = ""  # where requests have one
        self.exchange: Exchange | None = None
        self.deadline = 0.0

    # Called by the transport ------------------------------------------------------------------------------

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast("asyncio.Transport", transport)
        worker = self._worker
        worker.connections.add(self)
        worker.counters.accepted += 1
        peername = transport.get_extra_info("peername")
        self._client = Client(address_of(peername), secure=self._secure, trusted_proxies=worker.trusted_proxies)
        self._server_name = (transport.get_extra_info("server_name") or "") if self._secure else ""
        self.set_deadline(worker.head_seconds)
        self._place = worker.connection_limits.admit(peername)
        if self._place is None:
            self._turn_away()

    def data_received(self, data: bytes) -> None:
        exchange = self.exchange
        if exchange is not None:
            self._continue(exchange, data)
            return
        repeat = self._repeat
        if repeat is not None and not self._buffer and self._is_repeated(repeat, data):
            self._start(repeat.head, repeat.route, repeat.upstream_head)
            return
        if self._is_lingering:
            return
        if not self._buffer and data[:1] != b"\r":  # empty lines do not begin a request
            self.set_deadline(self._worker.head_seconds)
        self._buffer += data
        if self._is_full:  # who does not read our answers need not ask on
            self.pause_reading()
        else:
            self._advance()

    def eof_received(self) -> bool:
        self._reading_ended = True
        if self.exchange is None:
            self._transport.close()
            return False
        if self.exchange.phase is not TUNNEL:
            self.set_deadline(HALF_CLOSED_SECONDS)
        self._tell_end(self.exchange)
        return True

    def _tell_end(self, exchange: Exchange) -> None:
        if exchange.request_is_complete or exchange.status:
            exchange.on_client_eof()
        else:  # RFC 9112 §8: the rest of the body will not come
            self._break_request(exchange, BAD_REQUEST)

    def connection_lost(self, exc: Exception | None) -> None:
        self._worker.connections.discard(self)
        self._worker.paused.discard(self)
        self._worker.connection_limits.leave(self._place)
        exchange, self.exchange = self.exchange, None
        if exchange is not None:
            exchange.cancel()

    def pause_writing(self) -> None:
        self._is_full = True
        self._unsent_bytes = self._transport.get_write_buffer_size()
        if self.exchange is not None:
            self.exchange.on_client_full()

    def resume_writing(self) -> None:
        self._is_full = False
        if self.exchange is not None:
            self.exchange.on_client_ready()
        elif self._is_lingering:
            self.deadline = self._worker.now + LINGER_SECONDS
        else:
            self._go_on()

    # Called by the worker's clock --------------------------------------------------------------------------

    def set_deadline(self, seconds: float) -> None:
        if self._reading_ended and not self._has_tunnel():
            seconds = HALF_CLOSED_SECONDS
        self.deadline = self._worker.now + seconds

    def _has_tunnel(self) -> bool:
        return self.exchange is not None and self.exchange.phase is TUNNEL

    def on_deadline(self) -> None:
        if (self._is_full or self.exchange is None) and self._is_taking():
            self.deadline = self._worker.now + self._worker.exchanges.timeouts.body
        elif self._is_full:
            self._transport.abort()
        elif self.exchange is not None:
            self.exchange.on_deadline()
        elif self._is_lingering or self._transport.is_closing() or self._transport.get_write_buffer_size():
            self._transport.abort()
        elif self._buffer:
            self._refuse(REQUEST_TIMEOUT, None, self._buffer)
        else:
            self._transport.close()

    def look_after_client(self) -> None:
        """While it is not read from, nobody says that it left; and its origin works, or waits, for nobody."""
        missing_bytes = self.exchange.missing_bytes if self.exchange is not None else 0
        if not self._transport.is_closing() and client_disconnected(
            self._transport.get_extra_info("socket"), missing_bytes
        ):
            self._transport.abort()

    def _is_taking(self) -> bool:
        """Whether less of what we wrote is unsent than when last asked: a slow client is not one that stands still."""
        before, self._unsent_bytes = self._unsent_bytes, self._transport.get_write_buffer_size()
        return 0 < self._unsent_bytes < before

    def expect_last_request(self) -> None:
        if self.exchange is None and not self._buffer:
            self.set_deadline(LAST_REQUEST_SECONDS)

    def _turn_away(self) -> None:
        """There is no place for this connection: on the plain port; on the other, TLS has been turned away before."""
        if self._worker.connection_limits.may_tell:
            self._refuse(TOO_MANY_CONNECTIONS, None, b"")
        else:
            self._transport.abort()

    # Requests ---------------------------------------------------------------------------------------------

    def _is_repeated(self, repeat: RememberedHead, raw: bytes) -> bool:
        """Whether these bytes are the last request again, or become it by another line."""
        if not repeat.may_be(raw):
            return False
        worker = self._worker
        if repeat.generation != worker.routes.generation or worker.is_draining or self._is_full or self._is_lingering:
            return False
        return repeat.raw == raw or self._has_other_line(repeat, raw)

    def _has_other_line(self, repeat: RememberedHead, raw: bytes) -> bool:
        head = repeat.parse(raw, self._worker.limits)
        if head is None:
            return False
        try:
            decision = self._decide(repeat.route, head)
        except Refused:
            return False
        if isinstance(decision, Redirect):
            return False
        repeat.become(raw, head, decision)
        return True

    def _advance(self) -> None:
        """Begin what the buffer holds, until an exchange is under way or the buffer lacks a complete head."""
        if self._is_advancing:  # a refusal inside the loop below ends up here
            return
        self._is_advancing = True
        try:
            while self.exchange is None and self._buffer and not (self._is_full or self._is_lingering):
                if not self._begin_next():
                    break
        finally:
            self._is_advancing = False

    def _begin_next(self) -> bool:
        """Take one head from the buffer; False when there is none yet."""
        buffer = self._buffer
        if buffer[:2] == b"\r\n":
            return self._skip_empty_lines()
        end = buffer.find(b"\r\n\r\n", self._searched) + 4
        head = None
        try:
            if end < 4:
                check_incomplete(buffer, self._searched, self._worker.limits)
                self._searched = max(0, len(buffer) - 3)
                return False
            self._buffer = buffer[end:]
            self._searched = 0
            head = request.parse(buffer[:end], self._worker.limits)
            self._begin(head, buffer[:end])
        except Refused as error:
            self._refuse(error.response, head, buffer)
        return True

    def _skip_empty_lines(self) -> bool:
        """RFC 9112 §2.2: they are ignored before a request line; a bare LF or CR among them is not."""
        self._buffer = without_empty_lines(self._buffer)
        if self._buffer:
            self.set_deadline(self._worker.head_seconds)
        return bool(self._buffer)

    def _begin(self, head: RequestHead, raw: bytes) -> None:
        worker = self._worker
        route = self._route(head)
        if route is None:
            return
        if worker.max_body_bytes is not None and head.body > worker.max_body_bytes:
            raise Refused(BODY_TOO_LARGE)
        decision = self._decide(route, head)
        if isinstance(decision, Redirect):
            self._redirect(decision, head)
            return
        if head.method == b"OPTIONS":
            further = max_forwards.count_down(head)
            if further is None:
                self._answer(b"200 OK\r\n" + ALLOW, b"", head)
                return
            head = further
        if worker.access_log is not None and not self._client.is_trusted:
            head = request_ids.without_id(head)
        client = self._client.fields(head.forwarded_for, head.forwarded_proto, head.host_port)
        upstream_head = compose(route, head, decision, client)
        if head.fields_at and len(raw) <= MAX_REPEATED_BYTES:
            self._repeat = RememberedHead(raw, worker.routes.generation, head, route, decision, upstream_head)
        self._start(head, route, upstream_head)
        if head.body and self._buffer:
            rest, self._buffer = self._buffer, b""
            self._continue(self.exchange, rest)

    def _decide(self, route: Route, head: RequestHead) -> bytes | Redirect:
        worker = self._worker
        return decide(
            route,
            head,
            secure=self._secure,
            redirects_to_https=worker.redirects_to_https,
            ports=worker.ports,
            find_route=worker.routes.find,
        )

    def _redirect(self, redirect: Redirect, head: RequestHead) -> None:
        """Raises: `Refused`."""
        if redirect.is_upgrade and self._worker.is_awaiting_certificate(head.host):
            raise Refused(AWAITING_CERTIFICATE)
        kept = b"" if redirect.is_upgrade else _REDIRECT_KEPT
        self._answer(b"308 Permanent Redirect\r\nLocation: " + redirect.location + kept, b"", head)

    def _route(self, head: RequestHead) -> Route | None:
        """The route asked for; None when the request was answered here.

        Raises: `Refused` for names that are not enrolled, or not this connection's.
        """
        worker = self._worker
        if head.target.startswith(WELL_KNOWN) and self._answers_well_known(head):
            return None
        route = worker.routes.find(head.host)
        if route is None:
            raise Refused(NOT_ENROLLED)
        if self._server_name and self._server_name != head.host:
            # RFC 9110 §7.4: certificates shown for one owner's name say nothing about another's.
            shown = worker.routes.find(self._server_name)
            if shown is None or shown.application_id != route.application_id:
                raise Refused(MISDIRECTED)
        return route

    def _answers_well_known(self, head: RequestHead) -> bool:
        """Answer the API's probe, and challenges that are ours; whether it was one of them."""
        answer: bytes | None = None
        if is_challenge(head):
            answer = self._worker.challenge_answer(head)
        elif not self._secure and head.target.startswith(PROBE_PREFIX):
            nonce = head.path[len(PROBE_PREFIX) :].decode("ascii")
            answer = probe_answer(self._worker.keyring, head.host, nonce)
        if answer is None:
            return False
        self._answer(b"200 OK\r\nContent-Type: text/plain", answer, head)
        return True

    def _start(self, head: RequestHead, route: Route, upstream_head: bytes) -> None:
        worker = self._worker
        if route.signing is not None:
            upstream_head = sign(route.signing, head, upstream_head, worker.unix_seconds())
        if worker.access_log is not None:
            upstream_head = self._identify(head, upstream_head)
        else:
            self._request_id = ""
        self.bytes_down = 0
        self.exchange = exchange = Exchange(self, worker.exchanges, head, route, upstream_head, worker.loop.time())
        exchange.start()

    def _identify(self, head: RequestHead, upstream_head: bytes) -> bytes:
        """Give the request an id, a trusted proxy's own or one of ours, and tell it to the origin."""
        given = request_ids.given_id(head) if self._client.is_trusted else None
        if given is not None:
            self._request_id = given
            return upstream_head
        self._request_id = request_ids.new_id()
        return request_ids.with_id(upstream_head, self._request_id)

    def _continue(self, exchange: Exchange | None, data: bytes) -> None:
        """Bytes that came while an exchange is under way: its body's, its tunnel's, or the next request's."""
        assert exchange is not None
        if not exchange.request_is_complete or exchange.phase is TUNNEL:
            try:
                data = exchange.on_request_data(data)
            except Refused as error:
                self._break_request(exchange, error.response)
                return
            if not data:
                return
        if self.exchange is None:
            self.data_received(data)
            return
        self._buffer += data
        if len(self._buffer) > MAX_PIPELINED_BYTES:
            self.pause_reading()

    def _break_request(self, exchange: Exchange, kind: ErrorResponse) -> None:
        """The body's coding broke in the middle."""
        nothing_sent = exchange.status == 0
        if nothing_sent:
            exchange.status, exchange.failure = kind.status, kind
        exchange.cancel()
        self.exchange = None
        if nothing_sent:
            self._refuse(kind, exchange.head, exchange.head.kept, exchange)
        else:
            self._transport.abort()

    # Called by the exchange -------------------------------------------------------------------------------

    @property
    def request_id(self) -> str:
        """Of the request in progress; without an access log it is made when it is first needed."""
        if not self._request_id:
            self._request_id = request_ids.new_id()
        return self._request_id

    @property
    def is_draining(self) -> bool:
        return self._worker.is_draining

    def write(self, data: bytes) -> None:
        self.bytes_down += len(data)
        self._transport.write(data)

    def write_last(self, data: bytes) -> None:
        self.bytes_down += len(data)
        self._write_last(data)

    def _write_last(self, data: bytes) -> None:
        """`_close` follows at once."""
        if isinstance(self._transport, TlsStream):
            self._transport.write_last(data)
        else:
            self._transport.write(data)

    def pause_reading(self) -> None:
        self._is_paused = True
        self._worker.paused.add(self)
        self._transport.pause_reading()

    def resume_reading(self) -> None:
        if len(self._buffer) <= MAX_PIPELINED_BYTES:
            self._read_on()

    def _read_on(self) -> None:
        self._is_paused = False
        self._worker.paused.discard(self)
        self._transport.resume_reading()

    def abort(self, *, reset: bool = False) -> None:
        self.exchange = None
        if reset:
            sock = self._transport.get_extra_info("socket")
            with contextlib.suppress(OSError):
                sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        self._transport.abort()

    def tunnel_opened(self) -> None:
        data, self._buffer = self._buffer, b""
        self.resume_reading()
        if data:
            self._continue(self.exchange, data)
        if self._reading_ended and self.exchange is not None:
            self.exchange.on_client_eof()

    def end_writing(self) -> bool:
        if self._reading_ended or not self._transport.can_write_eof():
            return False
        self._transport.write_eof()
        return True

    def exchange_finished(self, *, keep_alive: bool) -> None:
        exchange, self.exchange = self.exchange, None
        assert exchange is not None
        if not keep_alive or (self._reading_ended and not self._buffer):
            # Who did not say that this was their last request may be sending the next one.
            lingers = exchange.head.keep_alive or bool(self._buffer) or not exchange.request_is_complete
            self._close(lingers=lingers)
        elif self._buffer or self._is_paused:
            self._go_on()
        else:
            self._expect_request()

    def _expect_request(self) -> None:
        worker = self._worker
        self.deadline = worker.now + (LAST_REQUEST_SECONDS if worker.is_draining else worker.idle_seconds)

    def _go_on(self) -> None:
        """Reading may have been paused, and requests may have come meanwhile."""
        self._expect_request()
        self._advance()
        if self.exchange is None or len(self._buffer) <= MAX_PIPELINED_BYTES:
            self._read_on()
        if self.exchange is not None:
            if self._reading_ended:
                self._tell_end(self.exchange)
        elif self._reading_ended and not (self._is_full or self._is_advancing):  # then more is to be begun
            self._transport.close()
        elif self._buffer and not (self._is_full or self._is_lingering):
            self.set_deadline(self._worker.head_seconds)

    def refuse(self, kind: ErrorResponse) -> None:
        """Answer in the origin's place."""
        exchange, self.exchange = self.exchange, None
        assert exchange is not None
        self._refuse(kind, exchange.head, exchange.head.kept, exchange)

    def _refuse(
        self, kind: ErrorResponse, head: RequestHead | None, raw: bytes, exchange: Exchange | None = None
    ) -> None:
        """`head` is None when the request could not be read; `raw` is what is there of it."""
        self._worker.counters.refusal(kind.code)
        whole = head is not None and head.body == 0 if exchange is None else exchange.request_is_complete
        request_id = (self._request_id if exchange is not None else "") or request_ids.new_id()
        close = kind.close or not whole or not self._may_stay(head)
        wants_html = b"text/html" in raw
        own_page = None
        if wants_html and kind.status >= 500 and head is not None:
            own_page = self._worker.routes.error_page(head.host)
        answer = render(
            kind,
            request_id=request_id,
            date_field=self._worker.date_field(),
            wants_html=wants_html,
            head_only=head.method == b"HEAD" if head is not None else raw.startswith(b"HEAD "),
            close=close,
            own_page=own_page,
        )
        self._log(kind.status, head, request_id, len(answer), exchange, kind)
        self._after_own_answer(answer, close=close)

    def _answer(self, status_and_field: bytes, body: bytes, head: RequestHead) -> None:
        """A small answer of our own that is no refusal."""
        close = head.body != 0 or not self._may_stay(head)
        answer = b"HTTP/1.1 %b%b\r\nContent-Length: %d%b\r\n\r\n%b" % (
            status_and_field,
            self._worker.date_field(),
            len(body),
            b"\r\nConnection: close" if close else b"",
            b"" if head.method == b"HEAD" else body,
        )
        self._log(int(answer[9:12]), head, "", len(answer))
        self._after_own_answer(answer, close=close)

    def log(self, exchange: Exchange) -> None:
        if exchange.failure is None or exchange.failure is CUT_OFF:  # refusals are, when they are written
            self._log(exchange.status, exchange.head, self._request_id, self.bytes_down, exchange)

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
        if access_log is None or not access_log.takes(status):
            return
        engine = self._transport.get_extra_info("ssl_object") if self._secure else None
        access_log.add(
            status,
            request_id=request_id or request_ids.new_id(),
            client=self._client,
            scheme=self.scheme,
            tls=engine.version() if engine is not None else "",
            head=head,
            bytes_down=bytes_down,
            now=self._worker.loop.time(),
            exchange=exchange,
            refusal=refusal,
        )

    def _may_stay(self, head: RequestHead | None) -> bool:
        """Whether the connection may serve another request after an answer of our own."""
        return (
            head is not None
            and head.keep_alive
            and head.minor == 1
            and (not self._reading_ended or bool(self._buffer))
            and not self._worker.is_draining
        )

    def _after_own_answer(self, answer: bytes, *, close: bool) -> None:
        if close:
            self._write_last(answer)
            self._buffer = b""
            self._close(lingers=True)
        else:
            self._transport.write(answer)
            self._go_on()

    def _close(self, *, lingers: bool) -> None:
        """End the connection; with input possibly on its way, only after the client had time to read."""
        has_unsent = self._transport.get_write_buffer_size() > 0
        self.deadline = self._worker.now + (self._worker.exchanges.timeouts.body if has_unsent else LINGER_SECONDS)
        if not lingers or self._reading_ended:
            self._transport.close()
        elif isinstance(self._transport, TlsStream):  # by itself, behind its close_notify
            self._transport.linger()
        else:
            self._is_lingering = True
            self._transport.write_eof()
            self._read_on()
