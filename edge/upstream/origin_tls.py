"""TLS with origins: contexts, the sessions that are resumed, and the handshake up to an established `TlsStream`.

A session is kept once its connection has served a request: TLS 1.3 sends tickets behind the handshake (RFC 8446
§4.6.1). It is resumed at the very same `Origin` only, so under the same name and the same verification.
"""

from __future__ import annotations

import asyncio
import ssl
from typing import cast

from common.metrics import Family
from common.trust import verifying_context
from edge.routing.route import Origin
from edge.transport.deferred_work import DeferredWork
from edge.transport.tls_stream import SLICE_BYTES, TlsStream

_MAX_SESSIONS = 1024


class OriginTls:
    """The contexts and sessions of a worker, owned by its `Connector`."""

    def __init__(self, deferred: DeferredWork) -> None:
        self.handshake_count = 0  # those that succeeded
        self.resumed_count = 0
        self._deferred = deferred
        self._verifying = _client_context(verify=True)
        self._trusting = _client_context(verify=False)
        self._sessions: dict[Origin, ssl.SSLSession] = {}

    def handshake(self, origin: Origin, inner: asyncio.Protocol) -> OriginHandshake:
        """Return the protocol of a connection to the origin that puts `inner` above TLS."""
        context = self._verifying if origin.verify else self._trusting
        return OriginHandshake(context, origin.server_name, self._sessions.get(origin), inner, self._deferred)

    async def complete(self, origin: Origin, handshake: OriginHandshake) -> None:
        """Wait for the end of the handshake.

        Raises: `ssl.SSLError`, among them that the certificate is not valid; `OSError`.
        """
        is_resumed = await handshake.done
        self.handshake_count += 1
        self.resumed_count += is_resumed
        if not is_resumed:  # the origin knows no session, or forgot the one we had
            self._sessions.pop(origin, None)

    def families(self) -> list[Family]:
        """Return the metrics."""
        return [
            Family.of("frontage_edge_origin_tls_handshakes", "With origins.", "counter", self.handshake_count),
            Family.of("frontage_edge_origin_tls_resumed", "Of these, resumed.", "counter", self.resumed_count),
        ]

    def keep_session(self, origin: Origin, sslobj: ssl.SSLObject) -> None:
        """Resume this session with the origin's next connections; the oldest of many are dropped."""
        session = sslobj.session
        if session is not None and session.has_ticket:
            self._sessions.pop(origin, None)
            if len(self._sessions) >= _MAX_SESSIONS:
                del self._sessions[next(iter(self._sessions))]
            self._sessions[origin] = session


class OriginHandshake(asyncio.Protocol):
    """Makes one connection's handshake, from the first flight on.

    `done` states whether a session was resumed, or has the error.
    """

    __slots__ = ("_deferred", "_incoming", "_inner", "_outgoing", "_raw", "_server_name", "_sslobj", "done")

    def __init__(
        self,
        context: ssl.SSLContext,
        server_name: str,
        session: ssl.SSLSession | None,
        inner: asyncio.Protocol,
        deferred: DeferredWork,
    ) -> None:
        self.done: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._server_name = server_name
        self._inner = inner
        self._deferred = deferred
        self._incoming = ssl.MemoryBIO()
        self._outgoing = ssl.MemoryBIO()
        self._sslobj = context.wrap_bio(self._incoming, self._outgoing, server_hostname=server_name, session=session)

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Send the first flight."""
        self._raw = cast("asyncio.Transport", transport)
        self._shake(b"")

    def data_received(self, data: bytes) -> None:
        """Go on with the handshake."""
        self._shake(data)

    def eof_received(self) -> bool:
        """Fail: the origin has closed the connection."""
        self._fail(ConnectionResetError("the connection was closed during the TLS handshake"))
        return False

    def connection_lost(self, exc: Exception | None) -> None:
        """Fail: the connection is lost."""
        self._fail(exc or ConnectionResetError("the connection was lost during the TLS handshake"))

    def _shake(self, data: bytes) -> None:
        """Feed the engine; what comes behind the origin's last flight is the stream's."""
        for begin in range(0, max(1, len(data)), SLICE_BYTES):
            self._incoming.write(data[begin : begin + SLICE_BYTES])
            try:
                self._sslobj.do_handshake()
            except ssl.SSLWantReadError:
                self._flush()
            except (ssl.SSLError, ssl.CertificateError) as error:
                self._flush()
                self._fail(error)
                return
            else:
                self._hand_over(memoryview(data)[begin + SLICE_BYTES :])
                return

    def _hand_over(self, rest: memoryview) -> None:
        self._flush()
        if self.done.done():  # the connector gave up
            self._raw.abort()
            return
        stream = TlsStream(
            asyncio.get_running_loop(),
            self._raw,
            self._sslobj,
            self._incoming,
            self._outgoing,
            self._server_name,
            self._deferred,
        )
        self._raw.set_protocol(stream)
        stream.begin(self._inner, rest)
        self.done.set_result(bool(self._sslobj.session_reused))

    def _flush(self) -> None:
        if self._outgoing.pending:
            self._raw.write(self._outgoing.read())

    def _fail(self, error: Exception) -> None:
        if not self.done.done():
            self.done.set_exception(error)


def _client_context(*, verify: bool) -> ssl.SSLContext:
    if verify:
        context = verifying_context()
    else:  # without the system's authorities: some 140 that take 20 ms to read
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    return context
