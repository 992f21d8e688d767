"""One run of our own client of HTTP/2, whose requests differ in path and in other fields, as h2load's cannot.

    python -m bench.http2_load URL --requests FILE --streams 10 --seconds 3

32 connections over TLS, so many streams each, on a core of its own: a request is sent as soon as a response ends.
Requests are encoded before the run (`bench.http2_client` states how), 3,000 for each connection, and kept in a file for
all runs with the same ones. The blocks of a connection build on each other. So a connection that has sent them all is
replaced by a new one: one handshake for 3,000 requests, and in a run of more than 96,000, requests come again.

A run fails when one response is not a 200, when a stream is reset, and when a connection ends early. Of a response's
header block, the first field is looked at, behind changes of the table's size: proxies send ``:status`` first.
"""

from __future__ import annotations

import argparse
import asyncio
import functools
import itertools
import json
import pickle
import re
import ssl
import sys
import time
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Final, TypeAlias, cast

from yarl import URL

from bench.http2_client import OPENING, RequestEncoder, client_context, read_frames
from bench.loads import HTTP2_CONNECTIONS, LoadRun, read_run
from bench.pinned import LoadFailed, last_line, module
from common.processes import loop_factory
from edge.http2 import frames

Requests = Sequence[Sequence[bytes]]
"""The frames of each connection, in the order in which they are sent."""

Heads: TypeAlias = Callable[[str, str, Iterable[int]], list[bytes]]
"""Makes the heads of requests to a host and path, as HTTP/1.1 has them: one for each number (`bench.heads`)."""

_REQUESTS_EACH: Final = 3000
_ANSWER_SECONDS: Final = 5
_SPARE_SECONDS: Final = 20
_PING_ACK: Final = frames.header(frames.PING, frames.ACK, 0, 8)
_SUCCESS: Final = re.compile(rb"(?:[\x20-\x3e]|\x3f[\x80-\xff]*[\x00-\x7f])*\x88")  # RFC 7541 §6.3, §6.1


class Http2Load:
    """Runs the load as a process, and keeps its requests in `directory`."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory

    async def run(self, url: str, heads: Heads, *, streams: int, seconds: float, core: int) -> LoadRun:
        """Load `url` on loopback, `streams` of those requests at once on each connection.

        Raises: `LoadFailed`, also when one request was not answered with success.
        """
        requests = await asyncio.to_thread(self._prepared, URL(url), heads)
        argv = module("bench.http2_load", url, "--requests", str(requests))
        argv += ["--streams", str(streams), "--seconds", str(seconds)]
        return read_run(f"HTTP/2 on {url}", await last_line(argv, core=core, seconds=seconds + _SPARE_SECONDS))

    def _prepared(self, url: URL, heads: Heads) -> Path:
        file = self._directory / f"http2-{heads.__name__}-{url.host}-{url.path.strip('/')}"
        if not file.exists():
            file.write_bytes(pickle.dumps(encode(heads, url, HTTP2_CONNECTIONS, _REQUESTS_EACH)))
        return file


def encode(heads: Heads, url: URL, connections: int, requests: int) -> Requests:
    """Encode so many requests for each of so many connections, all of them different."""
    assert url.host is not None
    return [
        [encoder.encode(head) for head in heads(url.host, url.path, range(first, first + requests))]
        for first, encoder in ((number * requests, RequestEncoder()) for number in range(connections))
    ]


class LoadConnection(asyncio.Protocol):
    """One connection: sends its requests, `streams` at once, until they are used up or `stop` is called.

    It closes itself when all that it sent is answered, and when something fails: `closed` is set then, and `failure`
    states what failed.
    """

    def __init__(self, requests: Iterable[bytes], streams: int) -> None:
        self._requests = iter(requests)
        self._streams = streams
        self._unanswered = 0
        self._received = b""
        self.answered = 0
        self.failure: str | None = None
        self.closed = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Open the connection, with the first requests."""
        self._transport = cast("asyncio.Transport", transport)
        if transport.get_extra_info("ssl_object").selected_alpn_protocol() != "h2":
            self._fail("the proxy does not speak HTTP/2")
            return
        self._transport.write(OPENING)
        self._send(self._streams)

    def data_received(self, data: bytes) -> None:
        """Read the responses, and send a request for each that ended."""
        received, self._received = read_frames(self._received + data)
        ended = 0
        for kind, flags, stream_id, payload in received:
            if kind == frames.HEADERS and not _SUCCESS.match(payload):
                self._fail(f"the response on stream {stream_id} is not a 200")
                return
            if kind in (frames.RST_STREAM, frames.GOAWAY):
                self._fail("the proxy ended a stream or the connection")
                return
            if kind in (frames.DATA, frames.HEADERS):
                ended += flags & frames.END_STREAM
            elif kind == frames.SETTINGS and not flags & frames.ACK:
                self._transport.write(frames.SETTINGS_ACK)
            elif kind == frames.PING and not flags & frames.ACK:
                self._transport.write(_PING_ACK + payload)
        if ended:
            self.answered += ended
            self._unanswered -= ended
            self._send(ended)

    def connection_lost(self, exc: Exception | None) -> None:
        """Set `closed`."""
        if self._unanswered and self.failure is None:
            self.failure = f"a connection ended before {self._unanswered} responses: {exc or 'closed by the proxy'}"
        self.closed.set()

    def stop(self) -> None:
        """Send no more requests."""
        self._requests = iter(())

    def abort(self) -> None:
        """Close the connection at once, if it is still open."""
        self._transport.abort()

    def on_all_answered(self) -> None:
        """Close the connection."""
        self._transport.abort()

    def _send(self, count: int) -> None:
        requests = list(itertools.islice(self._requests, count))
        self._unanswered += len(requests)
        if requests:
            self._transport.write(b"".join(requests))
        elif not self._unanswered:
            self.on_all_answered()

    def _fail(self, reason: str) -> None:
        self.failure = reason
        self._transport.abort()


