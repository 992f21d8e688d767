"""Loads wrk cannot make: WebSocket messages, HEAD, and TLS connections of three kinds.

    python -m bench.load_client socket  URL --seconds 3
    python -m bench.load_client head    URL --seconds 3
    python -m bench.load_client domains URL --seconds 3 --hosts FILE
    python -m bench.load_client new       URL --seconds 3
    python -m bench.load_client returning URL --seconds 3

The first three keep 64 connections busy from one uvloop, the others 8 threads. All end with one line of JSON, as wrk's
script does. `socket` sends a message of 64 bytes on each connection and waits for it to come back. `head` sends
HEAD with header blocks that all differ. `domains` opens each
connection for the next host of the file (SNI and Host), makes ten requests on it, and closes it: whole handshakes, no
sessions kept. `new` and `returning` open a connection for each request; `returning` offers the session of the last one,
as a browser does. The URL's host is what TLS and HTTP ask for; connected is to loopback.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import functools
import itertools
import json
import os
import socket
import ssl
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast

from yarl import URL

from bench import heads
from bench.loads import CONNECTIONS
from common.processes import loop_factory

MESSAGE_BYTES = 64
REQUESTS_A_CONNECTION = 10
_ANSWER_SECONDS = 5
_THREADS = 8


@dataclass(slots=True)
class LoadResult:
    """The counts of one run, which its connections share."""

    ends_at: float
    latencies_us: list[int] = field(default_factory=list)
    errors: int = 0
    resumed: int = 0

    @property
    def is_over(self) -> bool:
        """Return whether the run's time is over."""
        return time.perf_counter() >= self.ends_at

    def count(self, started_at: float) -> None:
        """Count a request that began at `started_at` and is answered now."""
        self.latencies_us.append(int((time.perf_counter() - started_at) * 1e6))

    def as_json(self, seconds: float) -> str:
        """Return the result as one line of JSON, in the form of `bench.loads.LoadRun`."""
        ordered = sorted(self.latencies_us) or [0]
        result = {
            "requests": len(self.latencies_us),
            "errors": self.errors,
            "p50_us": ordered[len(ordered) // 2],
            "p99_us": ordered[len(ordered) * 99 // 100],
            "seconds": round(seconds, 3),
            "resumed": self.resumed,
        }
        return json.dumps(result)


# WebSocket -------------------------------------------------------------------------------------------------


class Echoing(asyncio.Protocol):
    """A WebSocket client: upgrades, then has one message on its way at a time until the run is over."""

    def __init__(self, url: URL, account: LoadResult) -> None:
        self._upgrade = _upgrade(url)
        self._account = account
        self._frame = _client_frame(os.urandom(MESSAGE_BYTES))
        self._received = 0
        self._head = b""
        self._is_open = False
        self.closed = asyncio.get_running_loop().create_future()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Ask for the upgrade."""
        self._transport = cast("asyncio.Transport", transport)
        self._transport.write(self._upgrade)

    def data_received(self, data: bytes) -> None:
        """Read the upgrade's answer, then the messages that come back."""
        if not self._is_open:
            self._head += data
            if b"\r\n\r\n" in self._head:
                self._begin()
            return
        self._received += len(data)
        if self._received >= MESSAGE_BYTES + 2:
            self._account.count(self._sent_at)
            self._next()

    def connection_lost(self, exc: Exception | None) -> None:
        """Count an error if the run is not over."""
        if not self._account.is_over:
            self._account.errors += 1
        self.closed.set_result(None)

    def _begin(self) -> None:
        self._is_open = self._head.startswith(b"HTTP/1.1 101 ")
        if self._is_open:
            self._next()
        else:
            self._transport.abort()

    def _next(self) -> None:
        if self._account.is_over:
            self._transport.abort()
            return
        self._received = 0
        self._sent_at = time.perf_counter()
        self._transport.write(self._frame)


def _upgrade(url: URL) -> bytes:
    key = base64.b64encode(os.urandom(16)).decode()
    lines = (f"GET {url.path} HTTP/1.1", f"Host: {url.host}", "Connection: Upgrade", "Upgrade: websocket")
    return "\r\n".join((*lines, "Sec-WebSocket-Version: 13", f"Sec-WebSocket-Key: {key}", "", "")).encode()


def _client_frame(payload: bytes) -> bytes:
    """Return a binary message, masked (RFC 6455 §5.3)."""
    mask = os.urandom(4)
    masked = bytes(byte ^ mask[index % 4] for index, byte in enumerate(payload))
    return bytes((0x82, 0x80 | len(payload))) + mask + masked


async def echo(url: URL, account: LoadResult) -> None:
    """Exchange WebSocket messages on all connections until the run is over."""
    loop = asyncio.get_running_loop()
    protocols = []
    for _ in range(CONNECTIONS):
        _, protocol = await loop.create_connection(
            lambda: Echoing(url, account), "127.0.0.1", _port(url), ssl=_tls(url), server_hostname=_name(url, url.host)
        )
        protocols.append(protocol)
    await asyncio.gather(*(protocol.closed for protocol in protocols))


# HEAD ------------------------------------------------------------------------------------------------------


async def ask_for_heads(url: URL, account: LoadResult) -> None:
    """Send HEAD on all connections until the run is over."""
    assert url.host is not None
    requests = itertools.cycle(heads.asking_heads(url.host, url.path))
    await asyncio.gather(*(_ask_for_heads(url, requests, account) for _ in range(CONNECTIONS)))


async def _ask_for_heads(url: URL, requests: Iterator[bytes], account: LoadResult) -> None:
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", url.port, ssl=_tls(url), server_hostname=_name(url, url.host)
    )
    try:
        while not account.is_over:
            started_at = time.perf_counter()
            writer.write(next(requests))
            async with asyncio.timeout(_ANSWER_SECONDS):
                _body_bytes(await reader.readuntil(b"\r\n\r\n"))
            account.count(started_at)
    except (OSError, EOFError, TimeoutError):
        account.errors += 1
    finally:
        writer.transport.abort()


# Many domains ----------------------------------------------------------------------------------------------


async def visit(url: URL, hosts: list[str], account: LoadResult) -> None:
    """Request the hosts in turn on all connections until the run is over."""
    requests = itertools.cycle(zip(hosts, heads.round_robin(hosts, url.path), strict=True))
    await asyncio.gather(*(_visit(url, requests, account) for _ in range(CONNECTIONS)))


async def _visit(url: URL, requests: Iterator[tuple[str, bytes]], account: LoadResult) -> None:
    while not account.is_over:
        host, request = next(requests)
        try:
            async with asyncio.timeout(_ANSWER_SECONDS):
                await _converse(url, host, request, account)
        except (OSError, EOFError, TimeoutError):
            account.errors += 1


async def _converse(url: URL, host: str, request: bytes, account: LoadResult) -> None:
    """Make some requests on one connection."""
    started_at = time.perf_counter()
    reader, writer = await asyncio.open_connection(
        "127.0.0.1", url.port, ssl=_tls(url), server_hostname=_name(url, host)
    )
    try:
        for _ in range(REQUESTS_A_CONNECTION):
            writer.write(request)
            head = await reader.readuntil(b"\r\n\r\n")
            await reader.readexactly(_body_bytes(head))
            account.count(started_at)
            started_at = time.perf_counter()
    finally:
        writer.transport.abort()


# New connections -------------------------------------------------------------------------------------------


async def connect_often(url: URL, account: LoadResult, *, returns: bool) -> None:
    """Open a connection for each request until the run is over; with `returns`, offer the session of the last one."""
    accounts = [LoadResult(account.ends_at) for _ in range(_THREADS)]
    await asyncio.gather(*(asyncio.to_thread(_connect_often, url, each, returns=returns) for each in accounts))
    for each in accounts:
        account.latencies_us += each.latencies_us
        account.errors += each.errors
        account.resumed += each.resumed


def _connect_often(url: URL, account: LoadResult, *, returns: bool) -> None:
    """Connect often in a thread of its own, since asyncio's TLS takes no session."""
    assert url.host is not None
    (request,) = heads.closing(url.host, url.path)
    context, session = _trusting_anew(), None
    while not account.is_over:
        started_at = time.perf_counter()
        try:
            raw = socket.create_connection(("127.0.0.1", _port(url)), _ANSWER_SECONDS)
            with context.wrap_socket(raw, server_hostname=url.host, session=session) as connection:
                connection.sendall(request)
                answer = b""
                while piece := connection.recv(65536):
                    answer += piece
                head, _, body = answer.partition(b"\r\n\r\n")
                if len(body) != _body_bytes(head + b"\r\n"):
                    raise OSError("the answer ended early")
                account.resumed += connection.session_reused is True
                session = connection.session if returns else None
        except OSError:
            account.errors += 1
        else:
            account.count(started_at)


def _body_bytes(head: bytes) -> int:
    """Return the length of a successful response that states it.

    Raises: OSError for any other.
    """
    status, _, fields = head.partition(b"\r\n")
    length = fields.lower().partition(b"content-length:")[2].partition(b"\r\n")[0].strip()
    if b" 200 " not in status or not length.isdigit():
        raise OSError(status.decode("latin-1"))
    return int(length)


def _port(url: URL) -> int:
    assert url.port is not None
    return url.port


def _name(url: URL, host: str | None) -> str | None:
    return host if url.scheme == "https" else None


def _tls(url: URL) -> ssl.SSLContext | None:
    return _trusting() if url.scheme == "https" else None


@functools.cache
def _trusting() -> ssl.SSLContext:
    return _trusting_anew()


def _trusting_anew() -> ssl.SSLContext:
    """Create a context that verifies nothing: that is the client's work, and not what is measured."""
    context = ssl.create_default_context()
    context.check_hostname = False
    context.verify_mode = ssl.CERT_NONE
    return context


def main() -> None:
    """Run one load and print its result."""
    parser = argparse.ArgumentParser(prog="python -m bench.load_client", description=__doc__)
    parser.add_argument("load", choices=["socket", "head", "domains", "new", "returning"])
    parser.add_argument("url", type=URL)
    parser.add_argument("--seconds", type=float, default=3)
    parser.add_argument("--hosts", type=Path, help="a host a line, for `domains`")
    arguments = parser.parse_args()
    with asyncio.Runner(loop_factory=loop_factory()) as runner:
        print(runner.run(_load(arguments)))


async def _load(arguments: argparse.Namespace) -> str:
    start = time.perf_counter()
    account = LoadResult(ends_at=start + arguments.seconds)
    if arguments.load == "socket":
        await echo(arguments.url, account)
    elif arguments.load == "head":
        await ask_for_heads(arguments.url, account)
    elif arguments.load in ("new", "returning"):
        await connect_often(arguments.url, account, returns=arguments.load == "returning")
    else:
        await visit(arguments.url, arguments.hosts.read_text("ascii").split(), account)
    return account.as_json(time.perf_counter() - start)


if __name__ == "__main__":
    main()
