"""A client of HTTP/2 by `h2`, which judges what the edge sends, and sends what it is told, rules or not."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field

from h2.config import H2Configuration
from h2.connection import ConnectionInputs, ConnectionState, H2Connection
from h2.events import (
    ConnectionTerminated,
    DataReceived,
    Event,
    InformationalResponseReceived,
    ResponseReceived,
    StreamEnded,
    StreamReset,
    TrailersReceived,
)

from edge.http2 import frames
from tests.component.peers import PATIENCE_SECONDS, Edge
from tests.tls_parts import the_ca

Fields = Sequence[tuple[bytes, bytes]]
HOST = b"shop.example.com"
BROWSER = [
    (b"user-agent", b"Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Firefox/128.0"),
    (b"accept", b"text/html,*/*;q=0.8"),
    (b"accept-language", b"en-US,en;q=0.5"),
    (b"cookie", b"session=abc"),
    (b"te", b"trailers"),
]


def get(
    path: bytes = b"/", *more: tuple[bytes, bytes], method: bytes = b"GET", authority: bytes = HOST
) -> list[tuple[bytes, bytes]]:
    pseudo = [(b":method", method), (b":scheme", b"https"), (b":path", path), (b":authority", authority)]
    return [*pseudo, *more]


def post(path: bytes = b"/", *more: tuple[bytes, bytes]) -> list[tuple[bytes, bytes]]:
    return get(path, *more, method=b"POST")


@dataclass
class Response:
    """What came on a stream so far."""

    fields: list[tuple[bytes, bytes]] = field(default_factory=list)
    content: bytes = b""
    trailers: list[tuple[bytes, bytes]] = field(default_factory=list)
    interims: list[list[tuple[bytes, bytes]]] = field(default_factory=list)
    reset: int | None = None
    ended: bool = False

    @property
    def status(self) -> int:
        return int(dict(self.fields).get(b":status", b"0"))

    @property
    def is_over(self) -> bool:
        return self.ended or self.reset is not None


class Http2Client:
    """One connection. `acknowledges`: whether content opens the windows again. `silent`: nothing is sent yet."""

    def __init__(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, window: int | None, *, silent: bool = False
    ) -> None:
        self._reader = reader
        self.writer = writer
        config = H2Configuration(
            header_encoding=None, validate_outbound_headers=False, normalize_outbound_headers=False
        )
        self.h2 = H2Connection(config)
        machine = self.h2.state_machine
        going_on = {(ConnectionState.CLIENT_OPEN, ConnectionInputs.RECV_GOAWAY): (None, ConnectionState.CLIENT_OPEN)}
        machine._transitions = machine._transitions | going_on  # the streams so far go on, which `h2` does not know
        if window is not None:
            self.h2.local_settings[frames.INITIAL_WINDOW_SIZE] = window
            self.h2.local_settings.acknowledge()
        self.h2.initiate_connection()
        self.acknowledges = window is None
        self.responses: dict[int, Response] = {}
        self.goaways: list[int] = []
        self.last_allowed: int | None = None
        self.goaway_code: int | None = None
        self._news = asyncio.Event()
        self.is_closed = False
        self._reading = asyncio.get_running_loop().create_task(self._read())
        if not silent:
            self.flush()

    def flush(self) -> None:
        if not self.is_closed:
            self.writer.write(self.h2.data_to_send())

    def send_raw(self, data: bytes) -> None:
        """Send octets that `h2` knows nothing of."""
        self.flush()
        self.writer.write(data)

    def request(self, fields: Fields, content: bytes | None = None, *, ends: bool = True) -> int:
        """Send a request; return its stream. Content above a window must be sent by `upload`."""
        stream_id = self.h2.get_next_available_stream_id()
        self.responses[stream_id] = Response()
        self.h2.send_headers(stream_id, list(fields), end_stream=ends and content is None)
        if content is not None:
            self.h2.send_data(stream_id, content, end_stream=ends)
        self.flush()
        return stream_id

    async def upload(self, stream_id: int, content: bytes) -> None:
        """Send content as windows allow, and the end."""
        async with asyncio.timeout(PATIENCE_SECONDS):
            while content:
                room = min(self.h2.local_flow_control_window(stream_id), self.h2.max_outbound_frame_size)
                if not room:
                    await self._wait()
                    continue
                self.h2.send_data(stream_id, content[:room])
                content = content[room:]
                self.flush()
        self.h2.end_stream(stream_id)
        self.flush()

    async def response(self, stream_id: int) -> Response:
        """Return the whole response."""
        response = self.responses[stream_id]
        await self.until(lambda: response.is_over)
        return response

    async def exchange(self, fields: Fields, content: bytes | None = None) -> Response:
        return await self.response(self.request(fields, content))

    async def until(self, condition) -> None:  # type: ignore[no-untyped-def]
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not condition():
                assert not self.is_closed, "the connection was closed"
                await self._wait()

    async def closed(self) -> None:
        async with asyncio.timeout(PATIENCE_SECONDS):
            while not self.is_closed:
                await self._wait()

    async def _wait(self) -> None:
        self._news.clear()
        await self._news.wait()

    async def _read(self) -> None:
        try:
            while data := await self._reader.read(65_536):
                for event in self.h2.receive_data(data):
                    self._note(event)
                self.flush()
                self._news.set()
        except ConnectionError:
            pass
        finally:
            self.is_closed = True
            self._news.set()

    def _note(self, event: Event) -> None:
        if isinstance(event, ConnectionTerminated):
            self.last_allowed, self.goaway_code = event.last_stream_id or 0, int(event.error_code or 0)
            self.goaways.append(self.last_allowed)
            return
        stream_id = getattr(event, "stream_id", None)
        if stream_id is None or stream_id not in self.responses:
            return
        response = self.responses[stream_id]
        if isinstance(event, ResponseReceived):
            response.fields = list(event.headers)
        elif isinstance(event, InformationalResponseReceived):
            response.interims.append(list(event.headers))
        elif isinstance(event, TrailersReceived):
            response.trailers = list(event.headers)
        elif isinstance(event, DataReceived):
            response.content += event.data
            if self.acknowledges and event.flow_controlled_length:
                self.h2.acknowledge_received_data(event.flow_controlled_length, stream_id)
        elif isinstance(event, StreamEnded):
            response.ended = True
        elif isinstance(event, StreamReset):
            response.reset = int(event.error_code)

    async def close(self) -> None:
        self._reading.cancel()
        await asyncio.gather(self._reading, return_exceptions=True)
        self.writer.transport.abort()
        with contextlib.suppress(ConnectionError):
            await self.writer.wait_closed()


@contextlib.asynccontextmanager
async def http2_client(proxy: Edge, *, window: int | None = None) -> AsyncIterator[Http2Client]:
    """A client of the proxy. `window`: of each stream, never opened again."""
    client = Http2Client(*await asyncio.open_connection("127.0.0.1", proxy.http2_port), window)
    try:
        yield client
    finally:
        await client.close()


@contextlib.asynccontextmanager
async def secure_client(port: int, name: str, *protocols: str) -> AsyncIterator[tuple[str | None, Http2Client]]:
    """Yield what ALPN chose, and a client of HTTP/2 on that connection."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.load_verify_locations(cadata=the_ca().pem)
    if protocols:
        context.set_alpn_protocols(list(protocols))
    reader, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=name)
    chosen = writer.get_extra_info("ssl_object").selected_alpn_protocol()
    here = Http2Client(reader, writer, None, silent=chosen != "h2")
    try:
        yield chosen, here
    finally:
        await here.close()
