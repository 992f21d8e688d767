"""An established TLS connection: an asyncio protocol to the raw transport below, a transport to the inner above.

It owns the SSL object's reads and writes. It must not know certificates, names or HTTP.

The rules
    - The engine's two buffers never shrink, so they never grow: at most 16 KB enter either before it is
      emptied again (a 1 MB write would leave 1 MB in an idle connection).
    - Input is decrypted while the inner reads. Paused, the raw transport is paused too; resumed, what the
      engine has comes before what the socket has.
    - Records that arrived together are delivered together; after `RECORDS_AT_ONCE` the rest is deferred, and the
      raw transport is paused meanwhile. So it is after a slice that brought less data than half of its size: key
      updates and tickets cost the engine up to 60 µs each. A slice has at most 32 records.
    - The end of the peer's input (close_notify or FIN; HTTP frames itself) ends reading; whether writing goes on is the
      inner's to say.
    - The raw transport's flow control is the inner's. A peer that makes the engine itself talk (key
      updates) without taking what was said is cut off.
    - `connection_lost` of the inner is called exactly once, when the raw transport is gone, never from within its
      own calls.

The loop below is the hot path of every request over TLS, on either side: bound methods are looked up once a
connection, and put in a variable before they are called, since to call an attribute of an instance as if it were a
method costs more; and an exception (1.2 µs) is raised only when a record came in parts.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

from edge.transport.deferred_work import BYTES_AT_ONCE, RECORDS_AT_ONCE, DeferredWork
from edge.transport.lingering import ROUND_SECONDS, linger

SLICE_BYTES = 16 * 1024  # also what one record carries at most (RFC 8446 §5.1)

_HEADER_BYTES = 5  # of a record; the last two are the length of what follows (RFC 8446 §5.1)
_SLICE_RECORDS = 32

_NO_PROTOCOL = asyncio.Protocol()  # the inner of a connection that is gone: breaks the reference cycle

Data = bytes | bytearray | memoryview


class TlsStream(asyncio.Transport, asyncio.Protocol):
    """Created after a handshake, with a client (`TlsLayer`) or an origin (`OriginHandshake`); `raw`'s protocol."""

    __slots__ = (
        "_deferred",
        "_deliver",
        "_encrypt",
        "_error",
        "_feed",
        "_incoming",
        "_inner",
        "_input_ended",
        "_is_closed",
        "_is_deferred",
        "_is_raw_full",
        "_loop",
        "_outgoing",
        "_raw",
        "_raw_ended",
        "_raw_write",
        "_read",
        "_reading",
        "_received_close_notify",
        "_record_left",
        "_server_name",
        "_sslobj",
        "_take",
        "_unfed",
    )

    def __init__(
        self,
        loop: asyncio.AbstractEventLoop,
        raw: asyncio.Transport,
        sslobj: ssl.SSLObject,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_name: str,
        deferred: DeferredWork,
    ) -> None:
        self._loop = loop
        self._deferred = deferred
        self._raw = raw
        self._raw_write = raw.write
        self._sslobj = sslobj
        engine = getattr(
            sslobj, "_sslobj", sslobj
        )  # CPython's own: the methods around it are in Python, and do no more
        self._read = engine.read
        self._encrypt = engine.write
        self._incoming = incoming
        self._feed = incoming.write
        self._outgoing = outgoing
        self._take = outgoing.read
        self._server_name = server_name
        self._inner: asyncio.Protocol = _NO_PROTOCOL
        self._deliver = _NO_PROTOCOL.data_received
        self._unfed: bytes | memoryview = b""  # received, not yet in the engine
        self._record_left = 0  # bytes still to come of the record that the engine has begun
        self._reading = True  # may deliver: not paused, not ended, not closed
        self._is_deferred = False  # the rest of the input, to a later turn of the loop
        self._raw_ended = False  # FIN
        self._received_close_notify = False
        self._input_ended = False  # the inner knows
        self._is_closed = False
        self._is_raw_full = False
        self._error: Exception | None = None

    def begin(self, inner: asyncio.Protocol, rest: Data) -> None:
        """Introduce the inner, then hand it what the peer sent right behind its handshake."""
        self.set_protocol(inner)
        inner.connection_made(self)
        self._unfed = memoryview(self._incoming.read() + rest)  # from the first record behind the handshake on
        self._drain()

    # The raw transport's protocol --------------------------------------------------------------------------

    def data_received(self, data: bytes) -> None:
        """Decrypt what came."""
        if self._input_ended:
            return
        size = len(data)
        if (
            size <= _HEADER_BYTES
            or size > SLICE_BYTES
            or self._record_left
            or self._unfed
            or data[3] << 8 | data[4] != size - _HEADER_BYTES
        ):
            self._unfed = memoryview(bytes(self._unfed) + data if self._unfed else data)
            self._drain()
            if size >= BYTES_AT_ONCE and self._reading:
                self._defer()
            return
        # One whole record: by far the most frequent. Its content is shorter (RFC 8446 §5.2), and memory for so much
        # costs half as much as for `SLICE_BYTES`.
        feed, read = self._feed, self._read
        feed(data)
        if not self._reading:
            return
        try:
            data = read(size)
        except ssl.SSLError as error:
            self._follow_engine(None if isinstance(error, ssl.SSLWantReadError) else error)
            return
        if data:  # then the engine has nothing to say: key updates and alerts are records of their own
            deliver = self._deliver
            deliver(data)
        else:
            self._received_close_notify = True
            self._follow_engine(None)

    def eof_received(self) -> bool:
        """Note the end of the raw connection's input."""
        self._raw_ended = True
        if not (self._input_ended or self._is_deferred):
            self._drain()
        return True

    def pause_writing(self) -> None:
        """Pause the inner's writing."""
        self._is_raw_full = True
        self._inner.pause_writing()

    def resume_writing(self) -> None:
        """Resume the inner's writing."""
        self._is_raw_full = False
        self._inner.resume_writing()

    def connection_lost(self, exc: Exception | None) -> None:
        """Report the loss to the inner."""
        self._is_closed, self._reading, self._unfed = True, False, b""
        inner, self._inner, self._deliver = self._inner, _NO_PROTOCOL, _NO_PROTOCOL.data_received
        inner.connection_lost(self._error or exc)

    # Decrypting --------------------------------------------------------------------------------------------

    def _decrypt(self) -> list[bytes]:
        """Deliver what the engine has, and return it by record."""
        incoming = self._incoming
        records: list[bytes] = []
        error: ssl.SSLError | None = None
        while self._reading and incoming.pending:
            try:
                data = self._read(SLICE_BYTES)
            except ssl.SSLWantReadError:
                break
            except ssl.SSLError as failure:
                error = failure
                break
            if not data:
                self._received_close_notify = True
                break
            records.append(data)
        if records:
            self._deliver(records[0] if len(records) == 1 else b"".join(records))
        self._follow_engine(error)
        return records

    def _follow_engine(self, error: ssl.SSLError | None) -> None:
        """End the input or the connection where the engine says so, and send what it wrote."""
        if error is not None and not self._is_closed:
            self._fail(error)
        elif self._received_close_notify and self._reading:
            self._end_input()
        if self._outgoing.pending:
            self._send_engine_output()

    def _drain(self) -> None:
        """Deliver what there is, as long as the inner reads; then the end, if it has come."""
        records = len(self._decrypt())
        while self._reading and self._unfed:
            if records >= RECORDS_AT_ONCE:
                self._defer()
                return
            size, ended = self._feed_slice()
            if not size:
                break
            delivered = self._decrypt()
            is_costly = ended and 2 * sum(map(len, delivered)) < size
            records = RECORDS_AT_ONCE if is_costly else records + len(delivered)
        if self._reading and (self._raw_ended or self._received_close_notify):
            self._end_input()

    def _feed_slice(self) -> tuple[int, int]:
        """Give the engine the next piece of what was received; return its size, and how many records end in it.

        The piece never ends within a header, which the engine could do nothing with.
        """
        unfed, at, ended = self._unfed, self._record_left, 0
        most = min(len(unfed), SLICE_BYTES)
        while at + _HEADER_BYTES <= most and ended < _SLICE_RECORDS:
            ended += at > 0
            at += _HEADER_BYTES + (unfed[at + 3] << 8 | unfed[at + 4])
        size = min(at, most)
        ended += 0 < at <= most
        self._feed(unfed[:size])
        self._record_left = at - size
        self._unfed = unfed[size:] or b""  # an empty view would keep the whole segment
        return size, ended

    def _defer(self) -> None:
        """Give up the loop before more is decrypted."""
        if not self._is_deferred:
            self._is_deferred = True
            self._raw.pause_reading()
            self._deferred.add(self._resume)

    def _end_input(self) -> None:
        self._reading, self._input_ended, self._unfed = False, True, b""
        if not self._inner.eof_received():
            self.close()

    def _send_engine_output(self) -> None:
        """Send what the engine wrote by itself while reading: key updates, alerts."""
        if self._is_raw_full:
            self.abort()
        else:
            self._raw_write(self._take())

    # The inner's transport ---------------------------------------------------------------------------------

    def write(self, data: Data) -> None:
        """Encrypt and send."""
        if self._is_closed or not data:
            return
        try:
            if len(data) <= SLICE_BYTES:
                encrypt, take, write = self._encrypt, self._take, self._raw_write
                encrypt(data)
                write(take())
            else:
                self._raw.writelines(self._encrypt_slices(memoryview(data)))
        except ssl.SSLError as error:
            self._fail(error)

    def write_last(self, data: Data) -> None:
        """Send what `close` or `linger` follows at once: it leaves together with close_notify, in one segment."""
        if self._is_closed or len(data) > SLICE_BYTES:
            self.write(data)
            return
        try:
            self._encrypt(data)
        except ssl.SSLError as error:
            self._fail(error)

    def writelines(self, list_of_data: Iterable[Data]) -> None:
        """Encrypt and send all of these."""
        self.write(b"".join(list_of_data))

    def _encrypt_slices(self, view: memoryview) -> list[bytes]:
        records = []
        for start in range(0, len(view), SLICE_BYTES):
            self._encrypt(view[start : start + SLICE_BYTES])
            records.append(self._take())
        return records

    def can_write_eof(self) -> bool:
        """Return False: TLS has no half-closed connections here."""
        return False

    def write_eof(self) -> None:
        """Refuse: the connection is closed, not half-closed."""
        raise NotImplementedError("TLS connections are closed, not half-closed, by us")

    def pause_reading(self) -> None:
        """Stop delivering, and stop the raw transport's reading."""
        if self._reading:
            self._reading = False
            self._raw.pause_reading()

    def resume_reading(self) -> None:
        """Deliver again, later in the loop where something is here already."""
        if self._reading or self._input_ended or self._is_closed:
            return
        self._reading = True
        if self._is_deferred:
            return
        if self._incoming.pending or self._unfed or self._raw_ended or self._received_close_notify:
            self._defer()  # a transport does not deliver from within this call
        else:
            self._raw.resume_reading()

    def _resume(self) -> None:
        self._is_deferred = False
        if self._reading:
            self._drain()
        if self._reading and not self._is_deferred:
            self._raw.resume_reading()

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Set the raw transport's limits."""
        self._raw.set_write_buffer_limits(high, low)

    def get_write_buffer_size(self) -> int:
        """Return the bytes that are not sent yet, encrypted."""
        return self._raw.get_write_buffer_size() + self._outgoing.pending

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Return facts of the connection: of TLS, else of the raw transport."""
        if name == "server_name":
            return self._server_name
        if name == "ssl_object":
            return self._sslobj
        return self._raw.get_extra_info(name, default)

    def set_protocol(self, protocol: asyncio.BaseProtocol) -> None:
        """Make this the inner protocol."""
        assert isinstance(protocol, asyncio.Protocol)
        self._inner = protocol
        self._deliver = protocol.data_received

    # The end -----------------------------------------------------------------------------------------------

    def is_closing(self) -> bool:
        """Return whether the connection is closing or closed."""
        return self._is_closed

    def close(self) -> None:
        """Flush, send close_notify, and close, as a plain transport does: for a client whose input has ended."""
        if not self._is_closed:
            self._send_close_notify()
            self._raw.close()

    def linger(self, *, round_seconds: float = ROUND_SECONDS) -> None:
        """Flush, send close_notify, and give the client time to read it, whatever it still sends."""
        if not self._is_closed:
            self._send_close_notify()
            linger(
                self._loop,
                self._raw,
                self.connection_lost,
                input_ended=self._raw_ended,
                round_seconds=round_seconds,
            )

    def abort(self) -> None:
        """Close at once, without close_notify."""
        self._is_closed, self._reading = True, False
        self._raw.abort()

    def _fail(self, error: ssl.SSLError) -> None:
        """End the connection: the engine gave up, and may have left an alert."""
        self._error = error
        self._flush_engine()
        linger(self._loop, self._raw, self.connection_lost, input_ended=self._raw_ended)

    def _send_close_notify(self) -> None:
        with suppress(ssl.SSLError):  # "want read": the client's own close_notify need not be waited for
            self._sslobj.unwrap()
        self._flush_engine()

    def _flush_engine(self) -> None:
        self._is_closed, self._reading, self._unfed = True, False, b""
        if self._outgoing.pending:
            self._raw_write(self._take())