async def load(url: URL, requests: Requests, *, streams: int, seconds: float) -> LoadRun:
    """Keep all connections busy for so long, and wait for the last responses.

    Raises: `LoadFailed` for the first thing that fails.
    """
    started_at = time.perf_counter()
    open_connection = functools.partial(connect, url, client_context())
    connections = itertools.cycle(requests)
    ends_at = asyncio.get_running_loop().time() + seconds
    try:
        async with asyncio.TaskGroup() as group:
            busy = [
                group.create_task(
                    _keep_busy(open_connection, connections, streams, ends_at), name=f"http2-load-{number}"
                )
                for number in range(HTTP2_CONNECTIONS)
            ]
    except ExceptionGroup as failed:
        raise failed.exceptions[0] from None
    answered = sum(task.result() for task in busy)
    return LoadRun(answered, 0, 0, 0, round(time.perf_counter() - started_at, 3))


async def _keep_busy(
    open_connection: Callable[[LoadConnection], Awaitable[None]],
    connections: Iterator[Sequence[bytes]],
    streams: int,
    ends_at: float,
) -> int:
    """Use one connection after another, and return how many requests were answered."""
    loop = asyncio.get_running_loop()
    answered = 0
    while loop.time() < ends_at:
        connection = LoadConnection(next(connections), streams)
        await open_connection(connection)
        stopping = loop.call_at(ends_at, connection.stop)
        try:
            async with asyncio.timeout_at(ends_at + _ANSWER_SECONDS):
                await connection.closed.wait()
        except TimeoutError:
            raise LoadFailed(f"not all requests were answered within {_ANSWER_SECONDS} seconds") from None
        finally:
            stopping.cancel()
            connection.abort()
        if connection.failure is not None:
            raise LoadFailed(connection.failure)
        answered += connection.answered
    return answered


async def connect(url: URL, context: ssl.SSLContext, connection: LoadConnection) -> None:
    """Open the connection to the proxy, on loopback.

    Raises: `LoadFailed`.
    """
    assert url.port is not None
    try:
        async with asyncio.timeout(_ANSWER_SECONDS):
            await asyncio.get_running_loop().create_connection(
                lambda: connection, "127.0.0.1", url.port, ssl=context, server_hostname=url.host
            )
    except (OSError, TimeoutError) as error:
        raise LoadFailed(f"no connection to the proxy: {error}") from error


def main() -> None:
    """Run the load and print its result as one line of JSON, or the reason why it failed."""
    parser = argparse.ArgumentParser(prog="python -m bench.http2_load", description=__doc__)
    parser.add_argument("url", type=URL)
    parser.add_argument("--requests", type=Path, required=True, help="the file of encoded requests")
    parser.add_argument("--streams", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=3)
    arguments = parser.parse_args()
    requests = pickle.loads(arguments.requests.read_bytes())
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        try:
            run = runner.run(load(arguments.url, requests, streams=arguments.streams, seconds=arguments.seconds))
        except LoadFailed as error:
            sys.exit(str(error))
    print(json.dumps(asdict(run)))


if __name__ == "__main__":
    main()
