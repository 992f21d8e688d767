"""The load of `bench.http2_load` on a server of `h2`, which judges its requests: what it sends, what fails a run."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

import pytest
from h2.config import H2Configuration
from h2.connection import H2Connection
from h2.events import ConnectionTerminated, RequestReceived
from hpack import Decoder
from yarl import URL

from bench import heads, http2_load
from bench.http2_client import client_context
from bench.http2_load import Requests, connect, encode, load
from bench.idle_connections import IdleConnection
from bench.loads import HTTP2_CONNECTIONS
from bench.peers.certificates import make_certificate
from bench.pinned import LoadFailed
from edge.http2 import frames

HOST = "shop.customer.localhost"
Headers = list[tuple[bytes, bytes]]
Answer = Callable[[H2Connection, int, int], None]
"""Answers a request on a stream; the last argument is its number among all."""


def answer(connection: H2Connection, stream_id: int, number: int) -> None:
    connection.send_headers(stream_id, [(b":status", b"200"), (b"x-request-id", b"%d" % number)])
    connection.send_data(stream_id, b"x" * 1024, end_stream=True)


def refuse_the_fortieth(connection: H2Connection, stream_id: int, number: int) -> None:
    if number == 40:
        connection.send_headers(stream_id, [(b":status", b"500")], end_stream=True)
    else:
        answer(connection, stream_id, number)


def reset_the_fortieth(connection: H2Connection, stream_id: int, number: int) -> None:
    if number == 40:
        connection.reset_stream(stream_id)
    else:
        answer(connection, stream_id, number)


def leave_at_the_fortieth(connection: H2Connection, stream_id: int, number: int) -> None:
    if number == 40:
        connection.close_connection()
    else:
        answer(connection, stream_id, number)


def shrink_the_table(connection: H2Connection, stream_id: int, number: int) -> None:
    connection.encoder.header_table_size = 100 + number  # said at the beginning of the next block
    answer(connection, stream_id, number)


@dataclass
class Server:
    """A server on loopback, and the fields of the requests that it answered, by connection."""

    answer: Answer
    connections: list[list[Headers]] = field(default_factory=list)
    most_at_once: int = 0
    numbers: int = 0
    url: URL = field(default_factory=URL)

    @property
    def requests(self) -> list[Headers]:
        return [request for connection in self.connections for request in connection]


class ServerConnection(asyncio.Protocol):
    def __init__(self, server: Server) -> None:
        self.server = server
        self.requests: list[Headers] = []
        server.connections.append(self.requests)
        self.h2 = H2Connection(H2Configuration(client_side=False, header_encoding=None))

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = cast("asyncio.Transport", transport)
        self.h2.initiate_connection()

    def data_received(self, data: bytes) -> None:
        events = self.h2.receive_data(data)
        assert not any(isinstance(event, ConnectionTerminated) for event in events)
        received = [event for event in events if isinstance(event, RequestReceived)]
        self.server.most_at_once = max(self.server.most_at_once, len(received))
        for request in received:
            assert request.stream_id is not None
            self.server.numbers += 1
            self.requests.append([(bytes(name), bytes(value)) for name, value in request.headers])
            self.server.answer(self.h2, request.stream_id, self.server.numbers)
        self.transport.write(self.h2.data_to_send())


@contextlib.asynccontextmanager
async def serving(answer: Answer, directory: Path, protocol: str = "h2") -> AsyncIterator[Server]:
    key, certificate = make_certificate(HOST)
    pem = directory / "server.pem"
    pem.write_text(key + certificate)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(pem)
    context.set_alpn_protocols([protocol])
    server = Server(answer)
    listener = await asyncio.get_running_loop().create_server(
        lambda: ServerConnection(server), "127.0.0.1", 0, ssl=context
    )
    async with listener:
        server.url = URL(f"https://{HOST}:{listener.sockets[0].getsockname()[1]}/different")
        yield server


def some_requests(each: int = 50) -> Requests:
    return encode(heads.other_cookies, URL(f"https://{HOST}/different"), HTTP2_CONNECTIONS, each)


@pytest.mark.parametrize("streams", [1, 10])
async def test_path_and_session_cookie_differ_in_each_request(tmp_path: Path, streams: int) -> None:
    async with serving(answer, tmp_path) as server:
        run = await load(server.url, some_requests(), streams=streams, seconds=0.2)
    assert run.requests == len(server.requests) >= HTTP2_CONNECTIONS
    assert server.most_at_once == streams
    for requests in server.connections:
        for name in (b":path", b"cookie"):
            assert len({dict(request)[name] for request in requests}) == len(requests)
    others = {tuple(field for field in each if field[0] not in (b":path", b"cookie")) for each in server.requests}
    assert len(others) == 1


def test_no_two_connections_send_the_same_session() -> None:
    sessions = {
        field
        for requests in encode(heads.other_cookies, URL(f"https://{HOST}/different"), connections=3, requests=60)
        for decoder in [Decoder()]
        for request in requests
        for field in decoder.decode(request[frames.HEADER_BYTES :], raw=True)
        if field[1].startswith(b"session=")
    }
    assert len(sessions) == 3 * 60


async def test_connections_that_sent_all_are_replaced(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(http2_load, "HTTP2_CONNECTIONS", 2)  # so that each connects often in that time
    async with serving(answer, tmp_path) as server:
        run = await load(server.url, some_requests(each=3), streams=2, seconds=1)
    assert len(server.connections) > 2
    assert max(map(len, server.connections)) == 3
    assert run.requests == len(server.requests)


async def test_changes_of_the_table_s_size_stand_before_a_status(tmp_path: Path) -> None:
    async with serving(shrink_the_table, tmp_path) as server:
        run = await load(server.url, some_requests(), streams=1, seconds=0.1)
    assert run.requests == len(server.requests)


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (refuse_the_fortieth, "is not a 200"),
        (reset_the_fortieth, "ended a stream"),
        (leave_at_the_fortieth, "ended a stream or the connection"),
    ],
)
async def test_one_response_that_is_no_success_fails_the_run(tmp_path: Path, answer: Answer, reason: str) -> None:
    async with serving(answer, tmp_path) as server:
        with pytest.raises(LoadFailed, match=reason):
            await load(server.url, some_requests(), streams=10, seconds=5)
        assert server.numbers >= 40


async def test_server_without_http2_fails_the_run(tmp_path: Path) -> None:
    async with serving(answer, tmp_path, protocol="http/1.1") as server:
        with pytest.raises(LoadFailed, match="does not speak HTTP/2"):
            await load(server.url, some_requests(each=1), streams=1, seconds=5)


async def test_no_server_fails_the_run(tmp_path: Path) -> None:
    async with serving(answer, tmp_path) as server:
        url = server.url
    with pytest.raises(LoadFailed, match="no connection"):
        await load(url, some_requests(each=1), streams=1, seconds=5)


async def test_idle_connections_stay_once_all_is_answered(tmp_path: Path) -> None:
    async with serving(answer, tmp_path) as server:
        connections = []
        for requests in ([], *some_requests(each=3)[:2]):
            connection = IdleConnection(requests)
            await connect(server.url, client_context(), connection)
            await connection.idle.wait()
            assert (connection.answered, connection.failure) == (len(requests), None)
            connections.append(connection)
        assert not any(connection.closed.is_set() for connection in connections)
        assert [len(requests) for requests in server.connections] == [0, 3, 3]
        for connection in connections:
            connection.abort()
            await connection.closed.wait()


async def test_idle_connection_that_is_not_answered_tells_why(tmp_path: Path) -> None:
    async with serving(reset_the_fortieth, tmp_path) as server:
        connection = IdleConnection(some_requests()[0])
        await connect(server.url, client_context(), connection)
        await connection.idle.wait()
    assert connection.failure is not None
    assert connection.answered == 39
